// The launches of a bound function.
#include "compiler/loop/bindings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "compiler/base/dim_prover.h"
#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"
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
    reads_ = false;
    TENON_TRY(block(*body));
    reads_ = true;
    TENON_TRY(block(*body));
    loops_.clear(), registers_.clear();
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
        if (!reads_) TENON_TRY(storage(*alloc));
        TENON_TRY(block(alloc->body));
        continue;
      }
      if (const auto* loop = std::get_if<For>(&stmt.form)) {
        if (binds_block(loop->kind))
          return fail(fmt::format("the loop {} is bound to blocks inside a block", name(loop->var)));
        if (binds_thread(loop->kind)) phase_ = loop;
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
    for (const BufferAxis& axis : buffer.axes) {
      if (!axis.extent.constant())
        return fail(fmt::format("{} is shared, but its size {} is not a constant", shown, context_.str(axis.extent)));
    }
    const auto elements = constant_elements(buffer);
    if (!elements) return fail(fmt::format("{} is shared, but has more than 2^63 elements", shown));
    launch_.shared_elements += *elements;
    return {};
  }

  Status thread(const For& loop) {
    const size_t axis = bound_axis(loop.kind);
    const auto extent = loop.extent.constant();
    if (!extent)
      return fail(fmt::format("the loop {} over threads has the extent {}, which is not a constant", name(loop.var),
                              context_.str(loop.extent)));
    if (std::exchange(is_bound_[axis], true))
      return fail(fmt::format("the loop {} is inside another one over {}", name(loop.var), loop::name(loop.kind)));
    if (*extent > 1) threads_[axis] = loop.var;
    launch_.threads[axis] = std::max(launch_.threads[axis], *extent);
    TENON_TRY(of_thread(loop.body));
    threads_[axis].reset();
    is_bound_[axis] = false;
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

  using ThreadAxes = std::array<std::optional<size_t>, 3>;  // of a buffer: which axis each index of a thread is

  Status check_registers(const Stage& stage) {
    Status status;
    for_each_access(stage, [&](const Access& access) {
      const auto found = registers_.find(access.buffer);
      if (found == registers_.end() || !status || access.writes == reads_) return;
      const Dims indices = over_loops(context_, stage, access.indices);
      status = access.writes ? check_write(access.buffer, indices, found->second)
                             : check_read(access.buffer, indices, found->second);
    });
    return status;
  }

  // Each bound axis of the thread is one index of the buffer, the same one in all writes.
  Status check_write(BufferId buffer, const Dims& indices, std::optional<ThreadAxes>& axes) {
    std::vector<std::optional<Symbol>> threads;
    for (const Dim index : indices) threads.push_back(thread_of(context_, index, loops_));
    ThreadAxes own;
    for (size_t axis = 0; axis < 3; ++axis) {
      for (size_t i = 0; threads_[axis] && i < indices.size(); ++i)
        if (threads[i] == threads_[axis]) own[axis] = i;
      if (threads_[axis].has_value() != own[axis].has_value())
        return fail(fmt::format("%{} is in registers of a block, but {} is none of its indices",
                                context_.name(function_.buffer(buffer).name), name(*threads_[axis])),
                    "index it by the thread's own indices, or put it into shared memory");
    }
    if (!axes) axes = own;
    if (*axes == own) return {};
    return fail(fmt::format("%{} is in registers of a block, but threads index different axes of it",
                            context_.name(function_.buffer(buffer).name)),
                "put it into shared memory");
  }

  // A thread reads its own register, or that of another thread along x.
  Status check_read(BufferId buffer, const Dims& indices, const std::optional<ThreadAxes>& axes) {
    if (!axes) return {};  // nothing is written
    bool is_own = true;
    for (size_t axis = 3; axis-- > 0;) {
      const auto position = (*axes)[axis];
      const bool same = position ? threads_[axis] && thread_of(context_, indices[*position], loops_) == threads_[axis]
                                 : !threads_[axis];
      if (same) continue;
      is_own = false;
      if (axis > 0)
        return fail(fmt::format("%{} is in registers of a block, but is read from a thread of another warp",
                                context_.name(function_.buffer(buffer).name)),
                    "index it by the thread's own indices along y and z, or put it into shared memory");
    }
    if (is_own) return {};
    for (size_t i = 0; i < indices.size(); ++i) {
      if (std::ranges::find(*axes, std::optional(i)) != axes->end() || uniform_index(context_, indices[i], loops_))
        continue;
      return fail(fmt::format("%{} is in registers, and read from other threads, each at another index {}",
                              context_.name(function_.buffer(buffer).name), context_.str(indices[i])),
                  "a thread has one register for all that read it: put it into shared memory");
    }
    TENON_TRY(check_exchange(buffer));
    launch_.exchanged[buffer] = (*axes)[0];
    return {};
  }

  // All threads of the warp must execute the read, and must have written before.
  Status check_exchange(BufferId buffer) const {
    const auto& threads = launch_.threads;
    const std::string shown =
        fmt::format("%{} is in registers, and read from other threads", context_.name(function_.buffer(buffer).name));
    if (kWarpThreads % threads[0] != 0 || threads[0] * threads[1] * threads[2] % kWarpThreads != 0)
      return fail(fmt::format("{}, but a block of {} x {} x {} threads has no whole warps of whole rows along x", shown,
                              threads[0], threads[1], threads[2]),
                  "the number of threads along x must divide 32, and 32 that of the block");
    bool writes = false, in_registers = true, branches = false;
    for_each_statement(phase_->body, [&](const Stmt& stmt) {
      branches |= std::holds_alternative<If>(stmt.form) || std::holds_alternative<Let>(stmt.form);
      const auto* loop = std::get_if<For>(&stmt.form);
      branches |= loop && !loop->extent.constant();
      const auto* stage = std::get_if<Stage>(&stmt.form);
      if (!stage) return;
      in_registers &= stage->where.empty() && !may_fail(*stage);
      for_each_access(*stage, [&](const Access& access) {
        writes |= access.writes && access.buffer == buffer;
        in_registers &= registers_.contains(access.buffer);
      });
    });
    if (writes) return fail(fmt::format("{} in the nest that writes it", shown), "write it in a nest before");
    if (branches)
      return fail(fmt::format("{} where threads may not execute the same statements", shown),
                  "put it into shared memory");
    if (in_registers || all_threads()) return {};
    return fail(fmt::format("{} in a nest that some threads of the block skip", shown),
                "give the nest all threads, or registers alone");
  }
  // Whether the nest of the current phase has all threads of the block.
  bool all_threads() const {
    std::array<int64_t, 3> threads{1, 1, 1};
    const auto count = [&](const For& loop) {
      if (binds_thread(loop.kind)) threads[bound_axis(loop.kind)] = *loop.extent.constant();
    };
    count(*phase_);
    for_each_statement(phase_->body, [&](const Stmt& stmt) {
      if (const auto* loop = std::get_if<For>(&stmt.form)) count(*loop);
    });
    return threads == launch_.threads;
  }
  // Whether the stage does what is an error for some operands: those of a thread that has none are unknown.
  static bool may_fail(const Stage& stage) {
    bool found = false;
    for (const Body* body : {&stage.init, &stage.body}) {
      for_each_statement(*body, [&](const Stmt& stmt) {
        const auto* store = std::get_if<Store>(&stmt.form);
        found |= !store;
        if (!store) return;
        for_each_node(store->value, [&](const ExprNode& node) {
          const auto* both = std::get_if<Binary>(&node.form);
          found |=
              std::holds_alternative<LetIndex>(node.form) || std::holds_alternative<Convert>(node.form) ||
              (both && !is_float(node.dtype) &&
               (both->op == BinaryOp::kDivide || both->op == BinaryOp::kRemainder || both->op == BinaryOp::kPower));
        });
      });
    }
    return found;
  }

  TypeContext& context_;
  const Function& function_;
  Launch launch_;
  std::vector<Launch> launches_;
  std::vector<const For*> loops_;  // around the statement
  // The loops over threads around the statement; and their variables, but of one thread, whose index is 0 anyway.
  std::array<bool, 3> is_bound_{};
  std::array<std::optional<Symbol>, 3> threads_;
  std::map<BufferId, std::optional<ThreadAxes>> registers_;  // of the block
  const For* phase_ = nullptr;                               // the outermost loop over threads around the statement
  bool reads_ = false;  // whether reads are checked: after all writes, when the threads of the block are known
};

}  // namespace

std::optional<Symbol> thread_of(TypeContext& context, Dim index, const std::vector<const For*>& loops) {
  const DimBounds bounds = bounds_of(loops);
  for (const For* loop : loops) {
    if (!binds_thread(loop->kind)) continue;
    if (index.variable() == loop->var) return loop->var;
    if (!mentions({&index, 1}, loop->var) || index.variable()) continue;
    if (DimProver(context, bounds).equal(index, context.dim(loop->var)) == Answer::kYes) return loop->var;
  }
  return std::nullopt;
}

std::optional<Dim> uniform_index(TypeContext& context, Dim index, const std::vector<const For*>& loops) {
  std::map<Symbol, Dim> first;
  for (const For* loop : loops)
    if (binds_thread(loop->kind)) first[loop->var] = context.dim(0);
  const Dim uniform = context.substitute(index, first);
  const bool same = uniform == index || DimProver(context, bounds_of(loops)).equal(index, uniform) == Answer::kYes;
  return same ? std::optional(uniform) : std::nullopt;
}

Expected<std::vector<Launch>> launches_of(TypeContext& context, const Function& function) {
  return LaunchFinder(context, function).run();
}

}  // namespace tenon::compiler::loop
