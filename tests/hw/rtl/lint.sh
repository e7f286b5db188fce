#!/bin/sh
# lint.sh GENERATE_RTL CONFIG DIRECTORY: the RTL of a configuration passes Verilator's lint with every warning on, with
# and without the trace ports and what is for simulators alone, and yosys elaborates it. A missing tool is a failure.
set -eu
generate=$1 config=$2 directory=$3

"$generate" "$config" "$directory"
cd "$directory"
for defines in "" -DTENON_TRACE "-DTENON_TRACE -DTENON_FAST_DOT"; do
  # shellcheck disable=SC2086 # several words
  verilator --lint-only -Wall $defines --top-module tenon -F files.f
done
yosys -q -e '.*' -p "read_verilog -sv $(tr '\n' ' ' <files.f); hierarchy -check -top tenon; proc; check -assert"
