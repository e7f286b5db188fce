// The kernels of a bound function: one for each launch.
#include <algorithm>
#include <map>
#include <optional>

#include "compiler/base/dim_prover.h"
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
      around_.push_back(innermost);
      innermost = inner;
    }
    around_.push_back(innermost);
    statements(innermost->body);
  }

  void statements(Body& body) {
    for (Stmt& stmt : body) {
      if (auto* alloc = std::get_if<Alloc>(&stmt.form)) {
        if (alloc->scope == Scope::kRegisters) drop_thread_axes(*alloc);
        statements(alloc->body);
      } else if (auto* loop = std::get_if<For>(&stmt.form)) {
        if (binds_thread(loop->kind)) bind_all_axes(stmt);
        else inside(*loop);
      }
    }
  }

  void inside(For& loop) {
    around_.push_back(&loop);
    statements(loop.body);
    around_.pop_back();
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

  // launches_of() has checked that the thread's indices are the same axes of the buffer in all writes, and in all reads
  // but those from other threads along x.
  void drop_thread_axes(Alloc& alloc) {
    const auto exchanged = launch_.exchanged.find(alloc.buffer);
    const bool is_exchanged = exchanged != launch_.exchanged.end(), has_lanes = is_exchanged && exchanged->second;
    std::vector<bool> dropped(function_.buffer(alloc.buffer).rank(), false);
    std::vector<const For*> loops = around_;
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
    const auto rewrite = [&](Stmt& stmt, const auto& self) -> void {
      const auto* loop = std::get_if<For>(&stmt.form);
      if (loop) loops.push_back(loop);
      if (auto* stage = std::get_if<Stage>(&stmt.form)) {
        for_each_index(*stage, alloc.buffer, [&](size_t axis, Dim& index) {
          const Dim over = over_loops(context_, *stage, {index})[0];
          if (has_lanes && axis == *exchanged->second && !thread_of(context_, over, loops)) {
            const Dim thread = context_.add(over, context_.dim(1));
            index = given_axis(*stage, thread, context_.dim(launch_.threads[0] + 1), "thread");
          } else if (dropped[axis]) {
            index = context_.dim(0);
          } else {
            index = without_threads(*stage, index, function_.buffer(alloc.buffer).axes[axis].extent, loops);
          }
        });
        if (is_exchanged && !has_lanes) {
          const bool is_x = std::ranges::any_of(loops, [](const For* outer) {
            return outer->kind == LoopKind::kThreadX && outer->extent.constant() != 1;
          });
          map_indices(*stage, alloc.buffer, [&](Dims indices) {
            indices.push_back(context_.dim(is_x ? 1 : 0));
            return indices;
          });
        }
      }
      for_each_body(stmt, [&](Body& body) {
        for (Stmt& inner : body) self(inner, self);
      });
      if (loop) loops.pop_back();
    };
    for (Stmt& stmt : alloc.body) rewrite(stmt, rewrite);
    Buffer& buffer = function_.buffers[index(alloc.buffer)];
    for (size_t axis = 0; axis < dropped.size(); ++axis)
      if (dropped[axis]) buffer.axes[axis].extent = context_.dim(1);
    if (!is_exchanged || has_lanes) return;
    exchanged->second = buffer.rank();
    buffer.axes.push_back({.var = fresh(context_, function_, "thread"), .extent = context_.dim(1)});
  }

  // An index of registers that is the same for all threads, over loops that are not theirs: so it is a constant where
  // those are unrolled. A given axis passes it to the stage.
  Dim without_threads(Stage& stage, Dim index, Dim extent, const std::vector<const For*>& loops) {
    const Dim over = over_loops(context_, stage, {index})[0];
    const auto uniform = uniform_index(context_, over, loops);
    return uniform && *uniform != over ? given_axis(stage, *uniform, extent, "digit") : index;
  }
  // The value over loops as an axis of the stage.
  Dim given_axis(Stage& stage, Dim value, Dim extent, std::string name) {
    const auto known = std::ranges::find_if(stage.axes, [&](const Axis& axis) {
      return axis.kind == AxisKind::kGiven && axis.value == value && axis.extent == extent;
    });
    if (known != stage.axes.end()) return context_.dim(known->var);
    while (std::ranges::find(stage.axes, context_.symbol(name), &Axis::var) != stage.axes.end()) name += '_';
    const Symbol var = context_.symbol(name);
    stage.axes.push_back({.var = var, .extent = extent, .kind = AxisKind::kGiven, .value = value});
    return context_.dim(var);
  }

  TypeContext& context_;
  Function function_;
  Launch launch_;
  std::vector<const For*> around_;  // the loops of blocks and of the block around the statement
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
