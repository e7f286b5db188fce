// generate_rtl CONFIG DIRECTORY: the RTL of one configuration, for the models that tests Verilate.
#include <cstdio>

#include "hw/generator/generator.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto config = tenon::spec::load_config(argv[1]);
  if (!config) return std::fprintf(stderr, "%s\n", config.error().what.c_str()), 1;
  const auto files = tenon::generator::generate(*config, argv[2]);
  if (!files) return std::fprintf(stderr, "%s\n", files.error().what.c_str()), 1;
  return 0;
}
