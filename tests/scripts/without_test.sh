#!/usr/bin/env bash
# A build without SystemC and XRT: configuring says so in a sentence each and how to get them, and goes on with the rest.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake -S . -B "$scratch" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DTENON_WITHOUT=systemc;xrt" >"$scratch/log" 2>&1 ||
  { tail -n 30 "$scratch/log"; exit 1; }
for sentence in "Without SystemC: this build has no systemc: devices; get it: apt-get install libsystemc-dev" \
  "Without XRT: this build has no xrt: devices; get them: apt-get install libxrt-dev uuid-dev"; do
  grep -qF "$sentence" "$scratch/log" || { echo "configuring does not say: $sentence"; cat "$scratch/log"; exit 1; }
done
ninja -C "$scratch" -t targets all >"$scratch/plan" || { tail -n 30 "$scratch/plan"; exit 1; }
for part in "bin/tenon" "tenon-driver-verilator.so" "tenon-driver-uio.so"; do
  grep -q "$part" "$scratch/plan" || { echo "the build without them leaves out $part"; exit 1; }
done
! grep -E "tenon-driver-(xrt|systemc).so|libxrt_core" "$scratch/plan"
