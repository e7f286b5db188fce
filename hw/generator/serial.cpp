#include "hw/generator/serial.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>
#include <vector>

#include "hw/generator/generator.h"
#include "hw/spec/data_path.h"
#include "hw/spec/serial.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::generator {
namespace {

namespace fs = std::filesystem;
namespace wire = spec::serial;

// In the order of the package's use.
constexpr std::string_view kSources[] = {"uart_rx.sv",         "uart_tx.sv",       "crc32_serial.sv",
                                         "stream_register.sv", "board_memory.sv",  "sdram_controller.sv",
                                         "sdram_memory.sv",    "serial_bridge.sv", "serial_top.sv"};

// An SDRAM's times in nanoseconds, the longest of the chips of 16 to 64 MiB; a chip of 8192 rows in 64 ms.
constexpr int64_t kPrecharge = 20, kActive = 20, kCycle = 70, kRefresh = 7'800, kPowerUp = 200'000;
// Between the chip's clock and the design's is half a period, in which the chip's data must arrive.
constexpr int kFastestSdram = 50;
constexpr uint64_t kSmallestSdram = uint64_t{1} << 24, kLargestSdram = uint64_t{1} << 26;
// A run of the controller ends at most so many cycles after a refresh is due.
constexpr int64_t kUntilRefresh = 16;

Expected<fs::path> source_directory() {
  const auto candidates = spec::data_path("hw/serial");
  for (const fs::path& candidate : candidates) {
    std::error_code ignored;
    if (fs::is_regular_file(candidate / kSources[0], ignored)) return candidate;
  }
  return error("the RTL sources of the serial bridge are missing", candidates.back().string(),
               "install Tenon again, or keep its source tree");
}

Status check(const SerialDesign& design) {
  if (design.clocks_per_bit < 4) {
    return error(fmt::format("a bit of the serial line takes {} clocks, must be at least 4", design.clocks_per_bit), {},
                 "lower the baud rate");
  }
  if (!std::has_single_bit(design.memory_bytes) || design.memory_bytes < wire::kSmallestMemory ||
      design.memory_bytes > wire::kLargestMemory) {
    return error(fmt::format("the memory has {} bytes, must be a power of two from {} to {}", design.memory_bytes,
                             wire::kSmallestMemory, wire::kLargestMemory));
  }
  if (!design.sdram) return {};
  if (design.memory_bytes < kSmallestSdram || design.memory_bytes > kLargestSdram) {
    return error(fmt::format("the SDRAM has {} bytes, must be from {} to {}", design.memory_bytes, kSmallestSdram,
                             kLargestSdram));
  }
  if (design.clock_mhz > kFastestSdram) {
    return error(fmt::format("the clock of the SDRAM is {} MHz, must be at most {}", design.clock_mhz, kFastestSdram),
                 {}, "use memory on the chip, or a slower clock");
  }
  return {};
}

}  // namespace

std::string serial_package_text(const SerialDesign& design) {
  const int log2 = std::countr_zero(design.memory_bytes);
  std::string text = fmt::format(
      "// Generated from hw/spec/serial.h.\npackage serial_pkg;\n\n"
      "  localparam int CLOCKS_PER_BIT = {};\n  localparam int MEMORY_LOG2 = {};\n\n",
      design.clocks_per_bit, log2);
  const auto cycles = [&](int64_t nanoseconds) { return (nanoseconds * design.clock_mhz + 999) / 1000; };
  text += fmt::format(
      "  localparam int SDRAM = {};  // 1: the memory is one\n  localparam int SDRAM_PRECHARGE = {};  // cycles\n"
      "  localparam int SDRAM_ACTIVE = {};\n  localparam int SDRAM_CYCLE = {};\n  localparam int SDRAM_REFRESH = {};\n"
      "  localparam int SDRAM_POWER_UP = {};\n\n",
      design.sdram ? 1 : 0, cycles(kPrecharge), cycles(kActive), cycles(kCycle),
      std::max<int64_t>(kRefresh * design.clock_mhz / 1000 - kUntilRefresh, 1), cycles(kPowerUp));
  const auto byte = [&](std::string_view name, auto value) {
    text += fmt::format("  localparam logic [7:0] {} = 8'h{:02x};\n", name, static_cast<unsigned>(value));
  };
  byte("END", wire::kEnd);
  byte("ESCAPE", wire::kEscape);
  byte("ESCAPED_END", wire::kEscapedEnd);
  byte("ESCAPED_ESCAPE", wire::kEscapedEscape);
  byte("HELLO", wire::Operation::kHello);
  byte("READ_REGISTER", wire::Operation::kReadRegister);
  byte("WRITE_REGISTER", wire::Operation::kWriteRegister);
  byte("READ_MEMORY", wire::Operation::kReadMemory);
  byte("WRITE_MEMORY", wire::Operation::kWriteMemory);
  byte("DONE", wire::Result::kDone);
  byte("CORRUPT", wire::Result::kCorrupt);
  byte("UNSUPPORTED", wire::Result::kUnsupported);
  byte("RANGE", wire::Result::kRange);
  text += fmt::format(
      "\n  localparam logic [31:0] CRC_RESIDUE = 32'h{:08x};\n  localparam logic [31:0] IDENTIFICATION = "
      "32'h{:08x};\n\n"
      "endpackage\n",
      wire::kCrcResidue, wire::kMagic << 16 | wire::kVersion << 8 | static_cast<uint32_t>(log2));
  return text;
}

Expected<std::vector<fs::path>> generate_serial(const spec::Config& config, const SerialDesign& design,
                                                const fs::path& directory) {
  TENON_TRY(check(design));
  TENON_TRY_ASSIGN(written, generate(config, directory));
  TENON_TRY_ASSIGN(list, read_text(directory / "files.f"));
  TENON_TRY_ASSIGN(from, source_directory());
  written->push_back(directory / "serial_pkg.sv");
  TENON_TRY(write_file(written->back(), serial_package_text(design)));
  *list += "serial_pkg.sv\n";
  std::vector<std::string_view> names(std::begin(kSources), std::end(kSources));
  names.emplace_back(design.sdram ? "board_top_sdram.sv" : "board_top.sv");
  for (const std::string_view name : names) {
    TENON_TRY_ASSIGN(text, read_text(*from / name));
    written->push_back(directory / name);
    TENON_TRY(write_file(written->back(), *text));
    *list += fmt::format("{}\n", name);
  }
  TENON_TRY(write_file(directory / "files.f", *list));
  return written;
}

}  // namespace tenon::generator
