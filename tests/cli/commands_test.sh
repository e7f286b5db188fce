#!/usr/bin/env bash
# The command `tenon`: help, exit codes, and the messages of each command on good and bad input.
# Arguments: the program, tenon-run, a library of functions (tests/runtime/native/functions_sample.c).
set -euo pipefail
# shellcheck source=tests/expect.sh
source tests/expect.sh
tenon=$1 tenon_run=$2 functions=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

expect 0 "Usage: tenon COMMAND" "$tenon" --help
expect 0 "tenon 0." "$tenon" --version
expect 2 "no command is given" "$tenon"
expect 2 'unknown command "nonsense"' "$tenon" nonsense
expect 2 '"hw" needs a second word' "$tenon" hw
expect 2 'unknown command "hw nonsense"' "$tenon" hw nonsense
expect 2 "--output is required" "$tenon" hw generate
expect 2 "tenon disasm --help" "$tenon" disasm
expect 0 "Usage: tenon hw generate" "$tenon" hw generate --help
expect 2 "did you mean tenon compile?" "$tenon" comple
expect 2 "did you mean tenon hw generate?" "$tenon" hw generat
expect 2 "did you mean --shapes?" "$tenon" compile model.onnx --shape N=1
expect 2 "unexpected arguments 'first', 'second'" "$tenon" hw show tiny first second
expect 0 "bench transfer   measure" "$tenon" --help
expect 2 "tenon-run: error: there is no option --ouput" "$tenon_run" model.tnx --ouput o.npz
expect 2 "tenon-run: error: --runs is '0'" "$tenon_run" model.tnx --runs 0
expect 0 "tenon-run 0." "$tenon_run" --version

# Names and numbers from outside.
expect 2 "N is '99999999999999999999', must be an integer from 0 to 2147483647" \
  "$tenon" compile tests/models/tiny_digits.onnx --shapes N=99999999999999999999 --cpu -o "$scratch/o.tnx"
expect 2 "N is given twice" "$tenon" compile tests/models/tiny_digits.onnx --shapes N=1,N=2 --cpu -o "$scratch/o.tnx"
expect 2 "the port is '99999', must be an integer from 0 to 65535" "$tenon" serve --listen 127.0.0.1:99999
expect 2 '"localhost" is not HOST:PORT' "$tenon" serve --listen localhost
expect 2 'unknown command "\x1b[2J\nerror: fake"' "$tenon" $'\e[2J\nerror: fake'

# Output to a full disk is an error, and -o writes into what is there.
for command in "ops" "hw list" "--help" "ops --markdown" "ops --json" "compile --help"; do
  # shellcheck disable=SC2086,SC2016
  expect 1 "error: the output cannot be written" bash -c '"$@" >/dev/full' - "$tenon" $command
done
# shellcheck disable=SC2016
expect 0 "" bash -c '"$1" ops nonsense 2>/dev/full || [ $? = 2 ]' - "$tenon"
printf 'end\n' >"$scratch/end.txt"
printf old >"$scratch/target.bin"
ln -s target.bin "$scratch/link.bin"
expect 0 "1 instruction" "$tenon" asm "$scratch/end.txt" -o "$scratch/link.bin"
[ -L "$scratch/link.bin" ]
"$tenon" asm "$scratch/end.txt" -o "$scratch/plain.bin" >"$scratch/ignored.txt"
cmp "$scratch/target.bin" "$scratch/plain.bin"
"$tenon" asm "$scratch/end.txt" -o /dev/stdout | cat >"$scratch/piped.bin"
cmp "$scratch/plain.bin" <(head -c "$(stat -c %s "$scratch/plain.bin")" "$scratch/piped.bin")
expect 1 "No space left on device" "$tenon" asm "$scratch/end.txt" -o /dev/full
"$tenon" --help | sed -n 's/^  \([a-z]\+\( [a-z]\+\)\?\)  .*/\1/p' | while read -r -a command; do
  expect 0 "Usage: tenon ${command[*]}" "$tenon" "${command[@]}" --help
  expect 2 "--help shows the options" "$tenon" "${command[@]}" --nonsense
done

# Configurations.
expect 0 "default" "$tenon" hw list
expect 0 '"name": "tiny"' "$tenon" hw list --json
expect 0 "1x4x4" "$tenon" hw show tiny
expect 2 'no configuration is called "nowhere"' "$tenon" hw show nowhere
expect 0 "DSP        17 of 28" "$tenon" hw estimate lite --board ulx3s-25f
expect 0 "RAM        10 of 56" "$tenon" hw estimate lite --board ulx3s-25f
expect 0 "RAM        10 of 40" env TENON_BOARD_PATH=tests/hw/boards/netlist/boards "$tenon" hw estimate lite --board proof-ecp5
expect 0 "does not fit: LUT" "$tenon" hw estimate default --board ulx3s-25f
expect 0 "one change that lessens it:" "$tenon" hw estimate default --board ulx3s-25f
expect 0 '"fits": false' "$tenon" hw estimate default --board ulx3s-25f --json
expect 2 'no configuration is called "nowhere"' "$tenon" hw estimate nowhere
expect 2 'no board is called "nowhere"' "$tenon" hw estimate lite --board nowhere
expect 2 'there is no family of chips "gowin"' "$tenon" hw estimate lite --family gowin
expect 1 "cannot read the configuration" "$tenon" hw show ./nowhere.json
expect 1 "cannot read the configuration" "$tenon" hw show "$scratch/"
echo '{"version": 1e999}' >"$scratch/overflow.json"
expect 1 "not valid JSON" "$tenon" hw show "$scratch/overflow.json"
echo '{"version": 1,' >"$scratch/cut.json"
expect 1 "cut.json: error: not valid JSON: at line 2, column 1" "$tenon" hw show "$scratch/cut.json"
"$tenon" hw show tiny --json >"$scratch/copy.json"
expect 0 "$("$tenon" hw show tiny | grep hash)" "$tenon" hw show "$scratch/copy.json"
sed 's/"block_in": [0-9]*/"block_in": 5/' "$scratch/copy.json" >"$scratch/odd.json"
expect 1 "block_in" "$tenon" hw generate --config "$scratch/odd.json" -o "$scratch/odd"
[ ! -e "$scratch/odd" ] || { echo "a broken configuration left files"; exit 1; }
expect 0 "tenon_pkg.sv" "$tenon" hw generate --config tiny -o "$scratch/rtl"
expect 1 "cannot create the directory" "$tenon" hw generate --config tiny -o "$scratch/copy.json/rtl"
mkdir "$scratch/configs"
echo '{' >"$scratch/configs/broken.json"
expect 1 "broken" env TENON_CONFIG_PATH="$scratch/configs" "$tenon" hw list

# Operators.
expect 0 "operators; tenon ops NAME explains one" "$tenon" ops
expect 0 "out-elementwise-fusable: a contraction" "$tenon" ops conv2d
expect 0 "on the CPU: native kernels" "$tenon" ops conv2d
expect 0 "on the CPU: its reference kernel alone" "$tenon" ops nonzero
expect 0 '"name": "softmax"' "$tenon" ops softmax --json
expect 2 "did you mean conv2d" "$tenon" ops conv2
expect 2 "tenon ops lists them all" "$tenon" ops zzzzzzzz
expect 2 "--markdown is the whole page" "$tenon" ops --markdown conv2d

# Assembly: text to stream to text.
printf 'sync engine=ldi signal=gemm # a token\nmac wait=ldi first=1 r0=1 r1=1 r2=1 y=3 x=4\nend\n' >"$scratch/a.txt"
expect 0 "3 instructions, 6 slots" "$tenon" asm "$scratch/a.txt" -o "$scratch/a.bin"
expect 0 "mac wait=ldi first=1" "$tenon" disasm "$scratch/a.bin"
"$tenon" disasm "$scratch/a.bin" >"$scratch/b.txt"
"$tenon" asm "$scratch/b.txt" -o "$scratch/b.bin" >/dev/null
cmp "$scratch/a.bin" "$scratch/b.bin"
expect 1 "slot 0" "$tenon" disasm --profile base "$scratch/a.bin"
expect 2 "profile" "$tenon" disasm --profile third "$scratch/a.bin"
head -c 40 "$scratch/a.bin" >"$scratch/cut.bin"
expect 1 "40 bytes are neither an executable nor a stream of 16-byte slots" "$tenon" disasm "$scratch/cut.bin"
head -c 48 "$scratch/a.bin" >"$scratch/half.bin"
expect 1 "the stream ends inside an instruction" "$tenon" disasm "$scratch/half.bin"
echo 'mac first=2' >"$scratch/wrong.txt"
expect 1 "first" "$tenon" asm "$scratch/wrong.txt" -o "$scratch/wrong.bin"
expect 1 "wrong.txt" "$tenon" asm "$scratch/wrong.txt" -o "$scratch/wrong.bin"
expect 1 "nowhere.bin" "$tenon" disasm "$scratch/nowhere.bin"

# The layout of modules in the text form.
printf '#[version = "1"]\ndef @main(%%x: Tensor[(2,), f32]) -> Tensor[(2,), f32] { relu( %%x )+%%x } // both\n' >"$scratch/a.tn"
expect 1 "not formatted: $scratch/a.tn" "$tenon" fmt --check "$scratch/a.tn"
expect 0 "  relu(%x) + %x" "$tenon" fmt "$scratch/a.tn"
expect 0 "  relu(%x) + %x" "$tenon" fmt - <"$scratch/a.tn"
expect 0 "$scratch/a.tn" "$tenon" fmt -w "$scratch/a.tn"
expect 0 "" "$tenon" fmt --check "$scratch/a.tn"
expect 0 "}  // both" cat "$scratch/a.tn"
echo 'def @main( {' >"$scratch/b.tn"
expect 1 "b.tn:1:12: error: '{' is not closed" "$tenon" fmt "$scratch/b.tn"
expect 2 "exclude each other" "$tenon" fmt --check -w "$scratch/a.tn"

# The forms of a module.
expect 0 "" "$tenon" convert tests/models/tiny_digits.onnx -o "$scratch/digits.tn"
expect 0 'side = "digits.npz"' head -n 1 "$scratch/digits.tn"
expect 0 "" "$tenon" convert "$scratch/digits.tn" -o "$scratch/digits.tnb"
mkdir "$scratch/back"
expect 0 "" "$tenon" convert "$scratch/digits.tnb" -o "$scratch/back/digits.tn"
cmp "$scratch/digits.tn" "$scratch/back/digits.tn"
cmp "$scratch/digits.npz" "$scratch/back/digits.npz"
expect 0 "" "$tenon" fmt --check "$scratch/digits.tn"
expect 2 "written as .tn or .tnb" "$tenon" convert "$scratch/digits.tn" -o "$scratch/digits.txt"
cp tests/models/tiny_digits.onnx "$scratch/wrong.tnb"
expect 1 "wrong.tnb: error: not a module in the binary form" "$tenon" run "$scratch/wrong.tnb"
rm "$scratch/digits.npz"
mkfifo "$scratch/digits.npz"
expect 1 "digits.npz: error: it is not a regular file" timeout 60 "$tenon" convert "$scratch/digits.tn" -o "$scratch/digits.tnb"
rm "$scratch/digits.npz"
expect 1 "digits.npz" "$tenon" convert "$scratch/digits.tn" -o "$scratch/digits.tnb"

# A module with inputs by name, compiled and interpreted.
cat >"$scratch/list.tn" <<'END'
#[version = "1"]
type List[A] { Cons(A, List[A]), Nil }
def @main(%x: Tensor[(), f32], %n: Tensor[(), i64]) -> (Tensor[(), f32], List[Tensor[(), i64]]) {
  (%x * 2.0f32, Cons(%n, Cons(%n * %n, Nil)))
}
def @double[n](%x: Tensor[(n, 2), f32]) -> Tensor[(n, 2), f32] { %x + %x }
END
expect 0 "(5f32, Cons(3i64, Cons(9i64, Nil)))" "$tenon" run "$scratch/list.tn" --input n=3 --input 2.5
expect 0 "(5f32, Cons(3i64, Cons(9i64, Nil)))" "$tenon" run "$scratch/list.tn" --input n=3 --input 2.5 --interpret
expect 0 '"constructor": "Cons"' "$tenon" run "$scratch/list.tn" --input 2.5 --input 3 --json
expect 0 '"dtype": "f32"' "$tenon" run "$scratch/list.tn" --input 2.5 --input 3 --json
expect 2 "input 'n' is missing" "$tenon" run "$scratch/list.tn" --input x=1
expect 2 "@main takes %x: Tensor[(), f32], %n: Tensor[(), i64]" "$tenon" run "$scratch/list.tn" --input z=1
expect 2 "input 'x' is given twice" "$tenon" run "$scratch/list.tn" --input x=1 --input x=2
expect 2 "there are @main, @double" "$tenon" run "$scratch/list.tn" --entry @half
expect 1 "the result 1 is Cons(...): files hold tensors" \
  "$tenon" run "$scratch/list.tn" --input n=3 --input 2.5 --output "$scratch/o.npz"

logits=tests/models/tiny_digits_logits.npy
# An operator that must fail at some sizes has no native code, which would not.
cat >"$scratch/top.tn" <<'END'
#[version = "1"]
def @main[n](%x: Tensor[(8, n), f32]) { top_k(%x, k=11) }
END
expect 0 "reference kernel: top_k: the axis may have fewer elements than the result" \
  "$tenon" compile "$scratch/top.tn" --cpu --explain -o "$scratch/top.tnx"
expect 1 "top_k: there are fewer elements than k" "$tenon" run "$scratch/top.tn" --input "$logits"

# Tuples as inputs: their tensors by path, or from a file of results. A list is no input.
cat >"$scratch/pair.tn" <<'END'
#[version = "1"]
type List[A] { Cons(A, List[A]), Nil }
def @main(%p: (Tensor[(), f32], (Tensor[(), i64], Tensor[(), f32])), %n: Tensor[(), i64]) {
  ((%p.1).1, ((%p.1).0 + %n, %p.0))
}
def @length(%xs: List[Tensor[(), f32]]) -> Tensor[(), i64] { match %xs { Nil => 0i64, Cons(_, %rest) => 1i64 + @length(%rest) } }
END
expect 0 "(3f32, (12i64, 2.5f32))" "$tenon" run "$scratch/pair.tn" --input p.0=2.5 --input p.1.0=7 --input p.1.1=3 --input n=5
expect 0 "" "$tenon" run "$scratch/pair.tn" --input 2.5 --input 7 --input 3 --input 5 --output "$scratch/pair.npz"
for how in "" --interpret; do
  expect 0 "(2.5f32, (13i64, 3f32))" "$tenon" run "$scratch/pair.tn" --input p="$scratch/pair.npz" --input n=1 $how
done
expect 2 "input 'p.1.0' is given twice" \
  "$tenon" run "$scratch/pair.tn" --input p="$scratch/pair.npz" --input n=1 --input p.1.0=3
expect 1 "input 'xs' is List[Tensor[(), f32]]: --input gives tensors and tuples of them" \
  "$tenon" run "$scratch/pair.tn" --entry length --input 1

# Results that are no tensors, by the runtime alone and over samples.
expect 0 "" "$tenon" compile "$scratch/list.tn" --cpu -o "$scratch/list.tnx"

# What an executable is made of, and its memory plan.
for command in "$tenon inspect" "$tenon_run --info" "$tenon_run --info --json"; do
  # shellcheck disable=SC2016
  expect 1 "error: the output cannot be written" bash -c '$1 "$2" >/dev/full' - "$command" "$scratch/list.tnx"
done
expect 0 "function @main" "$tenon" inspect "$scratch/list.tnx"
expect 0 "type    List: Cons/2 Nil/0" "$tenon" inspect "$scratch/list.tnx"
expect 1 "nowhere.tnx" "$tenon" inspect "$scratch/nowhere.tnx"
cat >"$scratch/plan.tn" <<'END'
#[version = "1"]
def @main[n in 1..64](%x: Tensor[(n, 16), f32]) -> Tensor[(n, 16), f32] { softmax(softmax(softmax(%x))) }
END
expect 0 "" "$tenon" compile "$scratch/plan.tn" --cpu -o "$scratch/plan.tnx"
expect 0 "@main: 8192 bytes planned for 2 results, 8192 live at once, 8192 without reuse; 1 allocated when made" \
  "$tenon" plan "$scratch/plan.tnx"
expect 0 "allocated: may outlive the frame: " "$tenon" plan "$scratch/plan.tnx"
expect 0 "memory plan" "$tenon" inspect "$scratch/plan.tnx"
expect 1 "nowhere.tnx" "$tenon" plan "$scratch/nowhere.tnx"
expect 2 "the plan of an executable is made" "$tenon" plan "$scratch/plan.tnx" --budget 1MiB
expect 0 "function @main" "$tenon" inspect "$scratch/plan.tnx" --function @main
expect 2 "there is no function 'mian'" "$tenon" inspect "$scratch/plan.tnx" --function @mian
expect 2 "did you mean main?" "$tenon" inspect "$scratch/plan.tnx" --function @mian
cat >"$scratch/window.tn" <<'END'
#[version = "1"]
def @main[n](%x: Tensor[(1, 2, n), f32]) { max_pool1d(%x, kernel=[3]) }
END
expect 0 '"most_bytes"' "$tenon" compile tests/models/tiny_digits.onnx --shapes N=4 --cpu --budget 64MiB --json -o "$scratch/budget.tnx"
expect 2 "is the least; '" "$tenon" compile tests/models/tiny_digits.onnx --shapes N=4 --cpu --budget 4KiB -o "$scratch/budget.tnx"
expect 2 "a plan of memory needs bounds of all sizes" "$tenon" compile tests/models/tiny_digits.onnx --cpu --budget 64MiB \
  -o "$scratch/budget.tnx"
expect 0 "" "$tenon" compile "$scratch/window.tn" --cpu -o "$scratch/window.tnx"
expect 0 'check -3 + n >= 0, else "max_pool1d: the window is larger' "$tenon" inspect "$scratch/window.tnx" --part kernels
kernel=$("$tenon" inspect "$scratch/plan.tnx" | sed -n 's/^  \([a-z_0-9]*\): (.*) -> (.*/\1/p' | head -n 1)
expect 0 "$kernel.x86-64-v3: " "$tenon" inspect "$scratch/plan.tnx" --kernel "$kernel"
expect 0 "ret" "$tenon" inspect "$scratch/plan.tnx" --kernel "$kernel"
expect 2 "there is no native kernel 'nothing'" "$tenon" inspect "$scratch/plan.tnx" --kernel nothing
expect 0 "$kernel: (f32 (n, 16)) -> (f32 (n, 16)) for any n" "$tenon" inspect "$scratch/plan.tnx" --part kernels
expect 0 "r1 = n where axis 0 of r0 is 1 * n + 0" "$tenon" inspect "$scratch/plan.tnx" --part code
expect 0 "check r1 in 1..64" "$tenon" inspect "$scratch/plan.tnx" --part code
expect 0 "@main: 8192 bytes planned" "$tenon" inspect "$scratch/plan.tnx" --part memory
expect 2 "--part: nothing not in" "$tenon" inspect "$scratch/plan.tnx" --part nothing
expect 0 '"type": "f32 (n, 16)"' "$tenon" inspect "$scratch/plan.tnx" --json
expect 0 '"arena_bytes": 8192' "$tenon" inspect "$scratch/plan.tnx" --json
expect 2 "--json prints the whole executable" "$tenon" inspect "$scratch/plan.tnx" --json --part code
head -c 100 "$scratch/plan.tnx" >"$scratch/cut.tnx"
expect 1 "cut.tnx" "$tenon" inspect "$scratch/cut.tnx"
expect 0 "" "$tenon" run "$scratch/pair.tn" --input 2.5 --input 3 --input 3 --input 0 --output "$scratch/list.npz"
list=(x="$scratch/list.npz:1.1" n="$scratch/list.npz:1.0")
expect 0 "= Cons(3i64, Cons(9i64, Nil))" "$tenon_run" "$scratch/list.tnx" --input "${list[0]}" --input "${list[1]}"
expect 0 "-> $scratch/list" \
  "$tenon_run" "$scratch/list.tnx" --input "${list[0]}" --input "${list[1]}" --output "$scratch/list"
expect 0 '"constructor": "Cons"' cat "$scratch/list/output1.json"
expect 0 "sample 0, output1: Cons(3i64, Cons(9i64, Nil))" \
  "$tenon" run "$scratch/list.tnx" --cpu --data "${list[0]}" --data "${list[1]}"
expect 0 "" "$tenon" run "$scratch/list.tnx" --cpu --data "${list[0]}" --data "${list[1]}" --output "$scratch/samples"
expect 0 '"constructor": "Cons"' cat "$scratch/samples/output1_0.json"
expect 2 "the result output1 is Cons(...): an .npz holds tensors and tuples of them" \
  "$tenon" run "$scratch/list.tnx" --cpu --data "${list[0]}" --data "${list[1]}" --output "$scratch/samples.npz"
expect 1 "Cons(...)), expected tensors" \
  "$tenon" run "$scratch/list.tn" --cpu --check --data "${list[0]}" --data "${list[1]}"
expect 1 "input 'x' is f32 (8, 10), the model takes f32 (n, 2)" \
  "$tenon" run "$scratch/list.tn" --entry double --input "$logits"
expect 1 "input 'x' must be Tensor[(n, 2), f32], found Tensor[(8, 10), f32]" \
  "$tenon" run "$scratch/list.tn" --entry double --input "$logits" --interpret
sed -i 's/n, 2/n, 10/g' "$scratch/list.tn"
expect 0 "" "$tenon" run "$scratch/list.tn" --entry double --input "x=$logits" --output "$scratch/o.npy"
expect 0 "as expected: 1 result" "$tenon" run "$scratch/list.tn" --entry double --input "$logits" --expect "$scratch/o.npy"
expect 1 "result 0 differs by" "$tenon" run "$scratch/list.tn" --entry double --input "$scratch/o.npy" --expect "$scratch/o.npy"

# Another entry, which calls @main; and the limits of a run, of a module and of an executable.
cat >"$scratch/count.tn" <<'END'
#[version = "1"]
def @main(%n: Tensor[(), i64]) -> Tensor[(), i64] { if (%n > 0i64) { @main(%n - 1i64) } else { %n } }
def @deep(%n: Tensor[(), i64]) -> Tensor[(), i64] { if (%n > 0i64) { @deep(%n - 1i64) + 1i64 } else { @main(%n) } }
END
expect 0 "7i64" "$tenon" run "$scratch/count.tn" --entry deep --input 7
expect 0 "7i64" "$tenon" run "$scratch/count.tn" --entry deep --input 7 --interpret
expect 1 "more than 1000 instructions" "$tenon" run "$scratch/count.tn" --input 100000 --max-steps 1000
expect 1 "stack" "$tenon" run "$scratch/count.tn" --entry deep --input 100000 --max-stack 1000
expect 1 "more than 50 ms" "$tenon" run "$scratch/count.tn" --input 9000000000000000000 --max-seconds 0.05
expect 2 "--max-seconds is '-1', must be a number from 0 to" "$tenon" run "$scratch/count.tn" --input 1 --max-seconds -1
expect 2 "are limits of compiled code" "$tenon" run "$scratch/count.tn" --input 1 --max-steps 9 --interpret
expect 2 "--budget are limits of compiled code" "$tenon" run "$scratch/count.tn" --input 1 --budget 1MiB --interpret
expect 0 "0i64" "$tenon" run "$scratch/count.tn" --input 10 --budget 1MiB
expect 2 "--budget is 'all', must be a number of bytes" "$tenon" run "$scratch/count.tn" --input 1 --budget all
expect 2 "--max-memory is" "$tenon" run "$scratch/count.tn" --input 1 --max-memory 9999999999999999
expect 0 "" "$tenon" compile "$scratch/count.tn" --cpu -o "$scratch/count.tnx"
expect 0 "" "$tenon_run" "$scratch/count.tnx" --input n=10
expect 1 "more than 1000 instructions" "$tenon_run" "$scratch/count.tnx" --input n=100000 --max-steps 1000
expect 2 "--max-seconds is '-1', must be a number from 0 to" "$tenon_run" "$scratch/count.tnx" --input n=1 --max-seconds=-1

# Functions of a library, called from a loop function and as a function of the module: interpreted and compiled alike.
cat >"$scratch/outside.tn" <<'END'
#[version = "1"]
extern @halve[n, m](Tensor[(n, m), f32]) -> Tensor[(n, m), f32] = "halve";
loop @sorted[n](%x: Tensor[(n, 10), f32]) -> (%y: Tensor[(n, 10), f32]) {
  alloc %t: Tensor[(n, 10), f32] {
    call sort.rows(%x) -> (%t);
    for i in (n) parallel { for j in (10) { stage s(i in (n) at (i), j in (10) at (j)) { %y[i, j] = %t[i, j] + f32(1); } } }
  }
}
def @main(%x: Tensor[(8, 10), f32]) -> Tensor[(8, 10), f32] { @halve(@sorted(%x)) }
END
expect 1 "the library function 'sort.rows' does not exist" "$tenon" run "$scratch/outside.tn" --input "$logits"
expect 1 "nowhere.so: error: the library cannot be opened" \
  "$tenon" run "$scratch/outside.tn" --input "$logits" --library "$scratch/nowhere.so"
expect 0 "" "$tenon" run "$scratch/outside.tn" --input "$logits" --library "$functions" --output "$scratch/o.npy"
expect 0 "" "$tenon" compile "$scratch/outside.tn" --cpu -o "$scratch/outside.tnx"
expect 1 "@sorted: error: the library function 'sort.rows' does not exist" \
  "$tenon_run" "$scratch/outside.tnx" --input "x=$logits"
expect 0 "" "$tenon_run" "$scratch/outside.tnx" --library "$functions" --input "x=$logits" --output "$scratch/outside"
cmp "$scratch/o.npy" "$scratch"/outside/*.npy
expect 1 "input 'x' is missing, the model takes f32 (8, 10)" "$tenon_run" "$scratch/outside.tnx" --library "$functions"
expect 0 "" "$tenon" compile "$scratch/outside.tn" --cpu --target aarch64 -o "$scratch/outside.tnx"
outside() {  # outside EXTERN MAIN: a module of these, on one number
  printf '#[version = "1"]\nextern @f%s = "halve";\ndef @main(%%x: Tensor[(), f32]) -> %s\n' "$1" "$2" >"$scratch/outside.tn"
}
outside "(Tensor[(), f32]) -> Tensor[(), f32]" "Tensor[(), f32] { @f(%x) }"
expect 0 "1.5f32" "$tenon" run "$scratch/outside.tn" --input 3 --library "$functions"
expect 1 "@f is a library's function, and native kernels are off" \
  "$tenon" compile "$scratch/outside.tn" --cpu --kernels reference -o "$scratch/o.tnx"
outside "((Tensor[(), f32], Tensor[(), f32])) -> Tensor[(), f32]" "Tensor[(), f32] { @f((%x, %x)) }"
expect 1 '"halve" supports tensor arguments only' "$tenon" run "$scratch/outside.tn" --input 3 --library "$functions"
expect 1 "must take tensors only" "$tenon" run "$scratch/outside.tn" --input 3 --library "$functions" --max-steps 99
expect 1 "@f: error: a library function in native code must take tensors only" "$tenon" compile "$scratch/outside.tn" --cpu -o "$scratch/o.tnx"
outside "(Tensor[(), f32]) -> (Tensor[(), f32], (Tensor[(), f32], Tensor[(), f32]))" "Tensor[(), f32] { @f(%x).0 }"
expect 1 "@f: error: a library function in native code must return tensors only" "$tenon" compile "$scratch/outside.tn" --cpu -o "$scratch/o.tnx"
outside "(Tensor[(), f32]) -> Tensor[(?,), f32]" "Tensor[(3,), f32] { match_cast(@f(%x), Tensor[(3,), f32]) }"
expect 1 'the arguments of "halve" do not determine the size of its result' \
  "$tenon" run "$scratch/outside.tn" --input 3 --library "$functions"
outside "(Tensor[(), f32]) -> Tensor[(99999999999999,), f32]" "Tensor[(99999999999999,), f32] { @f(%x) }"
expect 1 'a result of "halve" is too large' "$tenon" run "$scratch/outside.tn" --input 3 --library "$functions" --interpret
expect 1 "@f: error: 'y0' would be a (99999999999999,) of f32" "$tenon" run "$scratch/outside.tn" --input 3 --library "$functions"
cat >"$scratch/outside.tn" <<'END'
#[version = "1"]
loop @f[n](%x: Tensor[(n,), f32]) -> (%y: Tensor[(n,), f32]) { for i in (3) parallel { call halve(%x) -> (%y); } }
def @main(%x: Tensor[(8,), f32]) -> Tensor[(8,), f32] { @f(%x) }
END
expect 1 "the loop 'i' cannot be parallel: a library is called inside" "$tenon" compile "$scratch/outside.tn" --cpu -o "$scratch/o.tnx"

expect 2 "--input and --expect are for modules" "$tenon" run tests/models/tiny_digits.onnx --input 3
expect 2 "--data is required" "$tenon" run tests/models/tiny_digits.onnx

# The machine: existing tools are named, missing ones with the way to get them.
expect 0 "tenon hw list" "$tenon" devices
expect 0 "[" "$tenon" devices --json
expect 0 "g++" "$tenon" doctor
expect 0 '"tools": [' "$tenon" doctor --json
expect 0 "missing; for verilator: devices, tenon fuzz accel; get it: apt-get install verilator" \
  env PATH=/nowhere "$tenon" doctor
cp "$tenon" "$scratch/alone"
expect 0 "systemc:     there is no tenon-driver-systemc.so in $scratch, $scratch/tenon," "$scratch/alone" doctor
expect 1 "there is no tenon-driver-remote.so in $scratch" "$scratch/alone" serve
expect 0 "the library of kernels 'dnnl' is not installed: there is no tenon-kernels-dnnl.so" "$scratch/alone" doctor
expect 1 "systemc:tiny: error: there is no tenon-driver-systemc.so in $scratch" \
  "$scratch/alone" run tests/models/resnet8_digits.onnx --data tests/models/resnet8_digits_test.npz:x --device systemc:tiny
expect 1 "configuration broken is broken" env TENON_CONFIG_PATH="$scratch/configs" "$tenon" doctor

# Benchmarks and fuzzing, without the RTL: its tests are those of fuzz.CONFIG.
expect 0 "GMAC/s" "$tenon" bench sim --no-rtl --runs 1 --tiles 1 --config tiny
expect 0 '"gmacs_per_second"' "$tenon" bench sim --no-rtl --runs 1 --tiles 1 --config tiny --json
expect 2 "--runs is '0', must be an integer from 1 to" "$tenon" bench sim --runs 0
expect 0 "seeds 7 to 11, all equal" "$tenon" fuzz accel --device behavioral --config tiny -n 5 --seed 7
expect 0 "cells of instruction, field, value and start" \
  "$tenon" fuzz accel --device behavioral --config tiny -n 5 --seed 7 --coverage "$scratch/coverage"
expect 0 "rows" cat "$scratch/coverage/tiny/fields.txt"
expect 0 '"covered_cells": ' "$tenon" fuzz accel --device behavioral --config tiny -n 5 --coverage "$scratch/coverage2" --json
expect 3 "is not done after 10 cycles" \
  "$tenon" fuzz accel --device behavioral --config tiny -n 5 --seed 7 --cycles 10 --shrink 0 --reproducer "$scratch/slow"
expect 2 "the directory of the coverage exists" \
  "$tenon" fuzz accel --device behavioral --config tiny -n 5 --coverage "$scratch/coverage"
expect 2 "has '&' in its name, which separates the options of a device" \
  "$tenon" fuzz accel --device behavioral --config tiny -n 5 --coverage "$scratch/a&b"
expect 0 "seeds 11 to 15, all equal" "$tenon" fuzz accel --device behavioral --config nano -n 5 --seed 11
sed 's/"address_bits": 14/"address_bits": 12/' hw/configs/nano.json >"$scratch/little.json"
expect 1 "need 16384 bytes of memory, of which the configuration addresses 4096" "$tenon" fuzz accel --device behavioral --config "$scratch/little.json" -n 1
expect 2 "--length is '9..2'" "$tenon" fuzz accel --length 9..2
expect 2 "--length is '5', must be LOW..HIGH" "$tenon" fuzz accel --length 5
expect 3 "install: sudo apt-get install verilator" env PATH=/nowhere TENON_CACHE="$scratch/cache" "$tenon" fuzz accel --config tiny -n 1
expect 1 "set TENON_CACHE to a directory of your own" env -u HOME -u XDG_CACHE_HOME -u TENON_CACHE "$tenon" fuzz accel --config tiny -n 1
expect 0 "seeds 5 to 10: all promises hold" "$tenon" fuzz ir -n 6 --seed 5 -o "$scratch"
expect 0 '"failure": ""' "$tenon" fuzz ir -n 1 --seed 5 --json -o "$scratch"
expect 0 "all promises hold" "$tenon" fuzz ir -n 5 --seed 5 --pass simplify -o "$scratch"
expect 2 "there is no pass 'nothing'" "$tenon" fuzz ir --pass nothing
expect 0 "seeds 5 to 10: all promises hold" "$tenon" fuzz partition --count 6 --seed 5 --directory "$scratch"
# Regions around an if with regions are one.
expect 0 "all promises hold" "$tenon" fuzz partition --count 1 --seed 502309 --directory "$scratch"
expect 0 "1 modules" "$tenon" fuzz ir --gradients -n 1 --seed 700181 -o "$scratch"
expect 0 "3 labels, with launches: the search finds the optimum of " "$tenon" fuzz partition --optimal --count 5 --seed 5
expect 2 "--count is '0', must be an integer of at least 1" "$tenon" fuzz partition --count 0
expect 2 "--count is '0', must be an integer of at least 1" "$tenon" fuzz ir --count 0
expect 0 "def @main" "$tenon" fuzz ir -n 1 --seed 5 --print
printf '#[version = "1"]\ndef @main[n](%%x: Tensor[(n,), f32]) -> Tensor[(n,), f32] { relu(relu(%%x)) }\n' >"$scratch/relu.tn"
expect 0 "holds" "$tenon" fuzz ir --seed 5 --file "$scratch/relu.tn"
expect 0 "40 programs, seeds 5 to 44: all equal" "$tenon" fuzz ragged -n 40 --seed 5 --quiet
expect 0 '"failure": ""' "$tenon" fuzz ragged -n 2 --seed 5 --json
expect 2 "--count is '0', must be an integer of at least 1" "$tenon" fuzz ragged --count 0
expect 1 "nowhere.tn" "$tenon" fuzz ir --file "$scratch/nowhere.tn"
expect 0 "holds" "$tenon" fuzz partition --file "$scratch/relu.tn"
expect 1 "nowhere.tn" "$tenon" fuzz partition --file "$scratch/nowhere.tn"

# xclbin files.
expect 0 "configuration tiny" "$tenon" xclbin write --config tiny --units 2 -o "$scratch/a.xclbin"
expect 0 "unit           tenon_kernel:tenon_2 at 0x1410000" "$tenon" xclbin show "$scratch/a.xclbin"
expect 0 '"clock_mhz": 100' "$tenon" xclbin show --json "$scratch/a.xclbin"
expect 0 "configuration default" "$tenon" xclbin annotate "$scratch/a.xclbin" --config default -o "$scratch/b.xclbin"
expect 1 "not an xclbin file" "$tenon" xclbin show scripts/packages.txt
expect 1 "tenon xclbin write generates a file" "$tenon" xclbin show "$scratch/nowhere.xclbin"
expect 2 "--units is '0', must be an integer from 1 to 15" "$tenon" xclbin write --units 0 -o "$scratch/c.xclbin"
expect 2 "--clock is '0'" "$tenon" xclbin write --clock 0 -o "$scratch/c.xclbin"
expect 2 "--memory is '0'" "$tenon" xclbin write --memory 0 -o "$scratch/c.xclbin"
expect 1 "none.bit: error: cannot open the file" "$tenon" xclbin write --bitstream "$scratch/none.bit" -o "$scratch/c.xclbin"

# Pictures and recordings.
printf 'P5 4 2 255\n\012\024\036\050\062\074\106\120' >"$scratch/a.pgm"
cp "$scratch/a.pgm" "$scratch/b.pgm"
expect 0 "f32 (2, 1, 2, 2)" "$tenon" prepare "$scratch/a.pgm" "$scratch/b.pgm" --gray --size 2 --divide 10 -o "$scratch/p.npy"
expect 0 "f32 (1, 2, 4, 3)" "$tenon" prepare "$scratch/a.pgm" --channels-last --subtract 1,2,3 -o "$scratch/p.npy"
printf nothing >"$scratch/none.png"
expect 1 "none.png: error: it is no picture" "$tenon" prepare "$scratch/none.png" -o "$scratch/p.npy"
printf 'P5 1 1 255\nx' >"$scratch/c.pgm"
expect 1 "--size resizes pictures" "$tenon" prepare "$scratch/a.pgm" "$scratch/c.pgm" -o "$scratch/p.npy"
expect 2 "--size is '2x'" "$tenon" prepare "$scratch/a.pgm" --size 2x -o "$scratch/p.npy"
expect 2 "--size is '99999x1'" "$tenon" prepare "$scratch/a.pgm" --size 99999x1 -o "$scratch/p.npy"
expect 2 "--divide is '1,x'" "$tenon" prepare "$scratch/a.pgm" --divide 1,x -o "$scratch/p.npy"
expect 2 "a channel is divided by 0" "$tenon" prepare "$scratch/a.pgm" --divide 0 -o "$scratch/p.npy"
printf 'RIFF\050\0\0\0WAVEfmt \020\0\0\0\001\0\001\0\200\076\0\0\0\175\0\0\002\0\020\0data\004\0\0\0\0\100\0\200' >"$scratch/a.wav"
expect 0 "f32 (1, 2)" "$tenon" prepare "$scratch/a.wav" --rate 16000 -o "$scratch/w.npy"
expect 0 "f32 (1, 512)" "$tenon" prepare "$scratch/a.wav" --length 512 -o "$scratch/w.npy"
expect 1 "it has 16000 samples a second, --rate requires 8000" "$tenon" prepare "$scratch/a.wav" --rate 8000 -o "$scratch/w.npy"

# Spectrograms.
expect 0 "f32 (1, 8, 6)" "$tenon" prepare "$scratch/a.wav" --length 1000 --mel 8 --window 256 --hop 200 -o "$scratch/w.npy"
expect 0 "f32 (1, 4, 8)" "$tenon" prepare "$scratch/a.wav" --length 1000 --mel 8 --window 256 --hop 200 --uncentered --frames-first --mel-scale htk --power db --range 20,4000 -o "$scratch/w.npy"
expect 1 "a.wav: error: it has 2 samples, a spectrogram requires 201" "$tenon" prepare "$scratch/a.wav" --mel 8 -o "$scratch/w.npy"
expect 2 "--mel is '0', must be an integer from 1 to 65536" "$tenon" prepare "$scratch/a.wav" --mel 0 -o "$scratch/w.npy"
expect 2 "--range is '1;2'" "$tenon" prepare "$scratch/a.wav" --mel 8 --range '1;2' -o "$scratch/w.npy"
expect 2 "--range 1,2,3 and --floor 1e-10 must be two numbers and one" "$tenon" prepare "$scratch/a.wav" --mel 8 --range 1,2,3 -o "$scratch/w.npy"
expect 2 "--window is '1', must be an integer from 2 to 65536" "$tenon" prepare "$scratch/a.wav" --mel 8 --window 1 -o "$scratch/w.npy"
expect 2 "--output $scratch/a.wav is an input" "$tenon" prepare "$scratch/a.wav" -o "$scratch/a.wav"

# Sentences.
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' the cat >"$scratch/vocab.txt"
printf 'The cat\n\nthe dog sat\n' >"$scratch/lines.txt"
expect 0 "input_ids: i64 (2, 5)" "$tenon" prepare "$scratch/lines.txt" --vocabulary "$scratch/vocab.txt" -o "$scratch/t.npz"
expect 0 "t.npz:mask: i64 (2, 4)" "$tenon" prepare "$scratch/lines.txt" --vocabulary "$scratch/vocab.txt" --names tokens,mask --length 4 -o "$scratch/t.npz"
expect 2 "give a FILE.npz" "$tenon" prepare "$scratch/lines.txt" --vocabulary "$scratch/vocab.txt" -o "$scratch/t.npy"
expect 2 "--names is 'a,a'" "$tenon" prepare "$scratch/lines.txt" --vocabulary "$scratch/vocab.txt" --names a,a -o "$scratch/t.npz"
expect 2 "--length is 1, each sentence has 2 tokens around it" "$tenon" prepare "$scratch/lines.txt" --vocabulary "$scratch/vocab.txt" --length 1 -o "$scratch/t.npz"
expect 1 "lines.txt: error: the vocabulary has no token [UNK]" "$tenon" prepare "$scratch/lines.txt" --vocabulary "$scratch/lines.txt" -o "$scratch/t.npz"
printf '\n' >"$scratch/empty.txt"
expect 1 "empty.txt: error: there is no sentence" "$tenon" prepare "$scratch/empty.txt" --vocabulary "$scratch/vocab.txt" -o "$scratch/t.npz"

# Results as text. npy SHAPE BYTES: a tensor of bytes.
npy() {
  local header="{'descr': '|u1', 'fortran_order': False, 'shape': $1, }"
  printf "\\x93NUMPY\\x01\\x00\\x$(printf %02x ${#header})\\x00%s$2" "$header"
}
npy '(1, 5, 3)' '\1\5\2\0\7\1\7\0\0\0\7\1\0\1\7' >"$scratch/s.npy"
printf 'a\nb\n' >"$scratch/ab.txt" && printf 'abb\n' >"$scratch/true.txt"
expect 0 "aab" "$tenon" decode "$scratch/s.npy" --ctc --labels "$scratch/ab.txt"
expect 0 "character error rate: 33.33 % (1 of 3)" "$tenon" decode "$scratch/s.npy" --ctc --labels "$scratch/ab.txt" --expect "$scratch/true.txt"
expect 0 "1 5, 2 2" "$tenon" decode "$scratch/s.npy" --top 2
printf 'cat\ndog\nbird\n' >"$scratch/names.txt"
expect 0 "dog 5" "$tenon" decode "$scratch/s.npy" --labels "$scratch/names.txt"
expect 0 "" "$tenon" decode "$scratch/s.npy" --ctc --labels "$scratch/ab.txt" -o "$scratch/decoded.txt"
[ "$(cat "$scratch/decoded.txt")" = aab ]
printf 'a\n' >"$scratch/a.txt"
expect 1 "--space" "$tenon" decode "$scratch/s.npy" --ctc --labels "$scratch/a.txt"
expect 0 "aa " "$tenon" decode "$scratch/s.npy" --ctc --labels "$scratch/a.txt" --space
expect 1 "there are 2 labels for 3 classes" "$tenon" decode "$scratch/s.npy" --labels "$scratch/ab.txt"
expect 1 "there are 3 expected lines, 1 were found" "$tenon" decode "$scratch/s.npy" --ctc --labels "$scratch/ab.txt" --expect "$scratch/names.txt"
expect 1 "the model's metadata has no 'character'" "$tenon" decode "$scratch/s.npy" --ctc --labels tests/models/resnet8_digits.onnx
expect 2 "--ctc requires --labels" "$tenon" decode "$scratch/s.npy" --ctc
expect 2 "--top is '0'" "$tenon" decode "$scratch/s.npy" --top 0
expect 2 "are for --ctc" "$tenon" decode "$scratch/s.npy" --space

# Rematerialization.
steps=tests/runtime/remat/data
expect 0 "114 operators, time 79727713, peak 27.9 MB, of which constants 2.3 MB" "$tenon" dtr-sim $steps/unet.log --policy eq
expect 0 "  lru       1.019     >2" "$tenon" dtr-sim $steps/unet.log --policy lru --ratio 0.9,0.6
expect 0 "  eq       memory" "$tenon" dtr-sim $steps/unet.log --policy eq --ratio 0.3
expect 0 '"clock": 94854119' "$tenon" dtr-sim $steps/unet.log --policy eq --ratio 0.5 --json
expect 0 '"fails": "time"' "$tenon" dtr-sim $steps/unet.log --policy lru --ratio 0.6 --json
expect 0 '"found_by": ' "$tenon" dtr-sim $steps/unet.log --policy best --ratio 0.5 --effort 5 --json
expect 0 "1.099" "$tenon" dtr-sim $steps/unet.log --policy eq --ratio 0.5 --release prompt
expect 0 "lru" "$tenon" dtr-sim $steps/unet.log --policy lru --ratio 0.8 --release banish
expect 0 ">1.1" "$tenon" dtr-sim $steps/unet.log --policy eq --ratio 0.5 --max-slowdown 1.1
expect 2 'no policy is called "lur"' "$tenon" dtr-sim $steps/unet.log --policy lur
expect 2 "msps, and best for a known future" "$tenon" dtr-sim $steps/unet.log --policy lur
expect 2 "--ratio is '0', must be a number above 0 and at most 1000" "$tenon" dtr-sim $steps/unet.log --ratio 0
expect 2 "--max-slowdown is '0', must be a number from 1 to 1000" "$tenon" dtr-sim $steps/unet.log --max-slowdown 0
expect 1 "nowhere.log" "$tenon" dtr-sim "$scratch/nowhere.log"
call='{"INSTRUCTION":"CALL","NAME":"f","ARGS":["t0"],"RESULT":["r"],"TIME":"1"}'
(cat $steps/unet.log && echo "$call") >"$scratch/wrong.log"
expect 1 'wrong.log:741: error: no tensor is called "t0" here' "$tenon" dtr-sim "$scratch/wrong.log"
(cat $steps/unet.log && echo '{"INSTRUCTION":"RELEASE","NAME":"from_before"}') >"$scratch/before.log"
expect 0 "1 releases of names from before the step are ignored" "$tenon" dtr-sim "$scratch/before.log" --policy eq --ratio 1
expect 0 "        64      16   1.383   1.383   2.258   2.258" "$tenon" dtr-linear -n 64
expect 0 '"lru": "more than 10"' "$tenon" dtr-linear -n 1024 --json
expect 2 "--layers is '0', must be an integer from 1 to 1048576" "$tenon" dtr-linear -n 0
