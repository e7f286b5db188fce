// Bound functions for processors without threads of a GPU.
#include <algorithm>

#include "compiler/loop/bindings.h"
#include "compiler/loop/tree.h"
#include "compiler/loop/verify.h"

namespace tenon::compiler::loop {
namespace {

// Whether the buffer is small enough for the stack.
bool fits_stack(const Buffer& buffer) { return constant_elements(buffer).value_or(kMaxStack + 1) <= kMaxStack; }

void unbind(const Function& function, Body& body, bool is_parallel, bool is_block) {
  std::erase_if(body, [](const Stmt& stmt) {
    return std::holds_alternative<Barrier>(stmt.form) || std::holds_alternative<Commit>(stmt.form) ||
           std::holds_alternative<Wait>(stmt.form);
  });
  for (Stmt& stmt : body) {
    if (auto* stage = std::get_if<Stage>(&stmt.form)) stage->async = false;
    bool parallel_inside = is_parallel, block_inside = is_block;
    if (auto* loop = std::get_if<For>(&stmt.form)) {
      parallel_inside |= loop->kind == LoopKind::kParallel || binds_block(loop->kind);
      block_inside |= binds_block(loop->kind);
      if (binds_block(loop->kind)) loop->kind = is_parallel ? LoopKind::kSerial : LoopKind::kParallel;
      else if (binds_thread(loop->kind)) loop->kind = LoopKind::kSerial;
    }
    // A thread's own index is a loop's variable now, so registers that are indexed by it become memory.
    if (auto* alloc = std::get_if<Alloc>(&stmt.form); alloc && is_block && alloc->scope != Scope::kHeap)
      alloc->scope = fits_stack(function.buffer(alloc->buffer)) ? Scope::kStack : Scope::kHeap;
    for_each_body(stmt, [&](Body& inner) { unbind(function, inner, parallel_inside, block_inside); });
  }
}

}  // namespace

bool is_bound(const Function& function) {
  bool found = false;
  for_each_statement(function.body, [&](const Stmt& stmt) {
    const auto* loop = std::get_if<For>(&stmt.form);
    found |= loop && (binds_block(loop->kind) || binds_thread(loop->kind));
  });
  return found;
}

Function unbound(Function function) {
  Body body = std::move(function.body);
  unbind(function, body, false, false);
  function.body = std::move(body);
  return function;
}

}  // namespace tenon::compiler::loop
