#!/usr/bin/env bash
# The emulated XRT device under valgrind, with a third-party program. Arguments: tenon, the program, the XILINX_XRT
# directory.
set -euo pipefail
tenon=$1 program=$2 root=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$tenon" xclbin write --config tiny --units 2 --memory 1 -o "$scratch/tiny.xclbin"
export XILINX_XRT=$root TENON_XRT_MODEL=behavioral
# Errors and lost memory anywhere count; memory that is still reachable at the end belongs to XRT and the loader.
valgrind --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite --fair-sched=yes \
  "$program" "$scratch/tiny.xclbin" 5
