// The SystemVerilog package: the configuration's constants and types.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "hw/generator/generator.h"
#include "hw/spec/command_widths.h"
#include "hw/spec/isa.h"
#include "hw/spec/registers.h"

namespace tenon::generator {
namespace {

using namespace spec;

std::string upper(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::toupper(c); });
  return result;
}

// The bits of a native format that must be 0.
std::string reserved_mask(const Format& format) {
  std::string bits(256, '1');
  const auto clear = [&](int lsb, int width) {
    for (int i = lsb; i < lsb + width; ++i) bits[255 - i] = '0';
  };
  clear(0, 7);
  for (const Field& field : format.fields) clear(field.lsb, field.width);
  std::string hex;
  for (size_t i = 0; i < bits.size(); i += 4) {
    const int digit = (bits[i] - '0') * 8 + (bits[i + 1] - '0') * 4 + (bits[i + 2] - '0') * 2 + (bits[i + 3] - '0');
    hex += "0123456789abcdef"[digit];
  }
  return "256'h" + hex;
}

class Package {
 public:
  void section(std::string_view title) { text_ += fmt::format("\n  // {}\n", title); }
  void integer(std::string_view name, int64_t value) {
    text_ += fmt::format("  localparam int {} = {};\n", name, value);
  }
  void vector(std::string_view name, int width, uint64_t value) {
    text_ += fmt::format("  localparam logic [{}:0] {} = {}'h{:x};\n", width - 1, name, width, value);
  }
  void mask(std::string_view name, const std::string& literal) {
    text_ += fmt::format("  localparam logic [255:0] {} = {};\n", name, literal);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

std::string package_text(const Config& config) {
  Package p;
  p.section("Configuration.");
  p.integer("BLOCK_IN", config.block_in);
  p.integer("BLOCK_OUT", config.block_out);
  p.integer("AXI_BITS", config.axi_data_bits);
  p.integer("AXI_BYTES", config.axi_bytes());
  p.integer("MAX_BURST", config.max_burst_beats);
  p.integer("QUEUE_DEPTH", config.queue_depth);
  p.integer("HAS_BASE", config.base);
  p.integer("HAS_NATIVE", config.native);
  p.integer("HAS_COUNTERS", config.counters);
  p.integer("HAS_WEIGHT_ENGINE", config.weight_engine);
  p.integer("PACKED_PRODUCTS", config.packed_products);
  p.integer("SERIAL_PRODUCTS", config.serial_products);
  p.integer("ADDR_BITS", config.address_bits);
  p.integer("ALU_MULTIPLY_PASSES", config.alu_multiply_passes);
  p.integer("HAS_ACCUMULATOR_ENGINE", config.accumulator_engine);
  p.integer("IN_ORDER", config.in_order);
  p.integer("HAS_PROGRESS", config.progress);
  p.integer("ALU_PASSES", config.alu_passes);
  p.integer("RQ_PASSES", config.requantizer_passes);
  p.vector("CAPABILITIES", 32, capabilities(config));
  p.vector("CONFIG_HASH", 64, hash(config));
  p.vector("ISA_VERSION", 16, kIsaVersion);
  p.vector("REGMAP_VERSION", 16, kRegisterMapVersion);

  p.section("Widths that follow from it.");
  const CommandWidths w = command_widths(config);
  p.integer("SLOT_BITS", w.slot);
  p.integer("UNIT_BITS", w.unit);
  p.integer("ROW_BITS", w.row);
  p.integer("VECTOR_BITS", w.vector);
  p.integer("TOTAL_BITS", w.total);
  p.integer("LENGTH_BITS", w.length);
  p.integer("LEFT_BITS", w.left);
  p.integer("END_BITS", w.end);
  p.integer("AHEAD_BITS", w.ahead);
  p.integer("STEP_BITS", w.step);
  p.integer("LOOP_BITS", w.loop);
  p.integer("UOP_INDEX_BITS", w.uop);

  p.section("Scratchpads: elements, index bits, bytes of an element, of a DMA unit, units of an element.");
  for (int i = 0; i < kScratchpads; ++i) {
    const auto memory = static_cast<Memory>(i);
    const std::string prefix = upper(name(memory));
    p.integer(prefix + "_DEPTH", config.depth(memory));
    p.integer(prefix + "_AW", std::max(config.index_bits(memory), 1));
    p.integer(prefix + "_ELEM_BYTES", config.element_bytes(memory));
    p.integer(prefix + "_UNIT_BYTES", config.unit_bytes(memory));
    p.integer(prefix + "_UNITS", config.units_per_element(memory));
  }
  p.section("Scratchpads by index; ACC8 is acc filled from int8.");
  for (int i = 0; i < kScratchpads; ++i)
    p.vector("MEM_" + upper(name(static_cast<Memory>(i))), 3, static_cast<uint64_t>(i));
  p.vector("MEM_ACC8", 3, 7);
  p.section("Memory types of base LOAD and STORE.");
  constexpr std::string_view kTypes[] = {"UOP", "WGT", "INP", "ACC", "OUT", "ACC8"};
  for (uint64_t i = 0; i < std::size(kTypes); ++i) p.vector(fmt::format("MEMTYPE_{}", kTypes[i]), 3, i);

  p.section("Engines.");
  for (int i = 0; i < kEngines; ++i) p.integer("ENG_" + upper(name(static_cast<Engine>(i))), i);
  p.integer("NUM_ENGINES", kEngines);
  p.integer("NUM_BASES", config.base_addresses());
  p.integer("MAX_TOKENS", kMaxTokens);

  p.section("Opcodes, bits 2:0; functions of the native profile, bits 6:3.");
  constexpr std::string_view kOpcodes[] = {"LOAD", "STORE", "GEMM", "FINISH", "ALU", "MOVE", "MAC", "POST"};
  for (uint64_t i = 0; i < std::size(kOpcodes); ++i) p.vector(fmt::format("OP_{}", kOpcodes[i]), 3, i);
  constexpr std::string_view kMoves[] = {"INP", "WGT", "PAR", "RES", "OUT"};
  for (uint64_t i = 0; i < std::size(kMoves); ++i) p.vector(fmt::format("FN_MOVE_{}", kMoves[i]), 4, i);
  p.vector("FN_MAC", 4, 0);
  p.vector("FN_RQ", 4, 0);
  p.vector("FN_SYNC", 4, 8);
  constexpr std::string_view kAluOps[] = {"MIN", "MAX", "ADD", "SHR", "MUL"};
  for (uint64_t i = 0; i < std::size(kAluOps); ++i) p.vector(fmt::format("ALU_{}", kAluOps[i]), 3, i);

  const Isa isa(config);
  for (const Format& format : isa.formats()) {
    const std::string prefix = upper(format.mnemonic);
    p.section(fmt::format("{}: {}.", prefix, format.doc));
    for (const Field& field : format.fields) {
      p.integer(fmt::format("{}_{}_LSB", prefix, upper(field.name)), field.lsb);
      p.integer(fmt::format("{}_{}_W", prefix, upper(field.name)), field.width);
    }
    if (format.profile == Profile::kNative) p.mask(prefix + "_RESERVED", reserved_mask(format));
  }
  p.section("Micro-ops.");
  for (const Field& field : isa.uop_fields()) {
    p.integer(fmt::format("UOP_{}_LSB", upper(field.name)), field.lsb);
    p.integer(fmt::format("UOP_{}_W", upper(field.name)), field.width);
  }

  p.section("Stop codes.");
  constexpr std::pair<std::string_view, StopCode> kStops[] = {{"NONE", StopCode::kNone},
                                                              {"BAD_OPCODE", StopCode::kBadOpcode},
                                                              {"BAD_FIELD", StopCode::kBadField},
                                                              {"SCRATCHPAD_RANGE", StopCode::kScratchpadRange},
                                                              {"READ_ERROR", StopCode::kReadError},
                                                              {"WRITE_ERROR", StopCode::kWriteError},
                                                              {"AFTER_FINISH", StopCode::kAfterFinish},
                                                              {"TRUNCATED", StopCode::kTruncated},
                                                              {"DEADLOCK", StopCode::kDeadlock},
                                                              {"UNALIGNED", StopCode::kUnaligned},
                                                              {"PROFILE_OFF", StopCode::kProfileOff}};
  for (const auto& [name, code] : kStops) p.vector(fmt::format("STOP_{}", name), 8, static_cast<uint64_t>(code));

  p.section("Registers: byte offsets.");
  for (const Register& r : registers()) p.vector(fmt::format("REG_{}", r.name), 12, r.offset);

  return fmt::format(
      "// The configuration \"{}\" as RTL sees it: generated from hw/spec, not to be edited.\n"
      "/* verilator lint_off UNUSEDPARAM */\npackage tenon_pkg;\n{}\nendpackage\n/* verilator lint_on UNUSEDPARAM */\n",
      config.name, p.text());
}

}  // namespace tenon::generator
