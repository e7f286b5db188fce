#!/usr/bin/env bash
# scripts/bench_peers, scripts/bench_train and scripts/bench_batching without the network: help, wrong usage, missing peers, and Tenon alone where Python has onnx.
# Argument: the program.
set -euo pipefail

# shellcheck source=tests/expect.sh
source tests/expect.sh
tenon=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

expect 0 "Usage: scripts/bench_peers" scripts/bench_peers --help
expect 2 "unknown argument --nonsense" scripts/bench_peers --nonsense
expect 2 "--rounds needs a value" scripts/bench_peers --rounds
expect 2 "--rounds is a number from 1 on, not '0'" scripts/bench_peers --rounds 0
expect 2 "no peer is called nobody" scripts/bench_peers --peers nobody
expect 1 "nowhere/tenon is not there" scripts/bench_peers --tenon nowhere/tenon
expect 0 "Usage: scripts/bench_train" scripts/bench_train --help
expect 2 "unknown argument --nonsense" scripts/bench_train --nonsense
expect 2 "--rounds is a number from 1 on, not '0'" scripts/bench_train --rounds 0
expect 1 "nowhere/tenon is not there" scripts/bench_train --tenon nowhere/tenon
expect 0 "Usage: scripts/bench_batching" scripts/bench_batching --help
expect 2 "unknown argument --nonsense" scripts/bench_batching --nonsense
expect 2 "--json needs a value" scripts/bench_batching --json

# A machine whose Python has neither onnx nor a way to fetch it.
mkdir "$scratch/clone" "$scratch/stubs"
cp -r scripts "$scratch/clone"
cat >"$scratch/stubs/python3" <<'END'
#!/bin/bash
[ "$2" = venv ] || exit 1
mkdir -p "$3/bin"
cp "$0" "$3/bin/python"
END
chmod +x "$scratch/stubs/python3"
clone=$scratch/clone/scripts/bench_peers
expect 1 "there is no Python with onnx and numpy" env PATH="$scratch/stubs:$PATH" "$clone" --tenon "$tenon" --no-install
expect 1 "pip cannot install onnx" env PATH="$scratch/stubs:$PATH" "$clone" --tenon "$tenon"
expect 1 "there is no Python with onnx and numpy" env PATH="$scratch/stubs:$PATH" "$scratch/clone/scripts/bench_train" \
  --tenon "$tenon" --no-install

if ! python3 -c 'import numpy, onnx' 2>/dev/null; then
  echo "Python has no onnx: the measurement itself was not tried"
  exit 0
fi
rm -r "$scratch/stubs/python3" "$scratch/clone/build"
alone=("$clone" --tenon "$tenon" --no-install --models mobilenetv2 --rounds 1)
expect 0 "| mobilenetv2 | " "${alone[@]}" --peers none
expect 0 "'s time by Tenon's" "${alone[@]}" --peers none
expect 2 "no model is called nothing" "${alone[@]}" --peers none --models nothing
grep -q '"compile_seconds"' "$scratch/clone/build/peers/figures.json"
python3 -c 'import onnxruntime' 2>/dev/null ||
  expect 0 "onnxruntime is not there: measured without it" "${alone[@]}" --peers onnxruntime
# Training, with the model of the digits.
mkdir -p "$scratch/clone/tests/models"
cp tests/models/resnet8_digits.onnx "$scratch/clone/tests/models"
expect 0 "mlp" "$scratch/clone/scripts/bench_train" --tenon "$tenon" --no-install --models mlp --rounds 1
expect 1 "no network is called nothing" "$scratch/clone/scripts/bench_train" --tenon "$tenon" --no-install --models nothing
# Batches of instances.
mkdir -p "$scratch/clone/tests/examples"
cp tests/examples/tree_lstm.tn "$scratch/clone/tests/examples"
batching=("$scratch/clone/scripts/bench_batching" --tenon "$tenon" --no-install --rounds 1)
expect 0 "tagger H128 batch 64: " "${batching[@]}" --models tagger
expect 0 "tree_lstm H256 batch 64: " "${batching[@]}" --models tree_lstm
expect 1 "no model is called nothing" "${batching[@]}" --models nothing
