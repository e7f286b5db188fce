#!/usr/bin/env bash
# ResNet-8 on every kind of device, with every layer equal to the integer reference and to the behavioral simulator, bit
# for bit. Arguments: tenon, samples, devices...
set -euo pipefail
tenon=$1 samples=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
digits=tests/models/resnet8_digits_test.npz
for device in "$@"; do
  case $device in
    xrt:*) "$tenon" xclbin write --config default -o "${device#*xclbin=}" ;;
  esac
  "$tenon" run tests/models/resnet8_digits.onnx --shapes N=1 --calibrate "$digits:calib" --divide 255 --data "$digits:x" \
    --labels "$digits:y" --limit "$samples" --check --device "$device" --verify behavioral:default \
    --verify-samples "$samples" --json >"$scratch/figures.json"
  for line in "\"samples\": $samples" "\"layers_compared\": $((10 * samples))" "\"verified_samples\": $samples"; do
    grep -q "$line" "$scratch/figures.json" || { echo "$device: no $line"; cat "$scratch/figures.json"; exit 1; }
  done
  echo "$device: $samples samples, $((10 * samples)) layers equal"
done
