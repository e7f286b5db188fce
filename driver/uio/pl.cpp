// tenon-pl: emulates a Zynq board for uio: devices, in a directory; runs until it is killed.
#include <fmt/format.h>

#include <cstdio>

#include "driver/uio/emulator.h"
#include "driver/uri.h"
#include "support/output.h"
#include "support/pages.h"
#include "support/try.h"

namespace tenon::driver::uio {
namespace {

constexpr char kUsage[] =
    "Usage: tenon-pl 'DIR[?config=default&memory=64M&model=rtl&clock=own&empty=on]'\n\n"
    "Emulates a Zynq board below DIR, for clients that open uio:?root=DIR. \"Bitstreams\" in DIR/lib/firmware are the\n"
    "JSON of configurations. clock=own: the accelerator runs freely, not only while its client waits.\n";

Status play(std::string_view text) {
  TENON_TRY_ASSIGN(options, Options::parse(text, text));
  EmulatorOptions read;
  read.root = options->name();
  const std::string config = options->text("config", "default"), model = options->text("model", "behavioral");
  read.memory_bytes = options->bytes("memory", read.memory_bytes, kPageBytes, uint64_t{2} << 30);
  const std::string clock = options->text("clock", "client");
  read.empty = options->flag("empty", false);
  TENON_TRY(options->finish());
  if (read.root.empty() || read.root.lexically_normal() == "/") {
    return error("requires a directory other than /, which has this machine's own files", {}, "tenon-pl /tmp/board",
                 Fault::kUsage);
  }
  if (model != "behavioral" && model != "rtl") {
    return error(fmt::format("the model is \"{}\", must be behavioral or rtl", model), {}, {}, Fault::kUsage);
  }
  if (clock != "client" && clock != "own") {
    return error(fmt::format("the clock is \"{}\", must be client or own", clock), {}, {}, Fault::kUsage);
  }
  if (read.memory_bytes % kPageBytes != 0) {
    return error(fmt::format("the memory has {} bytes, must be a multiple of {}", read.memory_bytes, kPageBytes), {},
                 {}, Fault::kUsage);
  }
  read.rtl = model == "rtl";
  read.own_clock = clock == "own";
  TENON_TRY_ASSIGN(loaded, spec::load_config(config));
  read.config = std::move(*loaded);
  TENON_TRY_ASSIGN(emulator, Emulator::create(std::move(read)));
  print_stdout("ready: uio:?root={}\n", options->name());
  std::fflush(stdout);
  return (*emulator)->run();
}

}  // namespace
}  // namespace tenon::driver::uio

int main(int argc, char** argv) {
  const std::string argument = argc == 2 ? argv[1] : "--help";
  if (argument == "--help" || argument == "-h") {
    tenon::print_stdout("{}", tenon::driver::uio::kUsage);
    return argc == 2 ? 0 : static_cast<int>(tenon::Fault::kUsage);
  }
  return tenon::exit_code_of(tenon::driver::uio::play(argument));
}
