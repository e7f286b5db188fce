#!/usr/bin/env bash
# engine.sh LIBRARY DIRECTORY: an eighth engine is one row in hw/spec: with its enumerators and names added to a copy, and
# it absent as DW is, the RTL of two configurations passes lint and elaborates. LIBRARY: support's.
set -euo pipefail
support=$1 scratch=$2
source=$PWD

rm -rf "$scratch"
mkdir -p "$scratch/hw"
cp -r hw/spec "$scratch/hw"
sed -i 's/kRq, kSt };/kRq, kSt, kNew };/; s/kRq, kSt, kNone };/kRq, kSt, kNew, kNone };/
        s/"rq", "st"});/"rq", "st", "new"});/; s/"rq", "st", "none"});/"rq", "st", "new", "none"});/
        s/kAbsentEngines = bit(Engine::kDw);/kAbsentEngines = bit(Engine::kDw) | bit(Engine::kNew);/' "$scratch/hw/spec/isa.h"
[ "$(diff hw/spec/isa.h "$scratch/hw/spec/isa.h" | grep -c '^>')" = 5 ] || { echo 'isa.h has no row of an engine to add'; exit 1; }
cat >"$scratch/generate.cpp" <<END
#include "hw/generator/generator.h"
$(cd "$scratch" && printf '#include "%s"\n' hw/spec/*.cpp)
#include "hw/generator/package.cpp"
#include "hw/generator/ports.cpp"
#include "hw/generator/reference.cpp"
int main(int, char** arguments) {
  const auto config = tenon::spec::load_config(arguments[1]);
  return config && tenon::generator::generate(*config, arguments[2]) ? 0 : 1;
}
END
c++ -std=c++23 -O0 -w -I "$scratch" -I "$source" -DTENON_SOURCE_DIR="\"$source\"" -DTENON_DATA_BESIDE_BIN='""' \
  -DTENON_INSTALLED_DATA='""' -o "$scratch/generate" "$scratch/generate.cpp" "$support" -lfmt
for config in tiny nano; do
  sh tests/hw/rtl/lint.sh "$scratch/generate" "$config" "$scratch/$config"
  sh tests/hw/rtl/elaborate.sh "$scratch/generate" "$config" "$scratch/$config"
  grep -q 'NUM_ENGINES = 8;' "$scratch/$config/tenon_pkg.sv"
done
