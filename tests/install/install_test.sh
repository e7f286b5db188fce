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

# The transports came along, and the harness from which verilator: builds its model.
"$tenon" devices >"$scratch/devices"
grep -q '^verilator:' "$scratch/devices"
[ -e "$share/sim/verilator/harness.cpp" ]
