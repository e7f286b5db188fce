#include "compiler/lower/overlap.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/executable/liveness.h"

namespace tenon::compiler {
namespace {

using runtime::CallNative;
using runtime::CallProgram;
using runtime::Instruction;
using runtime::Operation;
using runtime::Registers;

// Registers that some instructions read and write, so that others must stay before or after these.
class Used {
 public:
  void add(const Operation& operation) {
    runtime::for_each_read(operation, [&](runtime::Register r) { read_.push_back(r); });
    runtime::for_each_write(operation, [&](runtime::Register r) { written_.push_back(r); });
  }
  // Whether the operation reads or writes what these write, or writes what these read.
  bool orders(const Operation& operation) const {
    bool found = false;
    runtime::for_each_read(operation, [&](runtime::Register r) { found |= has(written_, r); });
    runtime::for_each_write(operation, [&](runtime::Register r) { found |= has(written_, r) || has(read_, r); });
    return found;
  }

 private:
  static bool has(const Registers& registers, runtime::Register r) {
    return std::ranges::find(registers, r) != registers.end();
  }

  Registers read_, written_;
};

// The devices beside the processor, by what computes on them.
class Devices {
 public:
  static constexpr uint64_t kGpu = UINT64_MAX;

  Devices(uint32_t gpu_code, std::span<const uint64_t> accelerators)
      : gpu_code_(gpu_code), accelerators_(accelerators) {}

  // The device of a call, or of the start of one.
  std::optional<uint64_t> of_call(const Operation& operation) const {
    if (const auto* program = std::get_if<CallProgram>(&operation)) return accelerators_[program->program];
    const auto* native = std::get_if<CallNative>(&operation);
    return native && native->code == gpu_code_ ? std::optional(kGpu) : std::nullopt;
  }
  std::optional<uint64_t> of_start(const Operation& operation) const {
    if (const auto* program = std::get_if<runtime::StartProgram>(&operation)) return accelerators_[program->program];
    return std::holds_alternative<runtime::StartNative>(operation) ? std::optional(kGpu) : std::nullopt;
  }

 private:
  uint32_t gpu_code_;
  std::span<const uint64_t> accelerators_;
};

class BlockOrder {
 public:
  BlockOrder(std::vector<Instruction>& block, const Devices& devices, uint64_t device)
      : block_(block), devices_(devices), device_(device) {}

  void run() {
    for (size_t i = 0; i < block_.size(); ++i) {
      if (is_call(block_[i].operation)) i = overlap(i);
    }
  }

 private:
  bool is_call(const Operation& operation) const { return devices_.of_call(operation) == device_; }
  // The device's next work, code that may have some, and the ends of a block.
  bool is_barrier(const Operation& operation) const {
    return devices_.of_start(operation) == device_ || is_call(operation) ||
           runtime::facts(operation).flow != runtime::Flow::kNext;
  }
  // Of the CPU, or of another device.
  static bool is_work(const Instruction& instruction) {
    return std::holds_alternative<CallNative>(instruction.operation) ||
           std::holds_alternative<CallProgram>(instruction.operation);
  }
  static Operation start_of(const Operation& call) {
    if (const auto* program = std::get_if<CallProgram>(&call))
      return runtime::StartProgram{program->program, program->args};
    const auto& native = std::get<CallNative>(call);
    return runtime::StartNative{native.code, native.kernel, native.args};
  }

  size_t overlap(size_t at);

  std::vector<Instruction>& block_;
  const Devices& devices_;
  uint64_t device_;
};

// Moves what does not depend on the call at `at` before it, up to the next barrier; returns the call's index.
size_t BlockOrder::overlap(size_t at) {
  std::vector<Instruction>& block = block_;
  const Instruction begin{start_of(block[at].operation), block[at].layer};
  size_t start = at;
  // The start reads the arguments alone.
  Used inputs;
  inputs.add(begin.operation);
  while (start > 0 && !is_barrier(block[start - 1].operation) && !inputs.orders(block[start - 1].operation)) --start;
  Used dependent;
  dependent.add(block[at].operation);
  std::vector<Instruction> before(block.begin() + static_cast<std::ptrdiff_t>(start),
                                  block.begin() + static_cast<std::ptrdiff_t>(at)),
      after{block[at]};
  size_t end = at + 1;
  for (; end < block.size() && !is_barrier(block[end].operation); ++end) {
    const bool waits = dependent.orders(block[end].operation);
    if (waits) dependent.add(block[end].operation);
    (waits ? after : before).push_back(block[end]);
  }
  if (std::ranges::none_of(before, is_work)) return at;
  auto next = block.begin() + static_cast<std::ptrdiff_t>(start);
  next = std::ranges::move(before, next).out;
  std::ranges::move(after, next);
  block.insert(block.begin() + static_cast<std::ptrdiff_t>(start), begin);
  return start + 1 + before.size();
}

}  // namespace

void overlap_devices(runtime::Function& function, uint32_t gpu_code, std::span<const uint64_t> accelerators) {
  const Devices devices(gpu_code, accelerators);
  std::vector<uint64_t> used;  // the accelerators in the order of their calls, then the GPU
  for (const Instruction& instruction : function.code) {
    const auto device = devices.of_call(instruction.operation);
    if (device && std::ranges::find(used, *device) == used.end()) used.push_back(*device);
  }
  if (used.empty()) return;
  std::ranges::stable_partition(used, [](uint64_t device) { return device != Devices::kGpu; });
  std::vector<uint32_t> moved(function.code.size());  // by the first instruction of a block
  std::vector<Instruction> code;
  for (const runtime::LiveBlock& block : runtime::live_blocks(function)) {
    moved[block.begin] = static_cast<uint32_t>(code.size());
    std::vector<Instruction> made(std::make_move_iterator(function.code.begin() + block.begin),
                                  std::make_move_iterator(function.code.begin() + block.end));
    for (const uint64_t device : used) BlockOrder(made, devices, device).run();
    std::ranges::move(made, std::back_inserter(code));
  }
  for (Instruction& instruction : code)
    runtime::for_each_target(instruction.operation, [&](uint32_t& target) { target = moved[target]; });
  function.code = std::move(code);
}

}  // namespace tenon::compiler
