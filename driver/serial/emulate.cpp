// tenon-serial: emulates a board with a serial line for serial: devices, at a pseudo-terminal; runs until it is killed.
#include <fmt/format.h>

#include <bit>
#include <cstdio>

#include "driver/serial/emulator.h"
#include "driver/uri.h"
#include "support/output.h"
#include "support/try.h"

namespace tenon::driver::serial {
namespace {

constexpr char kUsage[] =
    "Usage: tenon-serial 'LINK[?config=default&memory=64M&noise=PPM&seed=N]'\n\n"
    "Emulates a board with a serial line, for clients that open serial:LINK. noise=PPM: of a million bytes, so many "
    "are\n"
    "lost, as many flipped and as many duplicated, in both directions.\n";

Status emulate(std::string_view text) {
  TENON_TRY_ASSIGN(options, Options::parse(text, text));
  const std::string config_name = options->text("config", "default");
  const uint64_t memory =
      options->bytes("memory", 64 << 20, spec::serial::kSmallestMemory, spec::serial::kLargestMemory);
  const auto noise = static_cast<uint32_t>(options->integer("noise", 0, 0, 100'000));
  const uint64_t seed = options->integer("seed", 1, 0, UINT64_MAX);
  TENON_TRY(options->finish());
  if (options->name().empty()) {
    return error("requires a path, at which the serial port appears", {}, "tenon-serial /tmp/tty", Fault::kUsage);
  }
  if (!std::has_single_bit(memory)) {
    return error(fmt::format("the memory has {} bytes, must be a power of two", memory), {}, {}, Fault::kUsage);
  }
  TENON_TRY_ASSIGN(config, spec::load_config(config_name));
  TENON_TRY_ASSIGN(bridge, make_bridge(*config, memory));
  const Noise faults{.lost = noise, .flipped = noise, .duplicated = noise, .seed = seed};
  TENON_TRY_ASSIGN(emulator, Emulator::create(std::move(*bridge), faults, options->name()));
  print_stdout("ready: serial:{}\n", options->name());
  std::fflush(stdout);
  return (*emulator)->run();
}

}  // namespace
}  // namespace tenon::driver::serial

int main(int argc, char** argv) {
  const std::string argument = argc == 2 ? argv[1] : "--help";
  if (argument == "--help" || argument == "-h") {
    tenon::print_stdout("{}", tenon::driver::serial::kUsage);
    return argc == 2 ? 0 : static_cast<int>(tenon::Fault::kUsage);
  }
  return tenon::exit_code_of(tenon::driver::serial::emulate(argument));
}
