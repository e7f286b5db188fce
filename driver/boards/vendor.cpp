// Projects for the vendor's tools, and their builds.
#include <fmt/format.h>

#include "driver/boards/build.h"
#include "hw/generator/vitis.h"
#include "sim/verilator/process.h"
#include "support/try.h"

namespace tenon::driver::boards {

namespace fs = std::filesystem;

Expected<std::optional<Bitstream>> build_by_vendor(const spec::Config& config, const generator::Board& board,
                                                   const fs::path& directory, const Progress& progress) {
  TENON_TRY(generator::package_for_vitis(config, board, {}, directory));
  if (!sim::find_program("vivado") || !sim::find_program("v++")) return std::optional<Bitstream>();
  const fs::path log = directory / "build.log";
  if (progress) progress(fmt::format("building with vivado and v++, hours (log: {})", log.string()));
  const std::string self = "TENON=" + fs::read_symlink("/proc/self/exe").string();
  if (const int status = sim::run_program({"env", self, "./build.sh"}, directory, log); status != 0) {
    return error(fmt::format("build.sh ends with status {}", status), log.string(), "the log has its messages",
                 Fault::kInternal);
  }
  // v++ lowers the clock of a design that misses it, so what it links meets its timing.
  Bitstream bitstream{.board = board.name,
                      .config = config.name,
                      .hash = spec::hash(config),
                      .file = "tenon.xclbin",
                      .tools = {{"v++", "see build.log"}},
                      .requested_mhz = static_cast<double>(board.clock_mhz),
                      .achieved_mhz = static_cast<double>(board.clock_mhz),
                      .cells = {}};
  TENON_TRY(save(bitstream, directory));
  return std::optional(std::move(bitstream));
}

}  // namespace tenon::driver::boards
