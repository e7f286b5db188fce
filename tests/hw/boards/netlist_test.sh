#!/usr/bin/env bash
# Proof after routing: a bitstream is built, decoded to a netlist, simulated, and driven over the pins of its
# serial line by the real driver. For an ECP5 the netlist is nextpnr's after routing; for an iCE40 the bitstream itself
# is read. Arguments: ecp5 or ice40, tenon, netlist_pins_test. TENON_PROOF_BUILD names a finished build.
set -euo pipefail
family=$1 tenon=$(realpath "$2") pins=$(realpath "$3")
here=$PWD/tests/hw/boards/netlist
tools=(yosys verilator make g++)
[ "$family" = ecp5 ] || tools+=(iceunpack icebox_vlog)
for tool in "${tools[@]}"; do
  command -v "$tool" >/dev/null || { echo "not checked without $tool"; exit 0; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

build=${TENON_PROOF_BUILD:-$scratch/build}
if [ ! -f "$build/bitstream.json" ]; then
  if ! TENON_BOARD_PATH=$here/boards "$tenon" board build "proof-$family" -o "$build" 2>"$scratch/log"; then
    cat "$scratch/log"
    ! grep -q "the FPGA tools cannot be installed" "$scratch/log" || { echo "not checked without nextpnr"; exit 0; }
    exit 1
  fi
fi
if [ "$family" = ecp5 ]; then
  # An entry without a net is a port that is not connected: without the entry the model's default counts.
  sed -E '/^ *"[A-Z0-9]+": \[ *\],?$/d' "$build/routed.json" >"$scratch/netlist.json"
  cp "$here/ecp5_cells.v" "$here/ecp5.ys" "$scratch"
  (cd "$scratch" && yosys -q ecp5.ys)
else
  iceunpack "$build/proof-ice40.bin" "$scratch/bitstream.asc"
  # icebox_vlog declares the ports twice, which is legal without their directions in the list alone.
  icebox_vlog -s -n top -p "$build/board.pcf" "$scratch/bitstream.asc" |
    sed -E "s/^module top \(.*/module top (clk_i, rx_i, tx_o);\ninput clk_i, rx_i;\noutput tx_o;/" >"$scratch/netlist.v"
  cat "$here/ice40_cells.v" >>"$scratch/netlist.v"
fi
cd "$scratch"
verilator --cc -O3 -Wno-fatal --x-assign 0 --x-initial 0 --output-split 20000 --prefix Vnetlist --top-module top \
  --Mdir model -CFLAGS "-fPIC -O1" netlist.v >verilator.log 2>&1 || { tail verilator.log; exit 1; }
make -j2 -s -C model -f Vnetlist.mk OBJCACHE="$(command -v ccache || true)" >make.log 2>&1 || { tail make.log; exit 1; }
root=$(verilator --getenv VERILATOR_ROOT)
g++ -shared -fPIC -O1 -Imodel -I"$root/include" -I"$root/include/vltstd" -o netlist.so "$here/model.cpp" model/Vnetlist__ALL.a \
  "$root/include/verilated.cpp" "$root/include/verilated_threads.cpp" -pthread
TENON_NETLIST=$scratch/netlist.so "$pins"
