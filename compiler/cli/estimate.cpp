// tenon hw estimate: the cells and the clock of a configuration, before anything is synthesized.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "compiler/cli/command.h"
#include "hw/estimate/estimate.h"
#include "hw/estimate/memories.h"
#include "hw/generator/boards.h"
#include "hw/spec/config.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using estimate::Capacity;
using estimate::Cells;
using estimate::Change;
using estimate::Family;

constexpr size_t kShownChanges = 6;

Family family_of(generator::Flow flow) {
  if (flow == generator::Flow::kIce40) return Family::kIce40;
  return flow == generator::Flow::kEcp5 ? Family::kEcp5 : Family::kXilinx;
}

// What the board leaves for the accelerator: its memory on the chip takes block RAM.
Capacity capacity_of(const generator::Board& board, const spec::Config& config) {
  Capacity capacity{
      .lut = board.luts, .ff = board.registers, .dsp = board.multipliers, .ram = static_cast<double>(board.block_rams)};
  if (board.memory_bytes > 0 && !board.sdram) {
    const int64_t lanes = config.axi_bytes();
    const estimate::MemoryShape memory{.width = 8, .depth = board.memory_bytes / lanes, .count = lanes};
    capacity.ram -= estimate::block_rams(family_of(board.flow), memory);
  }
  return capacity;
}

struct Estimate {
  std::string config, board, family;
  bool json = false;

  Status run() const {
    TENON_TRY_ASSIGN(loaded, spec::load_config(config));
    Capacity capacity;
    Family chips = Family::kEcp5;
    if (!board.empty()) {
      TENON_TRY_ASSIGN(found, generator::find_board(board));
      chips = family_of(found->flow);
      capacity = capacity_of(*found, *loaded);
    } else if (!family.empty()) {
      TENON_TRY_ASSIGN(found, estimate::find_family(family));
      chips = *found;
    }
    TENON_TRY_ASSIGN(model, estimate::Model::create(chips));
    const estimate::Estimate result = (*model)(*loaded);
    const auto excess = estimate::exceeded(result.cells, capacity);
    std::vector<Change> list;
    if (!excess.empty()) list = estimate::changes(*model, *loaded, capacity);
    if (json) print_json(*loaded, chips, result, excess, list);
    else print_text(*loaded, chips, result, capacity, excess, list);
    return {};
  }

  void print_text(const spec::Config& loaded, Family chips, const estimate::Estimate& result, const Capacity& capacity,
                  const std::vector<std::string>& excess, const std::vector<Change>& list) const {
    print_stdout("{} ({}x{}) on {}, estimated from {} synthesized configurations\n", loaded.name, loaded.block_in,
                 loaded.block_out, board.empty() ? std::string(name(chips)) : board, result.rows);
    const auto row = [&](std::string_view kind, double used, double available, const std::string& error) {
      print_stdout("  {:<4}{:>9}{:<12}{}\n", kind, used, available > 0 ? fmt::format(" of {}", available) : "", error);
    };
    const auto percent = [](double mean, double largest) {
      return fmt::format("error {:.0f} % at most, {:.0f} % on average", 100 * largest, 100 * mean);
    };
    const Cells& cells = result.cells;
    row("LUT", static_cast<double>(cells.lut), static_cast<double>(capacity.lut),
        percent(result.lut_mean_error, result.lut_error));
    row("FF", static_cast<double>(cells.ff), static_cast<double>(capacity.ff),
        percent(result.ff_mean_error, result.ff_error));
    row("DSP", static_cast<double>(cells.dsp), static_cast<double>(capacity.dsp), "exact");
    row("RAM", cells.ram, capacity.ram, "exact");
    if (result.mhz > 0) {
      print_stdout("  clock at most {:.0f} MHz: the fastest that was routed ({})\n", result.mhz, result.mhz_config);
    }
    if (board.empty()) return;
    if (!excess.empty()) {
      print_stdout("does not fit: {}\n", fmt::join(excess, ", "));
      if (list.empty()) return;
      print_stdout("one change that lessens it:\n");
      for (size_t i = 0; i < std::min(list.size(), kShownChanges); ++i) {
        const Cells& c = list[i].cells;
        print_stdout("  {:<32}{:>8} LUT {:>5} DSP {:>6} RAM{}\n", list[i].text, c.lut, c.dsp, c.ram,
                     list[i].fits ? ": fits" : "");
      }
      return;
    }
    const double upper = static_cast<double>(cells.lut) * (1 + result.lut_error);
    print_stdout("fits{}\n", upper > static_cast<double>(capacity.lut) ? ", unless the error is at its largest" : "");
  }

  void print_json(const spec::Config& loaded, Family chips, const estimate::Estimate& result,
                  const std::vector<std::string>& excess, const std::vector<Change>& list) const {
    Json out;
    const auto cells = [&](const Cells& c) {
      out.field("lut", c.lut).field("ff", c.ff).field("dsp", c.dsp).field("ram", c.ram);
    };
    out.begin_object().field("config", loaded.name).field("family", name(chips)).field("board", board);
    cells(result.cells);
    out.field("lut_error", result.lut_error).field("ff_error", result.ff_error).field("mhz", result.mhz);
    out.field("rows", result.rows).field("fits", excess.empty()).key("changes").begin_array();
    for (const Change& change : list) {
      out.begin_object().field("change", change.text);
      cells(change.cells);
      out.field("fits", change.fits).end();
    }
    print_stdout("{}", out.end().end().str());
  }
};

}  // namespace

Action hw_estimate(Options& options) {
  auto command = std::make_shared<Estimate>();
  options.argument(command->config, "CONFIG", "a named configuration, or the path of a .json file");
  options.option(command->board, "--board", "BOARD", "whether it fits on this board, and what to change if not");
  options.option(command->family, "--family", "NAME", "ice40, ecp5 (default) or xilinx, without a board");
  options.flag(command->json, "--json", "print JSON");
  options.footer("Example: tenon hw estimate lite --board ulx3s-25f");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
