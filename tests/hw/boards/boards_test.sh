#!/usr/bin/env bash
# scripts/boards with programs in place of synthesis, place and route: its table, what it builds again, what it goes on
# after. Argument: tenon.
# shellcheck disable=SC2016  # the programs below are scripts in single quotes
set -euo pipefail
build=$(realpath "$(dirname "$1")/..")
# shellcheck source=tests/expect.sh
source tests/expect.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TENON_CACHE=$scratch/cache RECORD=$scratch/record TENON_FPGA_TOOLS=$scratch/tools
mkdir -p "$TENON_CACHE"
# shellcheck source=tests/hw/boards/tools.sh
source tests/hw/boards/tools.sh
fail() { echo "$1"; exit 1; }

expect 0 "Usage: scripts/boards" scripts/boards --help
expect 2 "unknown option --nonsense" scripts/boards --nonsense
expect 2 "--table requires a file" scripts/boards --table
expect 1 "$scratch/bin/tenon is not there" scripts/boards --build "$scratch"
boards() { scripts/boards --build "$build" --output "$scratch/out" --table "$scratch/table.md" "$@"; }
echo nothing >"$scratch/table.md"
expect 1 "has no marker comments for the table" boards
printf 'before\n<!-- boards -->\n| ulx3s-25f | lite | an older row |\n| moon | row of no board |\n<!-- end of boards -->\nafter\n' >"$scratch/table.md"
expect 2 "no board with open tools is called u50" boards u50

# A board that is too small; those after it are built nevertheless, and the row of a board that is not asked for stays.
mv "$scratch/tools/nextpnr-ice40" "$scratch/tools/routes"
program "$scratch/tools/nextpnr-ice40" <<'END'
case $* in *--up5k*) echo "Info: ICESTORM_LC: 7027/ 5280 133%"; exit 1 ;; esac
exec "${0%/*}/routes" "$@"
END
expect 1 "not built: icebreaker" boards icebreaker hx8k
line() { grep -qxF -- "$1" "$scratch/table.md" || { cat "$scratch/table.md"; fail "the table has no line: $1"; }; }
line before
line "| icebreaker | nano | 1x2x2 | does not fit: ICESTORM_LC 7027 required, 5280 available |||||"
line "| hx8k | nano | 1x2x2 | 0 | with them | 0 | 0 | 12 | 30.5 |"
line "| ulx3s-25f | lite | an older row |"
line after
! grep -q moon "$scratch/table.md" || fail "the table has a row of a board that does not exist"

# What is finished is not built again, unless its sources change or the tools failed.
: >"$RECORD"
expect 1 "hx8k: unchanged" boards icebreaker hx8k
! grep -q "nextpnr-ice40 --[uh]" "$RECORD" || fail "a finished board was built again"
echo older >"$scratch/out/hx8k/sources"
expect 0 "30.5 MHz possible" boards hx8k
mv "$scratch/tools/nextpnr-ecp5" "$scratch/tools/routes-ecp5"
program "$scratch/tools/nextpnr-ecp5" <<<'[ "$1" = --version ] || exit 1; echo nextpnr 0.2'
expect 1 "not built: ulx3s-25f" boards ulx3s-25f
line "| ulx3s-25f | lite | 1x4x4 | nextpnr ends with status 1 |||||"
mv "$scratch/tools/routes-ecp5" "$scratch/tools/nextpnr-ecp5"
sed -i 's/"LUT": {"used": 5/"TRELLIS_COMB": {"used": 5/' "$scratch/tools/nextpnr-ecp5"
expect 0 "has the new table" boards ulx3s-25f
line "| ulx3s-25f | lite | 1x4x4 | 5 of 9 | 0 | 0 | 0 | 25 | 30.5 |"
