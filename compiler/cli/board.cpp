// tenon board list | build | flash: bitstreams for boards.
#include <fmt/format.h>

#include "compiler/cli/command.h"
#include "driver/boards/build.h"
#include "driver/boards/flash.h"
#include "hw/generator/boards.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

namespace boards = driver::boards;
using generator::Board;

std::string directory_of(const std::string& option, const std::string& board) {
  return option.empty() ? "build/boards/" + board : option;
}

struct BoardList {
  bool json = false;

  Status run() const {
    TENON_TRY_ASSIGN(all, generator::boards());
    Json out;
    out.begin_array();
    if (!json) print_stdout("{:<14}{:<8}{:>10}  {:<12}{}\n", "name", "tools", "clock", "config", "board");
    for (const Board& b : *all) {
      out.begin_object().field("name", b.name).field("tools", name(b.flow)).field("clock_mhz", b.clock_mhz);
      out.field("config", b.config).field("board", b.description).field("device", b.device).end();
      if (json) continue;
      print_stdout("{:<14}{:<8}{:>6} MHz  {:<12}{}\n", b.name, name(b.flow), b.clock_mhz, b.config, b.description);
    }
    if (json) print_stdout("{}", out.end().str());
    return {};
  }
};

void print(const boards::Bitstream& bitstream, const std::string& directory) {
  print_stdout("{}/{}: configuration {}, hash {:016x}\n", directory, bitstream.file, bitstream.config, bitstream.hash);
  for (const auto& [tool, version] : bitstream.tools) print_stdout("  {}: {}\n", tool, version);
  for (const auto& [kind, count] : bitstream.cells) print_stdout("  {}: {} of {}\n", kind, count.first, count.second);
  print_stdout("  clock: {:.1f} MHz required, {:.1f} MHz possible{}\n", bitstream.requested_mhz, bitstream.achieved_mhz,
               bitstream.timing_met() ? "" : ": MISSED");
}

struct Build {
  std::string board, config, output;

  Status run() const {
    TENON_TRY_ASSIGN(found, generator::find_board(board));
    TENON_TRY_ASSIGN(loaded, spec::load_config(config.empty() ? found->config : config));
    const std::string directory = directory_of(output, board);
    const auto progress = [](const std::string& line) { print_stderr("{}\n", line); };
    if (found->open()) {
      TENON_TRY_ASSIGN(bitstream, boards::build(*loaded, *found, directory, progress));
      print(*bitstream, directory);
      return {};
    }
    TENON_TRY_ASSIGN(bitstream, boards::build_by_vendor(*loaded, *found, directory, progress));
    if (*bitstream) print(**bitstream, directory);
    else
      print_stdout("the project is in {}; the vendor's tools are not in PATH: run {}/build.sh where they are\n",
                   directory, directory);
    return {};
  }
};

struct Flash {
  std::string board, output;
  boards::FlashOptions options;

  Status run() const {
    TENON_TRY_ASSIGN(found, generator::find_board(board));
    const std::string directory = directory_of(output, board);
    TENON_TRY_ASSIGN(bitstream, boards::load_bitstream(directory, board));
    TENON_TRY_ASSIGN(device, boards::flash(*bitstream, *found, directory, options));
    print_stdout("{} runs {} (hash {:016x}): {}\n", board, bitstream->config, bitstream->hash, *device);
    return {};
  }
};

}  // namespace

Action board_list(Options& options) {
  auto command = std::make_shared<BoardList>();
  options.flag(command->json, "--json", "print JSON");
  return [command] { return command->run(); };
}

Action board_build(Options& options) {
  auto command = std::make_shared<Build>();
  options.argument(command->board, "BOARD", "a board's name");
  options.option(command->config, "-c,--config", "NAME", "a configuration; default: the board's own");
  options.option(command->output, "-o,--output", "DIR", "directory of the build; default: build/boards/BOARD");
  options.footer(
      "Example: tenon board build ulx3s-85f -o build/ulx3s\nTENON_BOARD_PATH names directories with more boards.");
  return [command] { return command->run(); };
}

Action board_flash(Options& options) {
  auto command = std::make_shared<Flash>();
  options.argument(command->board, "BOARD", "a board's name");
  options.option(command->output, "-o,--output", "DIR", "directory of the build; default: build/boards/BOARD");
  options.option(command->options.port, "--port", "PORT", "of the board on this machine; default: the board's own");
  options.option(command->options.device, "--device", "URI",
                 "by which the accelerator is identified, unless it is the board's");
  options.flag(command->options.force, "--force", "also a bitstream that misses its clock");
  options.footer("Example: tenon board flash ulx3s-85f -o build/ulx3s --port /dev/ttyUSB0");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
