#include "sim/lockstep/lockstep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "hw/spec/registers.h"
#include "support/pages.h"

namespace tenon::sim {
namespace {

using spec::Memory;
using spec::StopCode;
namespace reg = spec::reg;

// Both sides advance alternately by this many cycles, so that neither gets far ahead and the logs stay small.
constexpr uint64_t kSliceCycles = 1024;

struct End {
  StopCode code = StopCode::kNone;
  uint32_t index = 0;
};

End end_of(Simulator& simulator) {
  return {static_cast<StopCode>(simulator.read_register(reg::kStatus) & 0xff),
          simulator.read_register(reg::kErrorIndex)};
}

int64_t lane(std::span<const std::byte> value, size_t width, size_t i) {
  if (width == 4) {
    int32_t word;
    std::memcpy(&word, value.data() + 4 * i, 4);
    return word;
  }
  return static_cast<int8_t>(value[i]);
}

}  // namespace

Expected<std::unique_ptr<Lockstep>> Lockstep::make(Side tested, Side reference) {
  const spec::Config& a = tested.simulator->config();
  const spec::Config& b = reference.simulator->config();
  if (spec::hash(a) != spec::hash(b)) {
    return error(fmt::format("lockstep of two configurations, {} and {}:\n{}", a.name, b.name, spec::difference(a, b)));
  }
  const size_t bytes = tested.simulator->memory().size();
  if (bytes != reference.simulator->memory().size()) {
    return error(fmt::format("lockstep of {} with {} bytes of memory and {} with {}", tested.name, bytes,
                             reference.name, reference.simulator->memory().size()));
  }
  return std::unique_ptr<Lockstep>(new Lockstep(std::move(tested), std::move(reference)));
}

Lockstep::Lockstep(Side tested, Side reference)
    : tested_(std::move(tested)), reference_(std::move(reference)), isa_(tested_.simulator->config()) {
  tested_.simulator->observe(&tested_log_);
  reference_.simulator->observe(&reference_log_);
}

uint32_t Lockstep::read_register(uint32_t offset) {
  if (divergence_ && offset == reg::kStatus) return static_cast<uint32_t>(StopCode::kDivergence);
  if (divergence_ && offset == reg::kErrorIndex) return divergence_->instruction;
  const uint32_t value = tested_.simulator->read_register(offset);
  // The tested simulator may be idle while the reference is still busy: the launch ends when it has been compared.
  if (running_ && offset == reg::kStatus) return value | spec::kStatusBusy;
  if (running_ && offset == reg::kControl)
    return (value & ~(spec::kApIdle | spec::kApDone | spec::kApReady)) | spec::kApStart;
  return value;
}

void Lockstep::write_register(uint32_t offset, uint32_t value) {
  if (offset == reg::kControl && (value & spec::kApStart) != 0 && !running_) {
    divergence_.reset();
    tested_log_.clear();
    reference_log_.clear();
    copy_memory();
    running_ = true;
  }
  if (offset == reg::kCommand && (value & spec::kSoftReset) != 0) {
    divergence_.reset();
    running_ = false;
  }
  tested_.simulator->write_register(offset, value);
  reference_.simulator->write_register(offset, value);
}

void Lockstep::copy_memory() {
  const auto from = tested_.simulator->memory(), to = reference_.simulator->memory();
  for (size_t i = 0; i < from.size(); i += kPageBytes) {
    const size_t bytes = std::min<size_t>(kPageBytes, from.size() - i);
    // Comparing first keeps pages unallocated that neither side has touched.
    if (std::memcmp(to.data() + i, from.data() + i, bytes) != 0) std::memcpy(to.data() + i, from.data() + i, bytes);
  }
}

bool Lockstep::advance(uint64_t cycles) {
  if (!running_) {
    // No launch to compare, but a soft reset may be in progress on either side.
    const bool tested = !divergence_ && tested_.simulator->advance(cycles);
    reference_.simulator->advance(cycles);
    return tested;
  }
  while (running_ && cycles > 0) {
    const uint64_t slice = std::min(cycles, kSliceCycles);
    cycles -= slice;
    const bool tested = tested_.simulator->advance(slice);
    const bool reference = reference_.simulator->advance(slice);
    compare_writes();
    if (divergence_) break;
    // The reference detects errors that the tested simulator cannot; waiting for the tested side would hide the cause.
    const End end = reference ? End{} : end_of(*reference_.simulator);
    const bool strict = end.code == StopCode::kRace || end.code == StopCode::kUninitialised;
    if ((tested || reference) && !strict) continue;
    compare_ends();
    running_ = false;
  }
  if (divergence_) running_ = false;
  return running_;
}

std::string Lockstep::explain() {
  const std::string tested = tested_.simulator->explain();
  if (!divergence_) return tested;
  // A simulator that has given up (a broken rule, a failed assertion) has a reason and no stop code.
  const bool gave_up = !tested.empty() && end_of(*tested_.simulator).code == StopCode::kNone;
  return gave_up ? divergence_->text + "\n" + tested : divergence_->text;
}

std::string Lockstep::describe(uint32_t instruction) {
  std::string text = fmt::format("instruction {}", instruction);
  Simulator& simulator = *tested_.simulator;
  const uint64_t stream =
      simulator.read_register(reg::kInstructions) | uint64_t{simulator.read_register(reg::kInstructions + 4)} << 32;
  const uint32_t count = simulator.read_register(reg::kCount);
  const bool native = (simulator.read_register(reg::kMode) & spec::kModeNative) != 0;
  const auto memory = simulator.memory();
  const uint64_t at = stream + uint64_t{instruction} * spec::kSlotBytes;
  std::vector<spec::Slot> slots(instruction < count ? std::min<uint32_t>(count - instruction, 2) : 0);
  if (!slots.empty() && at < memory.size() && memory.size() - at >= slots.size() * spec::kSlotBytes) {
    std::memcpy(slots.data(), memory.data() + at, slots.size() * spec::kSlotBytes);
    const auto decoded = isa_.decode(slots, 0, native ? spec::Profile::kNative : spec::Profile::kBase);
    if (decoded) text += fmt::format(" ({})", isa_.disassemble(*decoded));
  }
  if (note_) {
    if (const std::string note = note_(instruction); !note.empty()) text += fmt::format(" of {}", note);
  }
  return text;
}

void Lockstep::diverge(uint32_t instruction, std::string text) {
  if (divergence_) return;
  divergence_ = {instruction, fmt::format("{} and {} differ: {}", tested_.name, reference_.name, text)};
}

void Lockstep::compare_writes() {
  // Instructions are compared in the order of the tested simulator: the first difference is the earliest cause.
  const auto settle = [this](std::vector<uint32_t>& newly) {
    for (const uint32_t index : newly) {
      const auto a = tested_log_.done().find(index), b = reference_log_.done().find(index);
      if (a == tested_log_.done().end() || b == reference_log_.done().end()) continue;
      if (!compare(index, a->second, b->second)) return;
      tested_log_.done().erase(a);
      reference_log_.done().erase(b);
    }
    newly.clear();
  };
  settle(tested_log_.newly_done());
  if (!divergence_) settle(reference_log_.newly_done());
}

bool Lockstep::compare(uint32_t instruction, const WriteLog::Record& a, const WriteLog::Record& b) {
  ++compared_instructions_;
  compared_writes_ += a.values.size();
  std::vector<uint64_t> different;
  for (const auto& [key, value] : a.values) {
    const auto other = b.values.find(key);
    if (other == b.values.end() || other->second.written != value.written ||
        !std::ranges::equal(a.of(value), b.of(other->second))) {
      different.push_back(key);
    }
  }
  for (const auto& [key, value] : b.values) {
    if (!a.values.contains(key)) different.push_back(key);
  }
  if (different.empty()) return true;
  const uint64_t first = *std::ranges::min_element(different);
  const WriteLog::Location location = WriteLog::location(first);
  const auto in_a = a.values.find(first), in_b = b.values.find(first);
  const bool dram = location.memory == Memory::kDram;
  std::string text = fmt::format("{}, ", describe(instruction));
  if (in_a == a.values.end() || in_b == b.values.end()) {
    const bool only_a = in_b == b.values.end();
    text += fmt::format("{}[{:#x}]: {} writes it, {} does not", name(location.memory),
                        dram ? location.address * WriteLog::kBlock : location.address,
                        only_a ? tested_.name : reference_.name, only_a ? reference_.name : tested_.name);
  } else if (dram) {
    const auto va = a.of(in_a->second), vb = b.of(in_b->second);
    for (size_t i = 0; i < WriteLog::kBlock; ++i) {
      const bool wa = (in_a->second.written >> i & 1) != 0, wb = (in_b->second.written >> i & 1) != 0;
      if (wa == wb && (!wa || va[i] == vb[i])) continue;
      const auto describe_byte = [&](bool written, std::byte value) {
        return written ? fmt::format("writes {:#04x}", static_cast<unsigned>(value)) : std::string("does not write it");
      };
      text += fmt::format("dram[{:#x}]: {} {}, {} {}", location.address * WriteLog::kBlock + i, tested_.name,
                          describe_byte(wa, va[i]), reference_.name, describe_byte(wb, vb[i]));
      break;
    }
  } else {
    const size_t width = location.memory == Memory::kAcc ? 4 : 1;
    const auto va = a.of(in_a->second), vb = b.of(in_b->second);
    const size_t lanes = std::min(va.size(), vb.size()) / width;
    size_t first_lane = lanes, count = 0;
    for (size_t i = lanes; i-- > 0;) {
      if (lane(va, width, i) != lane(vb, width, i)) first_lane = i, ++count;
    }
    if (first_lane == lanes) {
      text += fmt::format("{}[{:#x}]: {} writes {} bytes, {} {}", name(location.memory), location.address, tested_.name,
                          va.size(), reference_.name, vb.size());
    } else {
      text += fmt::format("{}[{:#x}] lane {}: {} has {}, {} has {}; {} of {} lanes differ", name(location.memory),
                          location.address, first_lane, tested_.name, lane(va, width, first_lane), reference_.name,
                          lane(vb, width, first_lane), count, lanes);
    }
  }
  if (different.size() > 1) {
    text += fmt::format("; {} more elements or DRAM blocks of this instruction differ", different.size() - 1);
  }
  diverge(instruction, std::move(text));
  return false;
}

void Lockstep::compare_ends() {
  Simulator& a = *tested_.simulator;
  Simulator& b = *reference_.simulator;
  const End end_a = end_of(a), end_b = end_of(b);
  if (end_a.code != end_b.code || (end_a.code != StopCode::kNone && end_a.index != end_b.index)) {
    const auto describe_end = [this](Simulator& simulator, const End& end) {
      if (end.code == StopCode::kNone) return std::string("finishes");
      const std::string why = simulator.explain();
      return fmt::format("stops at {}: {}{}{}", describe(end.index), spec::describe(end.code), why.empty() ? "" : ": ",
                         why);
    };
    return diverge(
        end_b.code == StopCode::kNone ? end_a.index : end_b.index,
        fmt::format("{} {}; {} {}", tested_.name, describe_end(a, end_a), reference_.name, describe_end(b, end_b)));
  }
  if (end_a.code != StopCode::kNone) return;

  const auto report_unmatched = [this](WriteLog& log, const std::string& side, const std::string& other) {
    uint32_t lowest = UINT32_MAX;
    for (const auto& [index, record] : log.done()) lowest = std::min(lowest, index);
    if (lowest != UINT32_MAX) {
      diverge(lowest, fmt::format("{} is done in {} and never in {}", describe(lowest), side, other));
    }
    for (const auto& [index, record] : log.open()) lowest = std::min(lowest, index);
    if (lowest != UINT32_MAX)
      diverge(lowest, fmt::format("{} writes in {} and is never done there", describe(lowest), side));
  };
  report_unmatched(tested_log_, tested_.name, reference_.name);
  report_unmatched(reference_log_, reference_.name, tested_.name);

  for (const auto& [counter, offset, words] : {std::tuple{"tokens", reg::kTokens, 13u},
                                               {"instructions done", reg::kInstructionsDone, 2u},
                                               {"multiplications", reg::kMacs, 2u}}) {
    for (uint32_t i = 0; i < words; ++i) {
      const uint32_t va = a.read_register(offset + 4 * i), vb = b.read_register(offset + 4 * i);
      if (va == vb) continue;
      diverge(0, fmt::format("at the end, {} (register {:#x}): {} has {:#x}, {} has {:#x}", counter, offset + 4 * i,
                             tested_.name, va, reference_.name, vb));
    }
  }

  const auto ma = a.memory(), mb = b.memory();
  if (std::memcmp(ma.data(), mb.data(), ma.size()) == 0) return;
  const auto at = std::ranges::mismatch(ma, mb).in1 - ma.begin();
  diverge(0,
          fmt::format("at the end, dram[{:#x}]: {} has {:#04x}, {} has {:#04x}, and no instruction's writes differ", at,
                      tested_.name, static_cast<unsigned>(ma[at]), reference_.name, static_cast<unsigned>(mb[at])));
}

}  // namespace tenon::sim
