#!/usr/bin/env bash
# The commands' help, wrong usage, and what they say where packages are missing and the network is away.
set -euo pipefail

# shellcheck source=tests/expect.sh
source tests/expect.sh

for script in test demo mutate; do
  [ -e "scripts/$script" ] || continue
  expect 0 "Usage: scripts/$script" "scripts/$script" --help
  expect 2 "unknown argument --nonsense" "scripts/$script" --nonsense
done
expect 2 "--tier is quick or full, not 'slow'" scripts/test --tier slow

# A machine without any package: dpkg-query lists none, apt-get reaches no server, and the user is root or is not.
stubs=$(mktemp -d)
trap 'rm -rf "$stubs"' EXIT
stub() { printf '#!/bin/bash\n%s\n' "$2" >"$stubs/$1"; chmod +x "$stubs/$1"; }
copy=$stubs/clone
mkdir "$copy"
cp -r scripts "$copy"
stub dpkg-query 'exit 0'
stub apt-get 'echo "E: Failed to fetch"; exit 100'
stub id 'echo 0'
expect 1 "the package lists could not be fetched" env PATH="$stubs:$PATH" "$copy/scripts/test"
# shellcheck disable=SC2016 # $1 is the stub's
stub apt-get '[ "$1" = update ] || { echo "E: Unable to fetch some archives"; exit 100; }'
expect 1 "packages could not be installed" env PATH="$stubs:$PATH" "$copy/scripts/test"
stub id 'echo 1000'
for tool in bash dirname cat awk grep sed printf xargs mkdir tail cut sleep; do ln -s "$(command -v "$tool")" "$stubs"; done
expect 1 "neither root nor sudo is at hand" env PATH="$stubs" "$copy/scripts/test"
rm "$stubs/dpkg-query"
expect 1 "this is no Debian" env PATH="$stubs" "$copy/scripts/test"
