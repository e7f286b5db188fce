// Barriers between the phases of a block.
#include <set>

#include "compiler/loop/bindings.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::loop {
namespace {

// What the phases since the last barrier may have accessed.
struct Pending {
  std::set<BufferId> read, written;

  void add(const Pending& other) {
    read.insert(other.read.begin(), other.read.end());
    written.insert(other.written.begin(), other.written.end());
  }
  bool conflicts(const Pending& next) const {
    const auto meet = [](const std::set<BufferId>& a, const std::set<BufferId>& b) {
      for (BufferId id : a)
        if (b.contains(id)) return true;
      return false;
    };
    return meet(written, next.written) || meet(written, next.read) || meet(read, next.written);
  }
};

class BarrierInserter {
 public:
  explicit BarrierInserter(const Function& function) {
    // Each thread has its own elements of the registers that its block allocates, and its own buffers.
    for_each_statement(function.body, [&](const Stmt& stmt) {
      const auto* alloc = std::get_if<Alloc>(&stmt.form);
      if (alloc && alloc->scope == Scope::kRegisters) private_.insert(alloc->buffer);
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
    Pending found{buffers_read(stmt), buffers_written(stmt)};
    std::erase_if(found.read, [&](BufferId id) { return private_.contains(id); });
    std::erase_if(found.written, [&](BufferId id) { return private_.contains(id); });
    return found;
  }

  // `pending` comes from the statements before, and becomes that at the end of the body.
  void statements(Body& body, Pending& pending) {
    for (size_t i = 0; i < body.size(); ++i) {
      if (std::holds_alternative<Barrier>(body[i].form)) {
        pending = {};
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
      if (pending.conflicts(next)) {
        body.insert(body.begin() + static_cast<std::ptrdiff_t>(i++), Stmt{Barrier{}});
        pending = {};
      }
      pending.add(next);
    }
  }

  // The end of an iteration is followed by the beginning of the next one.
  void serial(For& loop, Pending& pending) {
    statements(loop.body, pending);
    Pending around = pending;
    Body again = loop.body;
    const auto count = [](const Body& body) {
      size_t barriers = 0;
      for_each_statement(body, [&](const Stmt& stmt) { barriers += std::holds_alternative<Barrier>(stmt.form); });
      return barriers;
    };
    statements(again, around);
    if (count(again) == count(loop.body)) {
      pending = std::move(around);
      return;
    }
    loop.body.push_back(Stmt{Barrier{}});
    pending = {};
  }

  std::set<BufferId> private_;
};

}  // namespace

Function with_barriers(Function function) {
  BarrierInserter inserter(function);
  inserter.launches(function.body);
  return function;
}

}  // namespace tenon::compiler::loop
