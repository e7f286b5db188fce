#!/usr/bin/env bash
# The main job: ResNet-8 from ONNX to int8 to the accelerator, 1000 digits on the behavioral simulator with every layer
# equal to the integer reference, some of them on the RTL in lockstep. Arguments: tenon, tenon-run, digits on the RTL.
set -euo pipefail
tenon=$1 tenon_run=$2 on_rtl=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
digits=tests/models/resnet8_digits_test.npz
model=(tests/models/resnet8_digits.onnx --shapes N=1 --calibrate "$digits:calib" --divide 255)
data=(--data "$digits:x" --labels "$digits:y")

# figure NAME FILE: one figure of a JSON file.
figure() { sed -n "s/^ *\"$1\": \([^,]*\),\?$/\1/p" "$2"; }
# at_least WHAT VALUE LIMIT
at_least() { awk -v v="$2" -v l="$3" 'BEGIN {exit !(v >= l)}' || { echo "$1 is $2, must be at least $3"; exit 1; }; }

"$tenon" run "${model[@]}" "${data[@]}" --check --verify lockstep:default --verify-samples "$on_rtl" \
  --report "$scratch/report.html" --trace "$scratch/trace.json" --json >"$scratch/figures.json"
cat "$scratch/figures.json"
at_least "float accuracy" "$(figure reference_accuracy "$scratch/figures.json")" 98.3
at_least "device accuracy" "$(figure device_accuracy "$scratch/figures.json")" 98.0
[ "$(figure device_accuracy "$scratch/figures.json")" = "$(figure int8_accuracy "$scratch/figures.json")" ]
[ "$(figure samples "$scratch/figures.json")" = 1000 ]
[ "$(figure layers_compared "$scratch/figures.json")" = 11000 ]
[ "$(figure verified_samples "$scratch/figures.json")" = "$on_rtl" ]
# The report stands alone: it names nothing that a browser would fetch.
grep -q '</html>' "$scratch/report.html"
if grep -oE '(src|href)="https?:[^"]*"' "$scratch/report.html"; then exit 1; fi
head -c 1 "$scratch/trace.json" | grep -q '[[{]'

# Four digits at once have four labels.
for n in 1 4; do
  "$tenon" run tests/models/tiny_digits.onnx --shapes N=$n --divide 255 "${data[@]}" --limit $((100 / n)) --cpu --json \
    --output "$scratch/new/directory" >"$scratch/batch$n.json"
done
[ "$(figure device_accuracy "$scratch/batch1.json")" = "$(figure device_accuracy "$scratch/batch4.json")" ]
[ -s "$scratch/new/directory" ]

# The executable in a file gives the same results as the model, without the compiler.
"$tenon" compile "${model[@]}" -o "$scratch/digits.tnx"
"$tenon" run "$scratch/digits.tnx" --divide 255 "${data[@]}" --limit 100 --json >"$scratch/file.json"
at_least "accuracy of the file" "$(figure device_accuracy "$scratch/file.json")" 98.0
"$tenon_run" --help | grep -q -- --device
