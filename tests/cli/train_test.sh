#!/usr/bin/env bash
# tenon train: a network learns digits from random weights, the same bytes result however it is interrupted, and what
# bad data get. Argument: the program.
set -euo pipefail
# shellcheck source=tests/expect.sh
source tests/expect.sh
tenon=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
model=tests/models/tiny_digits.onnx
digits=tests/models/resnet8_digits_test.npz
any_batch=("$tenon" train "$model" --init random --data "$digits:x" --labels "$digits:y" --divide 255 --quiet)
train=("${any_batch[@]}" --batch 100)

# It learns, and says so.
expect 0 "epoch 4: loss" "${any_batch[@]}" --batch 25 --epochs 4 --rate 0.01 --schedule cosine --warmup 5 --eval-data "$digits:x" \
  --eval-labels "$digits:y" --metrics "$scratch/m.jsonl" --report "$scratch/m.html" -o "$scratch/m.tnb"
grep -q '"epoch": 1' "$scratch/m.jsonl"
[ "$(wc -l <"$scratch/m.jsonl")" = 4 ]
# A curve of loss, accuracy and rate each, with a point for every epoch.
[ "$(grep -c '<polyline' "$scratch/m.html")" = 3 ]
[ "$(grep -c '<circle' "$scratch/m.html")" = 12 ]
accuracy=$(tail -n 1 "$scratch/m.jsonl" | sed 's/.*"accuracy": \([0-9]*\).*/\1/')
if [ "$accuracy" -lt 60 ]; then
  echo "the accuracy is $accuracy %" >&2
  exit 1
fi
# The written model computes what was measured.
"$tenon" run "$scratch/m.tnb" --cpu --shapes N=100 --data "$digits:x" --labels "$digits:y" --divide 255 --quiet >"$scratch/run"
grep -q "$accuracy" "$scratch/run"

# The same bytes, with one thread or two, and where the training was interrupted.
expect 0 "" "${train[@]}" --epochs 2 --threads 1 --step "$scratch/step.tnx" -o "$scratch/one.tnb"
expect 0 "labels: i64 (100,)" "$tenon" inspect "$scratch/step.tnx"
expect 0 "" "${train[@]}" --epochs 2 --threads 2 -o "$scratch/two.tnb"
cmp "$scratch/one.tnb" "$scratch/two.tnb"
for seconds in 0.7 1.1; do
  timeout -s KILL $seconds "${train[@]}" --epochs 2 --state "$scratch/s.npz" --save-every 3 -o "$scratch/three.tnb" >"$scratch/out" 2>&1 || true
done
expect 0 "" "${train[@]}" --epochs 2 --state "$scratch/s.npz" --save-every 3 -o "$scratch/three.tnb"
cmp "$scratch/one.tnb" "$scratch/three.tnb"
expect 1 "the state was made with another 'seed'" "${train[@]}" --epochs 2 --seed 7 --state "$scratch/s.npz" -o "$scratch/three.tnb"
expect 1 "the state has no 'state." "${train[@]}" --optimizer momentum --state "$scratch/s.npz" -o "$scratch/three.tnb"
head -c 3000 "$scratch/s.npz" >"$scratch/cut.npz"
expect 1 "cut.npz" "${train[@]}" --state "$scratch/cut.npz" -o "$scratch/three.tnb"

# The same bytes under a budget. A step that keeps it by its plan executes calls again; below, the machine gives up tensors.
"$tenon" plan "$model" --train --batch 100 --json >"$scratch/plan.json"
peak=$(sed -n 's/.*"bytes": \([0-9]*\).*/\1/p' "$scratch/plan.json" | head -n 1)
"${train[@]}" --epochs 2 --budget 1GiB -o "$scratch/four.tnb" >"$scratch/plenty"
grep -q "a step by its plan: .*, 0 calls executed again" "$scratch/plenty"
cmp "$scratch/one.tnb" "$scratch/four.tnb"
smaller=0
for part in 95 90 85 80 75 70; do
  "${train[@]}" --epochs 2 --budget $((peak * part / 100)) -o "$scratch/four.tnb" >"$scratch/tight" 2>&1 || break
  cmp "$scratch/one.tnb" "$scratch/four.tnb"
  smaller=$((smaller + 1))
done
if [ "$smaller" = 0 ]; then
  echo "no budget below the peak of $peak bytes suffices" >&2
  exit 1
fi
expect 0 "chosen" "$tenon" plan "$model" --train --batch 100 --budget 1GiB
expect 2 "is the least; '" "$tenon" plan "$model" --train --batch 100 --budget 64KiB
expect 1 "the budget must be at least" "${train[@]}" --budget 64KiB -o "$scratch/x.tn"
expect 2 "--budget is '12 parsecs', must be a number of bytes, as 4096, 64MiB or 1.5GiB" "${train[@]}" --budget '12 parsecs' -o "$scratch/x.tn"
expect 2 'no policy is called "mru"' "${train[@]}" --budget 1GiB --remat-policy mru -o "$scratch/x.tn"

# Trained with the integers of an accelerator, and written as such: what is measured is what the device computes. Weights
# of three bits lose accuracy by rounding alone, and less by training.
integers=("$tenon" train "$model" --data "$digits:x" --labels "$digits:y" --divide 255 --quiet --calibrate "$digits:calib"
  --weights 3bit --batch 100 --epochs 2 --eval-data "$digits:x" --eval-labels "$digits:y" --rate 0.001)
device=(--device behavioral:tiny --data "$digits:x" --labels "$digits:y" --divide 255 --quiet)
expect 0 "epoch 2: loss" "${integers[@]}" --metrics "$scratch/i.jsonl" -o "$scratch/i.tnb"
trained=$(tail -n 1 "$scratch/i.jsonl" | sed 's/.*"accuracy": \([0-9.]*\).*/\1/')
"$tenon" run "$scratch/i.tnb" --shapes N=1 "${device[@]}" >"$scratch/run"
grep -q "behavioral:tiny  *$trained" "$scratch/run"
grep -q "100.0 % of the MACs" "$scratch/run"
rounded=$("$tenon" run "$model" --calibrate "$digits:calib" --weights 3bit "${device[@]}" | sed -n 's/^  behavioral:tiny  *\([0-9.]*\) %.*/\1/p')
if ! awk "BEGIN { exit !($trained > $rounded) }"; then
  echo "rounded weights: $rounded %, trained ones: $trained %" >&2
  exit 1
fi
cat >"$scratch/stops.tn" <<'TEXT'
#[version = "1"]
const $w: Tensor[(10, 4), f32] = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 1, 1, 1];
def @main(%x: Tensor[(4, 4), f32]) { dense(stop_gradient(%x), $w) }
TEXT
expect 1 "the model has stop_gradient, which quantization does not keep" "$tenon" train "$scratch/stops.tn" --data "$digits:x" \
  --labels "$digits:y" --calibrate "$digits:x" -o "$scratch/x.tn"
expect 2 "--calibrate needs the ranges of a trained model" "${integers[@]}" --init random -o "$scratch/x.tn"
expect 2 "no operator has the name 'nonsense'" "${integers[@]}" --keep nonsense -o "$scratch/x.tn"
expect 2 "--keep requires --calibrate" "${train[@]}" --keep nonsense -o "$scratch/x.tn"

# The report of a training that goes on has the epochs before, by the file of metrics.
"${any_batch[@]}" --batch 250 --epochs 1 --state "$scratch/r.npz" --metrics "$scratch/r.jsonl" -o "$scratch/r.tnb" >/dev/null
cp "$scratch/r.npz" "$scratch/r1.npz"
report=("${any_batch[@]}" --batch 250 --epochs 3 --state "$scratch/r.npz" --metrics "$scratch/r.jsonl" --report "$scratch/r.html" -o "$scratch/r.tnb")
expect 0 "epoch 3: loss" "${report[@]}"
[ "$(grep -c '<circle' "$scratch/r.html")" = 6 ] && grep -q "<title>epoch 1: " "$scratch/r.html"
cp "$scratch/r1.npz" "$scratch/r.npz"
echo '{"epoch": 1, "loss": null}' >>"$scratch/r.jsonl"
expect 1 "r.jsonl:4: error: the line is not one of the metrics of tenon train" "${report[@]}"

# Ctrl-C ends a training after a step, and the same command goes on from there; two do not write one state.
long=("${train[@]}" --epochs 500 --state "$scratch/i.npz" -o "$scratch/long.tnb")
"${long[@]}" >"$scratch/out" 2>"$scratch/interrupted" &
trainer=$!
for _ in $(seq 200); do [ -s "$scratch/out" ] && break; sleep 0.1; done
expect 1 "another training writes this state" "${long[@]}"
kill -INT $trainer
status=0
wait $trainer || status=$?
[ $status = 1 ] || { echo "the interrupted training ended with $status" >&2; exit 1; }
grep -q "the training was interrupted after step" "$scratch/interrupted" || { cat "$scratch/interrupted"; exit 1; }
[ -s "$scratch/i.npz" ] && [ ! -e "$scratch/i.npz.lock" ]

# A batch in two parts takes less memory, and an optimizer may be a file.
"${any_batch[@]}" --batch 100 --epochs 1 --json --optimizer sgd --rate 0.1 -o "$scratch/whole.tnb" >"$scratch/whole.json"
"${any_batch[@]}" --batch 50 --accumulate 2 --epochs 1 --json --optimizer sgd --rate 0.1 -o "$scratch/parts.tnb" >"$scratch/parts.json"
member() { sed -n "s/.*\"$1\": \([0-9.]*\).*/\1/p" "$2"; }
awk "BEGIN { d = $(member loss "$scratch/whole.json") - $(member loss "$scratch/parts.json"); exit !(d * d < 1e-8) }"
awk "BEGIN { exit !($(member peak_bytes "$scratch/parts.json") < 0.8 * $(member peak_bytes "$scratch/whole.json")) }"
cat >"$scratch/sign.tn" <<'TEXT'
#[version = "1"]
def @update[n](%w: Tensor[(n,), f32], %g: Tensor[(n,), f32], %rate: Tensor[(), f32], %step: Tensor[(), f32]) {
  (%w - %rate * sign(%g),)
}
TEXT
expect 0 "epoch 1: loss" "${train[@]}" --optimizer "$scratch/sign.tn" --rate 0.001 -o "$scratch/x.tnb"
expect 1 "the module has no function @update" "${train[@]}" --optimizer tests/examples/char_rnn.tn -o "$scratch/x.tnb"
expect 2 "there is no optimizer 'sgdm'" "${train[@]}" --optimizer sgdm -o "$scratch/x.tnb"

# The step alone, with its first weights, for programs that train by it.
expect 0 "wrote $scratch/alone.tnx" "$tenon" train "$model" --batch 100 --step "$scratch/alone.tnx"
expect 0 "state   weight." "$tenon" inspect "$scratch/alone.tnx"
expect 0 '"states"' "$tenon" inspect "$scratch/alone.tnx" --json
expect 2 "without --data, --labels and --output, --step alone writes the step" "$tenon" train "$model" -o "$scratch/x.tn"
expect 2 "--labels is required" "$tenon" train "$model" --data "$digits:x" -o "$scratch/x.tn"
expect 2 "--output is required" "$tenon" train "$model" --data "$digits:x" --labels "$digits:y"

# Bad input.
expect 1 "bad.npz" "$tenon" train $model --data "$digits:x" --labels "$scratch/bad.npz:y" -o "$scratch/x.tn" --quiet
expect 2 "no weight has the name 'nonsense'" "${train[@]}" --freeze nonsense -o "$scratch/x.tn"
expect 2 "the trained model is written as .tn or .tnb" "${train[@]}" -o "$scratch/x.onnx"
expect 2 "less than a batch of 5000" "${any_batch[@]}" --batch 5000 -o "$scratch/x.tn"
expect 2 "--save-every needs --state" "${train[@]}" --save-every 5 -o "$scratch/x.tn"
expect 2 "--eval-data and --eval-labels belong together" "${train[@]}" --eval-data "$digits:x" -o "$scratch/x.tn"
expect 2 "--output" "${train[@]}" -o "$digits"
expect 1 "the loss of step" "${train[@]}" --optimizer sgd --rate 1e30 -o "$scratch/x.tn"
expect 1 "of '/f/f." "${train[@]}" --optimizer sgd --rate 1e30 -o "$scratch/x.tn"
printf '#[version = "1"]\ndef @main(%%x: Tensor[(4, 2), f32]) { %%x * 2f32 }\n' >"$scratch/none.tn"
expect 1 "has no weights to train" "$tenon" train "$scratch/none.tn" --data "$digits:x" --labels "$digits:y" -o "$scratch/x.tn"
