#!/usr/bin/env bash
# ResNet-8 on every kind of device, with every layer equal to the integer reference and to the behavioral simulator, bit
# for bit. A device played:OPTIONS is uio: on a board that tenon-pl plays. Arguments: tenon, samples, devices...
set -euo pipefail
tenon=$1 samples=$2
shift 2
scratch=$(mktemp -d)
player=
trap '[ -z "$player" ] || kill "$player"; rm -rf "$scratch"' EXIT
digits=tests/models/resnet8_digits_test.npz
for device in "$@"; do
  case $device in
    xrt:*) "$tenon" xclbin write --config default -o "${device#*xclbin=}" ;;
    played:*)
      [ -z "$player" ] || kill "$player"
      "${tenon%/*}/tenon-pl" "$scratch/root?config=default&${device#*:}" >"$scratch/ready" &
      player=$!
      until grep -qs ready "$scratch/ready"; do kill -0 "$player"; sleep 0.05; done
      device="uio:?root=$scratch/root"
      ;;
  esac
  "$tenon" run tests/models/resnet8_digits.onnx --shapes N=1 --calibrate "$digits:calib" --divide 255 --data "$digits:x" \
    --labels "$digits:y" --limit "$samples" --check --device "$device" --verify behavioral:default \
    --verify-samples "$samples" --json >"$scratch/figures.json"
  for line in "\"samples\": $samples" "\"layers_compared\": $((11 * samples))" "\"verified_samples\": $samples"; do
    grep -q "$line" "$scratch/figures.json" || { echo "$device: no $line"; cat "$scratch/figures.json"; exit 1; }
  done
  echo "$device: $samples samples, $((11 * samples)) layers equal"
done
