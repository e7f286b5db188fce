#!/usr/bin/env bash
# Models with unknown sizes are compiled once and run at the sizes of the data. Argument: tenon.
set -euo pipefail
# shellcheck source=tests/expect.sh
source tests/expect.sh
tenon=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
arrays=tests/runtime/data/mixed.npz  # x: f32 (2, 3), all ones; labels: u8 (2,), 3 and 1
npy() {  # TYPE SHAPE BYTES...
  printf '\223NUMPY\1\0v\0%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': $2, }"
  printf '%b' "${@:3}"
}
npy '<f4' '(1, 3)' '\0\0\0200?' '\0\0\0\0100' '\0\0\0\0' >"$scratch/one_two_zero.npy"
npy '|u1' '(2,)' '\0' '\01' >"$scratch/classes.npy"
npy '|u1' '(1,)' '\0' >"$scratch/class.npy"

cat >"$scratch/rows.tn" <<'END'
#[version = "1"]
def @main[N](%x: Tensor[(N, 3), f32]) -> Tensor[(N, 3), f32] { %x + %x }
END
run=("$tenon" run "$scratch/rows.tn" --quiet)
expect 0 "f32 (1, 3): 2 4 0" "${run[@]}" --cpu --data "$scratch/one_two_zero.npy"
expect 0 "f32 (2, 3): 2 2 2 2 2 2" "${run[@]}" --cpu --check --data "$arrays:x"
# The rows of the data are those of the labels: the largest element of equal ones is the first.
expect 0 '"device_accuracy": 50' "${run[@]}" --cpu --data "$arrays:x" --labels "$scratch/classes.npy" --json
expect 1 "1 labels for 2 samples" "${run[@]}" --cpu --data "$arrays:x" --labels "$scratch/class.npy"
# Sizes that are known must fit. The accelerator's programs are for fixed sizes: those of the data, a sample a row.
expect 1 "the model's input is x: f32 (N, 3)" "${run[@]}" --cpu --data "$arrays:labels"
device=("$tenon" run "$scratch/rows.tn" --device behavioral:tiny)
expect 0 "rows: sizes by the data: N=1" "${device[@]}" --data "$arrays:x"
expect 0 "f32 (1, 3): 2 2 2" "${device[@]}" --data "$arrays:x" --quiet
expect 0 "f32 (2, 3): 2 2 2 2 2 2" "${device[@]}" --data "$arrays:x" --shapes N=2
expect 1 "the model's input is x: f32 (N, 3)" "${device[@]}" --data "$arrays:labels"
cat >"$scratch/product.tn" <<'END'
#[version = "1"]
def @main[N, M](%x: Tensor[(N * M, 3), f32]) -> Tensor[(N * M, 3), f32] { %x + %x }
END
expect 2 "a size is unknown" "$tenon" run "$scratch/product.tn" --device behavioral:tiny --data "$arrays:x"
# Only a first size that all inputs share is that of the samples.
cat >"$scratch/scaled.tn" <<'END'
#[version = "1"]
def @main[N, C](%x: Tensor[(N, C), f32], %s: Tensor[(1, C), f32]) -> Tensor[(N, C), f32] { %x * %s }
END
expect 0 "scaled: sizes by the data: C=3,N=2" "$tenon" run "$scratch/scaled.tn" --device behavioral:tiny \
  --data "x=$arrays:x" --data "s=$scratch/one_two_zero.npy"

# A model of ONNX, all pictures at once and one by one.
digits=("$tenon" run tests/models/tiny_digits.onnx --cpu --quiet --divide 255 --data tests/models/resnet8_digits_test.npz:calib)
"${digits[@]}" --output "$scratch/batch.npz" >/dev/null
"${digits[@]}" --shapes N=1 --output "$scratch/single.npz" >/dev/null
cmp "$scratch/batch.npz" "$scratch/single.npz"

# Quantization takes the sizes of the samples where an accelerator is compiled for, and else keeps them unknown.
arrays=tests/models/resnet8_digits_test.npz
samples=(--calibrate "$arrays:calib" --divide 255)
expect 0 "tiny_digits: sizes by the data: N=1" \
  "$tenon" compile tests/models/tiny_digits.onnx "${samples[@]}" --config tiny -o "$scratch/data.tnx"
"$tenon" compile tests/models/tiny_digits.onnx "${samples[@]}" --config tiny -o "$scratch/bound.tnx" --shapes N=1 >/dev/null
cmp "$scratch/data.tnx" "$scratch/bound.tnx"
expect 0 "tiny_digits over 2 samples" \
  "$tenon" compare tests/models/tiny_digits.onnx "${samples[@]}" --data "$arrays:x" --limit 2
"$tenon" compile tests/models/tiny_digits.onnx "${samples[@]}" --cpu -o "$scratch/cpu.tnx" >/dev/null
for rows in calib x; do
  expect 0 "logits" "$tenon" run "$scratch/cpu.tnx" --cpu --quiet --divide 255 --data "$arrays:$rows"
done

# Programs for some sizes, and the CPU for all others: the results are those of the CPU alone.
buckets=("${samples[@]}" --shapes N=1 --shapes N=300)
expect 0 "on accel up to N = 1 or N = 300; others on the CPU" \
  "$tenon" compile tests/models/tiny_digits.onnx "${buckets[@]}" --config tiny -o "$scratch/buckets.tnx"
for rows in calib x; do
  "$tenon" run "$scratch/cpu.tnx" --cpu --quiet --divide 255 --data "$arrays:$rows" --output "$scratch/cpu.npz" >/dev/null
  "$tenon" run "$scratch/buckets.tnx" --device behavioral:tiny --quiet --divide 255 --data "$arrays:$rows" \
    --output "$scratch/device.npz" >/dev/null
  cmp "$scratch/cpu.npz" "$scratch/device.npz"
done
expect 0 "f32 (2, 3): 2 2 2 2 2 2" "${device[@]}" --data "tests/runtime/data/mixed.npz:x" --shapes N=1 --shapes N=2
expect 2 "there is no accelerator" \
  "$tenon" compile tests/models/tiny_digits.onnx --cpu --shapes N=1 --shapes N=2 -o "$scratch/none.tnx"
expect 2 "'N' is not NAME=SIZE" \
  "$tenon" compile tests/models/tiny_digits.onnx --config tiny --shapes N=1 --shapes N -o "$scratch/none.tnx"
