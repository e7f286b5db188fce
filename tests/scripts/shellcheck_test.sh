#!/usr/bin/env bash
# Every shell script, named so by its ending or by its first line, passes shellcheck.
set -euo pipefail
git ls-files '*.sh' | xargs -r shellcheck -x
git grep -lE '^#!.*[/ ](ba)?sh$' -- ':!*.sh' | xargs -r shellcheck -x
