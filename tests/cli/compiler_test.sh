#!/usr/bin/env bash
# The commands of the compiler: passes, compile, tune, and the benchmarks on the CPU. Argument: the program.
set -euo pipefail
# shellcheck source=tests/expect.sh
source tests/expect.sh
tenon=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Passes.
printf '#[version = "1"]\ndef @main[N](%%x: Tensor[(N, 4), f32]) -> Tensor[(N, 4), f32] {\n  relu(identity(%%x))\n}\n' >"$scratch/m.tn"
expect 0 "fold_scales" "$tenon" passes
expect 0 '"standard": [' "$tenon" passes --json
expect 0 "compile: quantize requantize_layers make_buckets make_units partition rematerialize" "$tenon" passes
expect 0 "  relu(%x)" "$tenon" opt "$scratch/m.tn" --passes simplify
expect 0 "// after simplify" "$tenon" opt "$scratch/m.tn" --print-after simplify
expect 0 "// before dead_code" "$tenon" opt "$scratch/m.tn" --print-before all --verify-passes
expect 0 "-  relu(identity(%x))" "$tenon" opt "$scratch/m.tn" --passes infer,simplify --diff-passes simplify
expect 0 "visits" "$tenon" opt "$scratch/m.tn" --time-passes
expect 0 "@main: 0 tensors in 0 bytes (0 live at once, 0 without reuse); 0 bytes of results outside; 0 of unknown size" \
  "$tenon" opt "$scratch/m.tn" --memory
expect 0 "256  Tensor[(16, 4), f32], bindings 1 to 2" \
  "$tenon" opt "$scratch/m.tn" --shapes N=16 --passes infer --memory
expect 2 "did you mean simplify?" "$tenon" opt "$scratch/m.tn" --passes simplfy

# The steps of a compilation that know more than the module are passes, too.
compiled=("$tenon" compile "$scratch/m.tn" --cpu -o "$scratch/m.tnx")
expect 0 "// after partition" "${compiled[@]}" --print-after partition
expect 0 "changes by make_units" "${compiled[@]}" --batch --diff-passes make_units
expect 0 "changes by rematerialize" "$tenon" compile tests/models/tiny_minilm.onnx --cpu --shapes N=8,T=32 --budget 590000 --diff-passes rematerialize \
  -o "$scratch/m.tnx"
expect 0 "before make_buckets" "$tenon" compile tests/models/tiny_minilm.onnx --config tiny --shapes N=1,T=8 --shapes N=1,T=16 --print-before make_buckets -o "$scratch/m.tnx"
digits=tests/models/resnet8_digits_test.npz
expect 0 "after quantize" "$tenon" compile tests/models/tiny_digits.onnx --config tiny --calibrate $digits:calib --divide 255 --print-after quantize -o "$scratch/m.tnx"
expect 0 "requantize_layers" "$tenon" compile tests/models/resnet8_digits_int8_qdq.onnx --config tiny --shapes N=1 --time-passes -o "$scratch/m.tnx"
expect 2 "did you mean partition?" "${compiled[@]}" --print-after partion
expect 2 "there is no pass 'partition'" "$tenon" opt "$scratch/m.tn" --print-after partition

# What batches of instances would join.
expect 0 "(%word: Tensor[(1,), i64]): gather, dense, split" "$tenon" opt tests/examples/tree_lstm.tn --units
expect 0 "" "$tenon" opt tests/examples/tree_lstm.tn --units -o "$scratch/units.tn"
grep -qF '%word: Tensor[(b, 1), i64]' "$scratch/units.tn"
expect 0 "as expected: 1 result" "$tenon" run "$scratch/units.tn" --input tests/examples/tree_lstm_data.npz:codes \
  --expect tests/examples/tree_lstm_data.npz
printf '#[version = "1"]\ndef @main(%%x: Tensor[(4,), f32], %%w: Tensor[(4,), f32]) { (%%x * %%w, unique(%%x + %%x)) }\n' >"$scratch/shared.tn"
expect 0 "(%x: Tensor[(4,), f32], shared %w: Tensor[(4,), f32]): multiply" "$tenon" opt "$scratch/shared.tn" --units --shared w
expect 2 "no input is named 'v'" "$tenon" opt "$scratch/shared.tn" --units --shared v
expect 2 "--shared is for the instances of --units" "$tenon" opt "$scratch/shared.tn" --shared w

# Control flow as machine code.
printf '#[version = "1"]\ndef @main(%%x: Tensor[(), i64]) -> Tensor[(), i64] { if (%%x < 3i64) { @main(%%x + 1i64) } else { %%x * 7i64 } }\n' >"$scratch/loop.tn"
expect 0 "" "$tenon" compile "$scratch/loop.tn" --cpu --ahead-of-time -o "$scratch/loop.tnx"
expect 0 "functions compiled ahead of time for" "$tenon" inspect "$scratch/loop.tnx" --part kernels
expect 0 '"compiled": {' "$tenon" inspect "$scratch/loop.tnx" --json
expect 0 "21" "$tenon" run "$scratch/loop.tn" --ahead-of-time --input x=1

# Sizes that are not proved to fit.
printf '#[version = "1"]\ndef @main[n in 1..8, m](%%x: Tensor[(n,), f32], %%y: Tensor[(m,), f32]) { %%x + %%y }\n' >"$scratch/n.tn"
expect 0 "match_cast(%y, Tensor[(n,), f32])" "$tenon" opt "$scratch/n.tn" --passes infer
expect 0 "[n in 1..8, m](%x" "$tenon" fmt "$scratch/n.tn"
expect 1 "n.tn:2:" "$tenon" opt "$scratch/n.tn" --strict-shapes
expect 1 "it is not proved that the sizes are equal" "$tenon" run "$scratch/n.tn" --strict-shapes
expect 2 "there is no pass 'nonsense'" "$tenon" opt "$scratch/m.tn" --print-after nonsense
expect 2 "there is no pass 'nonsense'" "$tenon" compile "$scratch/m.tn" --cpu --print-before nonsense -o "$scratch/m.tnx"
expect 1 "@main has no unknown size 'M'" "$tenon" opt "$scratch/m.tn" --shapes M=3
expect 0 "Tensor[(3, 4), f32]" "$tenon" opt "$scratch/m.tn" --shapes N=3
expect 0 "Tensor[(0, 4), f32]" "$tenon" opt "$scratch/m.tn" --shapes N=0
if "$tenon" fmt "$scratch/m.tn" >/dev/full 2>"$scratch/full"; then
  echo "tenon fmt reports success although the disk is full" >&2
  exit 1
fi
grep -q "the output cannot be written: No space left on device" "$scratch/full"
printf '#[version = "1"]\ndef @main(%%x: Tensor[(4294967296, 4294967296), f32]) { %%x }\n' >"$scratch/large.tn"
expect 1 "too large" "$tenon" bench model "$scratch/large.tn"
# What is supported of a model, without compiling it.
expect 0 "not on the accelerator because" "$tenon" import --check tests/models/resnet8_digits.onnx --shapes N=1
expect 0 "Conv " "$tenon" import --check tests/models/resnet8_digits.onnx --shapes N=1 --cpu
expect 2 "tenon import only checks models" "$tenon" import tests/models/resnet8_digits.onnx
expect 1 "No such file" "$tenon" import --check build/nonexistent.onnx
expect 0 "requires conv2d of 2 operands as operand 1 of requantize, found dense %logits" \
  "$tenon" import tests/models/resnet8_digits.onnx --shapes N=1 --pattern 'requantize(conv2d(_, _), _, _, _)'
expect 0 "%w is a constant" "$tenon" import tests/models/resnet8_digits.onnx --shapes N=1 \
  --pattern 'requantize(conv2d(%x: i8(n, c, h, h), %w: const), const, const, const)'
expect 1 "did you mean conv2d?" "$tenon" import tests/models/resnet8_digits.onnx --shapes N=1 --pattern 'conv2(_, _)'
expect 2 "with one of --check and --pattern" "$tenon" import --check tests/models/resnet8_digits.onnx --pattern 'relu'
expect 0 "// after infer" "$tenon" opt tests/models/resnet8_digits.onnx --shapes N=1 --passes infer --print-after infer
# Executables keep symbolic sizes, and sizes that depend on data.
expect 0 "" "$tenon" compile "$scratch/m.tn" --cpu -o "$scratch/m.tnx"
printf '#[version = "1"]\ndef @main(%%x: Tensor[(4,), f32]) { nonzero(%%x) }\n' >"$scratch/z.tn"
expect 0 "" "$tenon" compile "$scratch/z.tn" --cpu -o "$scratch/z.tnx"

expect 0 "fuse " "$tenon" bench compile --operators 200
expect 0 '"visits": ' "$tenon" bench compile -n 200 --json
expect 0 "ns an instruction" "$tenon" bench vm --iterations 10
expect 0 "a token, the mean of 512 with a KV cache" "$tenon" bench vm --iterations 10 --models decoder
expect 0 "of one by one; an instance: " "$tenon" bench batching --hidden 8 --batches 1,7 --rounds 1
expect 0 '"ratio": ' "$tenon" bench batching --hidden 8 --batches 4 --rounds 1 --policy agenda --json
expect 0 "482       359       248       241   lattice LSTM" "$tenon" bench batching --graphs
expect 2 "--batches is 'x', must be an integer from 1 to" "$tenon" bench batching --hidden 8 --batches 1,x
printf '3\n0\n17\n1\n' >"$scratch/lengths.txt"
ragged=("$tenon" bench ragged --lengths "$scratch/lengths.txt" --width 32 --heads 4 --inner 64 --rounds 1)
expect 0 "4 sentences of 21 tokens, the longest of 17" "${ragged[@]}"
expect 0 '"padded_over_ideal": 3.' "${ragged[@]}" --json
expect 0 "multiply-adds executed over those of the sentences: dense layers 1.000, attention " "${ragged[@]}"
expect 0 '"dense_executed_over_ideal": 1.0,' "${ragged[@]}" --json
expect 0 "2 sentences of 3 tokens" "${ragged[@]}" --batch 2
expect 0 "2 threads, wall time, the least of 1" "${ragged[@]}" --threads 2
expect 2 "--width 32 is not a multiple of --heads 5" "$tenon" bench ragged --lengths "$scratch/lengths.txt" --width 32 --heads 5
printf '3\n-1\n' >"$scratch/negative.txt"
expect 2 "negative.txt:2 is '-1', must be an integer from 0 to 65536" "$tenon" bench ragged --lengths "$scratch/negative.txt"
: >"$scratch/no_lengths.txt"
expect 1 "the file has no lengths" "$tenon" bench ragged --lengths "$scratch/no_lengths.txt"
expect 2 "a model requires instances" "$tenon" bench batching --model tests/examples/tree_lstm.tn
expect 2 "--models is 'gru', must be calls, lstm, decoder, dense or all" "$tenon" bench vm --iterations 1000 --models gru
expect 0 '"ns_per_instruction": ' "$tenon" bench vm -n 10 --json
expect 2 "--iterations is '0', must be an integer from 1 to 1000000000" "$tenon" bench vm -n 0
for shape in line calls types; do expect 0 "fuse " "$tenon" bench compile -n 300 --shape $shape; done
# The kernels of operators on the CPU.
expect 0 "cpu    native @fused_conv2d_bias_add_relu_0" "$tenon" compile tests/models/tiny_digits.onnx --shapes N=1 --cpu --explain -o "$scratch/t.tnx"
expect 0 "cpu    reference kernel: native kernels are off" "$tenon" compile tests/models/tiny_digits.onnx --shapes N=1 --cpu --explain --kernels reference -o "$scratch/t.tnx"
digits=(tests/models/tiny_digits.onnx --shapes N=1 --cpu -o "$scratch/t.tnx")
expect 0 "t.tnx: " "$tenon" compile "${digits[@]}" --target aarch64 --levels armv8-a
expect 2 "native code supports x86_64-unknown-linux-gnu (x86_64), aarch64" "$tenon" compile "${digits[@]}" --target sparc
expect 2 "the levels are armv8.2-a+dotprod, armv8-a" "$tenon" compile "${digits[@]}" --target aarch64 --levels x86-64-v3
expect 2 "--kernels reference makes none" "$tenon" compile "${digits[@]}" --target aarch64 --kernels reference
expect 2 "--kernels" "$tenon" compile tests/models/tiny_digits.onnx --shapes N=1 --cpu --kernels fast -o "$scratch/t.tnx"
# oneDNN runs the operators that it supports; where it is missing the message says so.
expect 0 "dnnl   dnnl.conv2d" "$tenon" compile "${digits[@]}" --explain --targets dnnl
expect 2 "there is no target 'onednn'" "$tenon" compile "${digits[@]}" --targets onednn
# Kernels that are bound to a GPU, compiled for the CPU.
expect 0 "cuda   cuda.conv2d" "$tenon" compile "${digits[@]}" --explain --targets cuda:emulated
expect 2 "the targets are accel, cuda, cuda:emulated, dnnl, cpu" "$tenon" compile "${digits[@]}" --targets gpu
expect 0 "cuda   cuda.conv2d" "$tenon" compile "${digits[@]}" --explain --targets cuda:emulated,cpu
three=(tests/models/tiny_digits.onnx --shapes N=1 --config tiny --calibrate tests/models/resnet8_digits_test.npz:calib --divide 255
  --explain -o "$scratch/t.tnx")
expect 0 "accel  accel.conv2d" "$tenon" compile "${three[@]}" --targets accel,cuda:emulated,cpu
expect 0 "accel  accel.max_pool2d" "$tenon" compile "${three[@]}" --targets accel,cuda:emulated,cpu
expect 0 "cuda   cuda.dequantize" "$tenon" compile "${three[@]}" --targets accel,cuda:emulated,cpu
expect 0 "cuda   cuda.conv2d" "$tenon" compile "${three[@]}" --targets cuda:emulated,accel
# The memory that programs are scheduled for.
expect 0 "" "$tenon" compile "${three[@]}" --memory 200/180/8
expect 0 '"memory": "200/180/8"' "$tenon" inspect "$scratch/t.tnx" --json
expect 2 "the write latency of --memory is '0', must be an integer from 1 to 100000" "$tenon" compile "${three[@]}" --memory 200/0

# What binds each layer: the cycles are those of a run, and the memory decides.
schedule=(tests/models/tiny_digits.onnx --shapes N=1 --calibrate tests/models/resnet8_digits_test.npz:calib --divide 255)
expect 0 "accel_0 on default, memory 60/40/16" "$tenon" compile "${schedule[@]}" --explain-schedule -o "$scratch/s.tnx"
cycles=$("$tenon" compile "${schedule[@]}" --explain-schedule -o "$scratch/s.tnx" | awk '$1 == "all" { n += $2 } END { print n }')
ran=$("$tenon" run "${schedule[@]}" --data tests/models/resnet8_digits_test.npz:x --limit 1 --device behavioral:default --json |
  sed -n 's/.*"cycles": \([0-9]*\).*/\1/p' | sed -n 1p)  # of the run, before those of each accelerator
[ $((cycles > ran ? cycles - ran : ran - cycles)) -le $((ran / 50)) ] || { echo "explained $cycles cycles, ran $ran"; exit 1; }
expect 0 "  latency" "$tenon" compile "${schedule[@]}" --memory 5000/5000 --explain-schedule -o "$scratch/s.tnx"
"$tenon" compile "${three[@]}" --explain-schedule >"$scratch/bound"
grep -q '  lanes$' "$scratch/bound" || { echo "no layer of the smallest tensor core is bound by its lanes"; exit 1; }
expect 0 "behavioral:default?latency=200" "$tenon" bench accel "${schedule[@]}" --device behavioral:default \
  --device "behavioral:default?latency=200&write_latency=200"
modeled=$("$tenon" bench accel "${schedule[@]:0:3}" --json | sed -n 's/.*"modeled": \([0-9]*\).*/\1/p')
[ "$modeled" = "$cycles" ] || { echo "bench accel has $modeled cycles, --explain-schedule $cycles"; exit 1; }
expect 1 "no operator of the model runs on behavioral:tiny" "$tenon" bench accel "$scratch/m.tn" --shapes N=1 --device behavioral:tiny
expect 2 "unknown device scheme" "$tenon" bench accel "${schedule[@]}" --device nothing:
expect 2 "--json prints figures only" "$tenon" compile "${schedule[@]}" --explain-schedule --json -o "$scratch/s.tnx"
expect 2 "--memory is about the memory of an accelerator, and there is none" "$tenon" compile "${digits[@]}" --memory 200/200
expect 2 "--targets accel requires an accelerator" "$tenon" compile "${digits[@]}" --targets accel,cpu
expect 2 "name cpu last" "$tenon" compile "${digits[@]}" --targets cpu,dnnl
expect 2 "names 'dnnl' twice" "$tenon" compile "${digits[@]}" --targets dnnl,cpu,dnnl
expect 0 "cuda   cuda.conv2d" "$tenon" compile "${digits[@]}" --explain --targets cuda,cpu
expect 0 "native code for nvptx64-nvidia-cuda: levels sm_80" "$tenon" inspect "$scratch/t.tnx"
kernel=$("$tenon" inspect "$scratch/t.tnx" --part kernels | sed -n 's/^  \(cuda_[0-9]*\): .*/\1/p' | head -n 1)
expect 0 ".visible .entry k0_$kernel" "$tenon" inspect "$scratch/t.tnx" --kernel "$kernel"
TENON_CUDA_DRIVER=no_such_driver.so.1 expect 1 "there is no CUDA driver: no_such_driver.so.1" "$tenon" run tests/models/tiny_digits.onnx \
  --shapes N=1 --cpu --targets cuda --data tests/models/resnet8_digits_test.npz:x --divide 255
printf '#[version = "1"]\ndef @main(%%x: Tensor[(1, 1, 28, 28), f32]) -> Tensor[(1, 1, 1, 28), f32] {\n  max(relu(%%x), axes=[2], keep=1)\n}\n' >"$scratch/g.tn"
expect 0 "2 of 2 operators" "$tenon" run "$scratch/g.tn" --cpu --targets cuda:emulated --check --limit 1 \
  --data tests/models/resnet8_digits_test.npz:x --divide 255
TENON_CUDA_DRIVER=no_such_driver.so.1 expect 1 "nothing is measured: there is no CUDA driver" "$tenon" bench gpu tests/models/tiny_digits.onnx --shapes N=1
TENON_CUDA_DRIVER=no_such_driver.so.1 expect 3 "nothing is measured: there is no CUDA driver" scripts/gpu "$(dirname "$tenon")/.."
# A model that stays on the CPU, on the driver of the tests.
printf '#[version = "1"]\ndef @main(%%x: Tensor[(), f32]) -> Tensor[(), f32] {\n  relu(%%x)\n}\n' >"$scratch/s.tn"
fake=$(dirname "$tenon")/../lib/fake_cuda_driver.so
if [[ -e $fake ]]; then
  TENON_CUDA_DRIVER=$fake expect 0 "operators on the GPU                   0 of 1" "$tenon" bench gpu "$scratch/s.tn"
  TENON_CUDA_DRIVER=$fake expect 0 '"gpu": "Fake GPU"' "$tenon" bench gpu "$scratch/s.tn" --json
  TENON_CUDA_DRIVER=$fake expect 0 '"kernel_seconds":' "$tenon" bench gpu "$scratch/s.tn" --alone --json --results "$scratch/s.npz"
  TENON_CUDA_DRIVER=$fake expect 1 "no_such.npz: error: cannot open the file" "$tenon" bench gpu "$scratch/s.tn" --inputs no_such.npz
  TENON_CUDA_DRIVER=$fake expect 1 "the code has no kernel k0_cuda_0_0: CUDA_ERROR_NOT_FOUND" "$tenon" bench gpu "$scratch/g.tn"
fi
expect 2 "--rounds is '0'" "$tenon" bench gpu tests/models/tiny_digits.onnx --rounds 0
expect 2 "names both cuda and cuda:emulated" "$tenon" compile "${digits[@]}" --targets cuda,cuda:emulated
expect 2 "cuda:emulated requires native kernels" "$tenon" compile "${digits[@]}" --targets cuda:emulated --kernels reference
expect 0 "Libraries of kernels" "$tenon" doctor
# Kernels as they were measured.
expect 0 "// for x86-64-v3" "$tenon" schedule tests/models/tiny_digits.onnx --shapes N=1 --op conv2d --level x86-64-v3
expect 0 "mark(padded, i3, vector)" "$tenon" schedule tests/models/tiny_digits.onnx --shapes N=1 --op conv2d
cat >"$scratch/softmax.tn" <<'END'
#[version = "1"]
def @main(%x: Tensor[(128, 64), f32]) -> Tensor[(128, 64), f32] { softmax(%x) }
END
expect 0 "for i00 in (64) block_x" "$tenon" schedule "$scratch/softmax.tn" --op softmax --level sm_90
expect 2 "operators and values with kernels: " "$tenon" schedule tests/models/tiny_digits.onnx --shapes N=1 --op nothing
expect 2 "there is no level 'x86-64-v9'" "$tenon" schedule tests/models/tiny_digits.onnx --op conv2d --level x86-64-v9
echo "split(nothing, i, 4)" > "$scratch/steps"
expect 2 "steps:1: error: split(nothing, i, 4): there is no stage" "$tenon" schedule tests/models/tiny_digits.onnx --shapes N=1 --op conv2d --steps "$scratch/steps"
# A schedule of one's own replaces the template's: the code is another, the results are the same.
cat >"$scratch/rows.tn" <<'END'
#[version = "1"]
const $w: Tensor[(2, 3), f32] = [1, 2, 3, 4, 5, 6];
def @main[n](%x: Tensor[(n, 3), f32]) -> Tensor[(n, 2), f32] { let %y = dense(%x, $w); relu(%y) }
END
own=("$tenon" compile "$scratch/rows.tn" --cpu)
"$tenon" schedule "$scratch/rows.tn" --op dense --level x86-64-v3 -o "$scratch/template.steps" >/dev/null
head -n 1 "$scratch/template.steps" | grep -qx "kernel dense on x86-64-v3"
grep -q "^store_at(.*registers)" "$scratch/template.steps" # the product's template
"${own[@]}" --levels x86-64-v3 -o "$scratch/template.tnx" >/dev/null
"${own[@]}" --levels x86-64-v3 --schedule "$scratch/template.steps" -o "$scratch/same.tnx" >/dev/null
cmp "$scratch/template.tnx" "$scratch/same.tnx"
printf 'kernel dense\nmark(dense, i, parallel)\n' >"$scratch/own.steps"
"${own[@]}" --levels x86-64-v3 --schedule "$scratch/own.steps" -o "$scratch/own.tnx" >/dev/null
expect 1 "differ" cmp "$scratch/template.tnx" "$scratch/own.tnx"
expect 0 "f32 (2, 2): 6 15 6 15" "$tenon" run "$scratch/rows.tn" --cpu --data tests/runtime/data/mixed.npz:x \
  --schedule "$scratch/own.steps" --quiet
# So for loop functions of the module, over batches of different lengths too.
cat >"$scratch/ragged.tn" <<'END'
#[version = "1"]
loop @twice[n](%lengths: Tensor[(n,), i64], %x: Tensor[(b: n, lengths(b), 2), f32])
  -> (%y: Tensor[(b: n, lengths(b), 2), f32]) {
  for b in (n) { for s in (lengths(b)) { for j in (2) {
    stage twice(b in (n) at (b), s in (lengths(b)) at (s), j in (2) at (j)) { %y[b, s, j] = %x[b, s, j] + %x[b, s, j]; }
  } } }
}
def @main[n, t](%lengths: Tensor[(n,), i64], %x: Tensor[(t, 2), f32]) -> Tensor[(?, 2), f32] { @twice(%lengths, %x) }
END
expect 0 "mark(twice, j, vector)" "$tenon" schedule "$scratch/ragged.tn" --op twice
printf 'kernel twice\nsplit(twice, s, 4)\npartition(twice, s0)\nmark(twice, b, parallel)\n' >"$scratch/ragged.steps"
expect 0 "for b in (n) parallel" "$tenon" schedule "$scratch/ragged.tn" --op twice --steps "$scratch/ragged.steps"
expect 0 "native @twice" "$tenon" compile "$scratch/ragged.tn" --cpu --explain --schedule "$scratch/ragged.steps" -o "$scratch/ragged.tnx"
expect 0 "lengths(b) // 4" "$tenon" schedule "$scratch/ragged.tn" --op twice --steps "$scratch/ragged.steps"
# The elements of all rows as one loop; lengths that do not fit are errors of their own lines, before a kernel runs.
printf 'kernel twice\nfuse(twice, b, s)\nsplit(twice, b_s, 4)\npartition(twice, b_s0)\nmark(twice, b_s0, parallel)\n' >"$scratch/rows.steps"
cat >"$scratch/batches.jsonl" <<'END'
[[3, 0, 2], [[0,1],[2,3],[4,5],[6,7],[8,9]]]
[[3, -1, 3], [[0,1],[2,3],[4,5],[6,7],[8,9]]]
[[3, 1, 3], [[0,1],[2,3],[4,5],[6,7],[8,9]]]
[[2147483647, 3], [[0,1],[2,3],[4,5],[6,7],[8,9]]]
[[0, 0], []]
END
expect 1 "Tensor[(5, 2), f32] [[0, 2], [4, 6], [8, 10], [12, 14], [16, 18]]" "$tenon" run "$scratch/ragged.tn" --cpu \
  --instances "$scratch/batches.jsonl" --schedule "$scratch/rows.steps"
for message in "axis 1 of 'x' would have -1 elements in row 1, lengths[1] is -1" "3 of 5 instances failed" \
  "'x' has 5 rows, those of the instances up to 2 are 7" "'x' would have more than 2^31 rows: those up to row 1 are 2147483650"; do
  expect 1 "$message" "$tenon" run "$scratch/ragged.tn" --cpu --instances "$scratch/batches.jsonl" --schedule "$scratch/rows.steps"
done
# A table that only the schedule has, in each call of a run.
cat >"$scratch/triangle.tn" <<'END'
#[version = "1"]
loop @below(%x: Tensor[(4, 4), f32]) -> (%y: Tensor[(4,), f32]) {
  for i in (4) { stage zero(i in (4) at (i)) { %y[i] = f32(0); } }
  for i in (4) { for k in (i + 1) {
    stage sum(i in (4) at (i), reduce k in (i + 1) at (k)) { %y[i] = %y[i] + %x[i, k]; } } }
}
def @main(%x: Tensor[(4, 4), f32]) -> Tensor[(4,), f32] { @below(%x) }
END
printf 'kernel below\nremap(sum, i, descending)\n' >"$scratch/triangle.steps"
for line in 1 2 3; do echo "[[1,2,3,4],[1,2,3,4],[1,2,3,4],[$line,2,3,4]]"; done >"$scratch/triangles.jsonl"
expect 0 "[1, 3, 6, 10]" "$tenon" run "$scratch/triangle.tn" --cpu --instances "$scratch/triangles.jsonl" --schedule "$scratch/triangle.steps"
# A product with a triangular matrix in tiles.
cat >"$scratch/matrices.tn" <<'END'
#[version = "1"]
def @main() {
  let %x = sin(reshape(arange(count=1048576, dtype="f32"), shape=[1024, 1024]));
  (triangle(%x, upper=0), %x)
}
END
"$tenon" run "$scratch/matrices.tn" --output "$scratch/matrices.npz"
trmm=("$tenon" run tests/examples/trmm.tn --input "a=$scratch/matrices.npz:0" --input "b=$scratch/matrices.npz:1")
"${trmm[@]}" --output "$scratch/trmm.npz"
expect 0 "as expected: 1 result" "${trmm[@]}" --schedule tests/examples/trmm.steps --expect "$scratch/trmm.npz"
expect 0 "for product_y_k0 in (i0) {" "$tenon" schedule tests/examples/trmm.tn --op trmm --steps tests/examples/trmm.steps
printf 'kernel twice\nreorder(twice, s, b)\n' >"$scratch/ragged.steps"
expect 1 "ragged.steps:2: reorder(twice, s, b): the size of 's' depends on 'b', which must stay outside it" \
  "$tenon" compile "$scratch/ragged.tn" --cpu --schedule "$scratch/ragged.steps" -o "$scratch/ragged.tnx"
expect 2 "@twice is a loop function of the module, which runs on the CPU" "$tenon" schedule "$scratch/ragged.tn" --op twice --level sm_90
# So for kernels of a GPU, whose level is sm_90.
cat >"$scratch/blocks.tn" <<'END'
#[version = "1"]
def @main(%x: Tensor[(40, 24), f32], %w: Tensor[(70, 24), f32]) -> Tensor[(40, 70), f32] { relu(dense(%x, %w)) }
END
gpu=("$tenon" compile "$scratch/blocks.tn" --targets "cuda:emulated,cpu")
"$tenon" schedule "$scratch/blocks.tn" --op dense --level sm_90 -o "$scratch/gpu.steps" >/dev/null
grep -q "^mark(.*thread_x)" "$scratch/gpu.steps"
"${gpu[@]}" -o "$scratch/template.tnx" >/dev/null
"${gpu[@]}" --schedule "$scratch/gpu.steps" -o "$scratch/same.tnx" >/dev/null
cmp "$scratch/template.tnx" "$scratch/same.tnx"
printf 'kernel dense on sm_90\nsplit(y, i, 8)\n' >"$scratch/gpu.steps"
"${gpu[@]}" --schedule "$scratch/gpu.steps" -o "$scratch/own.tnx" >/dev/null
expect 1 "differ" cmp "$scratch/template.tnx" "$scratch/own.tnx"
printf 'kernel dense on sm_90\nsplit(dense, q, 4)\n' >"$scratch/gpu.steps"
expect 2 "gpu.steps:2: error: split(dense, q, 4): " "${gpu[@]}" --schedule "$scratch/gpu.steps" -o "$scratch/bad.tnx"
printf 'kernel dense\nsplit(dense, q, 4)\n' >"$scratch/bad.steps"
expect 2 "bad.steps:2: error: split(dense, q, 4): " "${own[@]}" --schedule "$scratch/bad.steps" -o "$scratch/bad.tnx"
printf 'kernel dance\n' >"$scratch/bad.steps"
expect 2 "bad.steps:1: error: no kernel of the model has the schedule of 'dance'" \
  "${own[@]}" --schedule "$scratch/bad.steps" -o "$scratch/bad.tnx"
expect 2 "kernels compute dense, relu" "${own[@]}" --schedule "$scratch/bad.steps" -o "$scratch/bad.tnx"
printf 'kernel dense on armv8-a\n' >"$scratch/bad.steps"
expect 2 "no kernel for armv8-a has the schedule of 'dense'" "${own[@]}" --schedule "$scratch/bad.steps" -o "$scratch/bad.tnx"
expect 2 "--schedule is for native kernels" \
  "${own[@]}" --schedule "$scratch/own.steps" --kernels reference -o "$scratch/bad.tnx"
expect 1 "nowhere.steps" "${own[@]}" --schedule "$scratch/nowhere.steps" -o "$scratch/bad.tnx"

expect 2 "tenon tune measures a MODEL into --records FILE, or the machine into --costs FILE" "$tenon" tune
expect 0 '"mhz": 50' "$tenon" tune --costs "$scratch/costs.json" --mhz 50
expect 0 "estimated total" "$tenon" compile tests/models/resnet8_digits_int8_qdq.onnx --shapes N=1 --explain \
  --costs "$scratch/costs.json" -o "$scratch/m.tnx"
expect 0 '"accel:tiny": {' "$tenon" tune --costs "$scratch/two.json" --config default,tiny --mhz 100,25
expect 0 " cycles at 25 MHz)" "$tenon" compile tests/models/resnet8_digits_int8_qdq.onnx --shapes N=1 --explain \
  --config default,tiny --costs "$scratch/two.json" -o "$scratch/m.tnx"
expect 2 "--mhz '100,25,50' has 3 clocks, must have 1, or 2" "$tenon" tune --costs "$scratch/two.json" --config default,tiny --mhz 100,25,50
expect 2 "--mhz is '', must be a number above 0" "$tenon" tune --costs "$scratch/two.json" --mhz 100,
expect 2 "--mhz is 'abc', must be a number above 0" "$tenon" tune "$scratch/nowhere.onnx" --records "$scratch/mhz.records" --mhz abc
expect 2 "--mhz is '-5', must be a number above 0" "$tenon" tune --costs "$scratch/two.json" --mhz -5
printf '%s' '{"version": 1, "cpu": {"gmacs_f32": 1, "gmacs_i8": 2, "gbytes": 1, "call_ns": 2000}, "devices": {"accel":
  {"launch_ns": 20000, "gbytes": 0.8, "mhz": 100}}}' >"$scratch/zynq.json"
expect 0 " cycles at 100 MHz)" "$tenon" compile tests/models/resnet8_digits_int8_qdq.onnx --shapes N=1 --explain \
  --costs "$scratch/zynq.json" -o "$scratch/m.tnx"
expect 0 "1 accelerator program " "$tenon" compile tests/models/resnet8_digits_int8_qdq.onnx --shapes N=1 \
  --costs "$scratch/zynq.json" -o "$scratch/m.tnx"
expect 0 "1 accelerator program " "$tenon" compile tests/models/resnet8_digits_int8_qdq.onnx --shapes N=1 \
  --costs "$scratch/costs.json" --placement order -o "$scratch/m.tnx"
expect 2 "/fc/Gemm is pinned to cuda, which is not among the targets cpu, accel" "$tenon" compile \
  tests/models/resnet8_digits_int8_qdq.onnx --shapes N=1 --pin /fc/Gemm=cuda -o "$scratch/m.tnx"
expect 1 "input is pinned to accel, which does not support its quantize: accel has no pattern with quantize" "$tenon" \
  compile tests/models/resnet8_digits_int8_qdq.onnx --shapes N=1 --pin input=accel -o "$scratch/m.tnx"
expect 0 '"first_match": ' "$tenon" compile tests/models/resnet8_digits_int8_qdq.onnx --shapes N=1 --json \
  --costs "$scratch/zynq.json" -o "$scratch/m.tnx"
expect 2 "must be NODE=TARGET" "$tenon" compile tests/models/tiny_digits.onnx --pin =x -o "$scratch/m.tnx"
expect 2 "--pin names a twice" "$tenon" compile tests/models/tiny_digits.onnx --pin a=cpu --pin a=cpu -o "$scratch/m.tnx"
expect 2 "--placement cost requires --costs" "$tenon" compile tests/models/tiny_digits.onnx --placement cost -o "$scratch/m.tnx"
printf '{"version": 1, "cpu": {"gbytes": -1}}' >"$scratch/bad.json"
expect 1 "the entry cpu.gbytes must be a number above 0" "$tenon" compile tests/models/tiny_digits.onnx --shapes N=1 \
  --costs "$scratch/bad.json" -o "$scratch/m.tnx"
expect 0 "all of these: " "$tenon" tune tests/models/tiny_digits.onnx --shapes N=1 --trials 2 --records "$scratch/r"
expect 0 '"measured": 0,' "$tenon" tune tests/models/tiny_digits.onnx --shapes N=1 --trials 2 --records "$scratch/r" --json
expect 0 ", measured: " "$tenon" compile "${digits[@]}" --explain --records "$scratch/r"
expect 1 "this is not a file of records" "$tenon" compile "${digits[@]}" --records tests/models/README.md
expect 1 "the file of records does not exist" "$tenon" compile "${digits[@]}" --records "$scratch/none"
expect 1 "the file of records cannot be opened" "$tenon" tune tests/models/tiny_digits.onnx --shapes N=1 --records "$scratch/no/r"
expect 2 "this processor has no level 'x86-64-v9'" \
  "$tenon" tune tests/models/tiny_digits.onnx --level x86-64-v9 --records "$scratch/r"
expect 2 "--trials is '0', must be an integer of at least 1" "$tenon" tune tests/models/tiny_digits.onnx --trials 0 --records "$scratch/r"
expect 0 "GOP/s" "$tenon" bench cpu --only 64x3136x64 --rounds 1 --level x86-64-v2
expect 0 "int8" "$tenon" bench cpu --only "256x256x256 int8" --rounds 1 --weights 7bit
expect 2 "there is no level" "$tenon" bench cpu --only 64x3136x64 --level x86-64-v9
expect 0 "\"gflops\": " "$tenon" bench cpu --only "960 -> 960" --rounds 1 --json
expect 0 "kernels take more than" "$tenon" bench cpu --only 64x3136x64 --rounds 1 --compile
expect 2 "no problem has" "$tenon" bench cpu --only nothing

# A whole model, by itself and when another program says so.
digits=(tests/models/tiny_digits.onnx --shapes N=1)
expect 0 "kernels, the slowest" "$tenon" bench model "${digits[@]}" --rounds 1 --results "$scratch/logits.npz"
expect 0 '"compile_seconds"' "$tenon" bench model "${digits[@]}" --rounds 1 --json
expect 0 "kernels, the slowest" "$tenon" bench model "${digits[@]}" --rounds 1 --level "$("$tenon" doctor | sed -n 's/.*levels \([^,]*\).*/\1/p')"
expect 2 "this processor has no level 'pdp11'" "$tenon" bench model "${digits[@]}" --level pdp11
expect 2 "--rounds is '0'" "$tenon" bench model "${digits[@]}" --rounds 0
expect 1 "has the name of an input; its tensors are" "$tenon" bench model "${digits[@]}" --inputs "$scratch/logits.npz"
[ "$(printf '1\n3\n' | "$tenon" bench model "${digits[@]}" --serve | wc -l)" = 3 ]
expect 1 "a line is not a count of runs" "$tenon" bench model "${digits[@]}" --serve <<<"often"
expect 1 "at least 1" "$tenon" bench model "${digits[@]}" --serve <<<"0"
expect 2 "--operators is '1e3', must be an integer from 100 to 10000000" "$tenon" bench compile -n 1e3

# Operators without native kernels are computed by the interpreter's, and named.
cat >"$scratch/slow.tn" <<'END'
#[version = "1"]
def @main(%x: Tensor[(4,), f32]) -> Tensor[(1, ?), i64] { nonzero(relu(%x)) }
END
expect 0 "slow.tn:2:59: nonzero: it has no loop function" "$tenon" compile "$scratch/slow.tn" --cpu -o "$scratch/slow.tnx"
expect 2 "operators without a native kernel: $scratch/slow.tn:2:" \
  "$tenon" compile "$scratch/slow.tn" --cpu --fallback none -o "$scratch/slow.tnx"
expect 0 "" "$tenon" compile "$scratch/rows.tn" --cpu --fallback none -o "$scratch/rows.tnx"
