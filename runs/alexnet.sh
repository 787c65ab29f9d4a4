#!/usr/bin/env bash
# AlexNet on CIFAR-10 with the preset `modern`: all code lengths, three splits for the shortest and the longest; one GPU.
#     runs/alexnet.sh ALEXNET.npz    a weight file of AlexNet; its convolutional layers are enough
set -euo pipefail
cd "$(dirname "$0")/.."
weights=$1
shift
run() { python runs/reference.py cifar10 --protocol 59k --network alexnet --weights "$weights" --out results/cifar10 "$@"; }
run --bits 12 24 32 48 --splits 0 "$@"
run --bits 12 48 --splits 1 2 "$@"
