#include "compiler/loop/schedule/bind.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "compiler/loop/bindings.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/tree.h"
#include "compiler/loop/verify.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

class Binder {
 public:
  Binder(TypeContext& context, Function function, const BindOptions& options)
      : context_(context), function_(std::move(function)), options_(options) {}

  Expected<Function> run() {
    Body body = std::move(function_.body);
    auto bound_body = launches(std::move(body));
    if (!bound_body) return std::unexpected(std::move(bound_body.error()));
    function_.body = std::move(*bound_body);
    Function result = with_barriers(context_, std::move(function_));
    TENON_TRY(verify(context_, result));
    TENON_TRY(launches_of(context_, result));
    return result;
  }

 private:
  std::unexpected<Diagnostic> fail(std::string finding) const {
    return error(std::move(finding), fmt::format("@{}", context_.name(function_.name)),
                 "compute the function on the CPU");
  }

  // The statements outside of every launch, bound.
  Expected<Body> launches(Body body) {
    Body result;
    for (Stmt& stmt : body) {
      if (auto* alloc = std::get_if<Alloc>(&stmt.form)) {
        auto inner = launches(std::move(alloc->body));
        if (!inner) return inner;
        alloc->body = std::move(*inner);
        alloc->scope = Scope::kHeap;
        result.push_back(std::move(stmt));
        continue;
      }
      auto nest = launch(std::move(stmt));
      if (!nest) return std::unexpected(std::move(nest.error()));
      result.push_back(std::move(*nest));
    }
    return result;
  }

  Expected<Stmt> launch(Stmt stmt) {
    bool calls = false;
    const Body body{stmt};
    for_each_statement(body, [&](const Stmt& inner) { calls |= std::holds_alternative<CallLibrary>(inner.form); });
    if (calls) return fail("a launch cannot call a library");
    const auto* nest = std::get_if<For>(&stmt.form);
    if (nest && binds_block(nest->kind)) return stmt;
    if (auto simple = over_points(stmt)) return std::move(*simple);
    if (auto blocks = over_blocks(stmt)) return std::move(*blocks);
    return by_one_thread(std::move(stmt));
  }

  // The function with this statement alone, for the primitives.
  Function only(const Stmt& stmt) const {
    Function function = function_;
    function.body = {stmt};
    return function;
  }
  bool is_valid(const Stmt& stmt) {
    const Function function = only(stmt);
    return launches_of(context_, function).has_value();
  }

  // --- A nest whose points, or outermost iterations, are independent ---

  std::optional<Stmt> over_points(const Stmt& stmt) {
    Function function = only(stmt);
    std::vector<Symbol> stages;
    bool is_chain = std::holds_alternative<For>(stmt.form);
    for_each_statement(function.body, [&](Stmt& inner) {
      if (auto* stage = std::get_if<Stage>(&inner.form)) stages.push_back(stage->name);
      is_chain &= !std::holds_alternative<Alloc>(inner.form) && !std::holds_alternative<Intrinsic>(inner.form);
    });
    is_chain &= stages.size() == 1;
    if (stages.empty() || (!is_chain && has_lanes(function.body)) || !has_constant_buffers(stmt)) return std::nullopt;
    function.body[0] = of_thread(std::move(function.body[0]));
    const Symbol stage = stages[0];
    auto path = find_stage(context_, function, stage);
    if (!path) return std::nullopt;
    std::vector<Symbol> independent, ordered;
    for (size_t i = 0; i + 1 < path->steps.size() && path->is_loop(i); ++i) {
      For& loop = path->loop_at(i);
      if (is_chain) loop.kind = LoopKind::kSerial;
      const bool is_free =
          loop.kind == LoopKind::kSerial && loop::has_independent_iterations(context_, function, stage, loop.var);
      if (!is_chain && !is_free) break;
      (is_free ? independent : ordered).push_back(loop.var);
      if (loop.body.size() != 1) break;
    }
    if (independent.empty()) return std::nullopt;
    std::vector<Symbol> order = independent;
    order.insert(order.end(), ordered.begin(), ordered.end());
    if (order.size() > 1 && !ordered.empty()) {
      auto reordered = reorder(context_, function, stage, order);
      if (!reordered) return std::nullopt;
      function = std::move(*reordered);
    }
    return in_threads(std::move(function), stage, independent.size());
  }

  // Fuses the outermost loops, as many as can be, and distributes the points to blocks of threads.
  std::optional<Stmt> in_threads(Function function, Symbol stage, size_t count) {
    const auto outermost = [&](size_t i) { return find_stage(context_, function, stage)->loop_at(i).var; };
    for (; count > 1; --count) {
      auto fused = fuse(context_, function, stage, outermost(0), outermost(1));
      if (!fused) break;
      function = std::move(*fused);
    }
    const auto extent = find_stage(context_, function, stage)->loop_at(0).extent.constant();
    const int64_t factors[] = {std::clamp<int64_t>(extent.value_or(options_.threads), 1, options_.threads)};
    auto cut = split(context_, function, stage, outermost(0), factors);
    if (!cut) return std::nullopt;
    function = std::move(*cut);
    auto path = find_stage(context_, function, stage);
    if (path->steps.size() < 3 || !path->is_loop(1)) return std::nullopt;
    path->loop_at(0).kind = LoopKind::kBlockX;
    path->loop_at(1).kind = LoopKind::kThreadX;
    Stmt result = std::move(function.body[0]);
    if (function.body.size() != 1 || !is_valid(result)) return std::nullopt;
    return result;
  }

  // --- A nest of several stages ---

  std::optional<Stmt> over_blocks(const Stmt& stmt) {
    Function function = only(stmt);
    Body* body = &function.body;
    size_t count = 0;
    while (count < 3 && body->size() == 1) {
      auto* loop = std::get_if<For>(&body->front().form);
      if (!loop || loop->kind == LoopKind::kVectorized || !has_lanes(loop->body)) break;
      const Symbol var = loop->var;
      std::optional<Symbol> stage;
      for_each_stage(body->front(), [&](Stage& inner) {
        if (!stage) stage = inner.name;
      });
      const LoopKind before = std::exchange(loop->kind, LoopKind::kSerial);
      if (!stage || !loop::has_independent_iterations(context_, function, *stage, var)) {
        loop->kind = before;
        break;
      }
      loop->kind = kBlockKinds[count++];
      body = &loop->body;
    }
    if (count == 0) {  // one block
      const Symbol var = fresh(context_, function_, "block");
      function.body = {Stmt{For{.var = var, .extent = context_.dim(1), .kind = LoopKind::kBlockX, .body = *body}}};
      count = 1;
    } else if (auto distributed = points_in_threads(function, count)) {
      function = std::move(*distributed);
    }
    // The innermost block loop has the smallest stride, as x has.
    body = &function.body;
    for (size_t i = 0; i < count; ++i) {
      auto& loop = std::get<For>(body->front().form);
      loop.kind = kBlockKinds[count - 1 - i];
      body = &loop.body;
    }
    shared_bytes_ = 0;
    if (!threads(*body)) return std::nullopt;
    Stmt result = std::move(function.body[0]);
    return is_valid(result) ? std::optional(std::move(result)) : std::nullopt;
  }

  // The function with the points of each stage in the block as lanes, whatever its loops are now: those whose
  // iterations are independent are outermost, and as many lanes as a block has threads. nullopt where stages share
  // loops in the block. The block's loops are the outermost ones.
  std::optional<Function> points_in_threads(Function function, size_t block_loops) {
    Body* body = &function.body;
    for (size_t i = 0; i < block_loops; ++i) {
      auto& loop = std::get<For>(body->front().form);
      loop.kind = LoopKind::kSerial;
      body = &loop.body;
    }
    while (body->size() == 1 && std::holds_alternative<Alloc>(body->front().form))
      body = &std::get<Alloc>(body->front().form).body;
    Body nests;
    for (Stmt& nest : *body) distribute(function, std::move(nest), nests);
    *body = std::move(nests);
    std::vector<Symbol> stages;
    for (Stmt& nest : *body) {
      Stmt* inner = &nest;
      while (auto* loop = std::get_if<For>(&inner->form)) {
        if (loop->body.size() != 1) return std::nullopt;
        loop->kind = LoopKind::kSerial;
        inner = &loop->body.front();
      }
      const auto* stage = std::get_if<Stage>(&inner->form);
      if (!stage) return std::nullopt;
      stages.push_back(stage->name);
    }
    for (const Symbol stage : stages) {
      auto distributed = points_in_threads(function, block_loops, stage);
      if (!distributed) return std::nullopt;
      function = std::move(*distributed);
    }
    return function;
  }
  // The nest as one for each statement of its outer loops, where their iterations are independent.
  void distribute(const Function& function, Stmt nest, Body& nests) {
    const auto* loop = std::get_if<For>(&nest.form);
    Body parts;
    if (loop) {
      for (const Stmt& inner : loop->body) distribute(function, inner, parts);
    }
    if (parts.size() < 2 || !has_independent_iterations(function, nest)) {
      nests.push_back(std::move(nest));
      return;
    }
    for (Stmt& part : parts) {
      For copy{.var = loop->var, .extent = loop->extent, .kind = loop->kind, .body = {}};
      copy.body.push_back(std::move(part));
      nests.push_back(Stmt{std::move(copy)});
    }
  }
  bool has_independent_iterations(Function function, const Stmt& nest) {
    function.body = {nest};
    std::optional<Symbol> stage;
    for_each_stage(function.body.front(), [&](Stage& inner) {
      if (!stage) stage = inner.name;
    });
    auto& loop = std::get<For>(function.body.front().form);
    loop.kind = LoopKind::kSerial;
    const Symbol var = loop.var;
    return stage && loop::has_independent_iterations(context_, function, *stage, var);
  }
  std::optional<Function> points_in_threads(Function function, size_t block_loops, Symbol stage) {
    const auto loops_of = [&] {
      const auto path = find_stage(context_, function, stage);
      std::vector<const For*> loops = all_loops(*path);
      loops.erase(loops.begin(), loops.begin() + static_cast<ptrdiff_t>(block_loops));
      return loops;
    };
    std::vector<Symbol> independent, ordered;
    for (const For* loop : loops_of()) {
      const bool is_free = loop::has_independent_iterations(context_, function, stage, loop->var);
      (is_free ? independent : ordered).push_back(loop->var);
    }
    if (independent.empty()) return function;
    std::vector<Symbol> order = independent;
    order.insert(order.end(), ordered.begin(), ordered.end());
    if (order.size() > 1) {
      auto reordered = reorder(context_, function, stage, order);
      if (!reordered) return std::nullopt;
      function = std::move(*reordered);
    }
    for (size_t i = 1; i < independent.size(); ++i) {
      auto fused = fuse(context_, function, stage, loops_of()[0]->var, loops_of()[1]->var);
      if (!fused) return std::nullopt;
      function = std::move(*fused);
    }
    const auto points = loops_of()[0]->extent.constant();
    if (!points) return std::nullopt;
    size_t lanes = 0;
    if (*points > options_.threads) {
      int64_t threads = options_.threads;  // so many that no thread of the last step is idle, where they are not few
      while (threads > options_.threads / 2 && *points % threads != 0) --threads;
      const int64_t factors[] = {*points % threads == 0 ? threads : options_.threads};
      auto cut = split(context_, function, stage, loops_of()[0]->var, factors);
      if (!cut) return std::nullopt;
      function = std::move(*cut);
      lanes = 1;
    }
    const auto path = find_stage(context_, function, stage);
    const Symbol var = loops_of()[lanes]->var;
    path->loop_at(*path->loop(var)).kind = LoopKind::kVectorized;
    return function;
  }

  static bool has_lanes(const Body& body) {
    bool found = false;
    for_each_statement(body, [&](const Stmt& stmt) {
      const auto* loop = std::get_if<For>(&stmt.form);
      found |= loop && loop->kind == LoopKind::kVectorized &&
               loop->extent.constant().value_or(kMaxThreads + 1) <= kMaxThreads;
    });
    return found;
  }

  // Binds the vector loops of a block, and gives all other stages to one thread.
  bool threads(Body& body) {
    for (Stmt& stmt : body) {
      if (auto* alloc = std::get_if<Alloc>(&stmt.form)) {
        if (!threads(alloc->body) || !choose_scope(stmt)) return false;
        continue;
      }
      auto* loop = std::get_if<For>(&stmt.form);
      if (loop && loop->kind == LoopKind::kVectorized &&
          loop->extent.constant().value_or(kMaxThreads + 1) <= kMaxThreads) {
        loop->kind = LoopKind::kThreadX;
        continue;
      }
      if (loop && has_lanes(loop->body)) {
        if (loop->kind == LoopKind::kParallel) loop->kind = LoopKind::kSerial;
        if (!threads(loop->body)) return false;
        continue;
      }
      const Symbol var = fresh(context_, function_, "thread");
      stmt = Stmt{
          For{.var = var, .extent = context_.dim(1), .kind = LoopKind::kThreadX, .body = {of_thread(std::move(stmt))}}};
      if (!has_constant_buffers(stmt)) return false;
    }
    return true;
  }

  // A block's buffer: in registers if every thread indexes it by its own lane, and else shared.
  bool choose_scope(Stmt& stmt) {
    auto& alloc = std::get<Alloc>(stmt.form);
    if (alloc.scope == Scope::kRegisters) {
      const Stmt block{For{.var = fresh(context_, function_, "block"),
                           .extent = context_.dim(1),
                           .kind = LoopKind::kBlockX,
                           .body = {stmt}}};
      if (is_valid(block)) return true;
    }
    const Buffer& buffer = function_.buffer(alloc.buffer);
    const auto element = static_cast<int64_t>(runtime::bytes(buffer.dtype));
    const int64_t elements = constant_elements(buffer).value_or(INT64_MAX);
    if (elements > options_.shared_bytes / element) return false;
    alloc.scope = Scope::kShared;
    shared_bytes_ += (elements * element + 15) / 16 * 16;
    return shared_bytes_ <= options_.shared_bytes;
  }

  // --- One thread ---

  Expected<Stmt> by_one_thread(Stmt stmt) {
    stmt = of_thread(std::move(stmt));
    if (!has_constant_buffers(stmt)) return fail("a buffer inside a nest has a size that is known at run time only");
    For thread{
        .var = fresh(context_, function_, "thread"), .extent = context_.dim(1), .kind = LoopKind::kThreadX, .body = {}};
    thread.body.push_back(std::move(stmt));
    For block{
        .var = fresh(context_, function_, "block"), .extent = context_.dim(1), .kind = LoopKind::kBlockX, .body = {}};
    block.body.push_back(Stmt{std::move(thread)});
    return Stmt{std::move(block)};
  }
  // The statement as one thread executes it: its loops are serial or unrolled, and its buffers on its stack.
  static Stmt of_thread(Stmt stmt) {
    Body body;
    body.push_back(std::move(stmt));
    for_each_statement(body, [](Stmt& inner) {
      if (auto* loop = std::get_if<For>(&inner.form); loop && loop->kind != LoopKind::kUnrolled)
        loop->kind = LoopKind::kSerial;
      if (auto* alloc = std::get_if<Alloc>(&inner.form)) alloc->scope = Scope::kStack;
    });
    return std::move(body[0]);
  }
  bool has_constant_buffers(const Stmt& stmt) const {
    bool result = true;
    const Body body{stmt};
    for_each_statement(body, [&](const Stmt& inner) {
      const auto* alloc = std::get_if<Alloc>(&inner.form);
      if (!alloc) return;
      result &= constant_elements(function_.buffer(alloc->buffer)).value_or(kMaxStack + 1) <= kMaxStack;
    });
    return result;
  }

  TypeContext& context_;
  Function function_;  // without its body, which is bound nest by nest
  const BindOptions options_;
  int64_t shared_bytes_ = 0;  // of the block
};

}  // namespace

Expected<Function> bound(TypeContext& context, Function function, const BindOptions& options) {
  return Binder(context, std::move(function), options).run();
}

}  // namespace tenon::compiler::loop
