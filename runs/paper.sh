#!/usr/bin/env bash
# The paper's tables and figures, cell by cell into results/DATASET: stopped, it goes on where it was.
#     runs/paper.sh cpu     the methods without a network, on features: hours on 2 cores
#     runs/paper.sh gpu     ADSH and the deep methods, on images: a GPU
#     runs/paper.sh show    tables and figures of whatever is done
# More goes to adsh reproduce: --seeds 5, --jobs 2, --choose. $ADSH_DATA/cifar10 holds the images and lite0_512.npy;
# $ALEXNET names a weight file of AlexNet, for DHN with the network of its paper.
set -euo pipefail
cd "$(dirname "$0")/.."
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
part=$1
shift
common=(--dataset "${DATASET:-cifar10}" --network efficientnet_lite0 --preset "${PRESET:-fast}" --features "$ADSH_DATA/${DATASET:-cifar10}/lite0_512.npy" ${ALEXNET:+--alexnet "$ALEXNET"})
[ "${DATASET:-cifar10}" != coco17 ] || common+=(--outer 60)  # several labels an image take longer to learn
reproduce() { python -m adsh reproduce "${common[@]}" "$@"; }
only() { for name in "$@"; do printf -- '--method %s ' "$name"; done; }
case $part in
cpu)
    reproduce table1 table2 "$@" $(only itq sdh sdh_d lin_lin cosdish lfh cosdish_d lfh_d lin_v fasth)
    reproduce cases "$@" $(only sdh_d cosdish_d lfh_d)
    reproduce scale "$@"
    ;;
gpu)
    reproduce table1 table2 --choose "$@" $(only adsh dsh dhn dpsh classifier_d)  # a rate: some bear a small one only
    reproduce time --choose --compile "$@" --jobs 1 $(only adsh dsh dhn dpsh dsh_d dhn_d dpsh_d)
    reproduce hyper --compile "$@" $(only adsh)
    reproduce networks --choose "$@" $(only dsh dhn)
    reproduce new-items cases "$@" $(only adsh)
    ;;
show) reproduce all --no-run --choose "$@" ;;
esac
