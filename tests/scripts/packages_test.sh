#!/usr/bin/env bash
# Every package has a reason, stands once, and its section is sorted, so that a newcomer finds it.
set -euo pipefail
file=scripts/packages.txt
if grep -vE '^(#|$|\[(full|test|build)\]$|[a-z0-9][a-z0-9+.-]+ +# .{8,}$)' "$file"; then
  echo "the lines above are no 'package  # reason'"
  exit 1
fi
twice=$(awk '/^[a-z0-9]/ {print $1}' "$file" | sort | uniq -d)
[ -z "$twice" ] || { echo "twice: $twice"; exit 1; }
for section in full test build; do
  awk -v want="[$section]" '/^\[/ {on = $1 == want} on && /^[a-z0-9]/ {print $1}' "$file" | LC_ALL=C sort -c ||
    { echo "section $section is not sorted"; exit 1; }
done
