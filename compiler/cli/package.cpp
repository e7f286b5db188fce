// tenon hw package: a configuration as a kernel for Vitis, with the scripts that build it for a board.
#include <fmt/format.h>

#include "compiler/cli/command.h"
#include "hw/generator/vitis.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

std::string known_boards() {
  std::string names;
  const auto boards = generator::boards();
  if (!boards) return "a board with XRT";  // find_board() has the error
  for (const auto& board : *boards) {
    if (board.flow == generator::Flow::kVitis) names += fmt::format("{}{}", names.empty() ? "" : ", ", board.name);
  }
  return names;
}

struct Package {
  std::string config = "default", board, directory;
  int64_t units = 1, clock = 0;

  Status run() const {
    TENON_TRY_ASSIGN(found, generator::find_board(board));
    if (found->flow != generator::Flow::kVitis) {
      return error(fmt::format("{} is built without Vitis", board), {}, fmt::format("use tenon board build {}", board),
                   Fault::kUsage);
    }
    if (units > found->max_units) {
      return error(fmt::format("--units is {}, must be 1..{} on {}", units, found->max_units, board), {}, {},
                   Fault::kUsage);
    }
    TENON_TRY_ASSIGN(loaded, spec::load_config(config));
    const generator::VitisOptions options{static_cast<int>(units), static_cast<int>(clock)};
    TENON_TRY_ASSIGN(files, generator::package_for_vitis(*loaded, *found, options, directory));
    print_stdout("{} for {} ({}): {} files in {}\nbuild it where Vitis is: {}/build.sh\n", loaded->name, found->name,
                 found->description, files->size(), directory, directory);
    return {};
  }
};

}  // namespace

Action hw_package(Options& options) {
  auto command = std::make_shared<Package>();
  options.option(command->config, "-c,--config", "NAME", "a named configuration, or the path of a .json file");
  options.required(command->board, "-b,--board", "NAME", known_boards());
  options.required(command->directory, "-o,--output", "DIR", "directory of the files, created if needed");
  options.option(command->units, "--units", "N", "accelerators in the design", {1, INT32_MAX});
  options.option(command->clock, "--clock", "MHZ", "requested clock; 0: the board's default", {0, 1000});
  options.footer("Example: tenon hw package --config default --board u250 -o u250");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
