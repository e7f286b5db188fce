#!/usr/bin/env bash
# Proof after routing: a bitstream for an ECP5 is built, its routed netlist simulated, and driven over the pins of
# its serial line by the real driver. Arguments: tenon, netlist_pins_test. TENON_PROOF_BUILD names a finished build.
set -euo pipefail
tenon=$(realpath "$1") pins=$(realpath "$2")
here=$PWD/tests/hw/boards/netlist
for tool in yosys verilator make g++; do
  command -v "$tool" >/dev/null || { echo "not checked without $tool"; exit 0; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

build=${TENON_PROOF_BUILD:-$scratch/build}
if [ ! -f "$build/bitstream.json" ]; then
  if ! TENON_BOARD_PATH=$here/boards "$tenon" board build proof -o "$build" 2>"$scratch/log"; then
    cat "$scratch/log"
    ! grep -q "the FPGA tools cannot be installed" "$scratch/log" || { echo "not checked without nextpnr"; exit 0; }
    exit 1
  fi
fi
# An entry without a net is a port that is not connected: without the entry the model's default counts.
sed -E '/^ *"[A-Z0-9]+": \[ *\],?$/d' "$build/routed.json" >"$scratch/netlist.json"
cp "$here/ecp5_cells.v" "$here/netlist.ys" "$scratch"
cd "$scratch"
yosys -q netlist.ys
verilator --cc -O3 -Wno-fatal --x-assign 0 --x-initial 0 --output-split 20000 --prefix Vnetlist --top-module top \
  --Mdir model -CFLAGS "-fPIC -O1" netlist.v >verilator.log 2>&1 || { tail verilator.log; exit 1; }
make -j2 -s -C model -f Vnetlist.mk OBJCACHE="$(command -v ccache || true)" >make.log 2>&1 || { tail make.log; exit 1; }
root=$(verilator --getenv VERILATOR_ROOT)
g++ -shared -fPIC -O1 -Imodel -I"$root/include" -I"$root/include/vltstd" -o netlist.so "$here/model.cpp" model/Vnetlist__ALL.a \
  "$root/include/verilated.cpp" "$root/include/verilated_threads.cpp" -pthread
TENON_NETLIST=$scratch/netlist.so "$pins"
