#!/usr/bin/env bash
# The files that a new instruction of the machine touches: its row in instructions.h, and its case in interpreter.cpp,
# which does not compile without one. All that is derived from the table compiles as it is. Beside them come the code that
# emits the instruction, and its test. Arguments: the C++ compiler and its options.
set -euo pipefail
compile=("$@")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
table=runtime/executable/instructions.h interpreter=runtime/vm/interpreter.cpp

# A row with an operand of most kinds.
mkdir -p "$scratch/runtime/executable" "$scratch/runtime/vm" "$scratch/compiler/lower"
cat >"$scratch/row.txt" <<'ROW'
struct Novel {
  Register to = 0, condition = 0;
  Registers values;
  uint32_t otherwise = 0, constant = 0;
  uint64_t bytes = 0;
  bool operator==(const Novel&) const = default;

  static constexpr InstructionFacts kFacts{
      .opcode = Opcode::kNovel, .text = "{to} = novel {condition} {values} {otherwise} {constant} {bytes}", .flow = Flow::kBranch};
  static void operands(auto& o, auto&& operand) {
    operand(o.to, Role::kWrite, "to");
    operand(o.condition, Role::kRead, "condition");
    operand(o.values, Role::kRead, "values");
    operand(o.otherwise, Role::kTarget, "otherwise");
    operand(o.constant, Role::kConstant, "constant");
    operand(o.bytes, Role::kValue, "bytes");
  }
};
ROW
awk -v row="$scratch/row.txt" '
  /^using Operation = / { while ((getline line < row) > 0) print line; print ""; in_list = 1 }
  in_list && />;/ { sub(/>;/, ", Novel>;"); in_list = 0 }
  /^enum class Opcode/ { in_codes = 1 }
  in_codes && /^};/ { print "  kNovel,"; in_codes = 0 }
  { print }' "$table" >"$scratch/$table"

failed=0
# compiles FILE: whether it does, as a copy, so that the changed header is found first; else its errors are in $output.
compiles() {
  [[ $1 == "$interpreter" && -e $scratch/$1 ]] || cp "$1" "$scratch/$1"
  output=$("${compile[@]}" -std=c++23 -Werror=switch -fsyntax-only -I"$scratch" -I. "$scratch/$1" 2>&1)
}
for file in runtime/executable/{instructions,code,liveness,verify_instruction}.cpp runtime/vm/words.cpp compiler/lower/listing.cpp; do
  compiles "$file" && continue
  printf '%s does not compile with a new instruction:\n%s\n' "$file" "$output"
  failed=1
done
if compiles "$interpreter"; then
  echo "$interpreter compiles without a case for the new instruction"
  failed=1
elif [[ $output != *kNovel* && $output != *Novel* ]]; then
  printf '%s fails for another reason:\n%s\n' "$interpreter" "$output"
  failed=1
fi
sed -e 's|^    case Opcode::kMove: .*|&\n    case Opcode::kNovel: at.next = op + 8 + count_of(op); return true;|' "$interpreter" >"$scratch/$interpreter"
if ! compiles "$interpreter"; then
  printf '%s does not compile with a case for the new instruction:\n%s\n' "$interpreter" "$output"
  failed=1
fi
exit $failed
