#!/usr/bin/env bash
# Holds the map of HACKING.md against the tree: every #include between folders is one that the map allows, the map has
# no cycle, and each folder with C++ files stands in it. `map_test.sh --self-test` shows that a violation is found.
set -euo pipefail

# check MAP: reads "FILE:#include "PATH"" lines from standard input and the table from the file MAP.
check() {
  awk -v map="$1" '
    function row_of(folder) {  # the folder itself, or the nearest folder above it that has a row
      for (; folder != ""; sub(/\/?[^\/]*$/, "", folder)) if (folder in rows) return folder
      return ""
    }
    function close_over(folder, from,   next_folders, i, n) {  # sets allowed[from, X] for all X that are reachable from `from`
      n = split(rows[folder], next_folders, " ")
      for (i = 1; i <= n; ++i) {
        if (next_folders[i] == from) { printf "the map has a cycle through %s\n", from; bad = 1; return }
        if ((from, next_folders[i]) in allowed) continue
        allowed[from, next_folders[i]] = 1
        close_over(next_folders[i], from)
      }
    }
    BEGIN {
      while ((getline line < map) > 0) {
        if (line !~ /^\| / || split(line, cells, "|") < 5) continue
        name = cells[2]; list = cells[4]
        gsub(/\[|\]|\([^)]*\)| /, "", name); gsub(/,/, " ", list)
        if (name ~ /^(support|hw|sim|driver|runtime|compiler)(\/|$)/) rows[name] = list
      }
      for (name in rows) {
        n = split(rows[name], folders, " ")
        for (i = 1; i <= n; ++i) if (!(folders[i] in rows)) { printf "the row of %s names %s, which has no row\n", name, folders[i]; bad = 1 }
      }
      for (name in rows) close_over(name, name)
    }
    {
      file = $0; sub(/:.*/, "", file)
      path = $0; sub(/^[^"]*"/, "", path); sub(/".*/, "", path)
      if (path !~ /\//) next  # generated beside its source
      sub(/\/[^\/]*$/, "", path)
      folder = file; sub(/\/[^\/]*$/, "", folder)
      from = row_of(folder); to = row_of(path)
      if (from == "") { printf "%s: the folder %s is not in the map\n", file, folder; bad = 1 }
      else if (to == "") { if (path ~ /^(support|hw|sim|driver|runtime|compiler)(\/|$)/) { printf "%s includes %s, which is not in the map\n", file, path; bad = 1 } }
      else if (from != to && !((from, to) in allowed)) { printf "%s includes %s, which the map does not allow to %s\n", file, path, from; bad = 1 }
      ++count
    }
    END {
      if (count == 0) { print "no includes were found"; bad = 1 }
      exit bad
    }'
}

if [ "${1-}" = --self-test ]; then
  map=$(mktemp)
  trap 'rm -f "$map"' EXIT
  printf '| [hw/spec](hw/spec) | facts | |\n| sim | simulators | hw/spec |\n| driver | devices | sim |\n' >"$map"
  check "$map" <<<'driver/open.cpp:#include "hw/spec/isa.h"' || { echo "an include through another folder was refused"; exit 1; }
  for line in 'hw/spec/isa.cpp:#include "sim/simulator.h"' 'runtime/tensor.cpp:#include "hw/spec/isa.h"' \
      'sim/a.cpp:#include "runtime/tensor.h"' ''; do
    if check "$map" <<<"$line" >/dev/null; then echo "accepted: $line"; exit 1; fi
  done
  printf '| hw/spec | facts | driver |\n' >>"$map"
  if check "$map" <<<'driver/open.cpp:#include "sim/simulator.h"' >/dev/null; then echo "a cycle was accepted"; exit 1; fi
  exit 0
fi
git ls-files -co --exclude-standard 'support/*' 'hw/*' 'sim/*' 'driver/*' 'runtime/*' 'compiler/*' | grep -E '\.(cpp|h|in)$' | while read -r file; do
  if [ -e "$file" ]; then printf '%s\n' "$file"; fi
done | xargs grep -H '^#include "' | check HACKING.md
