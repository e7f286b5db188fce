#!/usr/bin/env bash
# Models that generate.py draws, against ONNX Runtime and onnx's reference evaluator: none is wrong, 2 % at most are
# refused. Skipped where Python has neither onnx nor onnxruntime.
set -euo pipefail

usage='Usage: tests/onnx/generated.sh PROGRAM MODELS N [--update]; N: every Nth model is compiled too'
[ $# -ge 3 ] || { echo "$usage"; exit 2; }
program=$1 models=$2 compiled=$3
# shellcheck source=scripts/lib.sh
source scripts/lib.sh
# shellcheck source=scripts/peers/environment.sh
source scripts/peers/environment.sh
[ -x "$python" ] || python=python3
if ! has onnx || ! has onnxruntime || ! has ml_dtypes; then
  echo "skipped: Python has no onnx, onnxruntime and ml_dtypes; scripts/bench_peers --peers onnxruntime installs them"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
arguments=("$scratch/models" generated --compiled "$compiled")
if [ "${4-}" = --update ]; then
  arguments+=(--update tests/onnx/generated.md)
fi
"$python" tests/onnx/generate.py "$scratch/models" --models "$models"
"$program" "${arguments[@]}"
