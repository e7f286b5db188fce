// Projects for the vendor's tools, and their builds.
#include <fmt/format.h>

#include <cstdlib>

#include "driver/boards/build.h"
#include "hw/generator/vitis.h"
#include "hw/generator/vivado.h"
#include "sim/verilator/process.h"
#include "support/file.h"
#include "support/number.h"
#include "support/try.h"

namespace tenon::driver::boards {

namespace fs = std::filesystem;

namespace {

// Runs the generated build.sh.
Status run_build(const fs::path& directory, const char* what, const Progress& progress) {
  const fs::path log = directory / "build.log";
  if (progress) progress(fmt::format("{} (log: {})", what, log.string()));
  const std::string self = "TENON=" + fs::read_symlink("/proc/self/exe").string();
  if (const int status = sim::run_program({"env", self, "./build.sh"}, directory, log); status != 0) {
    return error(fmt::format("build.sh ends with status {}", status), log.string(), "the log has its messages",
                 Fault::kInternal);
  }
  return {};
}

Expected<std::optional<Bitstream>> build_by_vivado(const spec::Config& config, const generator::Board& board,
                                                   const fs::path& directory, const Progress& progress) {
  TENON_TRY(generator::package_for_vivado(config, board, directory));
  if (!sim::find_program("vivado") || !sim::find_program("bootgen")) return std::optional<Bitstream>();
  TENON_TRY(run_build(directory, "building with vivado, an hour", progress));
  const fs::path file = directory / "build" / "slack.txt";
  TENON_TRY_ASSIGN(text, read_text(file));
  const double period = 1000.0 / board.clock_mhz;
  const auto slack = parse_number<double>(text->substr(0, text->find_first_of(" \t\r\n")));
  if (!slack || *slack >= period) {
    return error("the file has no slack in nanoseconds", file.string(), "build.log has Vivado's messages",
                 Fault::kInternal);
  }
  Bitstream bitstream{.board = board.name,
                      .config = config.name,
                      .hash = spec::hash(config),
                      .file = "tenon.bit.bin",
                      .tools = {{"vivado", "see build.log"}},
                      .requested_mhz = static_cast<double>(board.clock_mhz),
                      .achieved_mhz = 1000.0 / (period - *slack),
                      .cells = {}};
  TENON_TRY(save(bitstream, directory));
  return std::optional(std::move(bitstream));
}

}  // namespace

Expected<std::optional<Bitstream>> build_by_vendor(const spec::Config& config, const generator::Board& board,
                                                   const fs::path& directory, const Progress& progress) {
  if (board.flow == generator::Flow::kVivado) return build_by_vivado(config, board, directory, progress);
  TENON_TRY(generator::package_for_vitis(config, board, {}, directory));
  if (!sim::find_program("vivado") || !sim::find_program("v++")) return std::optional<Bitstream>();
  TENON_TRY(run_build(directory, "building with vivado and v++, hours", progress));
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
