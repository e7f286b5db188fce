#!/usr/bin/env bash
# Every C++ file is as .clang-format wants it.
set -euo pipefail
git ls-files '*.h' '*.cpp' | xargs -r clang-format --dry-run -Werror ||
  { echo 'repair: git ls-files "*.h" "*.cpp" | xargs clang-format -i'; exit 1; }
