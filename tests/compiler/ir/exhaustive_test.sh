#!/usr/bin/env bash
# A new kind of value does not compile until every visit handles it: with one more alternative in Value, each file that
# visits values is refused. Arguments: the C++ compiler and its options.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/compiler/ir"
sed -e 's/^using Value = std::variant</struct Novel {};\nusing Value = std::variant<Novel, /' compiler/ir/module.h \
  >"$scratch/compiler/ir/module.h"
grep -q 'variant<Novel' "$scratch/compiler/ir/module.h"
failed=0
for file in effects.cpp equal.cpp infer.cpp interpreter.cpp text/function_printer.cpp; do
  # The file as a copy, so that the changed header is found first.
  mkdir -p "$scratch/$(dirname "compiler/ir/$file")"
  cp "compiler/ir/$file" "$scratch/compiler/ir/$file"
  if output=$("$@" -std=c++23 -fsyntax-only -I"$scratch" -I. "$scratch/compiler/ir/$file" 2>&1); then
    echo "compiler/ir/$file takes a kind of value that it does not know"
    failed=1
  elif [[ $output != *Novel* ]]; then
    printf 'compiler/ir/%s fails for another reason:\n%s\n' "$file" "$output"
    failed=1
  fi
done
exit $failed
