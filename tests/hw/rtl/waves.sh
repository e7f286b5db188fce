#!/usr/bin/env bash
# The waveforms of hw/rtl/blocks are those of a simulation: `waves.sh TENON` runs the pages' program on the RTL and compares,
# and shows that a page with another wave is found; `waves.sh TENON --update` writes the pages.
set -euo pipefail

tenon=$1
blocks=hw/rtl/blocks
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
pages=()
for page in "$blocks"/*.md; do
  [ "$page" = "$blocks/README.md" ] || pages+=("$page")
done

# Inputs count up; the weights of a lane select one input, or two; the parameters divide by nothing.
perl -e 'print map chr, 1 .. 96' >"$scratch/inputs"
perl -e 'print map { pack "C4", @$_ } [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1],
                                      [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]' >"$scratch/weights"
perl -e 'print map { pack "l<S<CC", 0, 1 << 15, 7, 0 } 1 .. 4' >"$scratch/parameters"
"$tenon" debug "$blocks/program.txt" --load "0x100000=$scratch/inputs" --load "0x200000=$scratch/weights" \
  --load "0x300000=$scratch/parameters" -x continue -x 'print dram 0x400000 12' \
  --device "verilator:tiny?memory=9437184&latency=6&write_latency=4&trace=$scratch/waves.vcd" >"$scratch/log"
grep -q 'dram\[0x00400000\]: 0c 0f 12 11 18 1b 1e 1d 24 27 2a 29' "$scratch/log" || {
  echo "the program computes something else:"
  cat "$scratch/log"
  exit 1
}
perl "$blocks/waves.pl" "$scratch/waves.vcd" "${pages[@]}" "${@:2}"

# A wave that is not the simulation's, and a signal that does not exist.
sed '/^done_o/s/_\//__/' "$blocks/gemm.md" >"$scratch/gemm.md"
if perl "$blocks/waves.pl" "$scratch/waves.vcd" "$scratch/gemm.md" >"$scratch/found"; then
  echo "a page with another wave was accepted"
  exit 1
fi
grep -q 'the page differs from the simulation' "$scratch/found"
sed 's/ done_o -->/ gone_o -->/' "$blocks/gemm.md" >"$scratch/gemm.md"
if perl "$blocks/waves.pl" "$scratch/waves.vcd" "$scratch/gemm.md" 2>"$scratch/found"; then
  echo "a signal that does not exist was accepted"
  exit 1
fi
grep -q 'the waves have no signal u_compute/u_gemm/gone_o' "$scratch/found"
