#!/usr/bin/env bash
# The output of `tenon compile --print` is a model: printed at any station and read again, it computes the same bits.
# Argument: tenon.
set -euo pipefail
tenon=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
digits=tests/models/resnet8_digits_test.npz
onnx=tests/models/tiny_digits.onnx
data=(--divide 255 --data "$digits:x" --limit 2 --quiet)
quantized=(--shapes N=1 --calibrate "$digits:calib")

"$tenon" run "$onnx" --shapes N=1 "${data[@]}" --cpu --output "$scratch/float" >/dev/null
"$tenon" run "$onnx" "${quantized[@]}" "${data[@]}" --output "$scratch/int8" >/dev/null
for station in model quantized partitioned; do
  "$tenon" compile "$onnx" "${quantized[@]}" --divide 255 --print "$station" -o "$scratch/x.tnx" >"$scratch/x.$station.tn"
  "$tenon" run "$scratch/x.$station.tn" "${data[@]}" --output "$scratch/$station" >/dev/null
  want=int8
  if [ "$station" = model ]; then want=float; fi
  for sample in 0 1; do
    cmp "$scratch/$want"/*_$sample.npy "$scratch/$station"/*_$sample.npy || { echo "printed at $station"; exit 1; }
  done
done
