#include "compiler/lower/memory.h"

#include <fmt/format.h>

#include <utility>
#include <variant>
#include <vector>

#include "compiler/base/first_fit.h"
#include "runtime/executable/liveness.h"

namespace tenon::compiler {
namespace {

using runtime::Register;
using runtime::Registers;

const Registers* call_results(const runtime::Operation& operation) {
  return std::visit(
      [](const auto& x) -> const Registers* {
        if constexpr (requires { x.results; }) return &x.results;
        else return nullptr;
      },
      operation);
}

}  // namespace

void insert_kills(runtime::Function& function) {
  const std::vector<uint32_t> last = runtime::last_uses(function);
  std::vector<Registers> unused(function.code.size());  // by instruction: registers that nothing uses after it
  for (Register r = 0; r < function.registers; ++r) unused[last[r]].push_back(r);
  std::vector<runtime::Instruction> with_kills;
  for (size_t i = 0; i < function.code.size(); ++i) {
    const bool returns = std::holds_alternative<runtime::Return>(function.code[i].operation);
    with_kills.push_back(std::move(function.code[i]));
    if (!returns && !unused[i].empty()) with_kills.push_back({runtime::Kill{std::move(unused[i])}, ""});
  }
  function.code = std::move(with_kills);
}

FrameMemory place_results(runtime::Function& function, const std::map<Register, int64_t>& bytes) {
  static_assert(kMemoryAlignment % runtime::kArenaAlignment == 0);
  const auto call = [&](const runtime::ResultRange& range) -> runtime::CallNative& {
    return std::get<runtime::CallNative>(function.code[range.call].operation);
  };
  std::vector<runtime::ResultRange> placed;
  std::vector<LiveBuffer> buffers;
  for (const runtime::ResultRange& range : runtime::result_ranges(function)) {
    const auto size = bytes.find(call(range).results[range.result]);
    if (range.escapes || size == bytes.end() || size->second == 0) continue;
    placed.push_back(range);
    buffers.push_back({range.call, range.last_use, aligned_bytes(size->second)});
  }
  const ArenaPlan plan = first_fit(buffers);
  for (size_t i = 0; i < placed.size(); ++i) {
    auto& slots = call(placed[i]).slots;
    slots.resize(call(placed[i]).results.size());
    slots[placed[i].result] = {static_cast<uint64_t>(plan.offsets[i]), static_cast<uint64_t>(buffers[i].bytes)};
  }
  function.arena_bytes = static_cast<uint64_t>(plan.bytes);

  FrameMemory memory{.placed = placed.size(), .arena = plan.bytes, .peak = plan.peak, .total = plan.total};
  for (const runtime::Instruction& instruction : function.code) {
    const Registers* results = call_results(instruction.operation);
    const auto* native = std::get_if<runtime::CallNative>(&instruction.operation);
    for (size_t i = 0; results && i < results->size(); ++i) {
      if (native && !native->slots.empty() && native->slots[i].bytes != 0) continue;
      ++memory.outside;
      const auto size = bytes.find((*results)[i]);
      if (size != bytes.end()) memory.outside_bytes += size->second;
    }
  }
  return memory;
}

std::string str(const FrameMemory& memory) {
  return fmt::format("{} results in an arena of {} bytes ({} live at once, {} without reuse); {} outside, {} bytes",
                     memory.placed, memory.arena, memory.peak, memory.total, memory.outside, memory.outside_bytes);
}

}  // namespace tenon::compiler
