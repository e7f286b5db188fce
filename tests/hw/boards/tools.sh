# Programs in place of synthesis, place and route and packing, in $scratch/tools; they record their calls in $RECORD.
# Sourced by tests; `program FILE` makes another one of its input.
# shellcheck shell=bash disable=SC2016  # the programs are scripts in single quotes

mkdir -p "${scratch:?}/tools"
# Programs in shell built-ins only, since PATH has nothing but them.
program() { printf '#!/bin/sh\necho "${0##*/} $*" >>"$RECORD"\n%s\n' "$(cat)" >"$1"; chmod +x "$1"; }
program "$scratch/tools/yosys" <<<'[ "$1" != --version ] || { echo "Yosys 0.1"; exit; }
read -r first <synthesis.ys; echo "$first" >>"$RECORD"; echo netlist >netlist.json'
for chip in ice40 ecp5; do
  program "$scratch/tools/nextpnr-$chip" <<'END'
[ "$1" != --version ] || { echo "nextpnr 0.2"; exit; }
while [ $# -gt 0 ]; do
  case $1 in
    --asc) printf '.comment from next-pnr\n.device 8k\n' >"$2" ;;
    --textcfg) printf '.device LFE5U-25F\n\n.comment Part: x\n' >"$2" ;;
    --report) echo '{"fmax": {"clk_i": {"achieved": 30.5, "constraint": 12}}, "utilization": {"LUT": {"used": 5, "available": 9}, "PLL": {"used": 0, "available": 1}}}' >"$2" ;;
  esac
  shift
done
END
done
program "$scratch/tools/icepack" <<<'[ "$1" != -h ] || { echo usage; exit 1; }
while read -r line; do echo "$line"; done <"$1" >"$2"'
program "$scratch/tools/ecppack" <<<'[ "$1" != --version ] || { echo "ecppack 1"; exit; }
while [ $# -gt 4 ]; do shift; done
while read -r line; do echo "$line"; done <"$2" >"$4"'
