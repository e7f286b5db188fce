#include "driver/boards/flash.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "driver/accelerator.h"
#include "driver/identity.h"
#include "sim/verilator/process.h"
#include "support/try.h"

namespace tenon::driver::boards {
namespace {

namespace fs = std::filesystem;

// What stands for the names in braces of a command.
struct Substitutions {
  std::string bitstream, port, config;

  std::string replace(std::string text) const {
    for (const auto& [name, value] :
         {std::pair<std::string, std::string>{"{bitstream}", bitstream}, {"{port}", port}, {"{config}", config}}) {
      for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size()) {
        text.replace(at, name.size(), value);
      }
    }
    return text;
  }
};

Status run_programmer(const generator::Board& board, const Substitutions& substitutions) {
  std::vector<std::string> command;
  for (const std::string& word : board.flash) command.push_back(substitutions.replace(word));
  if (!sim::find_program(command[0])) {
    return error(fmt::format("{} is not in PATH, which writes bitstreams to {}", command[0], board.name), {},
                 "install it: the board's maker or your distribution has it", Fault::kInternal);
  }
  std::fflush(stdout);
  const int status = sim::run_program(command, fs::current_path(), "/dev/stdout");
  if (status == 0) return {};
  return error(fmt::format("{} ends with status {}", fmt::join(command, " "), status), {},
               "is the board connected, and may you access it? its messages are above", Fault::kInternal);
}

}  // namespace

Expected<std::string> flash(const Bitstream& bitstream, const generator::Board& board, const fs::path& directory,
                            const FlashOptions& options) {
  if (!bitstream.timing_met() && !options.force) {
    return error(fmt::format("the bitstream runs at {:.1f} MHz at most, and {} has {:.1f} MHz", bitstream.achieved_mhz,
                             board.name, bitstream.requested_mhz),
                 (directory / bitstream.file).string(), "build a smaller configuration, or try your luck with --force");
  }
  const Substitutions substitutions{.bitstream = (fs::absolute(directory) / bitstream.file).string(),
                                    .port = options.port.empty() ? board.port : options.port,
                                    .config = (fs::absolute(directory) / "config.json").string()};
  if (!board.flash.empty()) TENON_TRY(run_programmer(board, substitutions));

  const std::string uri = substitutions.replace(options.device.empty() ? board.device : options.device);
  const auto explained = [&](Diagnostic fault) {
    fault.what = "the board does not identify itself as the bitstream's accelerator: " + fault.what;
    if (fault.help.empty()) fault.help = "is --port that of the board?";
    return std::unexpected(std::move(fault));
  };
  const auto accelerator = open(uri);
  if (!accelerator) return explained(accelerator.error());
  const auto hash = read_hash(**accelerator);
  if (!hash) return explained(hash.error());
  if (*hash != bitstream.hash) {
    return explained(
        {fmt::format("its configuration hash is {:016x}, the bitstream's is {:016x}", *hash, bitstream.hash), uri, "",
         Fault::kInput});
  }
  return uri;
}

}  // namespace tenon::driver::boards
