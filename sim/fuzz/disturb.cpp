#include "sim/fuzz/disturb.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "hw/spec/registers.h"
#include "sim/behavioral/behavioral.h"
#include "support/random.h"
#include "support/try.h"

namespace tenon::sim::fuzz {
namespace {

namespace reg = spec::reg;

constexpr uint64_t kResetCycles = 100'000;  // for the outstanding transfers of any memory of the campaigns

// The values that the stores of a launch give to each byte of memory.
class StoredValues final : public WriteObserver {
 public:
  void on_write(const Write& w) override {
    if (w.memory != spec::Memory::kDram) return;
    for (size_t i = 0; i < w.value.size(); ++i) values_[w.address + i].insert(w.value[i]);
  }
  void on_done(uint32_t) override {}
  // Between its first and its last write, a store that writes a byte twice leaves values that no observer sees.
  void exempt(const Range& range) { exempt_.push_back(range); }

  bool allows(uint64_t address, std::byte value) const {
    const auto found = values_.find(address);
    if (found != values_.end() && found->second.contains(value)) return true;
    return std::ranges::any_of(exempt_, [&](const Range& r) { return address >= r.begin && address < r.end; });
  }

 private:
  std::map<uint64_t, std::set<std::byte>> values_;
  std::vector<Range> exempt_;
};

bool writes_a_byte_twice(const Dma& dma) {
  const int64_t row = (dma.vectors - 1) * dma.x_step + dma.valid;
  return (dma.vectors > 1 && dma.x_step < dma.valid) || (dma.rows > 1 && std::abs(dma.y_step) < row);
}

// The values that launch `launch` stores, by the behavioral simulator.
Expected<StoredValues> stored_values(const Program& program, size_t launch) {
  TENON_TRY_ASSIGN(reference, make_behavioral(program.config, {.memory_bytes = program.memory.size()}));
  StoredValues values;
  load(**reference, program);
  for (size_t i = 0; i <= launch; ++i) {
    if (i == launch) (*reference)->observe(&values);
    TENON_TRY(run_launch(**reference, program, i, uint64_t{1} << 32));
  }
  for (const auto& instruction : program.launches[launch].instructions) {
    const auto dma = dma_of(program.config, instruction, program.bases);
    if (dma && dma->store && writes_a_byte_twice(*dma)) values.exempt(bounding_range(*dma));
  }
  return values;
}

// Advances to a random cycle of the launch: any, or one in which a random engine, stores first of all, has an
// instruction in flight. Returns the cycles.
uint64_t advance_somewhere(Simulator& simulator, Random& random) {
  uint64_t passed = 0;
  const auto step = [&](int64_t cycles) {
    passed += static_cast<uint64_t>(cycles);
    return simulator.advance(static_cast<uint64_t>(cycles));
  };
  if (random.chance(30)) {
    step(random.between(0, random.of({100, 1000, 10000})));
    return passed;
  }
  using spec::Engine;
  const auto engine = random.of({Engine::kSt, Engine::kSt, Engine::kSt, Engine::kLdi, Engine::kLdm, Engine::kGemm});
  step(random.between(0, 3000));
  while (passed < kResetCycles && step(random.between(1, 8)) &&
         (simulator.read_register(reg::kActivity) >> 8 & spec::bit(engine)) == 0) {
  }
  step(random.between(0, 30));
  return passed;
}

// The registers after a soft reset of an idle accelerator: nothing of a launch is left.
Status check_registers(Simulator& simulator) {
  const auto expect = [&](std::string_view name, uint32_t offset, uint32_t words, uint32_t value) -> Status {
    for (uint32_t i = 0; i < words; ++i) {
      const uint32_t found = simulator.read_register(offset + 4 * i);
      if (found == value) continue;
      return error(fmt::format("after a soft reset, {} (register {:#x}) is {:#x}, must be {:#x}", name, offset + 4 * i,
                               found, value));
    }
    return {};
  };
  TENON_TRY(expect("control", reg::kControl, 1, spec::kApIdle));
  TENON_TRY(expect("status", reg::kStatus, 1, 0));
  TENON_TRY(expect("error index", reg::kErrorIndex, 1, 0));
  TENON_TRY(expect("waiting heads", reg::kTokenWait, 1, 0));
  TENON_TRY(expect("tokens", reg::kTokens, (spec::kEngines * spec::kEngines + 3) / 4, 0));
  TENON_TRY(expect("counters", reg::kCycles, 14, 0));
  TENON_TRY(expect("busy cycles", reg::kBusy0, 2 * spec::kEngines, 0));
  TENON_TRY(expect("stalled cycles", reg::kStall0, 2 * spec::kEngines, 0));
  return expect("progress", reg::kHead0, spec::kEngines + 3, 0);
}

// Gives the transfer an address such that its last byte, or all of it, is past the end of memory: all of a store, which
// must not overwrite the instructions at the end.
bool move_past_end(spec::Instruction& instruction, const Program& program, Random& random) {
  auto dma = dma_of(program.config, instruction, program.bases);
  if (!dma || dma->units() == 0) return false;
  const Range range = bounding_range(*dma);
  if (range.begin >= range.end) return false;
  const auto end = static_cast<int64_t>(program.memory.size());
  // The last byte is `past` bytes past the end.
  const int64_t length = static_cast<int64_t>(range.end - range.begin);
  const int64_t past =
      !dma->store && random.chance(50) ? random.between(1, length) : random.between(length, length + 5000);
  // Addresses beyond those of the configuration are in its memory again.
  if (static_cast<uint64_t>(end + past + dma->vector_bytes) > program.config.address_mask()) return false;
  const int64_t shift = end + past - static_cast<int64_t>(range.end);
  if (auto* m = std::get_if<spec::native::Move>(&instruction)) {
    m->offset += shift;
    return m->offset >= 0 && m->offset < (int64_t{1} << 32);
  }
  auto& transfer = std::holds_alternative<spec::base::Load>(instruction)
                       ? static_cast<spec::base::Transfer&>(std::get<spec::base::Load>(instruction))
                       : std::get<spec::base::Store>(instruction);
  transfer.dram_base += (shift + dma->vector_bytes - 1) / dma->vector_bytes;
  return transfer.dram_base >= 0 && transfer.dram_base < (int64_t{1} << 32);
}

// The strides of computations, in both profiles.
constexpr std::string_view kStrides[] = {
    "dst_factor_out", "dst_factor_in", "src_factor_out", "src_factor_in", "wgt_factor_out", "wgt_factor_in", "dst_y",
    "dst_x",          "src_r0",        "src_r1",         "src_r2",        "src_y",          "src_x",         "wgt_r0",
    "wgt_r1",         "wgt_r2",        "acc_pitch",      "acc_step",      "out_pitch",      "res_pitch"};

spec::Instruction without_tokens(spec::Instruction instruction) {
  std::visit(
      [](auto& i) {
        if constexpr (requires { i.signal; }) i.wait = i.signal = 0;
        if constexpr (requires { i.pop_prev; }) i.pop_prev = i.pop_next = i.push_prev = i.push_next = 0;
      },
      instruction);
  return instruction;
}

// The instruction with tokens for its neighbors, and none that it waits for.
spec::Instruction with_signals(spec::Instruction instruction) {
  std::visit(
      [](auto& i) {
        if constexpr (requires { i.signal; }) i.signal = spec::bit(spec::Engine::kLdi) | spec::bit(spec::Engine::kSt);
        if constexpr (requires { i.push_prev; }) i.push_prev = i.push_next = 1;
      },
      instruction);
  return instruction;
}

std::vector<uint32_t> token_words(Simulator& simulator) {
  std::vector<uint32_t> words;
  for (uint32_t i = 0; i < spec::kEngines * spec::kEngines; i += 4) {
    words.push_back(simulator.read_register(reg::kTokens + i));
  }
  return words;
}

// The instruction with one of its strides near the largest value; the same one where it has none.
spec::Instruction with_long_stride(const spec::Config& config, const spec::Instruction& instruction, Random& random) {
  const spec::Isa isa(config);
  std::vector<const spec::Field*> strides;
  for (const spec::Field& field : isa.formats()[instruction.index()].fields) {
    if (std::ranges::find(kStrides, field.name) != std::end(kStrides)) strides.push_back(&field);
  }
  std::vector<spec::Slot> slots;
  if (strides.empty() || !isa.encode(instruction, slots)) return instruction;
  const spec::Field& field = *strides[static_cast<size_t>(random.between(0, static_cast<int64_t>(strides.size()) - 1))];
  const auto value = static_cast<uint64_t>(field.max() - random.between(0, std::min<int64_t>(field.max(), 3)));
  for (int bit = 0; bit < field.width; ++bit) {
    const auto at = static_cast<size_t>(field.lsb + bit);
    uint64_t& word = slots[at / 128][at / 64 % 2];
    word = (word & ~(uint64_t{1} << at % 64)) | (value >> bit & 1) << at % 64;
  }
  const auto decoded = isa.decode(slots, 0, spec::profile_of(instruction));
  return decoded ? *decoded : instruction;
}

}  // namespace

std::optional<Fault> plant_bus_error(const Program& program, uint64_t seed) {
  Random random(seed * 6151 + 11);
  for (int tries = 0; tries < 100; ++tries) {
    const auto launch = static_cast<size_t>(random.between(0, static_cast<int64_t>(program.launches.size()) - 1));
    const auto& instructions = program.launches[launch].instructions;
    if (instructions.empty()) continue;
    const auto index = static_cast<size_t>(random.between(0, static_cast<int64_t>(instructions.size()) - 1));
    spec::Instruction wrong = instructions[index];
    if (!move_past_end(wrong, program, random)) continue;
    Fault planted{.program = program, .launch = launch};
    planted.slot = static_cast<uint32_t>(index) * (program.launches[launch].profile == spec::Profile::kNative ? 2 : 1);
    planted.code =
        spec::engine_of(wrong) == spec::Engine::kSt ? spec::StopCode::kWriteError : spec::StopCode::kReadError;
    planted.program.launches[launch].instructions[index] = std::move(wrong);
    return planted;
  }
  return std::nullopt;
}

std::optional<Fault> plant_range_error(const Program& program, uint64_t seed) {
  Random random(seed * 7919 + 13);
  for (int tries = 0; tries < 100; ++tries) {
    const auto launch = static_cast<size_t>(random.between(0, static_cast<int64_t>(program.launches.size()) - 1));
    const auto& instructions = program.launches[launch].instructions;
    if (instructions.empty()) continue;
    const auto some = [&] { return instructions[random.next() % instructions.size()]; };
    const spec::Instruction right = some(), next = some();
    const spec::Instruction wrong = with_long_stride(program.config, right, random);
    if (wrong == right || spec::engine_of(next) != spec::engine_of(wrong)) continue;
    Fault planted{.program = program, .launch = launch, .code = spec::StopCode::kScratchpadRange, .alone = true};
    planted.program.launches[launch].instructions = {with_signals(without_tokens(wrong)), without_tokens(next)};
    // A new one has nothing that an earlier program has loaded.
    const auto reference = make_behavioral(program.config, {.memory_bytes = program.memory.size()});
    if (reference && run_fault(**reference, planted, uint64_t{1} << 32)) return planted;
  }
  return std::nullopt;
}

Status run_fault(Simulator& simulator, const Fault& fault, uint64_t cycles) {
  load(simulator, fault.program);
  for (size_t i = 0; i < fault.launch; ++i) TENON_TRY(run_launch(simulator, fault.program, i, cycles));
  const auto before = token_words(simulator);
  const auto end = run_launch(simulator, fault.program, fault.launch, cycles);
  const auto code = static_cast<spec::StopCode>(simulator.read_register(reg::kStatus) & 0xff);
  const uint32_t slot = simulator.read_register(reg::kErrorIndex);
  const auto where = fmt::format("seed {}, launch {}, instruction {}", fault.program.seed, fault.launch, fault.slot);
  if (!end && code == fault.code && slot == fault.slot) {
    if (!fault.alone || token_words(simulator) == before) return {};
    return error("the wrong instruction gives its tokens", where);
  }
  return error(fmt::format("the wrong instruction must stop with \"{}\"; {}", spec::describe(fault.code),
                           end ? std::string("the launch finishes") : end.error().str()),
               where);
}

Status interrupt(Simulator& simulator, const Program& program, uint64_t seed, uint64_t cycles) {
  Random random(seed * 3571 + 17);
  const auto launch = static_cast<size_t>(random.between(0, static_cast<int64_t>(program.launches.size()) - 1));
  TENON_TRY_ASSIGN(values, stored_values(program, launch));
  load(simulator, program);
  for (size_t i = 0; i < launch; ++i) TENON_TRY(run_launch(simulator, program, i, cycles));
  const std::vector<std::byte> before(simulator.memory().begin(), simulator.memory().end());
  start(simulator, program, launch);
  const uint64_t cycle = advance_somewhere(simulator, random);
  if (const std::string why = simulator.explain(); !why.empty())
    return error(why, fmt::format("seed {}, launch {}", program.seed, launch));
  simulator.write_register(reg::kCommand, spec::kSoftReset);
  const std::string where =
      fmt::format("seed {}, a soft reset {} cycles after the start of launch {}", program.seed, cycle, launch);
  const bool busy = simulator.advance(kResetCycles);
  if (const std::string why = simulator.explain(); !why.empty()) return error(why, where);
  if (busy) return error(fmt::format("still busy {} cycles after the reset", kResetCycles), where);
  TENON_TRY(check_registers(simulator));
  const auto after = simulator.memory();
  for (size_t i = 0; i < before.size(); ++i) {
    if (after[i] == before[i] || values->allows(i, after[i])) continue;
    return error(fmt::format("dram[{:#x}] is {:#04x}, was {:#04x}, and no store of the launch writes this value", i,
                             static_cast<unsigned>(after[i]), static_cast<unsigned>(before[i])),
                 where);
  }
  return {};
}

Status run_disturbed(Simulator& simulator, const Program& program, uint64_t cycles) {
  const uint64_t dice = program.seed * 2654435761 >> 8 & 0xffff;
  if (dice % 10 < 3) TENON_TRY(interrupt(simulator, program, program.seed, cycles));
  if (dice % 10 > 6) {
    if (const auto wrong = plant_bus_error(program, program.seed)) TENON_TRY(run_fault(simulator, *wrong, cycles));
  }
  if (dice % 10 >= 3 && dice % 10 < 6) {
    if (const auto wrong = plant_range_error(program, program.seed)) TENON_TRY(run_fault(simulator, *wrong, cycles));
  }
  return run(simulator, program, cycles);
}

}  // namespace tenon::sim::fuzz
