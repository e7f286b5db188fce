#!/usr/bin/env bash
# Files for boards and the timing of launches: tenon hw overlay, tenon bench launch, and tenon-pl's own messages.
# Arguments: tenon, tenon-pl.
set -euo pipefail
# shellcheck source=tests/expect.sh
source tests/expect.sh
tenon=$1 board=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

expect 0 "median" "$tenon" bench launch --launches 50
expect 0 '"median_us"' "$tenon" bench launch --launches 50 --json --device behavioral:tiny
expect 2 "--launches is '0', must be an integer from 1 to" "$tenon" bench launch --launches 0
expect 2 "--launches is '99999999999999999999', must be an integer from 1 to" "$tenon" bench launch --launches 99999999999999999999
expect 2 "unknown device scheme" "$tenon" bench launch --device nothing:

# The container of XRT's designs.
expect 0 "configuration tiny, uuid" "$tenon" xclbin write -c tiny --units 2 -o "$scratch/tiny.xclbin"
expect 0 "tenon_kernel:tenon_2 at" "$tenon" xclbin show "$scratch/tiny.xclbin"
expect 0 '"configuration": "tiny"' "$tenon" xclbin show "$scratch/tiny.xclbin" --json
expect 0 "configuration default, uuid" "$tenon" xclbin annotate "$scratch/tiny.xclbin" -c default -o "$scratch/annotated.xclbin"
expect 1 "cannot read the file: Is a directory" "$tenon" xclbin show "$scratch"
expect 1 "cannot open the file: No such file" "$tenon" xclbin show "$scratch/none.xclbin"
expect 1 "bytes do not start with" "$tenon" xclbin show /dev/null
expect 1 "Is a directory" "$tenon" xclbin annotate "$scratch" -c tiny -o "$scratch/x.xclbin"
expect 2 "--output is required" "$tenon" xclbin annotate "$scratch/tiny.xclbin" -c tiny
expect 1 "Is a directory" "$tenon" xclbin write -o "$scratch"
expect 1 "Is a directory" "$tenon" xclbin write --bitstream "$scratch" -o "$scratch/x.xclbin"
expect 1 "the bitstream is empty" "$tenon" xclbin write --bitstream /dev/null -o "$scratch/x.xclbin"
expect 2 "--units is '16', must be an integer from 1 to 15" "$tenon" xclbin write --units 16 -o "$scratch/x.xclbin"
expect 2 "--memory is '65537'" "$tenon" xclbin write --memory 65537 -o "$scratch/x.xclbin"
expect 2 "--clock is '0'" "$tenon" xclbin write --clock 0 -o "$scratch/x.xclbin"

expect 0 "Emulates a Zynq board" "$board" --help
expect 2 "Emulates a Zynq board" "$board"
expect 2 "requires a directory other than /" "$board" "?config=tiny"
expect 2 "requires a directory other than /" "$board" "/?config=tiny"
expect 2 "the model is \"x\"" "$board" "$scratch/board?model=x"
expect 2 "the clock is \"x\"" "$board" "$scratch/board?clock=x"
expect 2 "must be a multiple of 4096" "$board" "$scratch/board?memory=5000"
expect 2 "there is no option colour" "$board" "$scratch/board?colour=red"
expect 2 'no configuration is called "x"' "$board" "$scratch/board?config=x"
expect 2 "too long for a socket" "$board" "$scratch/$(printf 'x%.0s' {1..120})"

expect 0 'interrupts = <0 29 4>' "$tenon" hw overlay
expect 0 'assigned-clock-rates = <125000000>' "$tenon" hw overlay --clock 125
expect 0 'reg = <0x0 0xa0010000 0x0 0x1000>' "$tenon" hw overlay --family zynqmp --address 0xa0010000
expect 2 "the address is 0x43c00004, must be a multiple of 0x1000" "$tenon" hw overlay --address 0x43c00004
expect 2 "must be a multiple of 0x1000 below 0x100000000" "$tenon" hw overlay --address 0x100000000
expect 2 "--interrupt is '988'" "$tenon" hw overlay --interrupt 988
expect 2 "--clock is '4294967396'" "$tenon" hw overlay --clock 4294967396
expect 2 "--memory is '2049', must be an integer from 1 to 2048" "$tenon" hw overlay --memory 2049
expect 2 "is not a valid file name" "$tenon" hw overlay --firmware ../x
expect 2 "zynq7000" "$tenon" hw overlay --family spartan
expect 1 "cannot write" "$tenon" hw overlay -o "$scratch/nowhere/x.dtso"

# The overlay as the kernel takes it: compiled, applied to a tree with the labels that it names, and read back.
if ! command -v dtc >/dev/null || ! command -v fdtoverlay >/dev/null; then
  echo "without dtc: the overlay is not compiled here; get it: apt-get install device-tree-compiler"
  exit 0
fi
for family in zynq7000:1:intc:clkc:43c00000:1d zynqmp:2:gic:zynqmp_clk:a0000000:59; do
  IFS=: read -r name cells interrupts clocks address line <<<"$family"
  cat >"$scratch/base.dts" <<END
/dts-v1/;
/ { #address-cells = <$cells>; #size-cells = <$cells>;
  fpga_full: fpga-full { compatible = "fpga-region"; };
  $interrupts: interrupts { interrupt-controller; #interrupt-cells = <3>; };
  $clocks: clocks { #clock-cells = <1>; };
  amba: amba { #address-cells = <$cells>; #size-cells = <$cells>; ranges; };
};
END
  dtc -q -@ -I dts -O dtb -o "$scratch/base.dtb" "$scratch/base.dts"
  "$tenon" hw overlay --config tiny --family "$name" -o "$scratch/tenon.dtso"
  dtc -q -@ -I dts -O dtb -o "$scratch/tenon.dtbo" "$scratch/tenon.dtso"
  fdtoverlay -i "$scratch/base.dtb" -o "$scratch/whole.dtb" "$scratch/tenon.dtbo"
  expect 0 "generic-uio" fdtget "$scratch/whole.dtb" "/amba/tenon@$address" compatible
  expect 0 "0 $line 4" fdtget -t x "$scratch/whole.dtb" "/amba/tenon@$address" interrupts
  expect 0 "$address" fdtget -t x "$scratch/whole.dtb" "/amba/tenon@$address" reg
  expect 0 "tenon.bit.bin" fdtget "$scratch/whole.dtb" /fpga-full firmware-name
  expect 0 "4000000" fdtget -t x "$scratch/whole.dtb" /amba/udmabuf0 size
  hash=$(fdtget -t x "$scratch/whole.dtb" "/amba/tenon@$address" tenon,hash)
  expect 0 "$(printf '%08x%08x' "0x${hash% *}" "0x${hash#* }")" "$tenon" hw show tiny
done
