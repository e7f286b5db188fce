#!/usr/bin/env bash
# Compiles the transport of driver/README.md from the page and launches on it. Arguments: tenon, directory of the
# build's libraries.
set -euo pipefail
# shellcheck source=tests/expect.sh
source tests/expect.sh
tenon=$1 libraries=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
awk '/```cpp/ {on = 1; next} /```/ {on = 0} on' driver/README.md >"$scratch/example.cpp"
grep -q "Transport tenon::driver::transport()" "$scratch/example.cpp"
c++ -std=c++23 -Wall -Werror -shared -fPIC -I. "$scratch/example.cpp" -o "$scratch/tenon-driver-example.so" \
  "$libraries"/libtenon_{driver,behavioral,timing,spec,support}.a -lfmt
export TENON_DRIVER_PATH=$scratch
expect 0 "an example: example:CONFIG" "$tenon" devices
expect 0 "median" "$tenon" bench launch --launches 10 --device "example:tiny?race=off"
expect 2 "there is no option colour" "$tenon" bench launch --launches 10 --device "example:tiny?colour=red"
