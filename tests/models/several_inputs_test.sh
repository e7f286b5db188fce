#!/usr/bin/env bash
# A model of two inputs and two outputs, over samples, from an executable, and in the interpreter: equal results.
# Arguments: tenon, tenon-run.
set -euo pipefail
# shellcheck source=tests/expect.sh
source tests/expect.sh
tenon=$1 tenon_run=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
arrays=tests/runtime/data/mixed.npz  # x: f32 (2, 3), all ones; labels: u8 (2,), 3 and 1
model=$scratch/two.tn
cat >"$model" <<'END'
#[version = "1"]
def @main(%x: Tensor[(1, 3), f32], %labels: Tensor[(), u8]) -> (Tensor[(1, 3), f32], Tensor[(), u8]) {
  let %sum = %x + %x;
  let %square = %labels * %labels;
  (%sum, %square)
}
END
{
  printf '\223NUMPY\1\0v\0%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }"
  printf '\0\0\200?%.0s' 1 2 3
} >"$scratch/ones.npy"

# Over samples: an argument for each input, in order, by name, or an archive whose members have the inputs' names.
run=("$tenon" run "$model" --cpu --quiet)
"${run[@]}" --data "labels=$arrays:labels" --data "x=$arrays:x" --output "$scratch/named" >/dev/null
"${run[@]}" --data "$arrays:x" --data "$arrays:labels" --output "$scratch/ordered" >/dev/null
"${run[@]}" --data "$arrays" --output "$scratch/archive" >/dev/null
[ "$(cd "$scratch/named" && echo *)" = "square_0.npy square_1.npy sum_0.npy sum_1.npy" ]
diff -r "$scratch/named" "$scratch/ordered"
diff -r "$scratch/named" "$scratch/archive"
expect 0 '"samples": 2' "${run[@]}" --data "$arrays" --json
# All results in one archive, by name: those of both samples are two samples again.
"${run[@]}" --data "$arrays" --output "$scratch/all.npz" >/dev/null
expect 0 "sample 1, square: u8 (): 1" "${run[@]}" --data "x=$scratch/all.npz:sum" --data "labels=$scratch/all.npz:square"
# Without a file for them they are printed.
expect 0 "sample 0, sum: f32 (1, 3): 2 2 2" "${run[@]}" --data "$arrays"
expect 2 "it would overwrite" "${run[@]}" --data "$arrays" --output "$arrays"
# The model may follow the data: each --data takes one value.
expect 0 '"samples": 2' "$tenon" run --cpu --quiet --json --data "$arrays:x" --data "$arrays:labels" "$model"
expect 0 "" "$tenon" compile --cpu -o "$scratch/last.tnx" --calibrate "$arrays:x" --calibrate "$arrays:labels" "$model"
# One sample of an input is the same in each run.
"${run[@]}" --data "$arrays:x" --data labels=3 --output "$scratch/literal" >/dev/null
cmp "$scratch/literal/square_0.npy" "$scratch/literal/square_1.npy"
cmp "$scratch/literal/square_0.npy" "$scratch/named/square_0.npy"

# Calibration takes an argument for each input too.
cat >"$scratch/real.tn" <<'END'
#[version = "1"]
def @main(%a: Tensor[(1, 3), f32], %b: Tensor[(1, 3), f32]) -> (Tensor[(1, 3), f32], Tensor[(1, 3), f32]) {
  (%a + %b, relu(%a))
}
END
expect 0 "" "$tenon" compile "$scratch/real.tn" --cpu --calibrate "a=$arrays:x" --calibrate "b=$arrays:x" -o "$scratch/real.tnx"
expect 2 "input 'b' is missing" "$tenon" compile "$scratch/real.tn" --cpu --calibrate "$arrays:x" -o "$scratch/real.tnx"

# The executable by both programs.
"$tenon" compile "$model" --cpu -o "$scratch/two.tnx" >/dev/null
"$tenon" run "$scratch/two.tnx" --cpu --quiet --data "$arrays" --output "$scratch/executable" >/dev/null
diff -r "$scratch/named" "$scratch/executable"
"$tenon_run" "$scratch/two.tnx" --input "x=$scratch/ones.npy" --input labels=3 --output "$scratch/run" >/dev/null
cmp "$scratch/run/sum.npy" "$scratch/named/sum_0.npy"
cmp "$scratch/run/square.npy" "$scratch/named/square_0.npy"
expect 0 "square: u8 ()" "$tenon_run" "$scratch/two.tnx" --input "$scratch/ones.npy" --input 3
"$tenon_run" "$scratch/two.tnx" --input "$scratch/ones.npy" --input 3 --output "$scratch/run.npz" >/dev/null
expect 0 "square: u8 (): 81" "$tenon" run "$scratch/two.tnx" --cpu --quiet --data "x=$scratch/run.npz:sum" \
  --data "labels=$scratch/run.npz:square"
expect 2 "is an input, which it would overwrite" \
  "$tenon_run" "$scratch/two.tnx" --input "$scratch/ones.npy" --input 3 --output "$scratch/ones.npy"

# The interpreter.
expect 0 "9u8" "$tenon" run "$model" --input "x=$scratch/ones.npy" --input labels=3
"$tenon" run "$model" --input "$scratch/ones.npy" --input 3 --output "$scratch/expected.npz"
expect 0 "as expected: 2 results" "$tenon" run "$model" --input "$scratch/ones.npy" --input 3 --expect "$scratch/expected.npz"

# The messages name the fault.
expect 2 "input 'labels' is missing, the model takes u8 ()" "${run[@]}" --data "$arrays:x"
expect 2 "input 'x' is given twice" "${run[@]}" --data "$arrays" --data "x=$arrays:x"
expect 2 "no input is named 'y'" "${run[@]}" --data "$arrays:x" --data "y=$arrays:labels"
expect 2 "there are more arguments than inputs" "${run[@]}" --data "$arrays:x" --data "$arrays:labels" --data "$arrays:x"
expect 2 "the data of 'labels' is 2 samples, that of another input 0" "${run[@]}" --data "$arrays:none" --data "$arrays:labels"
expect 1 "input 'labels' is missing" "$tenon_run" "$scratch/two.tnx" --input "$scratch/ones.npy"
expect 2 "--data is required" "$tenon" run "$scratch/two.tnx" --cpu
