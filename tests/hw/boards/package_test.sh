#!/usr/bin/env bash
# tenon hw package: kernel.xml against its schema, ports against the RTL, the scripts with stubs for
# the vendor's tools, and the resulting xclbin file on the emulated device. Arguments: tenon, XILINX_XRT of the emulated device
# (or nothing).
set -euo pipefail
tenon=$(realpath "$1") shim=${2-}
# shellcheck source=tests/expect.sh
source tests/expect.sh
here=$PWD/tests/hw/boards
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TENON=$tenon RECORD=$scratch/record
absent() { command -v "$1" >/dev/null && return 1; echo "not checked without $1: $2"; }
fail() { echo "$1"; exit 1; }

expect 2 'no board is called "moon"' "$tenon" hw package --board moon -o "$scratch/x"
expect 2 "--units is 9, must be 1..8 on u250" "$tenon" hw package --board u250 --units 9 -o "$scratch/x"
expect 2 "--clock is '2000'" "$tenon" hw package --board u250 --clock 2000 -o "$scratch/x"
expect 1 "cannot create the directory" "$tenon" hw package --board u250 -o /proc/nowhere

for case in tiny:u50:2 default:u200:1 default-128:u250:1 wide-8x16:kv260:1; do
  IFS=: read -r config board units <<<"$case"
  out=$scratch/$board
  expect 0 "build it where Vitis is: $out/build.sh" "$tenon" hw package --config "$config" --board "$board" --units "$units" -o "$out"
  bits=$("$tenon" hw show "$config" --json | sed -n 's/.*"axi_data_bits": \([0-9]*\).*/\1/p')

  # kernel.xml satisfies the schema, and the schema rejects a wrong file.
  if ! absent xmllint "kernel.xml against the schema"; then
    xmllint --noout --schema "$here/kernel.xsd" "$out/kernel.xml" 2>/dev/null || fail "$board: kernel.xml breaks the schema"
    sed 's/ port="m_axi_gmem"/ port="m_axi_other"/' "$out/kernel.xml" >"$scratch/wrong.xml"
    ! xmllint --noout --schema "$here/kernel.xsd" "$scratch/wrong.xml" 2>/dev/null || fail "the schema accepts an argument without a port"
  fi
  grep -q "name=\"m_axi_gmem\".* dataWidth=\"$bits\"" "$out/kernel.xml" || fail "$board: kernel.xml has another width than $config"
  # The offset of each argument is that of the register map.
  while read -r name offset; do
    upper=${name^^}
    row=$(grep -i "| 0x$offset |" "$out/rtl/registers.md") || row=
    case $row in *"$upper"* | *BASE0*) ;; *) [[ $name = base[1-7] ]] || fail "argument $name at 0x$offset: register map has '$row'" ;; esac
  done < <(sed -n 's/.*<arg name="\([^"]*\)".* offset="0x\([^"]*\)".*/\1 \2/p' "$out/kernel.xml")

  # The top's ports, as yosys reads them.
  if ! absent yosys "the kernel's ports against the RTL"; then
    (cd "$out/rtl" && yosys -q -p "read_verilog -sv $(grep _pkg files.f | xargs) tenon.sv tenon_kernel.sv
      hierarchy -top tenon_kernel
      tee -q -o ../ports.log portlist tenon_kernel" >"$scratch/log" 2>&1) || { cat "$scratch/log"; exit 1; }
    sed -n 's/^ *\(input\|output\) \+\(\[\([0-9]*\):0\] *\)\?\([a-z_0-9]*\).*/\1 \4 \3/p' "$out/ports.log" |
      awk '{print $1, $2, ($3 == "" ? 1 : $3 + 1)}' | sort >"$out/found"
    grep -v '^#' "$here/ports.txt" | sed "s/DATA/$bits/; s/STROBES/$((bits / 8))/" | sort >"$out/wanted"
    diff "$out/wanted" "$out/found" || fail "$board: the kernel's ports (right) are not those of a kernel (left)"
  fi

  if [ "$board" = u50 ] && ! absent verilator "the kernel's top, its warnings"; then
    (cd "$out/rtl" && verilator --lint-only -Wall --top-module tenon_kernel -F files.f tenon_kernel.sv)
  fi

  # The whole build, with stubs for the vendor's tools.
  if ! absent tclsh "the scripts with the vendor's commands as stubs"; then
    expect 0 "configuration $config" env PATH="$here/stubs:$PATH" "$out/build.sh"
    expect 0 "tenon_kernel:tenon_$units" "$tenon" xclbin show "$out/tenon.xclbin"
    for call in "create_project -force tenon_kernel" "set_property top tenon_kernel" "ipx::add_register base7 " \
      "ipx::associate_bus_interfaces -busif m_axi_gmem -clock ap_clk" "set_property sdx_kernel true" \
      "package_xo -force -xo_path $out/build/tenon_kernel.xo -kernel_name tenon_kernel"; do
      grep -qF -- "$call" "$RECORD" || fail "$board: package_xo.tcl does not call: $call"
    done
    sed -i 's/^ipx::save_core/ipx::save_kernel/' "$out/package_xo.tcl"
    expect 1 "no command is called ipx::save_kernel" env PATH="$here/stubs:$PATH" "$out/build.sh"
    expect 3 "vivado is not in PATH" "$out/build.sh"
    if [ -n "$shim" ]; then
      expect 0 "gemm native               good" env XILINX_XRT="$shim" "$tenon" selftest "xrt:0?xclbin=$out/tenon.xclbin&unit=$units"
    fi
  fi
done
