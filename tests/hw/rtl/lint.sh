#!/bin/sh
# lint.sh GENERATE_RTL CONFIG DIRECTORY: the RTL of a configuration passes Verilator's lint with every warning on, with
# and without the trace ports and the code for simulators. A missing tool is a failure.
set -eu
generate=$1 config=$2 directory=$3

"$generate" "$config" "$directory"
cd "$directory"
for defines in "" -DTENON_TRACE "-DTENON_TRACE -DTENON_FAST_DOT"; do
  # shellcheck disable=SC2086 # several words
  verilator --lint-only -Wall $defines --top-module tenon -F files.f
done
# Yosys takes the sign for a part of the width.
if grep -nE "[-+~!] *[0-9]+'\(" ./*.sv | grep -vE "[]A-Za-z0-9_)}] *[-+] *[0-9]+'\("; then
  echo "a sign before a cast to a number of bits: give the value a name" >&2
  exit 1
fi
