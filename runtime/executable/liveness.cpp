#include "runtime/executable/liveness.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

namespace tenon::runtime {
namespace {

using Held = std::vector<uint32_t>;  // the results that a register may hold, as indices into the ranges, sorted

void join(Held& to, const Held& more) {
  Held both;
  std::ranges::set_union(to, more, std::back_inserter(both));
  to = std::move(both);
}

// One walk through the code in its order. Jumps lead forward, so the walk has seen all paths to an instruction when it
// arrives there.
class Walk {
 public:
  Walk(const Function& function, std::span<const NativeCode> natives)
      : function_(function), natives_(natives), held_(function.registers) {}

  std::vector<ResultRange> run() {
    for (now_ = 0; now_ < function_.code.size(); ++now_) {
      if (const auto arriving = arriving_.find(now_); arriving != arriving_.end()) {
        for (size_t r = 0; r < held_.size(); ++r) join(held_[r], arriving->second[r]);
        arriving_.erase(arriving);
      }
      visit(function_.code[now_].operation);
    }
    if (unknown_) {
      for (ResultRange& range : ranges_) range.escapes = true;
    }
    std::vector<bool> replaced(ranges_.size(), false);
    for (ResultRange& range : ranges_) {
      if (!range.replaces) continue;
      const ResultRange& before = ranges_[*range.replaces];
      if (before.escapes || before.last_use != range.call || replaced[*range.replaces]) range.replaces.reset();
      else replaced[*range.replaces] = true;
    }
    return std::move(ranges_);
  }

 private:
  // Extends the live ranges of all results in the registers that the operation reads; returns these results.
  Held read_registers(const Operation& operation) {
    Held read;
    for_each_read(operation, [&](Register r) {
      work(read.size() + held_[r].size());
      if (!unknown_) join(read, held_[r]);
    });
    for (const uint32_t i : read) ranges_[i].last_use = now_;
    return read;
  }
  // A hostile file could make this walk quadratic.
  void work(size_t steps) { unknown_ |= (work_ += steps) > size_t{1} << 26; }
  void jump(uint32_t target) {
    unknown_ |= target <= now_;
    work(held_.size());
    if (unknown_) return;
    const auto [state, is_new] = arriving_.try_emplace(target, held_);
    for (size_t r = 0; r < held_.size() && !is_new; ++r) join(state->second[r], held_[r]);
  }

  void visit(const Operation& operation) {
    const Held read = read_registers(operation);
    const auto* native = std::get_if<CallNative>(&operation);  // the only one whose results are followed
    if (native) {
      begin_ranges(*native);
    } else {
      // What another frame, a cell or a closure gets may be stored anywhere.
      const Aliasing aliasing = facts(operation).aliasing;
      for (const uint32_t i : read) ranges_[i].escapes |= aliasing == Aliasing::kAnything;
      const Held results = aliasing == Aliasing::kResults ? read : Held();
      for_each_write(operation, [&](Register r) { held_[r] = results; });
    }
    for_each_target(operation, [&](uint32_t target) { jump(target); });
    if (!falls_through(operation)) std::ranges::fill(held_, Held());  // the next instruction is not reached from here
  }
  void begin_ranges(const CallNative& call) {
    const size_t first = ranges_.size();
    for (uint32_t i = 0; i < call.results.size(); ++i) ranges_.push_back({now_, i, now_, false, replaced_by(call, i)});
    for (size_t i = 0; i < call.results.size(); ++i) held_[call.results[i]] = {static_cast<uint32_t>(first + i)};
  }
  // The result that an argument has, and no argument which the kernel reads in another way may have, if this result may
  // be in the argument's memory.
  std::optional<uint32_t> replaced_by(const CallNative& call, uint32_t result) const {
    if (call.code >= natives_.size()) return std::nullopt;
    const std::vector<InPlace>& pairs = natives_[call.code].kernels[call.kernel].signature.in_place;
    const auto allowed = [&](size_t param) {
      return std::ranges::find(pairs, InPlace{result, static_cast<uint32_t>(param)}) != pairs.end();
    };
    for (size_t param = 0; param < call.args.size(); ++param) {
      if (!allowed(param) || held_[call.args[param]].size() != 1) continue;
      const uint32_t candidate = held_[call.args[param]].front();
      bool is_good = true;
      for (size_t other = 0; other < call.args.size(); ++other)
        is_good &=
            allowed(other) || std::ranges::find(held_[call.args[other]], candidate) == held_[call.args[other]].end();
      if (is_good) return candidate;
    }
    return std::nullopt;
  }

  const Function& function_;
  std::span<const NativeCode> natives_;
  uint32_t now_ = 0;  // the instruction
  std::vector<ResultRange> ranges_;
  std::vector<Held> held_;                          // by register
  std::map<uint32_t, std::vector<Held>> arriving_;  // by the target of jumps: `held_` of all of them, joined
  size_t work_ = 0;
  bool unknown_ = false;  // a jump leads back, or there is too much to follow
};

}  // namespace

void for_each_read(const Operation& operation, FunctionRef<void(const Register&)> visit) {
  visit_operands(operation, [&](const auto& operand, Role role, std::string_view) {
    if (role == Role::kRead || role == Role::kReadSize) visit_indices(operand, visit);
  });
}

void for_each_write(const Operation& operation, FunctionRef<void(const Register&)> visit) {
  visit_operands(operation, [&](const auto& operand, Role role, std::string_view) {
    if (role == Role::kWrite || role == Role::kErase) visit_indices(operand, visit);
  });
}

void rename_registers(Operation& operation, FunctionRef<Register(Register)> rename) {
  visit_operands(operation, [&](auto& operand, Role role, std::string_view) {
    if (is_register(role)) visit_indices(operand, [&](Register& r) { r = rename(r); });
  });
}

void for_each_target(const Operation& operation, FunctionRef<void(uint32_t)> visit) {
  visit_operands(operation, [&](const auto& operand, Role role, std::string_view) {
    if (role == Role::kTarget) visit_indices(operand, visit);
  });
}
void for_each_target(Operation& operation, FunctionRef<void(uint32_t&)> visit) {
  visit_operands(operation, [&](auto& operand, Role role, std::string_view) {
    if (role == Role::kTarget) visit_indices(operand, visit);
  });
}

std::vector<LiveBlock> live_blocks(const Function& function) {
  const auto& code = function.code;
  std::vector<bool> begins(code.size(), false);
  begins[0] = true;
  for (uint32_t i = 0; i < code.size(); ++i) {
    for_each_target(code[i].operation, [&](uint32_t target) { begins[target] = true; });
    if (ends_block(code[i].operation) && i + 1 < code.size()) begins[i + 1] = true;
  }
  std::vector<LiveBlock> blocks;
  std::vector<uint32_t> block_of(code.size());
  for (uint32_t i = 0; i < code.size(); ++i) {
    if (begins[i]) blocks.push_back({i, i, {}, {}, RegisterSet(function.registers), RegisterSet(function.registers)});
    blocks.back().end = i + 1;
    block_of[i] = static_cast<uint32_t>(blocks.size() - 1);
  }
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    const Operation& last = code[blocks[b].end - 1].operation;
    const auto edge = [&](uint32_t to) {
      blocks[b].after.push_back(to);
      blocks[to].before.push_back(b);
    };
    for_each_target(last, [&](uint32_t target) { edge(block_of[target]); });
    if (falls_through(last) && b + 1 < blocks.size()) edge(b + 1);
  }
  std::vector<uint32_t> open(blocks.size());
  std::vector<bool> is_open(blocks.size(), true);
  for (uint32_t b = 0; b < blocks.size(); ++b) open[b] = b;
  while (!open.empty()) {
    LiveBlock& block = blocks[open.back()];
    is_open[open.back()] = false;
    open.pop_back();
    for (const uint32_t next : block.after) block.live_out.insert(blocks[next].live_in);
    RegisterSet live = block.live_out;
    for (uint32_t i = block.end; i-- > block.begin;) {
      for_each_write(code[i].operation, [&](Register r) { live.erase(r); });
      for_each_read(code[i].operation, [&](Register r) { live.insert(r); });
    }
    if (!block.live_in.insert(live)) continue;
    for (const uint32_t previous : block.before) {
      if (!is_open[previous]) open.push_back(previous), is_open[previous] = true;
    }
  }
  return blocks;
}

std::vector<ResultRange> result_ranges(const Function& function, std::span<const NativeCode> natives) {
  return Walk(function, natives).run();
}

}  // namespace tenon::runtime
