// The launches of a bound function.
#include "compiler/loop/bindings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "compiler/base/dim_prover.h"
#include "compiler/loop/access.h"
#include "compiler/loop/tree.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

class LaunchFinder {
 public:
  LaunchFinder(TypeContext& context, const Function& function) : context_(context), function_(function) {}

  Expected<std::vector<Launch>> run() {
    TENON_TRY(outside(function_.body));
    return std::move(launches_);
  }

 private:
  std::unexpected<Diagnostic> fail(std::string finding, std::string help = {}) const {
    return error(std::move(finding), fmt::format("@{}", context_.name(function_.name)), std::move(help));
  }
  std::string name(Symbol symbol) const { return fmt::format("'{}'", context_.name(symbol)); }

  Status outside(const Body& body) {
    for (const Stmt& stmt : body) {
      if (const auto* alloc = std::get_if<Alloc>(&stmt.form)) {
        if (alloc->scope != Scope::kHeap)
          return fail(fmt::format("%{} is not in memory, and allocated outside of every block",
                                  context_.name(function_.buffer(alloc->buffer).name)));
        TENON_TRY(outside(alloc->body));
        continue;
      }
      const auto* loop = std::get_if<For>(&stmt.form);
      if (!loop || !binds_block(loop->kind))
        return fail(loop ? fmt::format("the loop {} is not bound to blocks", name(loop->var))
                         : "a statement is outside of every block",
                    "bind an outermost loop of each nest to blocks");
      TENON_TRY(launch(*loop));
    }
    return {};
  }

  Status launch(const For& nest) {
    launch_ = Launch{.nest = &nest, .grid = {context_.dim(1), context_.dim(1), context_.dim(1)}};
    std::array<bool, 3> bound{};
    const Body* body = nullptr;
    for (const For* loop = &nest; loop && binds_block(loop->kind);
         loop = body->size() == 1 ? std::get_if<For>(&body->front().form) : nullptr) {
      const size_t axis = bound_axis(loop->kind);
      if (bound[axis]) return fail(fmt::format("two nested loops are bound to {}", loop::name(loop->kind)));
      bound[axis] = true;
      launch_.grid[axis] = loop->extent;
      body = &loop->body;
      loops_.push_back(loop);
    }
    TENON_TRY(block(*body));
    loops_.clear();
    const int64_t threads = launch_.threads[0] * launch_.threads[1] * launch_.threads[2];
    if (threads > kMaxThreads)
      return fail(fmt::format("a block of the loop {} has {} threads, at most {} are possible", name(nest.var), threads,
                              kMaxThreads));
    launches_.push_back(launch_);
    return {};
  }

  Status block(const Body& body) {
    for (const Stmt& stmt : body) {
      if (const auto* alloc = std::get_if<Alloc>(&stmt.form)) {
        TENON_TRY(storage(*alloc));
        TENON_TRY(block(alloc->body));
        registers_.erase(alloc->buffer);
        continue;
      }
      if (const auto* loop = std::get_if<For>(&stmt.form)) {
        if (binds_block(loop->kind))
          return fail(fmt::format("the loop {} is bound to blocks inside a block", name(loop->var)));
        loops_.push_back(loop);
        TENON_TRY(binds_thread(loop->kind) ? thread(*loop) : block(loop->body));
        loops_.pop_back();
        continue;
      }
      if (std::holds_alternative<Barrier>(stmt.form) || std::holds_alternative<Commit>(stmt.form) ||
          std::holds_alternative<Wait>(stmt.form))
        continue;
      return fail("a statement of a block is outside of every thread", "put it into a loop over threads");
    }
    return {};
  }

  Status storage(const Alloc& alloc) {
    const Buffer& buffer = function_.buffer(alloc.buffer);
    const std::string shown = fmt::format("%{}", context_.name(buffer.name));
    if (alloc.scope == Scope::kRegisters) {
      registers_.emplace(alloc.buffer, std::nullopt);
      return {};
    }
    if (alloc.scope != Scope::kShared)
      return fail(fmt::format("{} is allocated by a block, but neither shared nor in registers", shown));
    int64_t elements = 1;
    for (const BufferAxis& axis : buffer.axes) {
      const auto size = axis.extent.constant();
      if (!size || __builtin_mul_overflow(elements, std::max<int64_t>(*size, 0), &elements))
        return fail(fmt::format("{} is shared, but its size {} is not a constant", shown, context_.str(axis.extent)));
    }
    launch_.shared_elements += elements;
    return {};
  }

  Status thread(const For& loop) {
    const size_t axis = bound_axis(loop.kind);
    const auto extent = loop.extent.constant();
    if (!extent)
      return fail(fmt::format("the loop {} over threads has the extent {}, which is not a constant", name(loop.var),
                              context_.str(loop.extent)));
    if (threads_[axis])
      return fail(fmt::format("the loop {} is inside another one over {}", name(loop.var), loop::name(loop.kind)));
    threads_[axis] = loop.var;
    launch_.threads[axis] = std::max(launch_.threads[axis], *extent);
    TENON_TRY(of_thread(loop.body));
    threads_[axis].reset();
    return {};
  }

  Status of_thread(const Body& body) {
    for (const Stmt& stmt : body) {
      if (const auto* loop = std::get_if<For>(&stmt.form)) {
        if (binds_block(loop->kind))
          return fail(fmt::format("the loop {} is bound to blocks inside a thread", name(loop->var)));
        loops_.push_back(loop);
        TENON_TRY(binds_thread(loop->kind) ? thread(*loop) : of_thread(loop->body));
        loops_.pop_back();
        continue;
      }
      if (const auto* stage = std::get_if<Stage>(&stmt.form)) TENON_TRY(check_registers(*stage));
      const auto* alloc = std::get_if<Alloc>(&stmt.form);
      if (alloc && alloc->scope == Scope::kShared)
        return fail(fmt::format("%{} is shared, but allocated by a thread",
                                context_.name(function_.buffer(alloc->buffer).name)));
      Status status;
      for_each_body(stmt, [&](const Body& inner) {
        if (status && !std::holds_alternative<Stage>(stmt.form)) status = of_thread(inner);
      });
      TENON_TRY(status);
    }
    return {};
  }

  // Each bound axis of the thread is one index of the buffer, the same one in all accesses.
  Status check_registers(const Stage& stage) {
    Status status;
    for_each_access(stage, [&](const Access& access) {
      const auto found = registers_.find(access.buffer);
      if (found == registers_.end() || !status) return;
      const Dims indices = over_loops(context_, stage, access.indices);
      std::vector<std::optional<Symbol>> threads;
      for (const Dim index : indices) threads.push_back(thread_of(context_, index, loops_));
      std::array<std::optional<size_t>, 3> axes;
      for (size_t axis = 0; axis < 3; ++axis) {
        for (size_t i = 0; threads_[axis] && i < indices.size(); ++i)
          if (threads[i] == threads_[axis]) axes[axis] = i;
        if (threads_[axis].has_value() == axes[axis].has_value()) continue;
        status = fail(fmt::format("%{} is in registers of a block, but {} is none of its indices",
                                  context_.name(function_.buffer(access.buffer).name), name(*threads_[axis])),
                      "index it by the thread's own indices, or put it into shared memory");
        return;
      }
      if (!found->second) found->second = axes;
      if (*found->second != axes)
        status = fail(fmt::format("%{} is in registers of a block, but threads index different axes of it",
                                  context_.name(function_.buffer(access.buffer).name)),
                      "put it into shared memory");
    });
    return status;
  }

  TypeContext& context_;
  const Function& function_;
  Launch launch_;
  std::vector<Launch> launches_;
  std::vector<const For*> loops_;                 // around the statement
  std::array<std::optional<Symbol>, 3> threads_;  // variables of the loops over threads around the statement
  std::map<BufferId, std::optional<std::array<std::optional<size_t>, 3>>> registers_;  // of the block
};

}  // namespace

std::optional<Symbol> thread_of(TypeContext& context, Dim index, const std::vector<const For*>& loops) {
  DimBounds bounds;
  for (const For* loop : loops) {
    const auto extent = loop->extent.constant();
    bounds[loop->var] = {0, extent ? std::optional(*extent - 1) : std::nullopt};
  }
  for (const For* loop : loops) {
    if (!binds_thread(loop->kind)) continue;
    if (index.variable() == loop->var) return loop->var;
    if (!mentions({&index, 1}, loop->var) || index.variable()) continue;
    if (DimProver(context, bounds).equal(index, context.dim(loop->var)) == Answer::kYes) return loop->var;
  }
  return std::nullopt;
}

Expected<std::vector<Launch>> launches_of(TypeContext& context, const Function& function) {
  return LaunchFinder(context, function).run();
}

}  // namespace tenon::compiler::loop
