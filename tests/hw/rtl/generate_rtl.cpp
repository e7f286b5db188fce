// generate_rtl CONFIG DIRECTORY: the RTL of one configuration, for the models that tests Verilate. CONFIG is a name, a
// file, or random:SEED for a random one within all limits.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "hw/generator/generator.h"
#include "tests/sim/random_config.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string_view name = argv[1], random = "random:";
  const auto config =
      name.starts_with(random)
          ? tenon::sim::testing::random_config(std::strtoull(argv[1] + random.size(), nullptr, 10), int64_t{1} << 40)
          : tenon::spec::load_config(name);
  if (!config) return std::fprintf(stderr, "%s\n", config.error().what.c_str()), 1;
  const auto files = tenon::generator::generate(*config, argv[2]);
  if (!files) return std::fprintf(stderr, "%s\n", files.error().what.c_str()), 1;
  return 0;
}
