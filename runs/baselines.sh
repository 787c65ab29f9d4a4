#!/usr/bin/env bash
# Every method ADSH is compared with, and ADSH itself, on the same features of CIFAR-10: hours on 2 cores, cheap ones first
# $ADSH_DATA/cifar10 holds the images and lite0_512.npy; pip install '.[baselines]' brings scipy and lightgbm.
set -euo pipefail
cd "$(dirname "$0")/.."
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
python runs/baselines.py "$@"
