#!/usr/bin/env bash
# The paper's tables and figures in results/DATASET, cell by cell: after an interruption, the same command continues.
#     runs/paper.sh cpu       methods without a network, on features: hours on 2 cores
#     runs/paper.sh gpu       ADSH and the deep methods, on images: on a GPU
#     runs/paper.sh show      merge the records, and render tables and figures of all that there are
#     runs/paper.sh features  all methods on the same features, ADSH and the deep ones with an mlp; an hour or two on a CPU
# Further flags go to adsh reproduce: --seeds 5, --jobs 2. Needs the images and lite0_512.npy in
# $ADSH_DATA/cifar10. $ALEXNET: a weight file of AlexNet, for DHN with the network of its paper. $DATASET: cifar10 by
# default. $OUTER: more iterations than the preset's, where items have several labels.
set -euo pipefail
cd "$(dirname "$0")/.."
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
part=${1:-}
shift || true
: "${ADSH_DATA:?must name the folder that holds cifar10/ and the other data sets}"
common=(--dataset "${DATASET:-cifar10}" --network efficientnet_lite0 --preset "${PRESET:-fast}" --features "$ADSH_DATA/${DATASET:-cifar10}/lite0_512.npy" ${ALEXNET:+--alexnet "$ALEXNET"})
[ -z "${OUTER:-}" ] || common+=(--outer "$OUTER")
reproduce() { python -m adsh reproduce "${common[@]}" "$@"; }
only() { for name in "$@"; do printf -- '--method %s ' "$name"; done; }
case $part in
cpu)
    reproduce table1 table2 --tune "$@" $(only itq sdh sdh_d lin_lin cosdish lfh lfh_decay cosdish_d lfh_d lfh_decay_d lin_v fasth)
    reproduce cases "$@" $(only sdh_d cosdish_d lfh_d)
    reproduce scale "$@"
    ;;
gpu)
    reproduce table1 table2 --tune "$@" $(only adsh dsh dhn dpsh dpsh_batch classifier_d)
    reproduce time --tune --compile "$@" --jobs 1 $(only adsh dsh dhn dpsh dsh_d dhn_d dpsh_d)
    reproduce hyper --compile "$@" $(only adsh)
    reproduce networks --tune "$@" $(only dsh dhn)
    reproduce new-items cases "$@" $(only adsh)
    ;;
show) reproduce all --no-run --merge --tune "$@" ;;
features)
    name=${DATASET:-cifar10}
    on_features() { python -m adsh reproduce --dataset "$name" --features "$ADSH_DATA/$name/lite0_512.npy" --out "results/$name-features" "$@"; }
    on_features table1 table2 --tune "$@" $(only itq sdh sdh_d lin_lin cosdish lfh lfh_decay cosdish_d lfh_d lfh_decay_d lin_v fasth)
    on_features table1 table2 --tune "$@" $(only adsh dsh dhn dpsh dpsh_batch classifier_d)
    on_features time --tune "$@" --jobs 1 $(only adsh dsh dhn dpsh dsh_d dhn_d dpsh_d)  # timed: nothing else should run
    on_features new-items "$@"
    on_features table1 table2 top-k pr time columns ties new-items --no-run --tune "$@"
    ;;
*)
    echo "runs/paper.sh: unknown part '$part': give cpu, gpu, show or features" >&2
    exit 2
    ;;
esac
