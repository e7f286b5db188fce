#!/bin/sh
# elaborate.sh GENERATE_RTL CONFIG DIRECTORY: yosys elaborates the RTL of a configuration, without and with its assertions.
# A missing tool is a failure.
set -eu
generate=$1 config=$2 directory=$3

"$generate" "$config" "$directory"
cd "$directory"
for assertions in "" -nosynthesis; do  # yosys defines SYNTHESIS by default
  yosys -q -e '.*' -p "read_verilog $assertions -sv $(tr '\n' ' ' <files.f); hierarchy -check -top tenon; proc; check -assert"
done
