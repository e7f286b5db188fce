#!/usr/bin/env bash
# The table of runtime/remat/README.md is what `tenon dtr-sim` prints. Argument: the program.
set -euo pipefail
tenon=$1
steps=(tests/runtime/remat/data/{resnet,transformer,unet}.log)
printed=$("$tenon" dtr-sim "${steps[@]}" --policy eq,local,msps,best | awk '/^  (eq|local|msps|best) / {$1 = $1; print}')
written=$(awk -F'|' '$3 ~ /^ (eq|local|msps|best) $/ {gsub(/ *\| */, " "); sub(/^ ?[a-z]* /, ""); sub(/ $/, ""); print}' runtime/remat/README.md)
[ "$(wc -l <<<"$printed")" = 12 ] || { echo "expected 12 rows, got: $printed"; exit 1; }
diff <(printf '%s\n' "$printed") <(printf '%s\n' "$written")
