#include "sim/fuzz/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "hw/spec/registers.h"
#include "support/try.h"

namespace tenon::sim::fuzz {

namespace reg = spec::reg;

size_t Program::length() const {
  size_t sum = 0;
  for (const Launch& l : launches) sum += l.instructions.size();
  return sum;
}

void load(Simulator& simulator, const Program& program) {
  const auto memory = simulator.memory();
  assert(memory.size() >= program.memory.size());
  std::ranges::copy(program.memory, memory.begin());
  const spec::Isa isa(program.config);
  for (const Launch& launch : program.launches) {
    std::vector<spec::Slot> slots;
    for (const auto& instruction : launch.instructions) {
      [[maybe_unused]] const auto status = isa.encode(instruction, slots);
      assert(status);
    }
    if (!slots.empty()) std::memcpy(memory.data() + launch.stream, slots.data(), slots.size() * sizeof(spec::Slot));
  }
  simulator.write_register(reg::kCommand, spec::kTokenClear);
}

void start(Simulator& simulator, const Program& program, size_t launch) {
  const Launch& l = program.launches[launch];
  const auto write = [&](uint32_t offset, uint64_t value) {
    simulator.write_register(offset, static_cast<uint32_t>(value));
    simulator.write_register(offset + 4, static_cast<uint32_t>(value >> 32));
  };
  write(reg::kInstructions, l.stream);
  for (uint32_t i = 0; i < spec::kBases; ++i) write(reg::kBase0 + 8 * i, program.bases[i]);
  simulator.write_register(reg::kCount, l.slots());
  simulator.write_register(reg::kMode, l.profile == spec::Profile::kNative ? spec::kModeNative : 0);
  simulator.write_register(reg::kControl, spec::kApStart);
}

Status run_launch(Simulator& simulator, const Program& program, size_t launch, uint64_t cycles) {
  start(simulator, program, launch);
  constexpr uint64_t kStep = 1 << 16;
  const auto where = fmt::format("seed {}, launch {}", program.seed, launch);
  bool busy = true;
  for (uint64_t passed = 0; busy && passed < cycles; passed += kStep) {
    busy = simulator.advance(std::min(kStep, cycles - passed));
    if (!busy) break;
    if (const std::string why = simulator.explain(); !why.empty()) return error(why, where);
  }
  if (busy) return error(fmt::format("the launch is not done after {} cycles", cycles), where);
  const auto code = static_cast<spec::StopCode>(simulator.read_register(reg::kStatus) & 0xff);
  if (code == spec::StopCode::kNone) return {};
  return error(fmt::format("stopped: {}\n{}", spec::describe(code), simulator.explain()),
               fmt::format("{}, instruction {}", where, simulator.read_register(reg::kErrorIndex)));
}

Status run(Simulator& simulator, const Program& program, uint64_t cycles) {
  load(simulator, program);
  for (size_t i = 0; i < program.launches.size(); ++i) TENON_TRY(run_launch(simulator, program, i, cycles));
  return {};
}

std::string to_text(const Program& program) {
  const spec::Isa isa(program.config);
  std::string text = fmt::format("# configuration {}, seed {}, {} instructions, {} bytes of memory\n",
                                 program.config.name, program.seed, program.length(), program.memory.size());
  for (size_t i = 0; i < program.bases.size(); ++i) text += fmt::format("# base {}: {:#x}\n", i, program.bases[i]);
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    text += fmt::format("# launch {}: {} profile, stream at {:#x}\n", i, name(launch.profile), launch.stream);
    uint32_t slot = 0;
    for (const auto& instruction : launch.instructions) {
      text += fmt::format("{}  # {}\n", isa.disassemble(instruction), slot);
      slot += launch.profile == spec::Profile::kNative ? 2 : 1;
    }
  }
  return text;
}

}  // namespace tenon::sim::fuzz
