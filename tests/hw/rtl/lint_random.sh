#!/bin/sh
# lint_random.sh GENERATE_RTL DIRECTORY FIRST LAST: Verilator reads the RTL of the random configurations FIRST to LAST
# (of all limits: tests/sim/random_config.h) without a warning.
set -eu
generate=$1 directory=$2 first=$3 last=$4

for seed in $(seq "$first" "$last"); do
  "$generate" "random:$seed" "$directory"
  if ! (cd "$directory" && verilator --lint-only -Wall -DTENON_TRACE --top-module tenon -F files.f); then
    echo "random:$seed does not pass; its configuration:"
    cat "$directory/config.json"
    exit 1
  fi
done
