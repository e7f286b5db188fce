#!/usr/bin/env bash
# tenon selftest, debug and replay: a good device, a device with each fault, and the reproducers of mismatches.
# Arguments: tenon, tenon-run, the directory of the transport faulty:.
set -euo pipefail
tenon=$(realpath "$1") tenon_run=$(realpath "$2") drivers=$3
# shellcheck source=tests/expect.sh
source tests/expect.sh
models=$PWD/tests/models
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export TENON_DRIVER_PATH=$drivers

# A good device, as text and as JSON.
expect 0 "gemm native               good" "$tenon" selftest behavioral:tiny
expect 0 "simulated cycles per second of wall time" "$tenon" selftest behavioral:tiny
expect 0 '"name": "memory address in address"' "$tenon" selftest behavioral:tiny --json
expect 2 "--memory is '0'" "$tenon" selftest behavioral:tiny --memory 0
expect 2 "is not a device URI" "$tenon" selftest nothing
expect 1 "next: this check requires more memory than the device has free" "$tenon" selftest "behavioral:tiny?memory=8K"
"$tenon" hw show tiny --json | sed '/^ *"base",$/d; s/"name": "tiny"/"name": "native"/' >native.json
expect 0 "profiles        native" "$tenon" hw show ./native.json
expect 0 "loopback                  good" "$tenon" selftest behavioral:native.json
"$tenon" hw show tiny --json | sed '/^ *"native"$/d; s/"base",/"base"/; s/"name": "tiny"/"name": "base"/
                                    s/"own_lanes": true/"own_lanes": false/
                                    s/"results_to_inp": true/"results_to_inp": false/
                                    s/"window_maximum": true/"window_maximum": false/' >base.json
expect 0 "profiles        base" "$tenon" hw show ./base.json
expect 0 "gemm base                 good" "$tenon" selftest behavioral:base.json

# Each fault is detected by its check, which prints the failure and advice.
fault() { # fault KIND CHECK TEXT NEXT
  expect 1 "$2" "$tenon" selftest "faulty:tiny?fault=$1"
  expect 1 "$3" "$tenon" selftest "faulty:tiny?fault=$1"
  expect 1 "next: $4" "$tenon" selftest "faulty:tiny?fault=$1"
}
fault version "identity                  FAIL" "no device answers at this address" "is this the bitstream that was built?"
fault hash "identity                  FAIL" "CONFIG_HASH reads" "is this the bitstream"
fault register "registers                 FAIL" "bits 0x00000008 differ" "look at s_axi_control"
fault read-only "registers                 FAIL" "VERSION is read only" "look at s_axi_control"
fault data-line "memory walking ones       FAIL" "in bits 0x0000000020000000" "a data line is stuck"
fault address-line "memory address in address FAIL" "at byte 0x0 of the buffer" "an address line is stuck"
fault pattern "memory random             FAIL" "words are wrong" "patterns pass, random data fails"
fault store "loopback                  FAIL" "loopback: byte 5" "the host's access to memory works"
fault clock "clock                     FAIL" "counts 0 cycles" "look at the clock's source"
fault mac "gemm native               FAIL" "gemm: byte 5" "transfers work, the product is wrong"
fault hang "loopback                  FAIL" "does not become idle" "the host's access to memory works"
expect 1 "failed: gemm base, gemm native" "$tenon" selftest "faulty:tiny?fault=mac"
rm -rf mismatch-*

# The reproducer of a wrong launch reproduces the mismatch, in another directory and process.
expect 1 "reproducer: kept; to reproduce it: tenon replay kept" "$tenon" selftest "faulty:native.json?fault=mac" --reproducer kept
mkdir elsewhere
mv kept elsewhere/
rm native.json
expect 1 "error: the same mismatch again" "$tenon" replay elsewhere/kept
expect 1 '"same": true' "$tenon" replay --json elsewhere/kept
expect 0 "shows no difference" "$tenon" replay elsewhere/kept --device behavioral:tiny
grep -q "^mac wait" elsewhere/kept/program.txt
expect 0 "loopback, 64 bytes at" "$tenon" debug elsewhere/kept -x info

# tenon run --check: the wrong layer.
run=("$tenon" run "$models/resnet8_digits.onnx" --shapes N=1 --calibrate "$models/resnet8_digits_test.npz:calib"
  --data "$models/resnet8_digits_test.npz:x" --divide 255 --limit 1 --quiet)
expect 3 "reproducer: checked; to reproduce it" "${run[@]}" --check --device "faulty:tiny?fault=mac" --reproducer checked
expect 1 "error: the same mismatch again" "$tenon" replay checked
expect 0 "shows no difference" "$tenon" replay checked --device behavioral:tiny
# tenon run --verify: two devices that disagree.
expect 3 "reproducer: verified; to reproduce it" "${run[@]}" --device behavioral:tiny --verify "faulty:tiny?fault=mac" --reproducer verified
expect 1 "error: the same mismatch again" "$tenon" replay verified
expect 0 "shows no difference" "$tenon" replay verified --device behavioral:tiny
# Two accelerators, of which one is wrong: the launch that is kept is its own.
both=(--device behavioral:default)
for layer in 0/c1 0/c2 1/c2 2/c1 2/c2; do both+=(--pin "/l/l.$layer/Conv=accel:tiny"); done
expect 3 "reproducer: one-of-two; to reproduce it" "${run[@]}" "${both[@]}" --device "faulty:tiny?fault=mac" --check --reproducer one-of-two
grep -q '"name": *"tiny"' one-of-two/reproducer.json one-of-two/*.json
expect 1 "error: the same mismatch again" "$tenon" replay one-of-two
expect 0 "shows no difference" "$tenon" replay one-of-two --device behavioral:tiny
expect 3 "reproducer: second-of-two; to reproduce it" "${run[@]}" "${both[@]}" --device behavioral:tiny \
  --verify behavioral:default --verify "faulty:tiny?fault=mac" --reproducer second-of-two
expect 1 "error: the same mismatch again" "$tenon" replay second-of-two
expect 0 "shows no difference" "$tenon" replay second-of-two --device behavioral:tiny
# Lockstep.
expect 1 "faulty and behavioral differ" "${run[@]}" --device "faulty:tiny?fault=write" --reproducer lockstep
expect 1 "faulty and behavioral differ" "$tenon" replay lockstep
expect 1 "error: the same mismatch again" "$tenon" replay lockstep
expect 0 "stopped: " "$tenon" debug lockstep -x continue
# Fuzzing.
expect 3 "reproducer: fuzzed; to reproduce it" env TENON_FAULT=write "$tenon" fuzz accel --quiet --device faulty --config tiny -n 20 \
  --seed 3 --shrink 60 --reproducer fuzzed
expect 1 "error: the same mismatch again" env TENON_FAULT=write "$tenon" replay fuzzed
expect 0 "shows no difference" "$tenon" replay fuzzed --device behavioral:tiny

# A reproducer that cannot be saved is reported, and the mismatch too.
expect 1 "the reproducer cannot be saved: /proc/missing: error: cannot create the directory" \
  "$tenon" selftest "faulty:tiny?fault=mac" --reproducer /proc/missing
expect 1 "reproducer: two-2;" "$tenon" selftest "faulty:tiny?fault=mac" --reproducer two
# Without --reproducer, the first free name in the working directory.
expect 1 "reproducer: mismatch-1;" "$tenon" selftest "faulty:tiny?fault=mac"
expect 1 "reproducer: mismatch-3;" "$tenon" selftest "faulty:tiny?fault=mac"

# Damaged reproducers.
expect 1 "cannot open the file" "$tenon" replay missing
mkdir -p folder/reproducer.json
expect 1 "cannot read the file: Is a directory" "$tenon" replay folder
cp -r fuzzed cut
: >cut/memory.bin
expect 1 "memory.bin has 0 bytes" "$tenon" replay cut
cp -r fuzzed other
sed -i 's/"format": 1/"format": 2/' other/reproducer.json
expect 1 "the reproducer has format 2" "$tenon" replay other

# The debugger: a program, commands, and their output.
cat >program.txt <<'END'
move signal=gemm function=0 rows=1 vectors=4 x_step=4 row_bytes=16 source_rows=1
move signal=gemm function=1 base=1 rows=1 vectors=4 x_step=4 row_bytes=16 source_rows=1
mac wait=ldi,ldw first=1 r0=1 r1=1 r2=1 y=1 x=4 dst_x=1 src_x=1
end
END
printf '\1\0\0\0\0\1\0\0\0\0\1\0\0\0\0\1' >unit.bin
printf '\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20' >values.bin
debug=("$tenon" debug program.txt --device behavioral:tiny --load 0x100000=values.bin --load 0x200000=unit.bin)
expect 0 "breakpoint 1: instruction 2 is done" "${debug[@]}" -x "break 2" -x continue
expect 0 "breakpoint 1: tokens ldi->gemm change, 0 before, 1 now" "${debug[@]}" -x "break ldi->gemm" -x continue
expect 0 "breakpoint 1: an instruction of gemm is done, slot 4" "${debug[@]}" -x "break gemm" -x continue
expect 0 "breakpoint 1: acc[0..3] is written, by the instruction at slot 4" "${debug[@]}" -x "watch acc 0 4" -x continue
expect 0 "ldi->gemm: 1" "${debug[@]}" -x step -x tokens
expect 0 "gemm  2 not done, 2 of them queued or in flight, waits for tokens; next:     4 gemm  mac" "${debug[@]}" -x step -x queues
expect 0 "gemm  2 not done; next:     4 gemm  mac" "${debug[@]}" -x queues
expect 0 "acc[    0]: not written so far" "${debug[@]}" -x "step 2" -x "print acc"
expect 0 "acc[    3]:     13     14     15     16" "${debug[@]}" -x "step 3" -x "print acc 3 1"
expect 0 "inp[    1]:    5    6    7    8" "${debug[@]}" -x "step 3" -x "print inp 1 1"
expect 0 "dram[0x00100000]: 01 02 03 04" "${debug[@]}" -x "print dram 0x100000 4"
expect 0 "multiplications    64" "${debug[@]}" -x continue -x counters
expect 0 "launch 0 is over: 4 of 4 instructions done" "${debug[@]}" -x continue
expect 0 "done     2 ldw   move" "${debug[@]}" -x "step 2" -x "list 2"
expect 0 "before launch 0" "${debug[@]}" -x continue -x restart -x where
expect 0 "break ENGINE->ENGINE" "${debug[@]}" -x help
expect 0 "1: instruction 4 is done" "${debug[@]}" -x "break 4" -x breaks
expect 0 "no breakpoints" "${debug[@]}" -x "break 4" -x "delete 1" -x breaks
expect 2 "--data and --launch are for an executable" "${debug[@]}" --launch 1 -x step
expect 1 "unit.bin:1: error: a line contains bytes that are not text" "$tenon" debug unit.bin -x step
expect 2 "unknown command" "${debug[@]}" -x jump
expect 2 "no instruction begins at slot 3" "${debug[@]}" -x "break 3"
expect 2 "print requires a memory" "${debug[@]}" -x "print all"
expect 2 "acc has elements 0 to" "${debug[@]}" -x "print acc 99999999"
expect 1 "this was the last launch" "${debug[@]}" -x continue -x continue
expect 1 "are beyond the program's memory" "${debug[@]}" --load 0x7fffffff=unit.bin
echo '# nothing' >empty.txt
expect 1 "there is no instruction" "$tenon" debug empty.txt --device behavioral:tiny
printf 'end\nfinish\n' >mixed.txt
expect 1 "mixes instructions of both profiles" "$tenon" debug mixed.txt --device behavioral:tiny
expect 2 "must be ADDRESS=FILE" "${debug[@]}" --load here
printf 'step\nprint inp 0 1\nquit\n' >script
expect 0 "inp[    0]:    1    2    3    4" "${debug[@]}" <script
echo 'move function=0 sram_base=65535 rows=1 vectors=4 x_step=4 row_bytes=16 source_rows=1' >wrong.txt
expect 0 "an element outside its scratchpad" "$tenon" debug wrong.txt --device behavioral:tiny -x continue
"$tenon" compile "$models/resnet8_digits.onnx" --shapes N=1 --calibrate "$models/resnet8_digits_test.npz:calib" --divide 255 \
  --config tiny -o model.tnx >/dev/null
expect 0 "/stem/stem.0/Conv" "$tenon" debug model.tnx --data "$models/resnet8_digits_test.npz:x" --divide 255 -x "step 3"
expect 1 "launch 99 does not exist" "$tenon" debug model.tnx --data "$models/resnet8_digits_test.npz:x" --divide 255 \
  --launch 99 -x step
expect 2 "a model needs data" "$tenon" debug model.tnx -x step

# tenon-run, which has no compiler: another device disagrees, a device stops, a launch takes too long.
{
  printf '\223NUMPY\1\0v\0%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 28, 28), }"
  printf '\0\0\200?%.0s' {1..784}
} >ones.npy
run=("$tenon_run" model.tnx --input ones.npy)
expect 0 "cycles a run" "${run[@]}" --device behavioral:tiny --verify "behavioral:tiny?memory=64M"
expect 3 "differs between faulty:tiny?fault=mac and behavioral:tiny" "${run[@]}" --device "faulty:tiny?fault=mac" --verify behavioral:tiny
expect 3 "reproducer: board; to reproduce it" "${run[@]}" --device "faulty:tiny?fault=mac" --verify behavioral:tiny --reproducer board
expect 1 "error: the same mismatch again" "$tenon" replay board
expect 1 "doing       tenon-run model.tnx --device faulty:tiny?fault=mac --verify behavioral:tiny --input ones.npy" "$tenon" replay board
expect 0 "shows no difference" "$tenon" replay board --device behavioral:tiny
expect 1 "faulty and behavioral differ" "${run[@]}" --device "faulty:tiny?fault=write" --reproducer stopped
expect 1 "error: the same mismatch again" "$tenon" replay stopped
expect 1 "reproducer: late; to reproduce it" "${run[@]}" --device behavioral:tiny --limit 1e-5 --reproducer late
grep -q "last decoded instructions" late/reproducer.json
grep -q '"found": .*n    instruction [0-9]* (m' late/reproducer.json  # of the replay, whose memory is in no buffer
expect 1 "error: the same mismatch again" "$tenon" replay late
expect 3 "and the accelerator does not become idle" "${run[@]}" --device "faulty:tiny?fault=hang"
expect 3 "no reproducer could be kept: the device is still busy" "${run[@]}" --device "faulty:tiny?fault=hang"
expect 1 "input 'input' is given twice" "${run[@]}" --input ones.npy
expect 2 "is not a device URI" "${run[@]}" --verify nothing
# An error before any launch saves no reproducer.
expect 1 "no input is named 'other'" "$tenon_run" model.tnx --input other=ones.npy --reproducer none
[ ! -e none ]
