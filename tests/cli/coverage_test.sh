#!/usr/bin/env bash
# What random programs cover of the RTL of the configuration tiny: nearly all blocks and branches.
set -euo pipefail
tenon=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$tenon" fuzz accel --quiet --config tiny --count 40 --seed 5 --coverage "$scratch" >"$scratch/output"
cat "$scratch/output"
share=$(sed -n 's/.* blocks and branches of the RTL (\([0-9]*\)\..*/\1/p' "$scratch/output")
[ "$share" -ge 97 ]
grep -q '%000000' "$scratch/tiny/annotated/alu_lane.sv" # multiplications in passes, which tiny does not have
