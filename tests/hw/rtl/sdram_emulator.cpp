// sdram_emulator LINK: emulates a board with an SDRAM for clients that open serial:LINK: the Verilated design and the
// model of its chip, at the pins of its serial line. Runs until it is killed.
#include <cstdio>
#include <memory>

#include "Vsdram_board.h"
#include "driver/serial/emulator.h"
#include "tests/hw/rtl/pins.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

namespace tenon::driver {
namespace {

constexpr int kClocksPerBit = 4;  // generate_rtl's

int play(const char* link) {
  auto emulator = serial::Emulator::create(
      std::make_unique<Pins>(std::make_unique<VerilatedBoard<Vsdram_board>>(), kClocksPerBit), serial::Noise{}, link);
  if (!emulator) return std::fprintf(stderr, "%s\n", emulator.error().str().c_str()), 1;
  std::printf("ready: serial:%s\n", link);
  std::fflush(stdout);
  const Status status = (*emulator)->run();
  return std::fprintf(stderr, "%s\n", status.error().str().c_str()), 1;
}

}  // namespace
}  // namespace tenon::driver

int main(int argc, char** argv) { return argc == 2 ? tenon::driver::play(argv[1]) : 2; }
