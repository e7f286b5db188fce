#!/usr/bin/env bash
# tenon selftest on every kind of device, tenon debug on every simulator, and a reproducer replayed at other addresses. A
# device emulated:OPTIONS is uio: on a board that tenon-pl emulates, xrt:MODEL the emulated XRT device. Arguments:
# tenon, the directory of the transport faulty:, XILINX_XRT of the emulated device (or nothing), devices...
set -euo pipefail
tenon=$(realpath "$1") drivers=$2 shim=$3
shift 3
# shellcheck source=tests/expect.sh
source tests/expect.sh
scratch=$(mktemp -d)
board=
trap '[ -z "$board" ] || kill "$board"; rm -rf "$scratch"' EXIT
cd "$scratch"
# The weights have padded rows, so that the token of the input waits for theirs longer than a step of the debugger.
cat >program.txt <<'END'
move signal=gemm function=0 rows=1 vectors=4 x_step=4 row_bytes=16 source_rows=1
move signal=gemm function=1 base=1 rows=8 vectors=4 x_step=4 row_bytes=16 source_rows=1
mac wait=ldi,ldw first=1 r0=1 r1=1 r2=1 y=1 x=4 dst_x=1 src_x=1
end
END
printf '\1\0\0\0\0\1\0\0\0\0\1\0\0\0\0\1' >unit.bin
printf '\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20' >values.bin
expect 1 "reproducer: kept; to reproduce it" env TENON_DRIVER_PATH="$drivers" "$tenon" selftest "faulty:tiny?fault=mac" \
  --memory 64 --reproducer kept
"$tenon" xclbin write --config tiny --memory 8 -o tiny.xclbin >/dev/null
for name in "$@"; do
  device=$name
  case $name in
    xrt:*)
      export XILINX_XRT=$shim TENON_XRT_MODEL=${name#xrt:}
      device="xrt:0?xclbin=tiny.xclbin"
      ;;
    emulated:*)
      "${tenon%/*}/tenon-pl" "$scratch/root?${name#*:}" >ready &
      board=$!
      until grep -q ready ready; do kill -0 "$board"; sleep 0.05; done
      device="uio:?root=$scratch/root"
      ;;
  esac
  expect 0 "gemm native               good" "$tenon" selftest "$device" --memory 64
  expect 0 '"passed": true' "$tenon" selftest "$device" --memory 64 --json
  expect 0 "$device shows no difference" "$tenon" replay kept --device "$device"
  debug=("$tenon" debug program.txt --device "$device" --load 0x100000=values.bin --load 0x200000=unit.bin)
  case $name in
    xrt:* | emulated:*) expect 2 "the debugger requires a simulator" "${debug[@]}" -x step ;;
    *)
      expect 0 "acc[    3]:     13     14     15     16" "${debug[@]}" -x "break 4" -x continue -x "print acc 3 1"
      # A step of the virtual platform is several cycles of its bus; this token is in its counter for two cycles.
      [ "$name" = systemc:tiny ] ||
        expect 0 "breakpoint 1: tokens ldi->gemm change, 0 before, 1 now" "${debug[@]}" -x "break ldi->gemm" -x continue
      expect 0 "launch 0 is over: 4 of 4 instructions done" "${debug[@]}" -x "step 2" -x continue
      expect 0 "multiplications    64" "${debug[@]}" -x continue -x counters
      ;;
  esac
  echo "$name: good"
done
