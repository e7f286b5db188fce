// tenon-pl: plays a Zynq board for uio: devices, in a directory; ends when it is killed.
#include <fmt/format.h>

#include <cstdio>

#include "driver/uio/player.h"
#include "driver/uri.h"
#include "support/try.h"

namespace tenon::driver::uio {
namespace {

constexpr char kUsage[] =
    "Usage: tenon-pl 'DIR[?config=default&memory=64M&model=rtl&clock=own&empty=on]'\n\n"
    "Plays a Zynq board below DIR, for clients that open uio:?root=DIR. DIR/lib/firmware takes \"bitstreams\": the\n"
    "JSON of configurations. clock=own: the accelerator runs by itself, not only while its client waits.\n";

Status play(std::string_view text) {
  TENON_TRY_ASSIGN(options, Options::parse(text, text));
  PlayerOptions read;
  read.root = options->name();
  const std::string config = options->text("config", "default"), model = options->text("model", "behavioral");
  read.memory_bytes = options->bytes("memory", read.memory_bytes, 4096, uint64_t{2} << 30);
  const std::string clock = options->text("clock", "client");
  read.empty = options->flag("empty", false);
  TENON_TRY(options->finish());
  if (read.root.empty() || read.root.lexically_normal() == "/") {
    return error("in which directory? this machine's own files are no toy", {}, "tenon-pl /tmp/board", Fault::kUsage);
  }
  if (model != "behavioral" && model != "rtl") {
    return error(fmt::format("the model is \"{}\", must be behavioral or rtl", model), {}, {}, Fault::kUsage);
  }
  if (clock != "client" && clock != "own") {
    return error(fmt::format("the clock is \"{}\", must be client or own", clock), {}, {}, Fault::kUsage);
  }
  if (read.memory_bytes % 4096 != 0) {
    return error(fmt::format("{} bytes of memory are no multiple of 4096", read.memory_bytes), {}, {}, Fault::kUsage);
  }
  read.rtl = model == "rtl";
  read.own_clock = clock == "own";
  TENON_TRY_ASSIGN(loaded, spec::load_config(config));
  read.config = std::move(*loaded);
  TENON_TRY_ASSIGN(player, Player::create(std::move(read)));
  fmt::print("ready: uio:?root={}\n", options->name());
  std::fflush(stdout);
  return (*player)->run();
}

}  // namespace
}  // namespace tenon::driver::uio

int main(int argc, char** argv) {
  const std::string argument = argc == 2 ? argv[1] : "--help";
  if (argument == "--help" || argument == "-h") {
    fmt::print("{}", tenon::driver::uio::kUsage);
    return argc == 2 ? 0 : static_cast<int>(tenon::Fault::kUsage);
  }
  const auto status = tenon::driver::uio::play(argument);
  if (status) return 0;
  fmt::print(stderr, "{}\n", status.error().str());
  return static_cast<int>(status.error().fault);
}
