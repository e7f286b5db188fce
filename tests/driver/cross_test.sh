#!/usr/bin/env bash
# tenon-run and uio: built for ARM boards, under qemu's user emulation, with a PL that a process of this machine
# emulates: results equal this machine's, bit for bit. Arguments: tenon, tenon-run, tenon-pl. The test names missing
# tools.
set -euo pipefail
# shellcheck source=tests/expect.sh
source tests/expect.sh
tenon=$1 native=$2 board=$3
expect 2 "the processor is aarch64 or armhf" scripts/cross sparc
expect 0 "Usage: scripts/cross" scripts/cross --help
scratch=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid"; rm -rf "$scratch"' EXIT

# An image as an .npy file: 784 values out of 0, 0.25, 0.5 and 1 as 32-bit floats.
{
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 28, 28), }"
  for i in {0..783}; do
    case $(((i * i + i / 28) % 7)) in
      0 | 3) printf '\x00\x00\x00\x3f' ;;
      1) printf '\x00\x00\x80\x3f' ;;
      2) printf '\x00\x00\x80\x3e' ;;
      *) printf '\x00\x00\x00\x00' ;;
    esac
  done
} >"$scratch/x.npy"
# A file for each processor, and a file without native code, which this machine can run too.
compile() {
  "$tenon" compile tests/models/resnet8_digits.onnx --config default --shapes N=1 "$@" \
    --calibrate tests/models/resnet8_digits_test.npz:calib --divide 255 >/dev/null
}
compile --kernels reference -o "$scratch/model.tnx"
compile --target aarch64 -o "$scratch/aarch64.tnx"
compile --target armhf -o "$scratch/armhf.tnx"
expect 1 "the native code is for aarch64-unknown-linux-gnu" "$native" "$scratch/aarch64.tnx" --input "$scratch/x.npy"
"$native" "$scratch/model.tnx" --input "$scratch/x.npy" --output "$scratch/here" >/dev/null

"$board" "$scratch/board?config=default" >"$scratch/ready" &
pid=$!
until grep -qs ready "$scratch/ready"; do kill -0 "$pid"; sleep 0.05; done
for arch in aarch64 armhf; do
  case $arch in
    aarch64) triplet=aarch64-linux-gnu qemu=qemu-aarch64 ;;
    armhf) triplet=arm-linux-gnueabihf qemu=qemu-arm ;;
  esac
  if ! command -v "$triplet-g++" >/dev/null || ! command -v "$qemu" >/dev/null; then
    echo "$arch: not tested, requires a cross compiler and an emulator: apt-get install g++-$triplet qemu-user"
    continue
  fi
  scripts/cross "$arch"
  "$triplet-strip" -o "$scratch/stripped" "build/$arch/bin/tenon-run"
  bytes=$(stat -c %s "$scratch/stripped")
  [ "$bytes" -le $((2 << 20)) ] || { echo "$arch: tenon-run has $bytes bytes without symbols, at most 2 MiB are wanted"; exit 1; }
  sysroot=$PWD/build/$arch/sysroot
  run=("$qemu" -L "/usr/$triplet" -E "LD_LIBRARY_PATH=$sysroot/usr/lib/$triplet:$sysroot/lib/$triplet"
    "build/$arch/bin/tenon-run")
  for device in "uio:?root=$scratch/board" behavioral:default; do
    "${run[@]}" "$scratch/$arch.tnx" --device "$device" --input "$scratch/x.npy" --output "$scratch/$arch" >/dev/null
    for file in "$scratch"/here/*.npy; do cmp "$file" "$scratch/$arch/${file##*/}"; done
    rm -r "${scratch:?}/$arch"
    echo "$arch: $device: equal"
  done
  # A failure on the board is reproduced on this machine.
  run+=("$scratch/model.tnx" --device "uio:?root=$scratch/board" --input "$scratch/x.npy")
  expect 0 "cycles a run" "${run[@]}" --verify behavioral:default
  expect 1 "last decoded instructions" "${run[@]}" --limit 2e-5 --reproducer "$scratch/late-$arch"
  expect 1 "error: the same mismatch again" "$tenon" replay "$scratch/late-$arch" --device behavioral:default
done
