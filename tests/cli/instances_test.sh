#!/usr/bin/env bash
# tenon run --instances: many runs of one function, from lines of text and JSON and from archives. Argument: the program.
set -euo pipefail
# shellcheck source=tests/expect.sh
source tests/expect.sh
tenon=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trees=(run tests/examples/tree_lstm.tn --entry classify)

# Compiled and interpreted, in batches of any size, one result a line in the file's order.
"$tenon" "${trees[@]}" --instances tests/examples/trees.txt >"$scratch/results"
[ "$(wc -l <"$scratch/results")" = 5 ]
for batch in 1 2 7; do
  "$tenon" "${trees[@]}" --instances tests/examples/trees.txt --batch $batch | cmp - "$scratch/results"
done
# The result of an instance is the result of its run alone.
grep '^[A-Z]' tests/examples/trees.txt | while read -r tree; do
  echo "$tree" >"$scratch/one.txt"
  "$tenon" "${trees[@]}" --instances "$scratch/one.txt"
done | cmp - "$scratch/results"

cat >"$scratch/m.tn" <<'END_OF_MODULE'
#[version = "1"]
type List[A] { Cons(A, List[A]), Nil }
def @sum(%xs: List[Tensor[(), i64]]) -> Tensor[(), i64] { match %xs { Cons(%x, %rest) => %x + @sum(%rest), Nil => 0i64 } }
def @same(%xs: List[Tensor[(), f32]]) { %xs }
def @pick[n](%w: Tensor[(n,), f32], %i: Tensor[(), i64]) { gather(%w, %i) }
def @forever(%n: Tensor[(), i64]) -> Tensor[(), i64] { if (%n > 0i64) { @forever(%n + 1i64) } else { %n } }
def @rows[n](%x: Tensor[(n, 2), f32], %scale: Tensor[(), f32]) { (sum(%x, axes=[0]) * %scale, %x) }
def @pair(%p: (Tensor[(), f32], List[Tensor[(), i64]]), %n: Tensor[(), i64]) { (%n, %p) }
END_OF_MODULE
module=$scratch/m.tn

# Results are inputs again, in text and in JSON.
printf 'Cons(0.1, Cons(-inf, Cons(nan, Nil)))\nNil\n' >"$scratch/same.txt"
"$tenon" run "$module" --entry same --instances "$scratch/same.txt" >"$scratch/again.txt"
head -n 1 "$scratch/again.txt" | grep -qx 'Cons(0.1f32, Cons(-inff32, Cons(nanf32, Nil)))'
"$tenon" run "$module" --entry same --instances "$scratch/again.txt" | cmp - "$scratch/again.txt"
"$tenon" run "$module" --entry same --instances "$scratch/same.txt" --json >"$scratch/again.jsonl"
"$tenon" run "$module" --entry same --instances "$scratch/again.jsonl" | cmp - "$scratch/again.txt"

# A mistake in a line, and a run that fails: each has its own error, and all others their results.
printf '// Lists of integers.\nCons(1, Cons(2, Nil))\n\nCons(1, Nul)\nCons(3i32, Nil)\nCons(5, Nil)\n' >"$scratch/lists.txt"
run=("$tenon" run "$module" --entry sum --instances "$scratch/lists.txt")
expect 1 "lists.txt:4:9: error: expected List[Tensor[(), i64]], found 'Nul'
  help: did you mean Nil?" "${run[@]}"
expect 1 "lists.txt:5:6: error: expected Tensor[(), i64], found '3i32'" "${run[@]}"
expect 1 "lists.txt: error: 2 of 4 instances failed" "${run[@]}"
[ "$("${run[@]}" 2>/dev/null || true)" = "$(printf '3i64\n// instance 1 failed\n// instance 2 failed\n5i64')" ]
"${run[@]}" --json >"$scratch/errors.jsonl" 2>/dev/null || [ $? = 1 ]
sed -n 2p "$scratch/errors.jsonl" | grep -qF '{"error":{"instance":1,"what":"expected List[Tensor[(), i64]], found '"'Nul'"'"'
printf '([1, 2, 4], 1)\n([1, 2, 4], 7)\n([1, 2, 4], 0)\n' >"$scratch/both.txt"
both=("$tenon" run "$module" --entry pick --instances "$scratch/both.txt")
expect 1 "both.txt:2: instance 1: m: function 'main" "${both[@]}"
expect 1 "both.txt:2: instance 1: $module:5:" "${both[@]}" --interpret
for how in --batch=64 --interpret; do
  [ "$("${both[@]}" $how 2>/dev/null || true)" = "$(printf '2f32\n// instance 1 failed\n1f32')" ]
done
printf '1\n0\n' >"$scratch/steps.txt"
steps=("$tenon" run "$module" --entry forever --instances "$scratch/steps.txt" --max-steps 1000)
expect 1 "steps.txt:1: instance 0: " "${steps[@]}"
[ "$("${steps[@]}" 2>/dev/null || true)" = "$(printf '// instance 0 failed\n0i64')" ]

# A value may be longer than any stack.
awk 'BEGIN { n = 200000; for (i = 0; i < n; i++) printf "Cons(0.5f32, "; printf "Nil"; for (i = 0; i < n; i++) printf ")"; print "" }' \
  >"$scratch/long.txt"
for how in --batch=1 --interpret; do
  "$tenon" run "$module" --entry same --instances "$scratch/long.txt" $how | cmp - "$scratch/long.txt"
done

# Several inputs are a tuple; those that all instances share come from --input.
printf '((0.5, Cons(3, Nil)), 7)\n' >"$scratch/pair.txt"
expect 0 "(7i64, (0.5f32, Cons(3i64, Nil)))" "$tenon" run "$module" --entry pair --instances "$scratch/pair.txt"
printf '(0.5, Cons(3, Nil))\n(1, Nil)\n' >"$scratch/p.txt"
[ "$("$tenon" run "$module" --entry pair --instances "$scratch/p.txt" --shared n --input n=4)" = \
  "$(printf '(4i64, (0.5f32, Cons(3i64, Nil)))\n(4i64, (1f32, Nil))')" ]

# Archives; instances_archive_test.cpp has those of unequal lengths.
cat >"$scratch/archive.tn" <<'END_OF_MODULE'
#[version = "1"]
def @main(%codes: Tensor[(1,), i64]) { %codes * 2i64 }
END_OF_MODULE
data=tests/examples/tree_lstm_data.npz
[ "$("$tenon" run "$scratch/archive.tn" --instances "$data" | wc -l)" = 11 ]
expect 1 "input 'tree' is Tree: an .npz has tensors and tuples of them" "$tenon" "${trees[@]}" --instances "$data"

# Wrong usage.
expect 2 "no input is named 'm'" "$tenon" run "$module" --entry pair --instances "$scratch/p.txt" --shared m
expect 2 "--input with --instances is for inputs that all instances share" \
  "$tenon" run "$module" --entry pair --instances "$scratch/p.txt" --input n=4
expect 2 "input 'n' is missing" "$tenon" run "$module" --entry pair --instances "$scratch/p.txt" --shared n
expect 2 "--shared is for the instances of --instances" "$tenon" run "$module" --entry pair --shared n
expect 2 "--expect is for one run" "$tenon" run "$module" --entry sum --instances "$scratch/lists.txt" --expect o.npz
expect 2 "--output of instances ends in .npz" \
  "$tenon" run "$module" --entry sum --instances "$scratch/lists.txt" --output o.npy
expect 2 "--batch is '0', must be an integer" "${run[@]}" --batch 0
expect 1 "no_such.txt: error: cannot open the file" "$tenon" "${trees[@]}" --instances "$scratch/no_such.txt"
expect 1 "a value of fn(Tensor[(), i64]) -> Tensor[(), i64] cannot be given" bash -c "
  printf '#[version = \"1\"]\ndef @main(%%f: fn(Tensor[(), i64]) -> Tensor[(), i64]) { %%f(1i64) }\n' >'$scratch/f.tn'
  echo 1 >'$scratch/f.txt'
  '$tenon' run '$scratch/f.tn' --interpret --instances '$scratch/f.txt'"
