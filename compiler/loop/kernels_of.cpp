// The kernels of a bound function: one for each launch.
#include <algorithm>
#include <optional>

#include "compiler/loop/access.h"
#include "compiler/loop/bindings.h"
#include "compiler/loop/tree.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

constexpr LoopKind kThreadKinds[] = {LoopKind::kThreadX, LoopKind::kThreadY, LoopKind::kThreadZ};

class KernelMaker {
 public:
  KernelMaker(TypeContext& context, Function function, const Launch& launch)
      : context_(context), function_(std::move(function)), launch_(launch) {}

  Kernel run() && {
    For nest = *launch_.nest;
    block(nest);
    function_.body.clear();
    function_.body.push_back(Stmt{std::move(nest)});
    launch_.nest = nullptr;
    return {{}, std::move(function_), launch_};
  }

 private:
  void block(For& nest) {
    For* innermost = &nest;
    while (innermost->body.size() == 1) {
      auto* inner = std::get_if<For>(&innermost->body[0].form);
      if (!inner || !binds_block(inner->kind)) break;
      innermost = inner;
    }
    statements(innermost->body);
  }

  void statements(Body& body) {
    for (Stmt& stmt : body) {
      if (auto* alloc = std::get_if<Alloc>(&stmt.form)) {
        if (alloc->scope == Scope::kRegisters) drop_thread_axes(*alloc);
        statements(alloc->body);
      } else if (auto* loop = std::get_if<For>(&stmt.form)) {
        if (binds_thread(loop->kind)) bind_all_axes(stmt);
        else statements(loop->body);
      }
    }
  }

  void bind_all_axes(Stmt& stmt) {
    for (size_t axis = 0; axis < 3; ++axis) {
      bool is_bound = launch_.threads[axis] == 1;
      const Body body{stmt};
      for_each_statement(body, [&](const Stmt& inner) {
        const auto* loop = std::get_if<For>(&inner.form);
        is_bound |= loop && loop->kind == kThreadKinds[axis];
      });
      if (is_bound) continue;
      For outer{.var = fresh(context_, function_, "thread"),
                .extent = context_.dim(1),
                .kind = kThreadKinds[axis],
                .body = {}};
      outer.body.push_back(std::move(stmt));
      stmt = Stmt{std::move(outer)};
    }
  }

  // launches_of() has checked that the thread's indices are the same axes of the buffer in all accesses.
  void drop_thread_axes(Alloc& alloc) {
    std::vector<bool> dropped(function_.buffer(alloc.buffer).rank(), false);
    std::vector<const For*> loops;
    const auto find = [&](const Stmt& stmt, const auto& self) -> void {
      const auto* loop = std::get_if<For>(&stmt.form);
      if (loop) loops.push_back(loop);
      if (const auto* stage = std::get_if<Stage>(&stmt.form)) {
        for_each_access(*stage, [&](const Access& access) {
          if (access.buffer != alloc.buffer) return;
          const Dims indices = over_loops(context_, *stage, access.indices);
          for (size_t i = 0; i < indices.size(); ++i)
            if (thread_of(context_, indices[i], loops)) dropped[i] = true;
        });
      }
      for_each_body(stmt, [&](const Body& body) {
        for (const Stmt& inner : body) self(inner, self);
      });
      if (loop) loops.pop_back();
    };
    for (const Stmt& stmt : alloc.body) find(stmt, find);
    for_each_statement(alloc.body, [&](Stmt& stmt) {
      auto* stage = std::get_if<Stage>(&stmt.form);
      if (!stage) return;
      for_each_index(*stage, alloc.buffer, [&](size_t axis, Dim& index) {
        if (dropped[axis]) index = context_.dim(0);
      });
    });
    Buffer& buffer = function_.buffers[index(alloc.buffer)];
    for (size_t axis = 0; axis < dropped.size(); ++axis)
      if (dropped[axis]) buffer.axes[axis].extent = context_.dim(1);
  }

  TypeContext& context_;
  Function function_;
  Launch launch_;
};

}  // namespace

Expected<std::vector<Kernel>> kernels_of(TypeContext& context, const Function& function) {
  TENON_TRY_ASSIGN(launches, launches_of(context, function));
  Function signature = function;
  const auto temporaries = [&](const Body& body, const auto& self) -> void {
    for (const Stmt& stmt : body) {
      const auto* alloc = std::get_if<Alloc>(&stmt.form);
      if (!alloc) continue;
      signature.results.push_back(alloc->buffer);
      self(alloc->body, self);
    }
  };
  temporaries(function.body, temporaries);
  signature.body.clear();
  std::vector<Kernel> kernels;
  for (size_t i = 0; i < launches->size(); ++i) {
    kernels.push_back(KernelMaker(context, signature, (*launches)[i]).run());
    kernels.back().name = std::string(context.name(function.name)) + "_" + std::to_string(i);
  }
  // The nests lie in the vector's functions, which do not move any more.
  for (Kernel& kernel : kernels) kernel.launch.nest = &std::get<For>(kernel.function.body[0].form);
  return kernels;
}

}  // namespace tenon::compiler::loop
