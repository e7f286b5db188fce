#!/usr/bin/env bash
# scripts/bench_accuracy without the network: help, wrong usage, and what is missing. Argument: the program.
set -euo pipefail

# shellcheck source=tests/expect.sh
source tests/expect.sh
tenon=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

expect 0 "Usage: scripts/bench_accuracy" scripts/bench_accuracy --help
expect 2 "unknown argument --nonsense" scripts/bench_accuracy --nonsense
expect 2 "--limit needs a value" scripts/bench_accuracy --limit
expect 2 "--limit is a number, not 'all'" scripts/bench_accuracy --limit all
expect 2 "no model is called nothing" scripts/bench_accuracy --models ocr,nothing
expect 1 "nowhere/tenon is not there" scripts/bench_accuracy --tenon nowhere/tenon
mkdir "$scratch/stubs"
printf '#!/bin/bash\nexit 1\n' >"$scratch/stubs/python3"
chmod +x "$scratch/stubs/python3"
expect 1 "there is no Python with numpy, onnx, onnxruntime and pillow" env PATH="$scratch/stubs:$PATH" \
  scripts/bench_accuracy --tenon "$tenon" --no-install --folder "$scratch/accuracy"
