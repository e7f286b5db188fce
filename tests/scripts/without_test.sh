#!/usr/bin/env bash
# A build without SystemC, XRT, gRPC and stb: configuring says so in a sentence each and how to get them, continues, and
# what is built says the same. Arguments: the directory to build in, and "tests" for the conformance suite as well.
set -euo pipefail
# shellcheck source=tests/expect.sh
source tests/expect.sh
build=$1 more=${2:-}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
rm -rf "$build"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DTENON_WITHOUT=grpc;stb;systemc;xrt" >"$log" 2>&1 || { tail -n 30 "$log"; exit 1; }
for sentence in "Without SystemC: systemc: devices are not available in this build; to add them: apt-get install libsystemc-dev" \
  "Without XRT: xrt: devices are not available in this build; to add them: apt-get install libxrt-dev uuid-dev" \
  "Without gRPC: remote: devices and tenon serve are not available in this build; to add them: apt-get install libgrpc++-dev" \
  "Without stb: tenon prepare reads no pictures; to add them: apt-get install libstb-dev"; do
  grep -qF "$sentence" "$log" || { echo "configuring does not say: $sentence"; cat "$log"; exit 1; }
done
targets=(tenon tenon-run tenon-driver-verilator tenon-driver-lockstep tenon-driver-uio)
[ -z "$more" ] || targets+=(cosim_conformance_test driver_test)
# Where nothing caches the compilation, as this one's own build has left it, it is a second build.
ninja -C "$build" "${targets[@]}" >"$log" 2>&1 || { grep -A 20 -m 1 FAILED "$log"; exit 1; }
ninja -C "$build" -t targets all >"$log"
for part in tenon-driver-xrt.so tenon-driver-systemc.so tenon-driver-remote.so libxrt_core; do
  ! grep "$part" "$log" || { echo "the build without them has $part"; exit 1; }
done

tenon=$build/bin/tenon
unset TENON_DRIVER_PATH XILINX_XRT
sentence="this build of Tenon does not include"
for answer in "systemc:     $sentence SystemC; apt-get install libsystemc-dev, then configure and build Tenon again" \
  "xrt:         $sentence XRT; apt-get install libxrt-dev uuid-dev, then configure and build Tenon again" \
  "behavioral:  ready"; do
  expect 0 "$answer" "$tenon" doctor
done
expect 1 "this build of Tenon reads no pictures" "$tenon" prepare tests/scripts/words.txt -o "$build/p.npy"
expect 0 "not usable on this machine: $sentence XRT" "$tenon" devices
expect 0 "\"scheme\": \"systemc\"" "$tenon" devices --json
expect 1 "$sentence SystemC
  help: apt-get install libsystemc-dev" "$tenon" selftest systemc:tiny
expect 1 "$sentence XRT" "$tenon" selftest "xrt:0?xclbin=x.xclbin"
expect 0 "gemm native               good" "$tenon" selftest behavioral:tiny --memory 64
# On a machine without qemu, Verilator and the other optional tools.
for tool in "qemu-user  missing; for running programs built for boards; get it: apt-get install qemu-user" \
  "xmllint    missing; for checks of kernel.xml; get it: apt-get install libxml2-utils" "verilator: devices, tenon fuzz accel"; do
  expect 0 "$tool" env PATH=/nowhere "$tenon" doctor
done
[ -z "$more" ] && exit
for column in behavioral uio; do
  "$build/tests/cosim_conformance_test" --column "$column" --table driver/CONFORMANCE.md
done
"$build/tests/driver_test" >"$log" || { cat "$log"; exit 1; }
