// Assembly text: one instruction a line, the mnemonic and then the fields that are not 0 as name=value.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "hw/spec/isa_tables.h"
#include "support/number.h"
#include "support/try.h"

namespace tenon::spec {
namespace {

constexpr std::string_view kSpace = " \t\r";

bool is_engine_mask(const Field& field) { return field.name == "wait" || field.name == "signal"; }
bool is_engine(const Field& field) { return field.name == "engine"; }

std::optional<Engine> parse_engine(std::string_view text) {
  for (int i = 0; i < kEngines; ++i) {
    if (name(static_cast<Engine>(i)) == text) return static_cast<Engine>(i);
  }
  return std::nullopt;
}

std::string print_mask(int64_t mask) {
  std::vector<std::string_view> names;
  for (int i = 0; i < kEngines; ++i) {
    if ((mask >> i) & 1) names.push_back(name(static_cast<Engine>(i)));
  }
  return fmt::format("{}", fmt::join(names, ","));
}

std::string print_value(const Field& field, int64_t value) {
  if (is_engine_mask(field)) return print_mask(value);
  if (is_engine(field) && value < kEngines) return std::string(name(static_cast<Engine>(value)));
  return std::to_string(value);
}

std::optional<int64_t> parse_value(const Field& field, std::string_view text) {
  if (is_engine(field)) {
    if (const auto engine = parse_engine(text)) return static_cast<int64_t>(*engine);
  }
  if (is_engine_mask(field) && !text.empty() && !(text[0] >= '0' && text[0] <= '9')) {
    int64_t mask = 0;
    while (!text.empty()) {
      const auto comma = std::min(text.find(','), text.size());
      const auto engine = parse_engine(text.substr(0, comma));
      if (!engine) return std::nullopt;
      mask |= bit(*engine);
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return mask;
  }
  return parse_number<int64_t>(text);
}

std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
  const auto length = std::min(line.find_first_of(kSpace), line.size());
  const std::string_view word = line.substr(0, length);
  line.remove_prefix(length);
  return word;
}

}  // namespace

std::string Isa::disassemble(const Instruction& instruction) const {
  const Format& format = formats_[instruction.index()];
  std::string text(format.mnemonic);
  for (size_t i = 0; i < format.fields.size(); ++i) {
    const int64_t value = get_field(instruction, i);
    if (value != 0 || is_engine(format.fields[i])) {
      text += fmt::format(" {}={}", format.fields[i].name, print_value(format.fields[i], value));
    }
  }
  return text;
}

Expected<Instruction> Isa::assemble(std::string_view line, std::string_view where) const {
  line = line.substr(0, line.find('#'));
  const std::string_view mnemonic = next_word(line);
  const auto format = std::ranges::find(formats_, mnemonic, &Format::mnemonic);
  if (format == formats_.end()) {
    std::vector<std::string_view> known;
    for (const Format& f : formats_) known.push_back(f.mnemonic);
    return error(fmt::format("no instruction is called \"{}\"", mnemonic), std::string(where),
                 fmt::format("known: {}", fmt::join(known, ", ")));
  }
  Instruction instruction = make_instruction(static_cast<size_t>(format - formats_.begin()));
  for (size_t i = 0; i < format->fields.size(); ++i) set_field(instruction, i, 0);
  std::vector<bool> seen(format->fields.size());
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
    const auto equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    const auto field = std::ranges::find(format->fields, key, &Field::name);
    if (field == format->fields.end()) {
      std::vector<std::string_view> known;
      for (const Field& f : format->fields) known.push_back(f.name);
      return error(fmt::format("{} has no field \"{}\"", mnemonic, key), std::string(where),
                   fmt::format("its fields: {}", fmt::join(known, ", ")));
    }
    const size_t index = static_cast<size_t>(field - format->fields.begin());
    if (seen[index]) return error(fmt::format("{} is given twice", key), std::string(where));
    seen[index] = true;
    const auto value = equals == std::string_view::npos ? std::nullopt : parse_value(*field, word.substr(equals + 1));
    if (!value || *value < field->min() || *value > field->max()) {
      return error(fmt::format("\"{}\": {} takes {} .. {}{}", word, key, field->min(), field->max(),
                               is_engine_mask(*field) ? ", or engines as ldi,gemm" : ""),
                   std::string(where));
    }
    set_field(instruction, index, *value);
  }
  if (const Status legal = check_combination(config_, instruction); !legal)
    return error(legal.error().what, std::string(where), legal.error().help);
  return instruction;
}

Expected<std::vector<Instruction>> Isa::assemble_all(std::string_view text, std::string_view where) const {
  std::vector<Instruction> instructions;
  for (int line_number = 1; !text.empty(); ++line_number) {
    const auto length = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (line.find('\0') != std::string_view::npos) {
      return error("a line contains bytes that are not text", fmt::format("{}:{}", where, line_number));
    }
    std::string_view code = line.substr(0, line.find('#'));
    if (code.find_first_not_of(kSpace) == std::string_view::npos) continue;
    TENON_TRY_ASSIGN(instruction, assemble(line, fmt::format("{}:{}", where, line_number)));
    instructions.push_back(std::move(*instruction));
  }
  return instructions;
}

}  // namespace tenon::spec
