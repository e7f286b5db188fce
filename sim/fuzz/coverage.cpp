#include "sim/fuzz/coverage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "hw/spec/isa_tables.h"
#include "hw/spec/registers.h"

namespace tenon::sim::fuzz {
namespace {

// The least value of a class; empty where the field is too narrow to have it.
std::optional<int64_t> least(const spec::Field& field, ValueClass c) {
  switch (c) {
    case ValueClass::kZero: return 0;
    case ValueClass::kOne: return field.max() >= 1 ? std::optional<int64_t>(1) : std::nullopt;
    case ValueClass::kMore: return field.width >= 3 ? std::optional<int64_t>(2) : std::nullopt;
    case ValueClass::kHigh:
      if (field.is_signed) return -1;
      return field.width >= 2 ? std::optional<int64_t>(int64_t{1} << (field.width - 1)) : std::nullopt;
  }
  return std::nullopt;
}

bool is_executed(const spec::Format& format) { return format.opcode != spec::Opcode::kFinish; }

// How each instruction of a launch started, by its slot; one that has no interval is left out.
std::map<uint32_t, Start> starts_of(std::span<const Interval> timeline) {
  std::vector<Interval> intervals(timeline.begin(), timeline.end());
  std::ranges::stable_sort(intervals, {}, &Interval::begin);
  std::map<uint32_t, Start> starts;
  std::map<uint8_t, uint64_t> busy_until;
  for (const Interval& interval : intervals) {
    if (interval.kind == Interval::Kind::kWaitTokens) starts.emplace(interval.instruction, Start::kWaited);
    if (interval.kind != Interval::Kind::kBusy) continue;
    const auto before = busy_until.find(interval.engine);
    const bool adjacent = before != busy_until.end() && before->second >= interval.begin;
    starts.emplace(interval.instruction, adjacent ? Start::kAdjacent : Start::kIdle);
    uint64_t& until = busy_until[interval.engine];
    until = std::max(until, interval.end);
  }
  return starts;
}

}  // namespace

ValueClass class_of(const spec::Field& field, int64_t value) {
  if (value == 0) return ValueClass::kZero;
  if (value == 1) return ValueClass::kOne;
  const bool high = field.is_signed ? value < 0 : (value >> (field.width - 1)) != 0;
  return high ? ValueClass::kHigh : ValueClass::kMore;
}

Coverage::Coverage(const spec::Config& config) : isa_(config) {
  for (size_t f = 0; f < isa_.formats().size(); ++f) {
    const spec::Format& format = isa_.formats()[f];
    std::vector<FieldCounts> fields;
    const bool present = format.profile == spec::Profile::kNative ? config.native : config.base;
    for (size_t i = 0; present && is_executed(format) && i < format.fields.size(); ++i) {
      FieldCounts& field = fields.emplace_back();
      for (size_t c = 0; c < kClasses; ++c) {
        const auto value = least(format.fields[i], static_cast<ValueClass>(c));
        if (!value) continue;
        spec::Instruction instruction = spec::make_instruction(f);
        spec::set_field(instruction, i, *value);
        field.legal[c] = *value == 0 || spec::check_combination(config, instruction).has_value();
      }
    }
    fields_.push_back(std::move(fields));
  }
}

void Coverage::add(const Launch& launch, std::span<const Interval> timeline) {
  const std::map<uint32_t, Start> starts = starts_of(timeline);
  const uint32_t slots = launch.profile == spec::Profile::kNative ? 2 : 1;
  for (size_t i = 0; i < launch.instructions.size(); ++i) {
    const spec::Instruction& instruction = launch.instructions[i];
    const auto start = starts.find(static_cast<uint32_t>(i) * slots);
    std::vector<FieldCounts>& fields = fields_[instruction.index()];
    if (start == starts.end() || fields.empty()) continue;
    ++instructions_;
    const spec::Format& format = isa_.formats()[instruction.index()];
    for (size_t f = 0; f < fields.size(); ++f) {
      const auto c = static_cast<size_t>(class_of(format.fields[f], spec::get_field(instruction, f)));
      fields[f].legal[c] = true;  // together with other fields
      ++fields[f].counts[c][static_cast<size_t>(start->second)];
    }
  }
}

size_t Coverage::cells() const {
  size_t sum = 0;
  for (const auto& fields : fields_) {
    for (const FieldCounts& field : fields) sum += kStarts * static_cast<size_t>(std::ranges::count(field.legal, true));
  }
  return sum;
}

size_t Coverage::covered() const {
  size_t sum = 0;
  for (const auto& fields : fields_) {
    for (const FieldCounts& field : fields) {
      for (size_t c = 0; c < kClasses; ++c) {
        if (!field.legal[c]) continue;
        sum += static_cast<size_t>(std::ranges::count_if(field.counts[c], [](uint64_t count) { return count > 0; }));
      }
    }
  }
  return sum;
}

std::string Coverage::table() const {
  std::string text = fmt::format("{:<8}{:<16}", "", "");
  for (const std::string_view name : kValueClassNames) text += fmt::format("{:<26}", name);
  text += fmt::format("\n{:<8}{:<16}", "", "");
  for (size_t c = 0; c < kClasses; ++c) text += fmt::format("{:<26}", fmt::format("{}", fmt::join(kStartNames, "/")));
  for (size_t f = 0; f < fields_.size(); ++f) {
    const spec::Format& format = isa_.formats()[f];
    for (size_t i = 0; i < fields_[f].size(); ++i) {
      text += fmt::format("\n{:<8}{:<16}", format.mnemonic, format.fields[i].name);
      for (size_t c = 0; c < kClasses; ++c) {
        const auto& counts = fields_[f][i].counts[c];
        if (!fields_[f][i].legal[c]) {
          text += fmt::format("{:<26}", "");
          continue;
        }
        const bool whole = std::ranges::none_of(counts, [](uint64_t count) { return count == 0; });
        text += fmt::format("{:<26}", fmt::format("{}/{}/{}{}", counts[0], counts[1], counts[2], whole ? "" : " !"));
      }
    }
  }
  // A line ends with its last word.
  std::string trimmed;
  for (const char c : text + "\n") {
    while (c == '\n' && trimmed.ends_with(' ')) trimmed.pop_back();
    trimmed += c;
  }
  return trimmed;
}

Recorded::Recorded(Simulator& simulator) : simulator_(simulator) { simulator_.record_timeline(true); }

void Recorded::write_register(uint32_t offset, uint32_t value) {
  simulator_.write_register(offset, value);
  if (offset == spec::reg::kControl && (value & spec::kApStart) != 0) timelines_.emplace_back();
}

bool Recorded::advance(uint64_t cycles) {
  const bool busy = simulator_.advance(cycles);
  if (!busy && !timelines_.empty()) timelines_.back().assign(timeline().begin(), timeline().end());
  return busy;
}

}  // namespace tenon::sim::fuzz
