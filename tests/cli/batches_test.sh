#!/usr/bin/env bash
# tenon run --instances --batch: instances that run together have the results that they have alone, bit for bit.
# Argument: the program.
set -euo pipefail
# shellcheck source=tests/expect.sh
source tests/expect.sh
tenon=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# compare NAME ENTRY: the instances in NAME.txt, one after another and together.
compare() {
  local run=("$tenon" run "tests/examples/$1.tn" --entry "$2" --instances "$scratch/$1.txt")
  "${run[@]}" --batch 1 >"$scratch/alone"
  [ "$(wc -l <"$scratch/alone")" = "$(wc -l <"$scratch/$1.txt")" ]
  for batch in 2 3 7 64; do "${run[@]}" --batch $batch | cmp - "$scratch/alone"; done
}
# Instances of different lengths, the same in each run.
awk 'BEGIN { srand(5); for (i = 0; i < 12; i++) { n = 1 + int(rand() * 9); printf "["; for (k = 0; k < n; k++) printf "%s[%d]", k ? ", " : "", int(rand() * 16); print "]" } }' \
  >"$scratch/char_rnn.txt"
awk 'BEGIN { srand(6); for (i = 0; i < 12; i++) { n = 1 + int(rand() * 6); printf "(["; for (k = 0; k < n; k++) { printf "%s[[", k ? ", " : ""; for (j = 0; j < 6; j++) printf "%s%.4f", j ? ", " : "", rand() - 0.5; printf "]]" } printf "], %.2f)\n", rand() } }' \
  >"$scratch/list_lstm.txt"
awk 'BEGIN { for (i = 0; i < 12; i++) printf "(%d, %d)\n", 1 + i % 11, 7 * i + 1 }' >"$scratch/generate.txt"
awk 'BEGIN { srand(7); for (i = 0; i < 6; i++) { n = 1 + int(rand() * 6); a = ""; b = ""; for (k = 0; k < n; k++) { s = k ? ", " : ""; a = a sprintf("%s[%.3f, %.3f, %.3f, %.3f]", s, rand(), rand(), rand(), rand()); b = b sprintf("%s[%.3f, %.3f, %.3f, %.3f, %.3f]", s, rand(), rand(), rand(), rand(), rand()) } printf "([%s], [%s])\n", a, b } }' \
  >"$scratch/banded.txt"
grep '^[A-Z]' tests/examples/trees.txt >"$scratch/tree_lstm.txt"
for example in char_rnn list_lstm generate banded; do compare $example main; done
compare tree_lstm classify

# Sentences of different lengths of a model as exported: dense layers compute the rows of all of them at once.
minilm=tests/models/tiny_minilm.onnx
awk 'BEGIN { srand(8); for (i = 0; i < 24; i++) { n = i == 7 ? 0 : 1 + int(rand() * 40); t = ""; m = ""; for (k = 0; k < n; k++) { s = k ? ", " : ""; t = t s int(rand() * 50); m = m s 1 } printf "[[[%s]], [[%s]]]\n", t, m } }' \
  >"$scratch/sentences.jsonl"
sentences=("$tenon" run "$minilm" --instances "$scratch/sentences.jsonl" --json)
"${sentences[@]}" --batch 1 >"$scratch/alone"
[ "$(wc -l <"$scratch/alone")" = 24 ]
for batch in 2 7 64; do "${sentences[@]}" --batch $batch | cmp - "$scratch/alone"; done
expect 0 "calls are joined by rows, of any N x T" "$tenon" compile $minilm --cpu --batch --explain -o "$scratch/minilm.tnx"
expect 0 "transpose does not compute each row alone (tiny_minilm.onnx: Transpose 'layer0/Transpose_14')" \
  "$tenon" opt $minilm --units
expect 0 "several calls are one of the rows along 2 axes" "$tenon" inspect "$scratch/minilm.tnx" --part code
expect 0 '"joined_axes": 2' "$tenon" inspect "$scratch/minilm.tnx" --json
# One that is too long for the model's 128 positions fails alone, and so does one whose inputs differ in length.
awk 'NR == 3 { t = ""; m = ""; for (k = 0; k < 129; k++) { s = k ? ", " : ""; t = t s 1; m = m s 1 } printf "[[[%s]], [[%s]]]\n", t, m; next } NR == 5 { print "[[[1, 2]], [[1]]]"; next } { print }' \
  "$scratch/sentences.jsonl" >"$scratch/mixed.jsonl"
mixed=("$tenon" run "$minilm" --instances "$scratch/mixed.jsonl")
expect 1 "mixed.jsonl:3: instance 2: " "${mixed[@]}"
expect 1 "mixed.jsonl:5: instance 4: " "${mixed[@]}"
expect 1 "2 of 24 instances failed" "${mixed[@]}"
"${mixed[@]}" --batch 1 >"$scratch/mixed1" 2>/dev/null || true
"${mixed[@]}" >"$scratch/mixed64" 2>/dev/null || true
cmp "$scratch/mixed64" "$scratch/mixed1"
: >"$scratch/none.jsonl"
[ "$("$tenon" run $minilm --instances "$scratch/none.jsonl" | wc -l)" = 0 ]
expect 2 "--instances and --data both give inputs" "$tenon" run $minilm --instances "$scratch/none.jsonl" --data x.npy

# An accelerator computes the rows of all instances, by programs of fixed numbers of rows, with the bits of the CPU.
# shellcheck disable=SC2016 # the names of constants in modules
{
  printf '#[version = "1"]\nconst $w: Tensor[(3, 5), f32] = [1, -2, 3, 4, -5, 6, 7, -8, 9, 1, -2, 3, 4, -5, 6];\n'
  printf 'def @main[t](%%x: Tensor[(t, 3), f32]) -> Tensor[(t, 5), f32] { relu(matmul(%%x, $w)) }\n'
} >"$scratch/dense.tn"
awk 'BEGIN { srand(11); for (i = 0; i < 40; i++) { t = i == 5 ? 0 : 1 + int(rand() * 30); printf "["; for (k = 0; k < t; k++) printf "%s[%.3f, %.3f, %.3f]", k ? ", " : "", rand(), rand() - 0.5, rand(); print "]" } }' \
  >"$scratch/rows.txt"
dense=("$tenon" run "$scratch/dense.tn" --calibrate tests/runtime/data/mixed.npz:x --instances "$scratch/rows.txt" --device behavioral:default)
"${dense[@]}" --batch 1 >"$scratch/alone" 2>"$scratch/cycles"
grep -qx 'default: 0 launches, 0 cycles' "$scratch/cycles"
"${dense[@]}" --batch 64 2>"$scratch/cycles" | cmp - "$scratch/alone"
grep -Eqx 'default: [1-9][0-9]* launches, [1-9][0-9]* cycles' "$scratch/cycles"
expect 2 "--device is for compiled code" "${dense[@]}" --interpret
# The work of a file is that of all of its batches, and a single run has its own.
launches() { sed -n 's/^default: \([0-9]*\) launches, .*/\1/p' "$scratch/cycles"; }
"${dense[@]}" --batch 20 2>"$scratch/cycles" | cmp - "$scratch/alone"
all=$(launches)
sum=0
for half in "head -n 20" "tail -n 20"; do
  $half "$scratch/rows.txt" >"$scratch/half.txt"
  "${dense[@]/rows.txt/half.txt}" --batch 20 2>"$scratch/cycles" >"$scratch/results"
  sum=$((sum + $(launches)))
done
[ "$all" = $sum ] || { echo "$all launches of the file, $sum of its halves"; exit 1; }
single=("$tenon" run "$scratch/dense.tn" --calibrate tests/runtime/data/mixed.npz:x --shapes t=2 --device behavioral:default
  --input x=tests/runtime/data/mixed.npz:x)
"${single[@]}" >"$scratch/one" 2>"$scratch/cycles"
[ "$(launches)" = 1 ]
# Without a device, whatever --device says.
"${single[@]}" --cpu 2>"$scratch/cycles" | cmp - "$scratch/one"
[ -z "$(launches)" ]
"${dense[@]}" --batch 64 --cpu 2>"$scratch/cycles" | cmp - "$scratch/alone"
[ -z "$(launches)" ]

# Rows end in an axis of a variable size, along which calls are joined: one of size 1 stays with the instance.
cat >"$scratch/ones.tn" <<'END_OF_MODULE'
#[version = "1"]
const $w: Tensor[(2, 2), f32] = [1, 2, 3, 4];
def @main[n, t](%x: Tensor[(n, t, 1, 2), f32]) {
  reshape(dense(relu(reshape(%x, zero=1, shape=[n * t, 2])), $w), zero=1, shape=[n, t, 1, 2])
}
END_OF_MODULE
printf '[[[[1, 2]], [[3, 4]]]]\n[[[[5, 6]]], [[[7, 8]]], [[[9, -1]]]]\n' >"$scratch/ones.txt"
ones=("$tenon" run "$scratch/ones.tn" --instances "$scratch/ones.txt")
"${ones[@]}" --interpret >"$scratch/alone"
[ "$(wc -l <"$scratch/alone")" = 2 ]
for batch in 1 2; do "${ones[@]}" --batch $batch | cmp - "$scratch/alone"; done

# Recurrent layers with shared weights: the sequences of all instances are one call, whatever their lengths are.
# shellcheck disable=SC2016 # the names of constants in modules
for layer in "rnn 1 forward 5 1" "gru 3 forward 24 1" "gru 3 reverse 7 2" "lstm 4 bidirectional 16 1" "lstm 4 forward 9 3"; do
  read -r op gates direction hidden sequences <<<"$layer"
  directions=$([ "$direction" = bidirectional ] && echo 2 || echo 1)
  cell=
  if [ "$op" = lstm ]; then cell=', $h'; fi
  { # Weights as functions of their indices, which are folded to constants.
    printf '#[version = "1"]\n'
    weights() { awk -v count="$1" 'BEGIN { printf "["; for (i = 0; i < count; i++) printf "%s%.3f", i ? ", " : "", sin(i * i + 1) / 2; print "]" }'; }
    printf 'const $w: Tensor[(%s, %s, 3), f32] = %s;\n' "$directions" $((gates * hidden)) "$(weights $((directions * gates * hidden * 3)))"
    printf 'const $r: Tensor[(%s, %s, %s), f32] = %s;\n' "$directions" $((gates * hidden)) "$hidden" \
      "$(weights $((directions * gates * hidden * hidden)))"
    printf 'const $b: Tensor[(%s, %s), f32] = %s;\n' "$directions" $((2 * gates * hidden)) "$(weights $((directions * 2 * gates * hidden)))"
    printf 'const $h: Tensor[(%s, %s, %s), f32] = %s;\n' "$directions" "$sequences" "$hidden" "$(weights $((directions * sequences * hidden)))"
    printf 'def @main[T](%%x: Tensor[(T, %s, 3), f32]) -> Tensor[(T, %s, %s, %s), f32] { %s(%%x, $w, $r, $b, $h%s, direction="%s").0 }\n' \
      "$sequences" "$directions" "$sequences" "$hidden" "$op" "$cell" "$direction"
  } >"$scratch/$op.tn"
  awk -v n="$sequences" 'BEGIN { srand(9); for (i = 0; i < 20; i++) { t = i == 7 ? 300 : 1 + i % 3; printf "["; for (k = 0; k < t; k++) { printf "%s[", k ? ", " : ""; for (j = 0; j < n; j++) printf "%s[%.3f, %.3f, %.3f]", j ? ", " : "", rand(), rand(), rand(); printf "]" } print "]" } }' \
    >"$scratch/recurrent.txt"
  run=("$tenon" run "$scratch/$op.tn" --instances "$scratch/recurrent.txt")
  "${run[@]}" --batch 1 >"$scratch/alone"
  [ "$(wc -l <"$scratch/alone")" = 20 ]
  for batch in 2 7 64; do "${run[@]}" --batch $batch | cmp - "$scratch/alone"; done
  counts=$("$tenon" bench batching --model "$scratch/$op.tn" --instances "$scratch/recurrent.txt" --batches 20 --rounds 1 --json)
  grep -q '"nodes": 20' <<<"$counts"
  grep -q '"calls": 2' <<<"$counts"  # one of the long sequence, to whose length the others are not copied
done

# Requests that come at random times: every answer is compared with its run alone.
expect 0 "all answers are those of single runs" "$tenon" bench serve --model tests/examples/generate.tn \
  --instances "$scratch/generate.txt" --requests 200
expect 0 '"ratio": ' "$tenon" bench serve --model tests/examples/char_rnn.tn --instances "$scratch/char_rnn.txt" \
  --requests 50 --max-batch 7 --max-wait-us 100 --load 0.5 --json
expect 2 "a model and instances are required" "$tenon" bench serve --model tests/examples/generate.tn
# Scalars of one instance are computed at once: one unit a symbol and one of the beginning are put off.
expect 0 "an instance: 11.0 nodes" "$tenon" bench batching --model tests/examples/generate.tn --batches 12 --rounds 1 \
  --instances "$scratch/generate.txt"

# One that fails among others: the error is of its own call, and the others have their results.
cat >"$scratch/pick.tn" <<'END_OF_MODULE'
#[version = "1"]
def @main[n](%w: Tensor[(n,), f32], %i: Tensor[(1,), i64]) -> Tensor[(1,), f32] { exp(gather(%w, %i)) }
END_OF_MODULE
printf '([0, 2, 4], [0])\n([1, 2, 4], [7])\n([0, 2, 4], [0])\n([0, 1], [0])\n' >"$scratch/pick.txt"
pick=("$tenon" run "$scratch/pick.tn" --instances "$scratch/pick.txt")
expect 1 "pick.txt:2: instance 1: pick: function 'main.unit_0', instruction " "${pick[@]}" --batch 3
expect 1 "pick.txt: error: 1 of 4 instances failed" "${pick[@]}" --batch 3
for batch in 1 3 4; do
  [ "$("${pick[@]}" --batch $batch 2>/dev/null || true)" = \
    "$(printf 'Tensor[(1,), f32] [1]\n// instance 1 failed\nTensor[(1,), f32] [1]\nTensor[(1,), f32] [1]')" ]
done

# An executable with units, and what they are.
expect 0 "units of batches" "$tenon" compile tests/examples/tree_lstm.tn --cpu --batch --explain -o "$scratch/tree.tnx"
expect 0 "(%word: Tensor[(1,), i64]): gather, dense, split" "$tenon" compile tests/examples/tree_lstm.tn --cpu --batch --explain \
  -o "$scratch/tree.tnx"
expect 0 "function @read.unit_" "$tenon" inspect "$scratch/tree.tnx"
expect 0 "a unit of batches: its parameters are own; several calls are one of @read.unit_0.batched" \
  "$tenon" inspect "$scratch/tree.tnx" --part code
expect 0 '"batched": "read.unit_0.batched"' "$tenon" inspect "$scratch/tree.tnx" --json
"$tenon" compile tests/examples/tree_lstm.tn --cpu -o "$scratch/single.tnx"
[ "$("$tenon" inspect "$scratch/single.tnx" | grep -c unit || true)" = 0 ]
expect 2 "no input is named 'w'" "$tenon" compile tests/examples/tree_lstm.tn --cpu --batch --shared w -o "$scratch/tree.tnx"
expect 2 "--shared is for the instances of --batch" "$tenon" compile tests/examples/tree_lstm.tn --cpu --shared codes -o "$scratch/tree.tnx"
