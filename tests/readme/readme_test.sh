#!/usr/bin/env bash
# Runs the commands of the pages that a newcomer reads: every command shown works, and every link leads somewhere.
# Argument: quick or slow.
#
# A block that begins with ```sh is run by every call, one with ```sh slow only by "slow". One with ```sh fresh takes a
# fresh machine: scripts/prove-fresh runs it there. Any other word after ```sh is an error, as is a file without blocks.
set -euo pipefail
tier=$1
found=0

# blocks KIND FILE: the lines of the blocks whose opening line is ```KIND.
blocks() { awk -v open="\`\`\`$1" '/^```/ {on = !on && $0 == open; next} on' "$2"; }

for page in README.md HACKING.md CONTRIBUTING.md CHANGELOG.md tests/examples/README.md hw/configs/README.md \
    compiler/bench/README.md compiler/pipeline/README.md; do
  unknown=$(grep '^```sh' "$page" | grep -vxE '```sh( slow| fresh)?' || true)
  [ -z "$unknown" ] || { echo "$page: unknown kind of block: $unknown"; exit 1; }
  commands=$(blocks sh "$page")
  [ "$tier" = quick ] || commands+=$'\n'$(blocks "sh slow" "$page")
  printf '=== %s\n' "$page"
  found=$((found + $(grep -c . <<<"$commands" || true)))
  bash -euo pipefail -x -c "$commands"
  # A path that the page names must be there.
  { grep -oE '\]\([^)#% ]+\)' "$page" || true; } | tr -d '()]' | while read -r link; do
    case $link in http*) continue ;; esac
    [ -e "$(dirname "$page")/$link" ] || { echo "$page: a link leads to $link, which is not there"; exit 1; }
  done
done
[ "$found" -gt 10 ] || { echo "only $found lines of commands were found"; exit 1; }
