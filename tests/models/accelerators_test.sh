#!/usr/bin/env bash
# One model on accelerators of two configurations: equal to one to the bit, cycles of both, and what does not fit.
# Arguments: tenon, tenon-run.
set -euo pipefail
# shellcheck source=tests/expect.sh
source tests/expect.sh
tenon=$1 tenon_run=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
digits=tests/models/resnet8_digits_test.npz
model=(tests/models/tiny_digits.onnx --shapes N=1 --calibrate "$digits:calib" --divide 255)
pins=(--pin '/f/f.2/f.2.0/Conv=accel:tiny' --pin '/f/f.4/f.4.0/Conv=accel:tiny')
compile=("$tenon" compile "${model[@]}" -o "$scratch/x.tnx")

# Lists of configurations.
expect 2 'no configuration is called "nowhere"' "${compile[@]}" --config default,nowhere
expect 2 "--config 'default,,tiny' has an empty entry" "${compile[@]}" --config default,,tiny
expect 2 "--config 'default,' has an empty entry" "${compile[@]}" --config default,
expect 2 "--config '' has an empty entry" "${compile[@]}" --config ""
expect 2 "the configuration tiny is given twice" "${compile[@]}" --config tiny,default,tiny
sed 's/"queue_depth": 8/"queue_depth": 16/' hw/configs/tiny.json >"$scratch/other.json"
expect 2 "two configurations are called tiny, and differ" "${compile[@]}" --config "tiny,$scratch/other.json"
expect 2 "the targets are" "${compile[@]}" --config default,tiny --targets accel
expect 2 "accel:default, accel:tiny" "${compile[@]}" --config default,tiny --targets accel
expect 2 "is pinned to accel:wide, which is not among the targets cpu, accel:default, accel:tiny" \
  "${compile[@]}" --config default,tiny --pin /fc/Gemm=accel:wide
expect 2 "among the targets cpu, accel" "${compile[@]}" --pin /fc/Gemm=accel:tiny

# An executable: its results, and devices.
"$tenon" compile "${model[@]}" -o "$scratch/one.tnx" --config default >/dev/null
"$tenon" compile "${model[@]}" -o "$scratch/two.tnx" --config default,tiny "${pins[@]}" --explain >"$scratch/explained"
grep -q 'accel:default accel.conv2d' "$scratch/explained"
grep -q 'accel:tiny *accel.conv2d' "$scratch/explained"
run=("$tenon" run "$scratch/two.tnx" --divide 255 --data "$digits:x" --limit 3 --quiet)
"$tenon" run "$scratch/one.tnx" --divide 255 --data "$digits:x" --limit 3 --quiet --output "$scratch/one.npz" >/dev/null
"${run[@]}" --output "$scratch/two.npz" --report "$scratch/report.html" --trace "$scratch/trace.json" >"$scratch/figures"
cmp "$scratch/one.npz" "$scratch/two.npz"
grep -q '^Accelerator default, a sample' "$scratch/figures"
grep -q '^Accelerator tiny, a sample' "$scratch/figures"
grep -q '"name":"accel:tiny"' "$scratch/report.html"
grep -q 'accelerator: behavioral:tiny at' "$scratch/trace.json"
both=(--device behavioral:tiny --device behavioral:default)
"${run[@]}" "${both[@]}" --json >"$scratch/json"
grep -q '"target": "accel:tiny"' "$scratch/json"
expect 0 "equal to behavioral:tiny, behavioral:default" "${run[@]}" "${both[@]}" --verify behavioral:default \
  --verify behavioral:tiny
expect 1 "is for configuration 'tiny', and no device of it was given" "${run[@]}" --device behavioral:default
expect 1 "was compiled for configuration 'tiny'" "${run[@]}" --device behavioral:default --device behavioral:wide-8x16
expect 1 "no program is for configuration 'wide-8x16' of this device" "${run[@]}" "${both[@]}" --device behavioral:wide-8x16
expect 1 "behavioral:tiny and behavioral:tiny have the same configuration" "${run[@]}" "${both[@]}" --device behavioral:tiny
expect 1 "no device of it was given" "${run[@]}" "${both[@]}" --verify behavioral:default

# tenon-run: a device of each configuration is the default.
printf '#[version = "1"]\ndef @main(%%x: Tensor[(1, 1, 28, 28), f32]) { let %%y = relu(%%x); %%y }\n' >"$scratch/relu.tn"
"$tenon" run "$scratch/relu.tn" --cpu --quiet --divide 255 --data "$digits:x" --limit 1 --output "$scratch/x.npz" >/dev/null
input=$scratch/x.npz:y
"$tenon_run" "$scratch/one.tnx" --input "$input" --output "$scratch/one" >/dev/null
"$tenon_run" "$scratch/two.tnx" --input "$input" --output "$scratch/two" >"$scratch/figures"
diff -r "$scratch/one" "$scratch/two"
grep -q '^behavioral:default: [0-9]* cycles a run' "$scratch/figures"
grep -q '^behavioral:tiny: [0-9]* cycles a run' "$scratch/figures"
"$tenon_run" "$scratch/two.tnx" --input "$input" "${both[@]}" --json >"$scratch/json"
grep -q '"device": "behavioral:tiny"' "$scratch/json"
expect 0 "" "$tenon_run" "$scratch/two.tnx" --input "$input" --verify behavioral:tiny --verify behavioral:default
expect 1 "no device of it was given" "$tenon_run" "$scratch/two.tnx" --input "$input" --device behavioral:tiny

# A model is compiled for its devices. By order, nothing is left for the second one.
expect 0 "nothing runs on the accelerator tiny" "$tenon" run "${model[@]}" --data "$digits:x" --limit 1 \
  --device behavioral:default --device behavioral:tiny
expect 0 "1 samples equal to behavioral:default, behavioral:tiny" "$tenon" run "${model[@]}" --data "$digits:x" --limit 1 \
  --device behavioral:default --device behavioral:tiny --verify behavioral:tiny --verify behavioral:default
expect 1 "was compiled for configuration 'default'" "$tenon" run "${model[@]}" --data "$digits:x" --limit 1 --quiet \
  --verify behavioral:tiny
expect 2 "the configuration tiny is given twice" "$tenon" run "${model[@]}" --data "$digits:x" --limit 1 --quiet \
  --device behavioral:tiny --device behavioral:tiny
expect 0 "equal bit for bit" "$tenon" run "${model[@]}" --data "$digits:x" --limit 2 --quiet "${both[@]}" \
  --pin /GlobalAveragePool=accel:default --check
printf '{"version": 1, "cpu": {"gmacs_f32": 0.001, "gmacs_i8": 0.001, "gbytes": 100, "call_ns": 0},
  "devices": {"accel": {"launch_ns": 0, "mhz": 100}, "accel:tiny": {"launch_ns": 0, "mhz": 600}}}' >"$scratch/costs.json"
"$tenon" compile "${model[@]}" -o "$scratch/costs.tnx" --config default,tiny --costs "$scratch/costs.json" --explain \
  >"$scratch/explained"
grep -q 'cycles at 100 MHz' "$scratch/explained"
grep -q 'cycles at 600 MHz' "$scratch/explained"
"$tenon" run "$scratch/costs.tnx" --divide 255 --data "$digits:x" --limit 3 --quiet --output "$scratch/costs.npz" >/dev/null
cmp "$scratch/one.npz" "$scratch/costs.npz"

"$tenon" run "${model[@]}" --data "$digits:x" --limit 1 --quiet "${both[@]}" --costs "$scratch/costs.json" \
  --report "$scratch/report.html" >/dev/null
grep -q '"prices":\[{"target":"cpu"' "$scratch/report.html"

# The other commands that take devices or configurations.
expect 0 "accel:default has no pattern with dequantize; accel:tiny has no pattern with dequantize" \
  "$tenon" import --check tests/models/tiny_digits.onnx --shapes N=1 --config default,tiny
expect 0 "int8 and behavioral:tiny, behavioral:default against" "$tenon" compare "${model[@]}" "${pins[@]}" "${both[@]}" \
  --data "$digits:x" --limit 1 --quiet
expect 0 "configuration tiny, 1 launches" "$tenon" debug "$scratch/two.tnx" --data "$digits:x" --divide 255 --launch 1 -x info
expect 0 "configuration default, 1 launches" "$tenon" debug "$scratch/two.tnx" --data "$digits:x" --divide 255 -x info
expect 1 "launches 5 programs, launch 9 does not exist" "$tenon" debug "$scratch/two.tnx" --data "$digits:x" --divide 255 \
  --launch 9

# Requests, and runs of many instances in batches of their operators.
printf '{"id": 1, "inputs": [{"dtype": "f32", "shape": [1, 1, 28, 28], "data": [%s0]}]}\n' "$(printf '0,%.0s' {1..783})" \
  >"$scratch/requests"
"$tenon_run" "$scratch/one.tnx" --requests "$scratch/requests" >"$scratch/one.answers"
"$tenon_run" "$scratch/two.tnx" --requests "$scratch/requests" >"$scratch/two.answers"
"$tenon" compile "${model[@]}" -o "$scratch/batch.tnx" --batch --config default,tiny --costs "$scratch/costs.json" >/dev/null
"$tenon_run" "$scratch/batch.tnx" --info >"$scratch/info"
grep -q 'configuration default' "$scratch/info"
grep -q 'configuration tiny' "$scratch/info"
"$tenon_run" "$scratch/batch.tnx" --requests "$scratch/requests" >"$scratch/batch.answers"
grep -q '"outputs"' "$scratch/one.answers"
cmp "$scratch/one.answers" "$scratch/two.answers"
cmp "$scratch/one.answers" "$scratch/batch.answers"
echo "equal to one, on both"
