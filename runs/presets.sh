#!/usr/bin/env bash
# The presets as named on CIFAR-10, with AlexNet and EfficientNet-Lite0, and the classifier beside them; on one GPU.
#     runs/presets.sh ALEXNET.npz    a weight file of AlexNet; its convolutions are enough
# All are run side by side, as small batches leave a GPU idle: their seconds are longer than those of one run alone.
set -euo pipefail
cd "$(dirname "$0")/.."
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
weights=$1
shift
run() { python runs/reference.py cifar10 --protocol 59k --bits 12 48 --splits 0 --out results/cifar10 "$@"; }
compiled='{"compile":"reduce-overhead"}'  # one word
for network in "alexnet --weights $weights" "efficientnet_lite0 --size 128 --recipe $compiled"; do
    for preset in paper authors-matlab authors-pytorch; do run --network $network --preset $preset "$@" & done
done
run --network alexnet --weights "$weights" --method classifier "$@" &
run --network efficientnet_lite0 --method classifier --preset fast "$@" &
for job in $(jobs -p); do wait "$job"; done
