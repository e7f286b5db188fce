#!/usr/bin/env bash
# One example against NumPy's results, also in the other forms of a module. Arguments: the program, the example.
set -euo pipefail
# shellcheck source=tests/expect.sh
source tests/expect.sh
tenon=$1 example=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
here=tests/examples data=tests/examples/${example}_data.npz

expect 0 "" "$tenon" fmt --check "$here/$example.tn"
"$tenon" convert "$here/$example.tn" -o "$scratch/$example.tnb"
"$tenon" convert "$scratch/$example.tnb" -o "$scratch/$example.tn"
for module in "$here/$example.tn" "$scratch/$example.tnb" "$scratch/$example.tn"; do
  case $example in
    char_rnn) expect 0 "as expected: 2 results" "$tenon" run "$module" --input "$data:text" --expect "$data" ;;
    tree_lstm) expect 0 "as expected: 1 result" "$tenon" run "$module" --input "$data:codes" --expect "$data" ;;
    list_lstm)
      expect 0 "as expected: 1 result" "$tenon" run "$module" --input "x=$data:x" --input scale=0.5 --expect "$data"
      expect 1 "result 0 differs by" "$tenon" run "$module" --input "$data:x" --input 0.25 --expect "$data"
      ;;
    banded)
      expect 0 "as expected: 1 result" "$tenon" run "$module" --input "x=$data:x" --input "band=$data:band" --expect "$data"
      ;;
    generate) expect 0 "$(cat "$here/generate.txt")" "$tenon" run "$module" --input first=5 --input seed=7 ;;
  esac
done

# Its cells in int8 on the accelerator, its recursion in the virtual machine.
if [ "$example" = tree_lstm ]; then
  expect 0 "equal bit for bit" "$tenon" run "$here/$example.tn" --shapes n=11 --calibrate "codes=$data:codes" \
    --data "codes=$data:codes" --device behavioral:tiny --check
fi

# Compiled, for all sizes, and run by the virtual machine: the interpreter's result.
expect 0 "" "$tenon" compile "$here/$example.tn" --cpu -o "$scratch/$example.tnx"
inputs=()
case $example in
  tree_lstm) inputs=(--input "codes=$data:codes") ;;
  list_lstm)
    # The scalar 0.5 as a file.
    printf '\223NUMPY\001\000\166\000%-117s\n\000\000\000\077' "{'descr': '<f4', 'fortran_order': False, 'shape': (), }" >"$scratch/scale.npy"
    inputs=(--input "x=$data:x" --input "scale=$scratch/scale.npy")
    ;;
  banded) inputs=(--input "x=$data:x" --input "band=$data:band") ;;
esac
if [ ${#inputs[@]} -gt 0 ]; then
  expect 0 "" "$tenon-run" "$scratch/$example.tnx" "${inputs[@]}" --output "$scratch/results"
  results=("$scratch"/results/*.npy)
  expect 0 "as expected: 1 result" "$tenon" run "$here/$example.tn" "${inputs[@]}" --expect "${results[0]}"
fi
