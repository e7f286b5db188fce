#include "compiler/lower/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/base/first_fit.h"
#include "runtime/executable/liveness.h"
#include "support/visitor.h"

namespace tenon::compiler {
namespace {

using runtime::Register;
using runtime::Registers;

// The results of an instruction that computes tensors: of a kernel, of an accelerator program.
Registers tensor_results(const runtime::Operation& operation) {
  return std::visit(
      Overloaded{[](const runtime::CallKernel& c) { return c.results; },
                 [](const runtime::CallNative& c) { return c.results; },
                 [](const runtime::CallProgram& c) { return c.results; },
                 [](const runtime::Append& a) { return Registers{a.to}; }, [](const auto&) { return Registers(); }},
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
      if (runtime::ends_block(code[i].operation)) {
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
  if (!runtime::ends_block(code[0].operation)) {
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

std::vector<bool> find_reentered(std::span<const runtime::Function> functions) {
  // The last node is a call of a closure.
  const auto closures = static_cast<uint32_t>(functions.size());
  std::vector<std::vector<uint32_t>> calls(functions.size() + 1), nested(functions.size());
  for (uint32_t f = 0; f < functions.size(); ++f) {
    for (const runtime::Instruction& instruction : functions[f].code) {
      std::visit(
          Overloaded{[&](const runtime::CallFunction& c) { nested[f].push_back(c.function); },
                     [&](const runtime::CallClosure&) { nested[f].push_back(closures); },
                     [&](const runtime::TailCall& c) { calls[f].push_back(c.function); },
                     [&](const runtime::TailCallClosure&) { calls[f].push_back(closures); },
                     [&](const runtime::MakeClosure& m) { calls[closures].push_back(m.function); }, [](const auto&) {}},
          instruction.operation);
    }
    calls[f].insert(calls[f].end(), nested[f].begin(), nested[f].end());
  }
  const auto calls_itself = [&](uint32_t f) {
    std::vector<bool> seen(calls.size(), false);
    std::vector<uint32_t> open = nested[f];
    while (!open.empty()) {
      const uint32_t next = open.back();
      open.pop_back();
      if (next == f) return true;
      if (seen[next]) continue;
      seen[next] = true;
      open.insert(open.end(), calls[next].begin(), calls[next].end());
    }
    return false;
  };
  std::vector<bool> reentered(functions.size());
  for (uint32_t f = 0; f < functions.size(); ++f) reentered[f] = calls_itself(f);
  return reentered;
}

void forget_slots(runtime::Function& function) {
  for (runtime::Instruction& instruction : function.code) {
    if (auto* call = std::get_if<runtime::CallNative>(&instruction.operation)) call->slots.clear();
  }
}

FrameMemory place_results(runtime::Function& function, std::span<const runtime::NativeCode> natives) {
  static_assert(kMemoryAlignment % runtime::kArenaAlignment == 0);
  std::vector<runtime::ArenaSlot*> placed;
  std::vector<size_t> buffer_of;  // by result in the arena
  std::vector<LiveBuffer> buffers;
  int64_t outside_bytes = 0;
  const std::vector<runtime::ResultRange> ranges = runtime::result_ranges(function, natives);
  std::vector<std::optional<size_t>> buffer_of_range(ranges.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    const runtime::ResultRange& range = ranges[i];
    auto& slots = std::get<runtime::CallNative>(function.code[range.call].operation).slots;
    if (slots.empty() || slots[range.result].bytes == 0) continue;
    runtime::ArenaSlot& slot = slots[range.result];
    if (range.escapes) {
      outside_bytes += static_cast<int64_t>(slot.bytes);
      slot = {};
      continue;
    }
    const LiveBuffer buffer{range.call, range.last_use, aligned_bytes(static_cast<int64_t>(slot.bytes))};
    const auto replaced = range.replaces ? buffer_of_range[*range.replaces] : std::nullopt;
    if (replaced && buffers[*replaced].bytes == buffer.bytes) {
      buffers[*replaced].last = buffer.last;
      buffer_of_range[i] = replaced;
    } else {
      buffers.push_back(buffer);
      buffer_of_range[i] = buffers.size() - 1;
    }
    placed.push_back(&slot);
    buffer_of.push_back(*buffer_of_range[i]);
  }
  const ArenaPlan plan = first_fit(buffers);
  for (size_t i = 0; i < placed.size(); ++i) {
    *placed[i] = {static_cast<uint64_t>(plan.offsets[buffer_of[i]]),
                  static_cast<uint64_t>(buffers[buffer_of[i]].bytes)};
  }
  for (runtime::Instruction& instruction : function.code) {
    auto* call = std::get_if<runtime::CallNative>(&instruction.operation);
    if (call && std::ranges::all_of(call->slots, [](const runtime::ArenaSlot& slot) { return slot.bytes == 0; }))
      call->slots.clear();
  }
  function.arena_bytes = static_cast<uint64_t>(plan.bytes);
  FrameMemory memory = frame_memory(function, natives);
  memory.outside_bytes = outside_bytes;
  return memory;
}

std::vector<PlannedResult> planned_results(const runtime::Function& function,
                                           std::span<const runtime::NativeCode> natives) {
  std::vector<PlannedResult> planned;
  const std::vector<runtime::ResultRange> ranges = runtime::result_ranges(function, natives);
  const auto slot_of = [&](const runtime::ResultRange& range) {
    const auto& slots = std::get<runtime::CallNative>(function.code[range.call].operation).slots;
    return slots.empty() ? runtime::ArenaSlot() : slots[range.result];
  };
  auto range = ranges.begin();
  for (uint32_t i = 0; i < function.code.size(); ++i) {
    const Registers results = tensor_results(function.code[i].operation);
    const auto* native = std::get_if<runtime::CallNative>(&function.code[i].operation);
    for (uint32_t k = 0; k < results.size(); ++k) {
      PlannedResult& result = planned.emplace_back(PlannedResult{.call = i, .result = k, .last_use = i});
      if (!native) {
        result.outside = Outside::kOtherKernel;
        continue;
      }
      result.last_use = range->last_use;
      result.outside = range->escapes ? Outside::kEscapes : Outside::kUnbounded;
      result.slot = slot_of(*range);
      result.in_place = result.slot.bytes != 0 && range->replaces && slot_of(ranges[*range->replaces]) == result.slot;
      ++range;
    }
  }
  return planned;
}

FrameMemory frame_memory(const runtime::Function& function, std::span<const runtime::NativeCode> natives) {
  FrameMemory memory{.arena = static_cast<int64_t>(function.arena_bytes)};
  std::vector<int64_t> live(function.code.size() + 1);  // first the changes at each instruction, then their sums
  for (const PlannedResult& result : planned_results(function, natives)) {
    if (result.slot.bytes == 0) {
      ++memory.outside;
      continue;
    }
    ++memory.placed;
    const auto bytes = static_cast<int64_t>(result.slot.bytes);
    memory.total += bytes;
    memory.in_place += result.in_place ? 1 : 0;
    live[result.call + (result.in_place ? 1 : 0)] += bytes;  // until then the memory is the argument's
    live[result.last_use + 1] -= bytes;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  memory.peak = std::ranges::max(live);
  return memory;
}

std::string str(const FrameMemory& memory) {
  const std::string in_place = memory.in_place > 0 ? fmt::format(", {} of them in place", memory.in_place) : "";
  return fmt::format("{} results{} in an arena of {} bytes ({} live at once, {} without reuse); {} outside, {} bytes",
                     memory.placed, in_place, memory.arena, memory.peak, memory.total, memory.outside,
                     memory.outside_bytes);
}

}  // namespace tenon::compiler
