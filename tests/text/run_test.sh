#!/usr/bin/env bash
# The runner of text tests finds what it is for: run_test.sh TENON.
set -euo pipefail
tenon=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# finds TEXT: the runner fails on a test with the directives of standard input, and says TEXT.
finds() {
  { printf '#[version = "1"]\n'; cat; printf 'def @main(%%x: Tensor[(3,), f32]) -> Tensor[(3,), f32] { relu(%%x) }\n'; } \
    >"$scratch/t.tn"
  if output=$(perl tests/text/run.pl "$tenon" "$scratch"); then
    printf 'passes, but should say: %s\n' "$1"
    exit 1
  fi
  grep -qF "$1" <<<"$output" || { printf 'should say: %s\nsays:\n%s\n' "$1" "$output"; exit 1; }
}

finds 'is not in the output' <<<'// RUN: tenon opt %s
// CHECK: tanh'
finds 'is not in the output' <<<'// RUN: tenon opt %s
// CHECK: def @main
// CHECK-NEXT: }'
finds 'CHECK-NOT: relu' <<<'// RUN: tenon opt %s
// CHECK: def @main
// CHECK-NOT: relu'
finds 'should fail, its exit status is 0' <<<'// RUN: not tenon opt %s'
finds 'should succeed, its exit status is 2' <<<'// RUN: tenon opt %s --no-such-option
// CHECK: error'
finds 'it cannot fail' <<<'// RUN: tenon opt %s'
finds 'CHECK comes before the first RUN' <<<'// CHECK: relu'
finds 'has no RUN line' <<<'// A comment.'
