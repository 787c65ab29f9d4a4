#!/usr/bin/env bash
# All baselines and ADSH on the same features of CIFAR-10: hours on 2 cores, cheap methods first.
# Needs the images and lite0_512.npy in $ADSH_DATA/cifar10, and scipy and lightgbm: pip install '.[baselines]'.
set -euo pipefail
cd "$(dirname "$0")/.."
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
python runs/baselines.py "$@"
