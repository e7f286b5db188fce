#include "runtime/executable/storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "support/visitor.h"

namespace tenon::runtime {
namespace {

using Held = std::vector<uint32_t>;  // results, sorted

void join(Held& all, const Held& more) {
  Held both;
  std::ranges::set_union(all, more, std::back_inserter(both));
  all = std::move(both);
}

// One walk through the code in its order. Jumps lead forward, so what a register may hold where ways meet is known when
// the walk comes there.
class Walk {
 public:
  explicit Walk(const Function& function) : function_(function), held_(function.registers) {}

  std::vector<StoredResult> run() {
    for (now_ = 0; now_ < function_.code.size(); ++now_) {
      if (const auto arriving = arriving_.find(now_); arriving != arriving_.end()) {
        for (size_t r = 0; r < held_.size(); ++r) join(held_[r], arriving->second[r]);
        arriving_.erase(arriving);
      }
      visit(function_.code[now_].operation);
    }
    if (unknown_) {
      for (StoredResult& one : results_) one.leaves = true;
    }
    return std::move(results_);
  }

 private:
  Held use(const Registers& registers) {
    Held all;
    for (const Register r : registers) {
      work(all.size() + held_[r].size());
      if (!unknown_) join(all, held_[r]);
    }
    for (const uint32_t i : all) results_[i].last = now_;
    return all;
  }
  // A hostile file could make this walk quadratic.
  void work(size_t steps) { unknown_ |= (work_ += steps) > size_t{1} << 26; }
  void put(const Registers& registers, const Held& held) {
    for (const Register r : registers) held_[r] = held;
  }
  void jump(uint32_t target) {
    unknown_ |= target <= now_;
    work(held_.size());
    if (unknown_) return;
    const auto [there, is_new] = arriving_.try_emplace(target, held_);
    for (size_t r = 0; r < held_.size() && !is_new; ++r) join(there->second[r], held_[r]);
  }

  void visit(const Operation& operation) {
    std::visit(
        Overloaded{[&](const CallNative& c) {
                     use(c.args);
                     for (size_t i = 0; i < c.results.size(); ++i) {
                       held_[c.results[i]] = {static_cast<uint32_t>(results_.size())};
                       results_.push_back({now_, static_cast<uint32_t>(i), now_});
                     }
                   },
                   [&](const CallKernel& c) { put(c.results, use(c.args)); },
                   [&](const CallFunction& c) { put(c.results, use(c.args)); },
                   [&](const CallProgram& c) {
                     use(c.args);
                     put(c.results, {});
                   },
                   [&](const Move& m) { put({m.to}, use({m.from})); }, [&](const LoadConstant& c) { put({c.to}, {}); },
                   [&](const Jump& j) {
                     jump(j.target);
                     std::ranges::fill(held_, Held());  // nobody comes behind it from here
                   },
                   [&](const Branch& b) {
                     use({b.condition});
                     jump(b.otherwise);
                   },
                   [&](const Kill& k) { put(k.registers, {}); },
                   [&](const Return& r) {
                     for (const uint32_t i : use(r.values)) results_[i].leaves = true;
                   }},
        operation);
  }

  const Function& function_;
  uint32_t now_ = 0;
  std::vector<StoredResult> results_;
  std::vector<Held> held_;  // by register
  std::map<uint32_t, std::vector<Held>> arriving_;
  size_t work_ = 0;
  bool unknown_ = false;  // a jump leads back, or there is too much to follow
};

}  // namespace

std::vector<StoredResult> stored_results(const Function& function) { return Walk(function).run(); }

std::string check_places(const Function& function) {
  const bool planned = std::ranges::any_of(function.code, [](const Instruction& instruction) {
    const auto* call = std::get_if<CallNative>(&instruction.operation);
    return call && !call->places.empty();
  });
  if (!planned) return function.arena_bytes == 0 ? "" : "it has an arena, and nothing that lies there";
  std::map<uint64_t, uint64_t> taken;       // places in use, and their ends
  std::multimap<uint32_t, uint64_t> dying;  // by the last instruction that reads them
  for (const StoredResult& one : stored_results(function)) {
    const auto& call = std::get<CallNative>(function.code[one.first].operation);
    if (call.places.empty() || call.places[one.result].bytes == 0) continue;
    const auto [offset, bytes] = call.places[one.result];
    const std::string shown = fmt::format("instruction {}: the place of result {}", one.first, one.result);
    if (offset % kPlaceAlignment != 0 || bytes > function.arena_bytes || offset > function.arena_bytes - bytes)
      return fmt::format("{} is {} bytes at {} in an arena of {}", shown, bytes, offset, function.arena_bytes);
    if (one.leaves) return fmt::format("{} may outlive the call", shown);
    while (!dying.empty() && dying.begin()->first < one.first) {
      taken.erase(dying.begin()->second);
      dying.erase(dying.begin());
    }
    const auto next = taken.lower_bound(offset);
    if ((next != taken.end() && next->first < offset + bytes) ||
        (next != taken.begin() && std::prev(next)->second > offset))
      return fmt::format("{} is in use", shown);
    taken.emplace(offset, offset + bytes);
    dying.emplace(one.last, offset);
  }
  return {};
}

}  // namespace tenon::runtime
