#!/usr/bin/env bash
# The published presets and the classifier on CIFAR-10, with AlexNet and with EfficientNet-Lite0; on one GPU.
#     runs/presets.sh ALEXNET.npz    a weight file of AlexNet; its convolutional layers are enough
# All run in parallel, as small batches leave a GPU idle: each takes longer than it would alone.
set -euo pipefail
cd "$(dirname "$0")/.."
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
weights=$1
shift
run() { python runs/reference.py cifar10 --protocol 59k --bits 12 48 --splits 0 --out results/cifar10 "$@"; }
compiled='{"compile":"reduce-overhead"}'  # without spaces: it is split into words below
for network in "alexnet --weights $weights" "efficientnet_lite0 --size 128 --recipe $compiled"; do
    for preset in paper authors-matlab authors-pytorch; do run --network $network --preset $preset "$@" & done
done
run --network alexnet --weights "$weights" --method classifier "$@" &
run --network efficientnet_lite0 --method classifier --preset fast "$@" &
for job in $(jobs -p); do wait "$job"; done
