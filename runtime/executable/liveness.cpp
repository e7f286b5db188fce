#include "runtime/executable/liveness.h"

#include <iterator>
#include <map>
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
  explicit Walk(const Function& function) : function_(function), held_(function.registers) {}

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
  void write(const Operation& operation, const Held& held) {
    for_each_write(operation, [&](Register r) { held_[r] = held; });
  }
  void jump(uint32_t target) {
    unknown_ |= target <= now_;
    work(held_.size());
    if (unknown_) return;
    const auto [state, is_new] = arriving_.try_emplace(target, held_);
    for (size_t r = 0; r < held_.size() && !is_new; ++r) join(state->second[r], held_[r]);
  }

  void visit(const Operation& operation) {
    const Held read = read_registers(operation);
    const auto may_return_arguments = [&] { write(operation, read); };
    const auto makes_its_own = [&] { write(operation, {}); };
    std::visit(Overloaded{[&](const CallNative& c) {
                            for (size_t i = 0; i < c.results.size(); ++i) {
                              held_[c.results[i]] = {static_cast<uint32_t>(ranges_.size())};
                              ranges_.push_back({now_, static_cast<uint32_t>(i), now_});
                            }
                          },
                          [&](const CallKernel&) { may_return_arguments(); },
                          [&](const CallFunction&) { may_return_arguments(); },
                          [&](const Move&) { may_return_arguments(); }, [&](const CallProgram&) { makes_its_own(); },
                          [&](const LoadConstant&) { makes_its_own(); }, [&](const Kill&) { makes_its_own(); },
                          [&](const Jump& j) {
                            jump(j.target);
                            std::ranges::fill(held_, Held());  // the next instruction is not reached from here
                          },
                          [&](const Branch& b) { jump(b.otherwise); },
                          [&](const Return&) {
                            for (const uint32_t i : read) ranges_[i].escapes = true;
                          }},
               operation);
  }

  const Function& function_;
  uint32_t now_ = 0;  // the instruction
  std::vector<ResultRange> ranges_;
  std::vector<Held> held_;                          // by register
  std::map<uint32_t, std::vector<Held>> arriving_;  // by the target of jumps: `held_` of all of them, joined
  size_t work_ = 0;
  bool unknown_ = false;  // a jump leads back, or there is too much to follow
};

}  // namespace

std::vector<uint32_t> last_uses(const Function& function) {
  std::vector<uint32_t> last(function.registers, 0);
  for (uint32_t i = 0; i < function.code.size(); ++i) {
    const auto use = [&](Register r) { last[r] = i; };
    for_each_read(function.code[i].operation, use);
    for_each_write(function.code[i].operation, use);
  }
  return last;
}

std::vector<ResultRange> result_ranges(const Function& function) { return Walk(function).run(); }

}  // namespace tenon::runtime
