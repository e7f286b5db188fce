#!/usr/bin/env bash
# An installation works away from the source tree, also after it was moved: its command finds its files, and a project
# outside builds against it. Arguments: the build directory, the generator's build program.
set -euo pipefail
build=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/first" >"$scratch/install.log"
mv "$scratch/first" "$scratch/moved"
tenon=$scratch/moved/bin/tenon
share=$scratch/moved/share/tenon

# The installed files and no others: a configuration that only the installation has is found by name.
sed 's/"name": "tiny"/"name": "only-here"/' "$share/hw/configs/tiny.json" >"$share/hw/configs/only-here.json"
"$tenon" hw show only-here | grep -q '^tensor core *1x4x4'
"$tenon" hw generate --config only-here -o "$scratch/rtl" >/dev/null
grep -q 'package tenon_pkg' "$scratch/rtl/tenon_pkg.sv"

cp -r tests/install/example "$scratch/example"
cmake -G Ninja -S "$scratch/example" -B "$scratch/example/build" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$scratch/moved" >"$scratch/configure.log" || { cat "$scratch/configure.log"; exit 1; }
ninja -C "$scratch/example/build" >"$scratch/build.log" || { cat "$scratch/build.log"; exit 1; }
"$scratch/example/build/example" tiny >"$scratch/said"
grep -qx 'tiny: mac first=1 y=3' "$scratch/said"
grep -qx 'behavioral:tiny is ready' "$scratch/said"
grep -qE '^[1-9][0-9]* ONNX operators$' "$scratch/said"

# Programs that run an executable by the C interface: found by CMake, and by pkg-config.
"$tenon" compile tests/models/resnet8_digits.onnx --shapes N=1 --cpu -o "$scratch/digits.tnx" >/dev/null
"$scratch/example/build/classify" "$scratch/digits.tnx" >"$scratch/classified"
grep -qE '^logits \(1, 10\):( -?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?){4}$' "$scratch/classified" || { cat "$scratch/classified"; exit 1; }
"$scratch/example/build/wrapper" "$scratch/digits.tnx" | tail -1 | grep -qx '2 axes'
"$scratch/example/build/wrapper" "$scratch/none.tnx" 2>"$scratch/said" && exit 1
grep -q "none.tnx" "$scratch/said"
if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH
  PKG_CONFIG_PATH=$(dirname "$(find "$scratch/moved" -name tenon.pc)")
  # shellcheck disable=SC2046 # flags are words
  cc tests/install/example/classify.c $(pkg-config --cflags --libs tenon) -o "$scratch/classify"
  LD_LIBRARY_PATH=$(pkg-config --variable=libdir tenon) "$scratch/classify" "$scratch/digits.tnx" |
    cmp - "$scratch/classified"
  # shellcheck disable=SC2046 # flags are words
  cc tests/install/example/compile.c $(pkg-config --cflags --libs tenon) -ltenon_compiler -o "$scratch/compile"
fi

# From C alone: import, quantize, compile, save and run, with the configurations of the installation.
"$scratch/example/build/compile" tests/models/resnet8_digits.onnx only-here "$scratch/compiled.tnx" >"$scratch/said"
grep -qF 'Tensor[(N, 1, 28, 28), f32]' "$scratch/said" || { cat "$scratch/said"; exit 1; }
[ "$(grep -c '"target": "accel"' "$scratch/said")" -ge 20 ]
logit=$(sed -n 's/^first logit //p' "$scratch/said")
"$scratch/example/build/classify" "$scratch/compiled.tnx" behavioral:only-here | grep -qF "logits (1, 10): $logit "
"$scratch/example/build/compile" tests/models/resnet8_digits.onnx only-her "$scratch/compiled.tnx" 2>"$scratch/said" && exit 1
grep -q "only-here" "$scratch/said"

# A plugin in C, at most 200 lines, compiles a quantized network, and computes the bits of the accelerator; the
# executable runs in another process with the kernels alone.
[ "$(wc -l <tests/install/example/macs.c)" -le 200 ]
plugin=$scratch/example/build/macs.so
network=tests/models/resnet8_digits_int8_qdq.onnx
data="--data tests/models/resnet8_digits_test.npz:x --divide 255 --limit 50 --quiet"
# shellcheck disable=SC2086 # options are words
{
  "$tenon" run "$network" --shapes N=1 --cpu --plugin "$plugin" $data --output "$scratch/plugin.npz" >"$scratch/said"
  "$tenon" run "$network" --shapes N=1 --device behavioral:default $data --output "$scratch/accel.npz" >/dev/null
  "$tenon" compile "$network" --shapes N=1 --cpu --plugin "$plugin" -o "$scratch/plugin.tnx" >/dev/null
  "$tenon" run "$scratch/plugin.tnx" --cpu --plugin "$plugin" $data --output "$scratch/saved.npz" >/dev/null
}
grep -q '^  macs   20 of 31 operators, 100.0 % of the MACs' "$scratch/said" || { cat "$scratch/said"; exit 1; }
for other in accel saved; do cmp "$scratch/plugin.npz" "$scratch/$other.npz"; done
"$tenon" import "$network" --check --shapes N=1 --cpu --plugin "$plugin" >"$scratch/said"
grep -q 'macs has no pattern with requantize_add' "$scratch/said"
perl -e 'my $h = "{\x27descr\x27: \x27<f4\x27, \x27fortran_order\x27: False, \x27shape\x27: (1, 1, 28, 28), }";
  $h .= " " x (117 - length $h) . "\n"; print "\x93NUMPY\x01\x00", pack("v", length $h), $h, pack("f<*", map { $_ / 784 } 0 .. 783)' \
  >"$scratch/digit.npy"
"$scratch/moved/bin/tenon-run" "$scratch/plugin.tnx" --plugin "$plugin" --input "$scratch/digit.npy" --output "$scratch/digit.npz" >"$scratch/said"
grep -q 'digit.npz' "$scratch/said"
"$tenon" run "$scratch/plugin.tnx" --cpu --data tests/models/resnet8_digits_test.npz:x 2>"$scratch/said" && exit 1
grep -q "name its file by --plugin" "$scratch/said"

# A program in C compiles with the plugin, and runs what it has compiled; without it, there are no kernels.
"$scratch/example/build/compile" tests/models/resnet8_digits.onnx "$plugin" "$scratch/c_plugin.tnx" >"$scratch/said"
[ "$(grep -c '"target": "macs"' "$scratch/said")" -ge 10 ] || { cat "$scratch/said"; exit 1; }
grep -qE '^first logit -?[0-9]' "$scratch/said"
"$scratch/example/build/classify" "$scratch/c_plugin.tnx" 2>"$scratch/said" && exit 1
grep -q "plugins of tenon_session_options" "$scratch/said" || { cat "$scratch/said"; exit 1; }

# A program in C trains a model by its step.
"$tenon" train tests/install/example/circle.tn --init random --batch 64 --step "$scratch/step.tnx" >/dev/null
"$scratch/example/build/train" "$scratch/step.tnx" "$scratch/state.npz" >"$scratch/trained"
grep -q "^epoch 10: loss" "$scratch/trained"
grep -qx "resumed: same" "$scratch/trained"
grep -qx "learned after 80 steps" "$scratch/trained" || { cat "$scratch/trained"; exit 1; }
"$scratch/example/build/train" "$scratch/digits.tnx" "$scratch/state.npz" 2>"$scratch/said" && exit 1
grep -q "the executable is no step of training: no run of it updates a tensor" "$scratch/said"

# The transports came along, and the harness from which verilator: builds its model.
"$tenon" devices >"$scratch/devices"
grep -q '^verilator:' "$scratch/devices"
[ -e "$share/sim/verilator/harness.cpp" ]
# A transport finds the installed configurations, too.
if [ -n "$(find "$scratch/moved" -name tenon-driver-systemc.so)" ]; then
  "$scratch/example/build/classify" "$scratch/compiled.tnx" systemc:only-here | grep -qF "logits (1, 10): $logit "
fi
# By its name alone, in a folder with something of this name.
mkdir -p "$scratch/other/tenon"
(cd "$scratch/other" && PATH="$scratch/moved/bin:$PATH" tenon hw show only-here) | grep -q '^tensor core *1x4x4'
