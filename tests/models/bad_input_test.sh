#!/usr/bin/env bash
# Bad models, data, devices and executables: each ends with its exit code and a message that says what to do. Arguments:
# tenon, tenon-run.
set -euo pipefail
# shellcheck source=tests/expect.sh
source tests/expect.sh
tenon=$1 tenon_run=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
digits=tests/models/resnet8_digits_test.npz
onnx=tests/models/tiny_digits.onnx
quantized=(--shapes N=1 --calibrate "$digits:calib" --divide 255)
run=("$tenon" run "$onnx" "${quantized[@]}" --quiet)

# Models.
head -c 20000 "$onnx" >"$scratch/cut.onnx"
expect 1 "cut.onnx" "$tenon" compile "$scratch/cut.onnx" -o "$scratch/x.tnx"
head -c 5000 /dev/urandom >"$scratch/noise.onnx"
expect 1 "noise.onnx" "$tenon" compile "$scratch/noise.onnx" -o "$scratch/x.tnx"
: >"$scratch/empty.onnx"
expect 1 "empty.onnx" "$tenon" compile "$scratch/empty.onnx" -o "$scratch/x.tnx"
expect 1 "nowhere.onnx" "$tenon" compile "$scratch/nowhere.onnx" -o "$scratch/x.tnx"
expect 2 'ends in .onnx, .tn or .tnb, not in ".pt"' "$tenon" compile "$scratch/model.pt" -o "$scratch/x.tnx"
expect 2 "--shapes" "$tenon" compile "$onnx" --shapes N=x -o "$scratch/x.tnx"
expect 1 "cannot" "$tenon" compile "$onnx" --shapes N=1 -o "$scratch/nowhere/x.tnx"

expect 2 "give one of them" "$tenon" compile "$onnx" --shapes N=1 -o "$scratch/x.tnx" --json --explain
"$tenon" compile "$onnx" --shapes N=1 -o "$scratch/x.tnx" --print model >"$scratch/printed.tn"
[ "$(tail -n 1 "$scratch/printed.tn")" = "}" ] || { echo "more than the module is printed"; exit 1; }

# Data.
expect 2 "its tensors are calib, x, y" "${run[@]}" --data "$digits"
expect 2 'no tensor is called "z"' "${run[@]}" --data "$digits:z"
expect 1 "nowhere.npy" "${run[@]}" --data "$scratch/nowhere.npy"
expect 1 "$digits:y: error: the data is i64 (" "${run[@]}" --data "$digits:y"
expect 1 "the model's input is input: f32 (1, 1, 28, 28)" "${run[@]}" --data "$digits:y"
expect 1 "the model's input is" "$tenon" compile "$onnx" --shapes N=1 --calibrate "$digits:y" -o "$scratch/x.tnx"
expect 2 "--divide is 0" "$tenon" run "$onnx" --shapes N=1 --cpu --data "$digits:x" --divide 0
expect 2 "--launch-limit is '-1', must be a number above 0" "${run[@]}" --data "$digits:x" --launch-limit -1
expect 2 "at least 0" "${run[@]}" --data "$digits:x" --limit -1
expect 2 "--threads is '-1', must be an integer from 0 to 1024" "${run[@]}" --data "$digits:x" --threads -1
expect 2 "it would overwrite" "${run[@]}" --data "$digits:x" --report "$digits"
expect 2 "it would overwrite" "$tenon" compile "$onnx" --shapes N=1 -o "$onnx"
expect 1 "labels.npy" "$tenon" run "$scratch/nowhere.onnx" --cpu --data "$digits:x" --labels "$scratch/labels.npy"
expect 2 "--check compares nothing" "$tenon" run "$onnx" --shapes N=1 --quiet --divide 255 --data "$digits:x" --limit 1 --check
cat > "$scratch/rounded_late.tn" <<'END'
#[version = "1"]
const $w: Tensor[(1, 1, 1, 1), i8] = [3];
def @main(%x: Tensor[(1, 1, 28, 28), f32]) -> Tensor[(1, 1, 28, 28), f32] {
  let %sums = conv2d(quantize(%x, scale=[0.1]), $w);
  dequantize(quantize(sigmoid(dequantize(%sums, scale=[0.1])), scale=[0.1]), scale=[0.1])
}
END
expect 2 "tenon compile --explain says of each operator what the accelerator lacks" "$tenon" run "$scratch/rounded_late.tn" --quiet --divide 255 --data "$digits:x" --limit 1 --check
expect 0 "warning: nothing runs on the accelerator default" "$tenon" run "$onnx" --shapes N=1 --divide 255 --data "$digits:x" --limit 1
expect 1 "cannot make the directory" "${run[@]}" --data "$digits:x" --output "$onnx/results"
expect 1 "a multiple of the input's" "$tenon" run "$onnx" --shapes N=3 --cpu --quiet --data "$digits:x"
expect 2 "--keep requires --calibrate" "$tenon" compile "$onnx" --shapes N=1 --keep /fc/Gemm -o "$scratch/x.tnx"
expect 2 "--accuracy requires --calibrate" "$tenon" compile "$onnx" --shapes N=1 --accuracy 0.99 -o "$scratch/x.tnx"
expect 2 "must be a number above 0 and at most 1" "$tenon" compile "$onnx" "${quantized[@]}" --accuracy 2 -o "$scratch/x.tnx"
expect 0 "biases corrected" "$tenon" compile "$onnx" "${quantized[@]}" --calibration measured -o "$scratch/x.tnx"
expect 0 "layers in float" "$tenon" compile "$onnx" "${quantized[@]}" --accuracy 0.9999 -o "$scratch/x.tnx"
expect 2 "did you mean /fc/Gemm?" "$tenon" compile "$onnx" "${quantized[@]}" --keep /fc/Gem -o "$scratch/x.tnx"
expect 2 "minmax" "$tenon" compile "$onnx" "${quantized[@]}" --calibration median -o "$scratch/x.tnx"

# Archives: members of other types do no harm until they are asked for.
arrays=tests/runtime/data/mixed.npz
odd=("$tenon" run tests/models/odd_names.onnx --cpu --quiet)
expect 0 "dense" "${odd[@]}" --data "$arrays:x"
expect 0 "dense" "${odd[@]}" --data "$arrays:half"
expect 1 "elements of type '<U1' are not supported" "${odd[@]}" --data "$arrays:words"
expect 2 'no tensor is called "y"' "${odd[@]}" --data "$arrays:y"
expect 2 "its tensors are flags, half, labels, none, real, words, x" "${odd[@]}" --data "$arrays:"
expect 1 "the data is bool (2,), the model's input is x: f32 (1, 3)" "${odd[@]}" --data "$arrays:flags"
expect 1 "the data has no sample" "${odd[@]}" --data "$arrays:none"
expect 1 "there is no sample to calibrate with" "${odd[@]}" --data "$arrays:x" --calibrate "$arrays:none"
printf '#[version = "1"]\ndef @main(%%x: Tensor[(2), f32]) -> Tensor[(2), f32] { %%x }\n' >"$scratch/vector.tn"
expect 1 "a value of %x is inf during calibration" "$tenon" run "$scratch/vector.tn" --cpu --data "$arrays:real" --calibrate "$arrays:real"
expect 2 "labels are bool, must be integers" "${odd[@]}" --data "$arrays:x" --labels "$arrays:flags"
expect 2 "labels are f64, must be integers" "${odd[@]}" --data "$arrays:x" --labels "$arrays:real"
expect 1 "2 labels for 1000 samples" "$tenon" run "$onnx" --shapes N=1 --cpu --data "$digits:x" --labels "$arrays:labels"

# Names of results that are no names of files: slashes, dots, a line break (an escape since the import), 300 letters, two that a file cannot tell.
results=$'\n ..\n.._.._x\na_b\na_b.1\n'$(printf 'y%.0s' {1..200})$'\né\\n"q"'
mkdir "$scratch/deep"
"${odd[@]}" --data "$arrays:x" --output "$scratch/deep/results" --report "$scratch/report.html" >/dev/null
[ "$(find "$scratch/deep" -name '*_1.npy' -printf '\n%f' | sed 's/_1.npy$//' | LC_ALL=C sort)" = "$results" ]

# A tensor that no machine holds.
printf '#[version = "1"]\ndef @main(%%x: Tensor[(1, 400000000, 400000000), f32]) -> Tensor[(1, 400000000, 400000000), f32] { relu(%%x) }\n' >"$scratch/huge.tn"
expect 1 "more than 2^40 elements" "$tenon" compile "$scratch/huge.tn" --cpu -o "$scratch/x.tnx"

# One value as two results.
printf '#[version = "1"]\ndef @main(%%x: Tensor[(1, 3), f32]) -> (Tensor[(1, 3), f32], Tensor[(1, 3), f32]) { let %%y = relu(%%x); (%%y, %%y) }\n' >"$scratch/twice.tn"
"$tenon" run "$scratch/twice.tn" --cpu --quiet --data "$arrays:x" --output "$scratch/twice" >/dev/null
[ "$(cd "$scratch/twice" && echo *_0.npy)" = "output1_0.npy y_0.npy" ]

# Float, quantized and device side by side.
side_by_side=("$tenon" compare "$onnx" --shapes N=1 --divide 255 --quiet --data "$digits:x" --limit 1)
expect 2 "the model has no quantized layer to compare" "${side_by_side[@]}"
expect 2 "it would overwrite" "${side_by_side[@]}" --report "$digits"
expect 0 "No layer has an error above 20 dB" "${side_by_side[@]}" --calibrate "$digits:calib" --report "$scratch/compare.html"
grep -q '</html>' "$scratch/compare.html"
expect 0 '"device_differing": 0' "${side_by_side[@]}" --calibrate "$digits:calib" --json
expect 2 "--data is required" "$tenon" compare "$onnx"

# Devices and configurations.
expect 2 'unknown device scheme "warp"' "${run[@]}" --data "$digits:x" --device warp:default
expect 2 'no configuration is called "nowhere"' "${run[@]}" --data "$digits:x" --device behavioral:nowhere
expect 2 "there is no option colour" "${run[@]}" --data "$digits:x" --device 'behavioral:default?colour=red'

# Executables.
"$tenon" compile "$onnx" "${quantized[@]}" -o "$scratch/good.tnx" >/dev/null
expect 1 "tenon compile" "$tenon" run "$scratch/good.tnx" --divide 255 --data "$digits:x" --limit 1 --device behavioral:tiny
expect 1 "block_in: 16 here, 4 there" "$tenon" run "$scratch/good.tnx" --divide 255 --data "$digits:x" --limit 1 --device behavioral:tiny
expect 2 "--check needs the model" "$tenon" run "$scratch/good.tnx" --divide 255 --data "$digits:x" --check
size=$(stat -c %s "$scratch/good.tnx")
for part in 0 1 2 3 4 5 6 7 8 9; do  # one byte changed, at ten offsets: from there the first that is not 0, as padding is
  cp "$scratch/good.tnx" "$scratch/bad.tnx"
  at=$((size * part / 10 + 5))
  next=$({ cmp -i "$at:0" "$scratch/good.tnx" /dev/zero || true; } | sed -n 's/.*byte \([0-9]*\),.*/\1/p')
  printf '\xa5' | dd of="$scratch/bad.tnx" bs=1 seek=$((at + next - 1)) conv=notrunc status=none
  cmp -s "$scratch/good.tnx" "$scratch/bad.tnx" ||
    expect 1 "bad.tnx" "$tenon" run "$scratch/bad.tnx" --divide 255 --data "$digits:x" --limit 1
done
head -c $((size / 2)) "$scratch/good.tnx" >"$scratch/bad.tnx"
expect 1 "bad.tnx" "$tenon" run "$scratch/bad.tnx" --divide 255 --data "$digits:x" --limit 1
expect 1 "nowhere.tnx" "$tenon_run" "$scratch/nowhere.tnx"

# A limit that passes is an error, not a hang.
expect 1 "is still busy after" "${run[@]}" --data "$digits:x" --limit 1 --launch-limit 0.0000001 --device 'verilator:default' \
  --reproducer "$scratch/mismatch"
