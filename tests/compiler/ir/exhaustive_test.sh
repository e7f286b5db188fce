#!/usr/bin/env bash
# A new kind of value, or of global, does not compile until every visit handles it: with an additional alternative in the
# variant, each file that visits the variant is rejected. Arguments: the C++ compiler and its options.
set -euo pipefail
compile=("$@")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/compiler/ir"
failed=0
# rejected VARIANT FILE...: checks that none of the files compiles with an additional alternative.
rejected() {
  local variant=$1 file output
  shift
  sed -e "s/^using $variant = std::variant</struct Novel {};\nusing $variant = std::variant<Novel, /" compiler/ir/module.h \
    >"$scratch/compiler/ir/module.h"
  grep -q 'variant<Novel' "$scratch/compiler/ir/module.h"
  for file in "$@"; do
    # The file as a copy, so that the changed header is found first.
    mkdir -p "$scratch/$(dirname "compiler/ir/$file")"
    cp "compiler/ir/$file" "$scratch/compiler/ir/$file"
    if output=$("${compile[@]}" -std=c++23 -fsyntax-only -I"$scratch" -I. "$scratch/compiler/ir/$file" 2>&1); then
      echo "compiler/ir/$file compiles with an unknown alternative of $variant"
      failed=1
    elif [[ $output != *Novel* ]]; then
      printf 'compiler/ir/%s fails for another reason:\n%s\n' "$file" "$output"
      failed=1
    fi
  done
}
rejected Value effects.cpp equal.cpp infer.cpp interpreter.cpp text/function_printer.cpp
rejected Global signature.cpp text/printer.cpp verifier.cpp
exit $failed
