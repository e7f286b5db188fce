// generate_rtl CONFIG DIRECTORY [serial|sdram]: the RTL of one configuration, for the models that tests Verilate.
// CONFIG is a name, a file, or random:SEED for a random one within all limits; serial: with the bridge for a serial
// line and memory on the chip, sdram: and an SDRAM.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "hw/generator/generator.h"
#include "hw/generator/serial.h"
#include "tests/sim/random_config.h"

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const std::string_view name = argv[1], random = "random:";
  const auto config =
      name.starts_with(random)
          ? tenon::sim::testing::random_config(std::strtoull(argv[1] + random.size(), nullptr, 10), int64_t{1} << 40)
          : tenon::spec::load_config(name);
  if (!config) return std::fprintf(stderr, "%s\n", config.error().what.c_str()), 1;
  const bool sdram = argc == 4 && argv[3] == std::string_view("sdram");
  const tenon::generator::SerialDesign design{
      .clocks_per_bit = 4, .memory_bytes = uint64_t{1} << (sdram ? 25 : 16), .sdram = sdram, .clock_mhz = 25};
  const auto files = argc == 3 ? tenon::generator::generate(*config, argv[2])
                               : tenon::generator::generate_serial(*config, design, argv[2]);
  if (!files) return std::fprintf(stderr, "%s\n", files.error().what.c_str()), 1;
  return 0;
}
