// The SystemVerilog package: the configuration's constants and types.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <span>

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

// The bits of an index of so many values.
int index_bits(int count) { return std::bit_width(static_cast<unsigned>(count - 1)); }

struct Member {
  std::string name;
  int width;
};

// The member of a field; some names of fields are keywords of SystemVerilog.
std::string member_name(const Field& field) {
  if (field.name == "wait" || field.name == "signal") return fmt::format("{}_mask", field.name);
  return std::string(field.name == "function" ? "fn" : field.name);
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
  // One constant a name, counted from 0.
  void enumeration(std::string_view prefix, int width, std::span<const std::string_view> names) {
    for (size_t i = 0; i < names.size(); ++i) vector(std::string(prefix) + upper(names[i]), width, i);
  }
  void type(std::string_view name, int width) { text_ += fmt::format("  typedef logic [{}:0] {};\n", width - 1, name); }
  // The same with the types of an index and of a set, which has a constant with the bit of each.
  void indices(std::string_view prefix, std::string_view what, std::span<const std::string_view> names) {
    const int count = static_cast<int>(names.size());
    enumeration(prefix, index_bits(count), names);
    for (size_t i = 0; i < names.size(); ++i) vector(fmt::format("{}{}_BIT", prefix, upper(names[i])), count, 1u << i);
    type(fmt::format("{}_t", what), index_bits(count));
    type(fmt::format("{}s_t", what), count);
  }
  // The first member has the uppermost bits.
  void structure(std::string_view name, const std::vector<Member>& members) {
    text_ += "  typedef struct packed {\n";
    for (const Member& m : members) {
      const std::string range = m.width == 1 ? std::string() : fmt::format(" [{}:0]", m.width - 1);
      text_ += fmt::format("    logic{} {};\n", range, m.name);
    }
    text_ += fmt::format("  }} {};\n", name);
  }
  // The bits of an instruction.
  void instruction(const Format& format) {
    std::vector<Field> fields = format.fields;
    std::ranges::sort(fields, {}, &Field::lsb);
    std::vector<Member> members{{"opcode", 3}};
    int next = 3;
    const auto skip_to = [&](int lsb) {
      if (next < lsb) members.push_back({fmt::format("unused{}", next), lsb - next});
      next = lsb;
    };
    for (const Field& field : fields) {
      if (field.width == 0) continue;
      skip_to(field.lsb);
      members.push_back({member_name(field), field.width});
      next += field.width;
    }
    skip_to(format.profile == Profile::kBase ? 128 : 256);
    std::ranges::reverse(members);
    structure(fmt::format("{}_insn_t", format.mnemonic), members);
  }
  // The command of a unit that has every field of a format but the tokens, and the function that extracts it.
  void command(const Format& format) {
    std::vector<Member> members{{"index", 32}};
    std::string fields = "index";
    for (const Field& field : format.fields) {
      if (field.name == "wait" || field.name == "signal") continue;
      members.push_back({member_name(field), field.width});
      fields += fmt::format(",\n                  insn[{}:{}]", field.lsb + field.width - 1, field.lsb);
    }
    int width = 0;
    for (const Member& m : members) width += m.width;
    structure(fmt::format("{}_cmd_t", format.mnemonic), members);
    text_ += "  // verilator lint_off UNUSEDSIGNAL\n";  // opcode, tokens and reserved bits
    text_ += fmt::format("  function automatic logic [{}:0] {}_command(logic [255:0] insn, logic [31:0] index);\n",
                         width - 1, format.mnemonic);
    text_ += fmt::format("    {}_command = {{{}}};\n  endfunction\n", format.mnemonic, fields);
    text_ += "  // verilator lint_on UNUSEDSIGNAL\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void add_configuration(Package& p, const Config& config) {
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
  p.integer("OVERLAPPING_STORES", config.overlapping_stores);
  p.integer("OWN_LANES", config.own_lanes);
  p.integer("RESULTS_TO_INP", config.results_to_inp);
  p.integer("WINDOW_MAXIMUM", config.window_maximum);
  p.integer("INPUT_BANKS", kInputBanks);
  p.integer("OWN_ROWS", native::kOwnRows);
  p.integer("READ_BEATS", config.read_fifo_beats());
  p.integer("BASE_READ_BEATS", config.base_read_beats());
  p.vector("CAPABILITIES", 32, capabilities(config));
  p.vector("CONFIG_HASH", 64, hash(config));
  p.vector("ISA_VERSION", 16, kIsaVersion);
  p.vector("REGMAP_VERSION", 16, kRegisterMapVersion);
}

void add_widths(Package& p, const Config& config) {
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
}

void add_scratchpads(Package& p, const Config& config) {
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
  p.vector("MEM_ACC8", 3, kScratchpads);
  p.section("Memory types of base LOAD and STORE.");
  p.enumeration("MEMTYPE_", 3, base::kMemoryTypeNames);
}

void add_units(Package& p, const Config& config) {
  p.section("Engines and units: indices, sets with a bit each, and values of each.");
  p.indices("ENG_", "engine", kEngineNames);
  p.integer("NUM_ENGINES", kEngines);
  p.vector("ENGINES_PRESENT", kEngines, kPresentEngines);
  p.indices("UNIT_", "unit", kUnitNames);
  p.integer("NUM_UNITS", kUnits);
  p.type("engine_slots_t", 32 * kEngines);
  p.type("engine_codes_t", 8 * kEngines);
  p.type("unit_codes_t", 8 * kUnits);
  p.integer("NUM_BASES", config.base_addresses());
  p.integer("MAX_TOKENS", kMaxTokens);
  p.section("The matrix of tokens: the counter of producer p and consumer c has bit NUM_ENGINES * p + c.");
  p.type("pairs_t", kEngines * kEngines);
  p.section("An entry of a class's queue: `target` executes it, or the accelerator stops with a range error.");
  p.structure("entry_t", {{"index", 32},
                          {"wait_mask", kEngines},
                          {"signal_mask", kEngines},
                          {"target", index_bits(kUnits)},
                          {"range_error", 1}});
}

void add_instructions(Package& p, const Config& config) {
  p.section("Opcodes, bits 2:0; functions of the native profile, bits 6:3.");
  p.enumeration("OP_", 3, kOpcodeNames);
  p.enumeration("FN_MOVE_", 4, native::kMoveFunctionNames);
  p.vector("FN_SYNC", 4, kSyncFunction);
  p.enumeration("ALU_", 3, base::kAluOpNames);

  const Isa isa(config);
  for (const Format& format : isa.formats()) {
    const std::string prefix = upper(format.mnemonic);
    p.section(fmt::format("{}: {}.", prefix, format.doc));
    p.instruction(format);
    if (format.profile != Profile::kNative) continue;
    p.mask(prefix + "_RESERVED", reserved_mask(format));
    if (format.fixed_function >= 0) p.vector("FN_" + prefix, 4, static_cast<uint64_t>(format.fixed_function));
    if (format.mnemonic == "rq") p.command(format);
  }
  p.section("Micro-ops.");
  for (const Field& field : isa.uop_fields()) {
    p.integer(fmt::format("UOP_{}_LSB", upper(field.name)), field.lsb);
    p.integer(fmt::format("UOP_{}_W", upper(field.name)), field.width);
  }
}

}  // namespace

std::string package_text(const Config& config) {
  Package p;
  add_configuration(p, config);
  add_widths(p, config);
  add_scratchpads(p, config);
  add_units(p, config);
  add_instructions(p, config);
  p.section("Stop codes.");
  for (int code = 0; code < kHardwareStopCodes; ++code) {
    p.vector(fmt::format("STOP_{}", text_of(static_cast<StopCode>(code)).name), 8, static_cast<uint64_t>(code));
  }

  p.section("Registers: byte offsets.");
  for (const Register& r : registers()) p.vector(fmt::format("REG_{}", r.name), 12, r.offset);

  return fmt::format(
      "// The configuration \"{}\" as RTL sees it: generated from hw/spec, not to be edited.\n"
      "/* verilator lint_off UNUSEDPARAM */\npackage tenon_pkg;\n{}\nendpackage\n/* verilator lint_on UNUSEDPARAM */\n",
      config.name, p.text());
}

}  // namespace tenon::generator
