#!/usr/bin/env bash
# ResNet-8 on every kind of device, with every layer equal to the integer reference and to the behavioral simulator, bit
# for bit. A device emulated:OPTIONS is uio: on a board that tenon-pl emulates, line:OPTIONS is serial: on a board that
# tenon-serial emulates, served:URI the device URI of a second process, pins:PROGRAM serial: on the
# Verilated design of a board with an SDRAM, which PROGRAM simulates at the pins of its serial line.
# Arguments: tenon, samples, devices...
set -euo pipefail
tenon=$1 samples=$2
shift 2
scratch=$(mktemp -d)
board=
server=
trap '[ -z "$board" ] || kill "$board"; [ -z "$server" ] || kill "$server"; rm -rf "$scratch"' EXIT
digits=tests/models/resnet8_digits_test.npz
for device in "$@"; do
  configuration=default
  case $device in
    xrt:*) "$tenon" xclbin write --config default -o "${device#*xclbin=}" ;;
    emulated:*)
      [ -z "$board" ] || kill "$board"
      "${tenon%/*}/tenon-pl" "$scratch/root?config=default&${device#*:}" >"$scratch/ready" &
      board=$!
      until grep -qs ready "$scratch/ready"; do kill -0 "$board"; sleep 0.05; done
      device="uio:?root=$scratch/root"
      ;;
    line:*)
      [ -z "$board" ] || kill "$board"
      "${tenon%/*}/tenon-serial" "$scratch/tty?config=default&${device#*:}" >"$scratch/ready" &
      board=$!
      until grep -qs ready "$scratch/ready"; do kill -0 "$board"; sleep 0.05; done
      device="serial:$scratch/tty?baud=1000000"
      ;;
    pins:*)
      [ -z "$board" ] || kill "$board"
      "${device#*:}" "$scratch/tty" >"$scratch/ready" &
      board=$!
      until grep -qs ready "$scratch/ready"; do kill -0 "$board"; sleep 0.05; done
      device="serial:$scratch/tty?baud=1000000&timeout=60000"
      configuration=native-8x8
      ;;
    served:*)
      [ -z "$server" ] || kill "$server"
      : >"$scratch/serving"
      "$tenon" serve --listen 127.0.0.1:0 --device "${device#*:}" >"$scratch/serving" &
      server=$!
      until grep -qs ' at ' "$scratch/serving"; do kill -0 "$server"; sleep 0.05; done
      device="remote:$(sed -n 's/.* at //p' "$scratch/serving")"
      ;;
  esac
  "$tenon" run tests/models/resnet8_digits.onnx --shapes N=1 --calibrate "$digits:calib" --divide 255 --data "$digits:x" \
    --labels "$digits:y" --limit "$samples" --check --device "$device" --verify "behavioral:$configuration" \
    --verify-samples "$samples" --json >"$scratch/figures.json"
  for line in "\"samples\": $samples" "\"layers_compared\": $((11 * samples))" "\"verified_samples\": $samples"; do
    grep -q "$line" "$scratch/figures.json" || { echo "$device: no $line"; cat "$scratch/figures.json"; exit 1; }
  done
  echo "$device: $samples samples, $((11 * samples)) layers equal"
done
