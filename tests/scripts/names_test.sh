#!/usr/bin/env bash
# No code outside of its own folder compares an operator, a device or a target by name: facts about them stand in the
# tables of operators and targets. `names_test.sh --self-test` shows that a comparison is found.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# FILE:TEXT of the lines that may: the host is no target, so its name is reserved and read by two files; the others
# compare an attribute, and "all", which happens to be an operator too.
allowed='compiler/targets/targets.cpp:if (record.name == "cpu" ||
compiler/cli/model_options.cpp:if (!record && name != "cpu")
compiler/cli/model_options.cpp:if (targets.back() != "cpu")
compiler/cli/model_options.cpp:seen.contains("cpu")
compiler/fuzz/operands.cpp:if (name == "max" ||
compiler/fuzz/operands.cpp:if (name == "min" ||
compiler/passes/pass.cpp:if (name != "all" &&
compiler/cli/bench/vm_models.cpp:name != its_name && name != "all"'
# What is about operators, or about one target.
own='^(compiler/ir/operators|runtime/reference|compiler/backends/[a-z]+|runtime/device/[a-z]+|runtime/library)/'

operators=$(grep -hoE '\.name = "[a-z0-9_]+"' compiler/ir/operators/*.cpp | grep -oE '"[^"]+"' | tr -d '"' | sort -u | paste -sd'|')
targets=cpu$(find compiler/backends -mindepth 2 -maxdepth 2 -name CMakeLists.txt | sed -E 's|compiler/backends/(.*)/.*|\|\1|' | tr -d '\n')
if [ -z "$operators" ] || [ "$targets" = cpu ]; then echo "no operators or targets were found"; exit 1; fi

# find_names: the lines "FILE:LINE:TEXT" of standard input with a comparison.
find_names() {
  grep -E -e "(name|op|operation|kernel|callee)(\(\)|\([a-z_]*\))?\)? *[!=]= *\"($operators)\"" \
    -e "\"($operators)\" *[!=]= *[a-z_.>-]*(name|op|operation|kernel|callee)\b" -e "[.>]is\(\"($operators)\"" \
    -e "[!=]= *\"($targets)[:\"]" -e "\"($targets)\" *[!=]=" -e "(starts_with|contains)\(\"($targets)[:\"]"
}

if [ "${1-}" = --self-test ]; then
  for line in 'a.cpp:1:if (op->name == "conv2d")' 'a.cpp:1:if (target == "accel")' 'a.cpp:1:if (device != "cuda:emulated")' \
    'a.cpp:1:if ("relu" == call.op)' 'a.cpp:1:if (name.starts_with("accel:"))' 'a.cpp:1:if (apply->is("dense"))' \
    'a.cpp:1:return node.device == ("x") || "cpu" == node.device;'; do
    find_names <<<"$line" >/dev/null || { echo "not found: $line"; exit 1; }
  done
  for line in 'a.cpp:1:if (direction == "reverse")' 'a.cpp:1:record.name = "accel"' 'a.cpp:1:if (op->is(ops::kConv2d))'; do
    if find_names <<<"$line"; then echo "found: $line"; exit 1; fi
  done
  exit 0
fi

# not_allowed: the lines "FILE:LINE:TEXT" of standard input that are not allowed, and those of the allowed ones that do
# not occur.
not_allowed() {
  awk 'NR == FNR { file = $0; sub(/:.*/, "", file); allowed[$0] = file; text[$0] = substr($0, length(file) + 2); next }
    { file = $0; sub(/:.*/, "", file); found = 0
      for (one in allowed) if (allowed[one] == file && index($0, text[one])) found = occurs[one] = 1
      if (!found) print }
    END { for (one in allowed) if (!(one in occurs)) print "no such line, take it from the list: " one }' <(echo "$allowed") -
}

wrong=$(grep -rn --include='*.h' --include='*.cpp' . support hw sim driver runtime compiler | grep -vE -e "$own" | find_names | not_allowed)
if [ -n "$wrong" ]; then
  echo "$wrong"
  echo "these lines compare an operator, a device or a target by name: ask its record (compiler/ir/operator.h, compiler/partition/target_record.h)"
  exit 1
fi
