#!/usr/bin/env bash
# The presets as named on CIFAR-10, with AlexNet and EfficientNet-Lite0, and the classifier beside them; on one GPU.
#     runs/presets.sh ALEXNET.npz    a weight file of AlexNet; its convolutions are enough
set -euo pipefail
cd "$(dirname "$0")/.."
weights=$1
shift
run() { python runs/reference.py cifar10 --protocol 59k --bits 12 48 --splits 0 --out results/cifar10 "$@"; }
for preset in paper authors-matlab authors-pytorch; do
    run --preset $preset --network alexnet --weights "$weights" "$@"
    run --preset $preset --network efficientnet_lite0 "$@"
done
run --method classifier --network alexnet --weights "$weights" "$@"
run --method classifier --network efficientnet_lite0 "$@"
python runs/reference.py cifar10 --protocol 59k --network alexnet --weights "$weights" --bits 12 24 32 48 \
    --splits 0 1 2 --out results/cifar10 "$@"
