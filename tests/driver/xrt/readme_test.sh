#!/usr/bin/env bash
# Runs the commands of driver/xrt/README.md and of the boards' recipes: those in blocks that open with ```sh; a block
# ```sh vendor requires the vendor's programs or a board. Arguments: tenon, its libraries.
set -euo pipefail
PATH=$(dirname "$(realpath "$1")"):$PATH
export LIBRARIES=$2
root=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for page in driver/xrt/README.md hw/boards/*/README.md; do
  unknown=$(grep '^```sh' "$page" | grep -vxE '```sh( vendor)?' || true)
  [ -z "$unknown" ] || { echo "$page: unknown kind of block: $unknown"; exit 1; }
  commands=$(awk '/^```/ {on = !on && $0 == "```sh"; next} on' "$page")
  [ -n "$commands" ] || { echo "$page has no commands"; exit 1; }
  printf '=== %s\n' "$page"
  (mkdir -p "$scratch/$page" && cd "$scratch/$page" && ln -s "$root/tests" tests && mkdir build && bash -euo pipefail -x -c "$commands")
done
for page in driver/xrt/README.md hw/boards/README.md hw/boards/*/README.md; do
  grep -oE '\]\([^)#]+\)' "$page" | tr -d '()]' | while read -r link; do
    [ -e "$(dirname "$page")/$link" ] || { echo "$page: a link leads to $link, which does not exist"; exit 1; }
  done
done
