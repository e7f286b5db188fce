#!/usr/bin/env bash
# prove.sh GENERATE_RTL CONFIG DIRECTORY PROOF [PARAMETER=VALUE...] [--fault FILE SED ASSERTION]: proves every assertion
# of a module of this folder and of the modules in it, for all inputs and any number of cycles, by yosys and the engine
# PDR of its ABC. The second run is of the logic that is synthesized, where it differs from what simulators take. With a
# fault, planted by sed in one file of the RTL, the proof must fail at that assertion instead: no proof is vacuous.
set -euo pipefail
generate=$1 config=$2 directory=$3 proof=$4
shift 4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
parameters='' fault=no expected=''
while [ $# -gt 0 ]; do
  if [ "$1" = --fault ]; then
    fault=$2:$3 expected=$4
    shift 4
  else
    parameters+=" -chparam ${1%%=*} ${1#*=}"
    shift
  fi
done

"$generate" "$config" "$directory"
cd "$directory"
if [ "$fault" != no ]; then
  cp "${fault%%:*}" original.sv
  sed -i "${fault#*:}" "${fault%%:*}"
  ! cmp -s original.sv "${fault%%:*}" || { printf 'the fault changes nothing: %s\n' "$fault"; exit 1; }
fi
for synthesized in '' -DSYNTHESIS; do
  yosys -q -p "read_verilog -formal $synthesized -sv $(tr '\n' ' ' <files.f) $here/$proof.sv
    hierarchy -check -top $proof$parameters; proc; flatten; opt_clean
    memory -nordff -nomap; memory_map; async2sync; opt -full; techmap; opt -full; dffunmap; aigmap; opt_clean
    tee -q -o assertions.txt select -list t:\$assert
    write_aiger -I -B -zinit -no-startoffset -map proof.aim proof.aig"
  yosys-abc -c 'read_aiger proof.aig; fold; strash; pdr' >proof.log
  failed=$(sed -n 's/^Output \([0-9]*\) of miter.*/\1/p' proof.log)
  [ -z "$failed" ] || failed=$(sed -n "$((failed + 1))s/.*[.\/]//p" assertions.txt)
  if [ "$fault" != no ]; then
    printf 'The fault fails at %s, expected %s.\n' "${failed:-no assertion}" "$expected"
    [ "$failed" = "$expected" ]
    exit
  fi
  grep -q 'Property proved' proof.log || { cat proof.log; printf 'failed at %s\n' "$failed"; exit 1; }
  printf '%s assertions proved.%s\n' "$(wc -l <assertions.txt)" "${synthesized:+ ($synthesized)}"
done
