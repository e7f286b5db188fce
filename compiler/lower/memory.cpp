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
  const auto& code = function.code;
  // By instruction: registers that are emptied before it, if it begins a block, and after it.
  std::vector<Registers> before(code.size()), after(code.size());
  std::vector<bool> mentioned(function.registers, false);
  const auto blocks = runtime::live_blocks(function);
  for (const runtime::LiveBlock& block : blocks) {
    runtime::RegisterSet ended(function.registers);
    for (const uint32_t from : block.before) ended.insert(blocks[from].live_out);
    ended.for_each([&](Register r) {
      if (!block.live_in.contains(r)) before[block.begin].push_back(r);
    });
    runtime::RegisterSet live = block.live_out;
    for (uint32_t i = block.end; i-- > block.begin;) {
      const auto empty = [&](Register r) {
        mentioned[r] = true;
        if (!live.contains(r) && std::ranges::find(after[i], r) == after[i].end()) after[i].push_back(r);
      };
      runtime::for_each_read(code[i].operation, empty);
      runtime::for_each_write(code[i].operation, empty);
      // What both arms of a jump leave dead is emptied where they begin.
      const bool jumps =
          !runtime::falls_through(code[i].operation) || std::holds_alternative<runtime::Branch>(code[i].operation);
      if (jumps) {
        for (const uint32_t next : block.after) {
          Registers& there = before[blocks[next].begin];
          for (const Register r : after[i]) {
            if (std::ranges::find(there, r) == there.end()) there.push_back(r);
          }
        }
        after[i].clear();
      }
      runtime::for_each_write(code[i].operation, [&](Register r) { live.erase(r); });
      runtime::for_each_read(code[i].operation, [&](Register r) { live.insert(r); });
    }
  }
  // Parameters that nothing mentions.
  if (runtime::falls_through(code[0].operation) && !std::holds_alternative<runtime::Branch>(code[0].operation)) {
    for (Register r = 0; r < function.registers; ++r) {
      if (!mentioned[r]) after[0].push_back(r);
    }
  }
  std::vector<uint32_t> position(code.size());
  std::vector<runtime::Instruction> with_kills;
  const auto kill = [&](Registers& registers) {
    if (registers.empty()) return;
    std::ranges::sort(registers);
    with_kills.push_back({runtime::Kill{std::move(registers)}, ""});
  };
  for (size_t i = 0; i < code.size(); ++i) {
    position[i] = static_cast<uint32_t>(with_kills.size());
    kill(before[i]);
    with_kills.push_back(std::move(function.code[i]));
    kill(after[i]);
  }
  for (runtime::Instruction& i : with_kills) {
    runtime::for_each_target(i.operation, [&](uint32_t& target) { target = position[target]; });
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
