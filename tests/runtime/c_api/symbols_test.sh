#!/usr/bin/env bash
# A library of the C interface exports the functions that its symbols.txt lists, and nothing else. Arguments: the library, the list.
set -euo pipefail
export LC_ALL=C.UTF-8
diff <(nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | LC_ALL=C sort) <(grep -v '^#' "$2") || {
  echo "the exported symbols differ from $2: new functions are added there; what stands there may not be removed" >&2
  exit 1
}
