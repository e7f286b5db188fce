#include "hw/generator/serial.h"

#include <fmt/format.h>

#include <bit>
#include <string_view>

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
constexpr std::string_view kSources[] = {"uart_rx.sv",       "uart_tx.sv",    "crc32_serial.sv", "board_memory.sv",
                                         "serial_bridge.sv", "serial_top.sv", "board_top.sv"};

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
  return {};
}

}  // namespace

std::string serial_package_text(const SerialDesign& design) {
  const int log2 = std::countr_zero(design.memory_bytes);
  std::string text = fmt::format(
      "// Generated from hw/spec/serial.h.\npackage serial_pkg;\n\n"
      "  localparam int CLOCKS_PER_BIT = {};\n  localparam int MEMORY_LOG2 = {};\n\n",
      design.clocks_per_bit, log2);
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
  for (const std::string_view name : kSources) {
    TENON_TRY_ASSIGN(text, read_text(*from / name));
    written->push_back(directory / name);
    TENON_TRY(write_file(written->back(), *text));
    *list += fmt::format("{}\n", name);
  }
  TENON_TRY(write_file(directory / "files.f", *list));
  return written;
}

}  // namespace tenon::generator
