#!/usr/bin/env bash
# Attention of an encoder in int8 on the RTL in lockstep: every product, those of two activations included, is the
# accelerator's, whose layers equal the integer reference. Argument: tenon.
set -euo pipefail
tenon=$1
data=tests/models/tiny_minilm.npz
model=(tests/models/tiny_minilm.onnx --shapes "N=1,T=17")
for option in --calibrate --data; do
  model+=("$option" "tokens=$data:batch_tokens" "$option" "mask=$data:batch_mask")
done
# Heads of 8 channels are whole blocks on tiny, on default parts of blocks.
for configuration in tiny default; do
  found=$("$tenon" run "${model[@]}" --limit 1 --check --device "lockstep:$configuration")
  grep -q '^  accel .* 100.0 % of the MACs' <<<"$found" || { echo "$found"; exit 1; }
  grep -qE '1 samples, [0-9]+ layers, [0-9]+ elements: equal, integers bit for bit' <<<"$found" || { echo "$found"; exit 1; }
done
