#include "driver/boards/build.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "hw/generator/serial.h"
#include "sim/verilator/process.h"
#include "support/clock.h"
#include "support/file.h"
#include "support/json.h"
#include "support/number.h"
#include "support/try.h"

namespace tenon::driver::boards {
namespace {

namespace fs = std::filesystem;
using generator::Board;
using generator::Flow;
using Json = nlohmann::ordered_json;

// The names of a flow's files in the build directory.
struct Names {
  std::string placed, bitstream;
};
Names names(const Board& board) {
  if (board.flow == Flow::kIce40) return {"placed.asc", board.name + ".bin"};
  return {"placed.config", board.name + ".bit"};
}

std::string yosys_script(const Board& board, const std::string& sources) {
  std::string files;
  std::istringstream list(sources);
  for (std::string line; std::getline(list, line);) {
    if (!line.empty() && line[0] != '#' && line[0] != '/') files += fmt::format(" rtl/{}", line);
  }
  const std::string synthesis = fmt::format("synth_{} {} -top {}", name(board.flow), fmt::join(board.yosys, " "),
                                            board.sdram ? "board_top_sdram" : "board_top");
  if (board.flow == Flow::kIce40) return fmt::format("read_verilog -sv{}\n{} -json netlist.json\n", files, synthesis);
  // synth_ecp5 maps look-up tables with 0.3 ns for a wire, so that a level of logic costs little beside a carry chain
  // and paths get more levels than they need. A routed wire of a large design takes 1.8 ns on average, and about 1.2 ns
  // where it matters.
  return fmt::format(
      "read_verilog -sv{0}\n{1} -run :map_luts\nabc9 -W 1200\nclean\n{1} -run map_cells: -json netlist.json\n", files,
      synthesis);
}

std::vector<std::string> nextpnr_command(const Board& board, const Tools& tools) {
  std::vector<std::string> command = {tools.nextpnr.program};
  command.insert(command.end(), board.nextpnr.begin(), board.nextpnr.end());
  command.insert(command.end(), {"--json", "netlist.json"});
  if (std::ranges::find(board.nextpnr, "--freq") == board.nextpnr.end()) {
    command.insert(command.end(), {"--freq", std::to_string(board.clock_mhz)});
  }
  command.insert(command.end(),
                 {"--report", "report.json", "--write", "routed.json", "--seed", "1", "--timing-allow-fail"});
  const bool ice40 = board.flow == Flow::kIce40;
  command.insert(command.end(), {ice40 ? "--pcf" : "--lpf", board.constraints.filename().string(),
                                 ice40 ? "--asc" : "--textcfg", names(board).placed});
  return command;
}

// The kinds of cells of which nextpnr's log says that more are required than there are: "Info: KIND: 9000/ 7680 117%".
std::string exceeded(const std::string& log) {
  static const std::regex kLine(R"((\w+): +(\d+) */ *(\d+) +\d+%)");
  std::string text;
  for (auto it = std::sregex_iterator(log.begin(), log.end(), kLine); it != std::sregex_iterator(); ++it) {
    const auto used = parse_number<uint64_t>((*it)[2].str()), available = parse_number<uint64_t>((*it)[3].str());
    if (used && available && *used > *available) {
      text +=
          fmt::format("{}{} {} required, {} available", text.empty() ? "" : "; ", (*it)[1].str(), *used, *available);
    }
  }
  return text;
}

// Runs the tools of one build, in its directory.
class Steps {
 public:
  Steps(fs::path directory, const Progress& progress) : directory_(std::move(directory)), progress_(progress) {}

  fs::path log(std::string_view step) const { return directory_ / fmt::format("{}.log", step); }

  Status run(std::string_view step, const std::vector<std::string>& command) const {
    const Stopwatch stopwatch;
    std::error_code ignored;
    fs::remove(log(step), ignored);
    if (const int status = sim::run_program(command, directory_, log(step)); status != 0) {
      return error(fmt::format("{} ends with status {}", step, status), log(step).string(), "the log has its messages",
                   Fault::kInternal);
    }
    if (progress_) progress_(fmt::format("{}: {:.0f} s", step, stopwatch.seconds()));
    return {};
  }

 private:
  fs::path directory_;
  const Progress& progress_;
};

// Timing and cells from nextpnr's report.
Status read_report(const fs::path& file, Bitstream& bitstream) {
  TENON_TRY_ASSIGN(text, read_text(file));
  try {
    const Json report = Json::parse(*text);
    bitstream.achieved_mhz = 0;
    for (const auto& [clock, entry] : report.at("fmax").items()) {
      const double achieved = entry.at("achieved").get<double>();
      if (bitstream.achieved_mhz == 0 || achieved < bitstream.achieved_mhz) bitstream.achieved_mhz = achieved;
    }
    for (const auto& [kind, entry] : report.at("utilization").items()) {
      if (entry.at("used").get<int64_t>() == 0) continue;
      bitstream.cells[kind] = {entry.at("used").get<int64_t>(), entry.at("available").get<int64_t>()};
    }
  } catch (const Json::exception& e) {
    return error(fmt::format("nextpnr's report is not understood: {}", json_problem(e.what())), file.string(),
                 "use a nextpnr from 0.4 on", Fault::kInternal);
  }
  return {};
}

// Writes the line that identifies the bitstream into the comment that the packer copies.
Status add_comment(const fs::path& placed, const std::string& line) {
  TENON_TRY_ASSIGN(text, read_text(placed));
  const size_t first = text->starts_with(".device") ? text->find('\n') + 1 : 0;
  if (const size_t old = text->find(".comment"); old == first) text->erase(old, text->find('\n', old) + 1 - old);
  text->insert(first, fmt::format(".comment {}\n", line));
  return write_file(placed, *text);
}

}  // namespace

Expected<Bitstream> build(const spec::Config& config, const Board& board, const fs::path& directory,
                          const Progress& progress) {
  const generator::SerialDesign design{.clocks_per_bit = board.clocks_per_bit(),
                                       .memory_bytes = static_cast<uint64_t>(board.memory_bytes),
                                       .sdram = board.sdram,
                                       .clock_mhz = board.clock_mhz};
  TENON_TRY(generator::generate_serial(config, design, directory / "rtl"));
  TENON_TRY(write_file(directory / "config.json", spec::to_json(config)));
  TENON_TRY_ASSIGN(sources, read_text(directory / "rtl/files.f"));
  TENON_TRY(write_file(directory / "synthesis.ys", yosys_script(board, *sources)));
  TENON_TRY_ASSIGN(constraints, read_text(board.constraints));
  TENON_TRY(write_file(directory / board.constraints.filename(), *constraints));
  TENON_TRY_ASSIGN(tools, find_tools(board.flow, progress));

  const Steps steps(directory, progress);
  TENON_TRY(steps.run("yosys", {tools->yosys.program, "-s", "synthesis.ys"}));
  const auto [placed, packed] = names(board);
  Status routed = steps.run("nextpnr", nextpnr_command(board, *tools));
  if (!routed) {
    const auto log = read_text(steps.log("nextpnr"));
    const std::string cells = log ? exceeded(*log) : std::string();
    if (!cells.empty()) {
      routed = error(fmt::format("the configuration {} does not fit on {}: {}", config.name, board.name, cells),
                     steps.log("nextpnr").string(), "use a smaller configuration (--config) or a larger board");
    }
  }
  TENON_TRY(routed);

  Bitstream bitstream{.board = board.name,
                      .config = config.name,
                      .hash = spec::hash(config),
                      .file = packed,
                      .tools = {{"yosys", tools->yosys.version}, {"nextpnr", tools->nextpnr.version}},
                      .requested_mhz = static_cast<double>(board.clock_mhz),
                      .achieved_mhz = 0,
                      .cells = {}};
  TENON_TRY(read_report(directory / "report.json", bitstream));
  TENON_TRY(add_comment(directory / placed, bitstream.line()));
  std::vector<std::string> pack = {tools->pack.program};
  pack.insert(pack.end(), board.packer.begin(), board.packer.end());
  if (board.flow == Flow::kEcp5) pack.emplace_back("--input");
  pack.push_back(placed);
  if (board.flow == Flow::kEcp5) pack.emplace_back("--bit");
  pack.push_back(packed);
  TENON_TRY(steps.run("pack", pack));
  TENON_TRY(save(bitstream, directory));
  return bitstream;
}

}  // namespace tenon::driver::boards
