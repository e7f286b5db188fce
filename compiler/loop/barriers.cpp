// Barriers between the phases of a block.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "compiler/loop/access.h"
#include "compiler/loop/bindings.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::loop {
namespace {

// Where a statement accesses a buffer: everywhere, or where its first index is value % count.
struct Slot {
  Dim value;
  int64_t count = 0;  // 0: everywhere
  bool operator==(const Slot&) const = default;
};
using Slots = std::vector<Slot>;

// What the phases since the last barrier may have accessed.
struct Pending {
  std::map<BufferId, Slots> read, written;

  void add(const Pending& other) {
    for (const auto& [id, slots] : other.read) read[id].insert(read[id].end(), slots.begin(), slots.end());
    for (const auto& [id, slots] : other.written) written[id].insert(written[id].end(), slots.begin(), slots.end());
  }
  // The same accesses without the slots, whose values change in loops.
  Pending anywhere() const {
    Pending result;
    for (const auto& [id, slots] : read) result.read[id] = {{}};
    for (const auto& [id, slots] : written) result.written[id] = {{}};
    return result;
  }
  // The same accesses in the iteration of a loop that is so much earlier.
  Pending before(TypeContext& context, Symbol loop, int64_t distance) const {
    Pending result = *this;
    const std::map<Symbol, Dim> earlier{{loop, context.subtract(context.dim(loop), context.dim(distance))}};
    for (auto* accessed : {&result.read, &result.written}) {
      for (auto& [id, slots] : *accessed)
        for (Slot& slot : slots)
          if (slot.count > 0) slot.value = context.substitute(slot.value, earlier);
    }
    return result;
  }
};

// The value and the count if the index is a remainder.
Slot slot_of(TypeContext& context, Dim index) {
  for (const DimTerm& term : index.node->terms) {
    if (term.factors.size() != 1 || term.factors[0]->kind != DimAtom::Kind::kFloorDivide) continue;
    const Dim value = term.factors[0]->args[0];
    const auto count = term.factors[0]->args[1].constant();
    if (count && *count > 1 && context.modulo(value, context.dim(*count)) == index) return {value, *count};
  }
  return {};
}

bool are_disjoint(TypeContext& context, const Slot& a, const Slot& b) {
  if (a.count == 0 || a.count != b.count) return false;
  const auto distance = context.subtract(a.value, b.value).constant();
  return distance && *distance % a.count != 0;
}

class BarrierInserter {
 public:
  BarrierInserter(TypeContext& context, const Function& function) : context_(context) {
    // Each thread has its own elements of the registers that its block allocates, and its own buffers.
    for_each_statement(function.body, [&](const Stmt& stmt) {
      const auto* alloc = std::get_if<Alloc>(&stmt.form);
      if (alloc && alloc->scope == Scope::kRegisters) private_.insert(alloc->buffer);
      const auto* stage = std::get_if<Stage>(&stmt.form);
      if (stage && stage->async) copied_[std::get<Store>(stage->body.front().form).buffer] = {{}};
      const auto* loop = std::get_if<For>(&stmt.form);
      if (!loop || !binds_thread(loop->kind)) return;
      for_each_statement(loop->body, [&](const Stmt& inner) {
        if (const auto* own = std::get_if<Alloc>(&inner.form)) private_.insert(own->buffer);
      });
    });
  }

  void launches(Body& body) {
    for (Stmt& stmt : body) {
      auto* loop = std::get_if<For>(&stmt.form);
      if (loop && binds_block(loop->kind)) block(*loop);
      else for_each_body(stmt, [&](Body& inner) { launches(inner); });
    }
  }

 private:
  void block(For& loop) {
    if (loop.body.size() == 1) {
      if (auto* inner = std::get_if<For>(&loop.body[0].form); inner && binds_block(inner->kind)) return block(*inner);
    }
    Pending pending;
    statements(loop.body, pending);
  }

  Pending accesses(const Stmt& stmt) const {
    Pending found;
    const auto add = [&](const Access& access, const Stage* stage) {
      if (private_.contains(access.buffer)) return;
      Slot slot;
      if (stage && !access.indices.empty() && access.size(0) <= 1)
        slot = slot_of(context_, over_loops(context_, *stage, {access.indices[0]})[0]);
      Slots& slots = (access.writes ? found.written : found.read)[access.buffer];
      const bool is_known =
          std::ranges::any_of(slots, [&](const Slot& other) { return other.count == 0 || other == slot; });
      if (!is_known) slots.push_back(slot);
    };
    const Stage* const none = nullptr;
    const auto visit = [&](const Stmt& inner, const auto& self) -> void {
      if (const auto* stage = std::get_if<Stage>(&inner.form))
        return for_each_access(*stage, [&](const Access& access) { add(access, stage); });
      for_each_direct_access(inner, [&](const Access& access) { add(access, none); });
      for_each_body(inner, [&](const Body& body) {
        for (const Stmt& nested : body) self(nested, self);
      });
    };
    visit(stmt, visit);
    return found;
  }
  bool conflict(const Pending& pending, const Pending& next) const {
    const auto meet = [&](const std::map<BufferId, Slots>& a, const std::map<BufferId, Slots>& b) {
      return std::ranges::any_of(a, [&](const auto& accessed) {
        const auto found = b.find(accessed.first);
        if (found == b.end()) return false;
        return std::ranges::any_of(accessed.second, [&](const Slot& slot) {
          return !std::ranges::all_of(found->second,
                                      [&](const Slot& other) { return are_disjoint(context_, slot, other); });
        });
      });
    };
    return meet(pending.written, next.written) || meet(pending.written, next.read) || meet(pending.read, next.written);
  }

  // `pending` comes from the statements before, and becomes that at the end of the body.
  void statements(Body& body, Pending& pending) {
    for (size_t i = 0; i < body.size(); ++i) {
      if (std::holds_alternative<Barrier>(body[i].form)) {
        pending = {};
        continue;
      }
      if (std::holds_alternative<Wait>(body[i].form)) {  // elements arrive
        for (const auto& [id, slots] : copied_) pending.written[id] = slots;
        continue;
      }
      auto* loop = std::get_if<For>(&body[i].form);
      if (auto* alloc = std::get_if<Alloc>(&body[i].form)) {
        statements(alloc->body, pending);
        continue;
      }
      if (loop && !binds_thread(loop->kind)) {
        serial(*loop, pending);
        continue;
      }
      const Pending next = accesses(body[i]);
      if (conflict(pending, next)) {
        body.insert(body.begin() + static_cast<std::ptrdiff_t>(i++), Stmt{Barrier{}});
        pending = {};
      }
      pending.add(next);
    }
  }

  // The end of an iteration is followed by the beginning of later ones.
  void serial(For& loop, Pending& pending) {
    statements(loop.body, pending);
    const Pending end = pending;
    const auto needs_barrier = [&](Pending around) {
      const auto count = [](const Body& body) {
        size_t barriers = 0;
        for_each_statement(body, [&](const Stmt& stmt) { barriers += std::holds_alternative<Barrier>(stmt.form); });
        return barriers;
      };
      Body again = loop.body;
      statements(again, around);
      pending.add(around.anywhere());
      return count(again) > count(loop.body);
    };
    // The accesses of the iterations before, one by one where they are few.
    constexpr int64_t kFew = 8;
    const int64_t iterations = loop.extent.constant().value_or(INT64_MAX);
    bool needs = false;
    pending = pending.anywhere();
    if (iterations > kFew) needs = needs_barrier(end.anywhere());
    for (int64_t distance = 1; distance < iterations && iterations <= kFew && !needs; ++distance)
      needs = needs_barrier(end.before(context_, loop.var, distance));
    if (!needs) return;
    loop.body.push_back(Stmt{Barrier{}});
    pending = {};
  }

  TypeContext& context_;
  std::set<BufferId> private_;
  std::map<BufferId, Slots> copied_;  // by asynchronous stages
};

}  // namespace

Function with_barriers(TypeContext& context, Function function) {
  BarrierInserter inserter(context, function);
  inserter.launches(function.body);
  return function;
}

}  // namespace tenon::compiler::loop
