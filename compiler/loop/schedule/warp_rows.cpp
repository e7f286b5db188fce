#include "compiler/loop/schedule/warp_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/loop/access.h"
#include "compiler/loop/bindings.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/merge.h"
#include "compiler/loop/schedule/primitives.h"
#include "compiler/loop/tree.h"
#include "compiler/loop/verify.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

constexpr int64_t kMostUnrolled = 64;  // points of a thread in a nest
constexpr int64_t kLongRow = 256;      // elements of one that has a warp for itself

size_t number_of_stages(const Body& body) {
  size_t count = 0;
  for_each_statement(body, [&](const Stmt& stmt) { count += std::holds_alternative<Stage>(stmt.form); });
  return count;
}

class WarpRows {
 public:
  WarpRows(TypeContext& context, Function function, const WarpRowOptions& options)
      : context_(context), function_(std::move(function)), options_(options) {}

  bool has_rows() { return !sums_of_parts().empty(); }
  // Requires rows. Errors say why the function has no such binding. `blocks`: at least so many, before one has several
  // rows.
  Expected<Function> run(int64_t blocks, int64_t rows) && {
    for (const Symbol sum : sums_of_parts()) {
      TENON_TRY(write_locally(sum));
      TENON_TRY(add_by_halves(sum));
    }
    function_ = merged(context_, std::move(function_),
                       {.threads = INT64_MAX - 1,  // bind_threads() limits the elements of a thread
                        .buffer_bytes = 1 << 17,
                        .points = int64_t{1} << 40,
                        .blocks = blocks,
                        .iterations = std::min(rows, options_.threads / threads_)});
    std::vector<Symbol> first_stages;  // of the merged nests
    for (const Stmt& nest : nests_of(function_)) {
      if (!std::holds_alternative<For>(nest.form) || number_of_stages({nest}) < 2) continue;
      first_stages.push_back(stages_of({nest}).front());
    }
    for (const Symbol stage : first_stages) TENON_TRY(bind(stage));
    TENON_TRY(verify(context_, function_));
    return std::move(function_);
  }

 private:
  static std::vector<Symbol> stages_of(const Body& body) {
    std::vector<Symbol> stages;
    for_each_statement(body, [&](const Stmt& stmt) {
      if (const auto* stage = std::get_if<Stage>(&stmt.form)) stages.push_back(stage->name);
    });
    return stages;
  }
  Expected<void> apply(Expected<Function> changed) {
    if (!changed) return std::unexpected(std::move(changed.error()));
    function_ = std::move(*changed);
    return {};
  }
  std::vector<const For*> loops_of(Symbol stage) {
    path_ = find_stage(context_, function_, stage);
    return all_loops(*path_);
  }

  // --- Sums ---

  // The stages that add the elements along the last axis of a local buffer, if each buffer has 16, or each has 64.
  std::vector<Symbol> sums_of_parts() {
    std::vector<Symbol> sums;
    int64_t parts = 0;
    bool same = true;
    for_each_statement(function_.body, [&](const Stmt& stmt) {
      const auto* stage = std::get_if<Stage>(&stmt.form);
      const int64_t count = stage ? parts_of(*stage) : 0;
      if (count == 0) return;
      same &= parts == 0 || parts == count;
      parts = count;
      sums.push_back(stage->name);
    });
    threads_ = longest_row() < kLongRow ? kWarpThreads / 2 : kWarpThreads;
    return same ? sums : std::vector<Symbol>();
  }
  // The most terms of a row that a stage adds up, in all of its partial sums.
  int64_t longest_row() {
    int64_t most = 0;
    for_each_statement(function_.body, [&](const Stmt& stmt) {
      const auto* stage = std::get_if<Stage>(&stmt.form);
      if (!stage || stage->init.empty() || parts_of(*stage) > 0) return;
      int64_t terms = 1, parts = 1;
      for (const Axis& axis : stage->axes) {
        const int64_t count = axis.extent.constant().value_or(1);
        if (axis.kind == AxisKind::kSpatial) parts = count;  // the last one's
        if (axis.kind == AxisKind::kReduce && __builtin_mul_overflow(terms, count, &terms)) terms = INT64_MAX;
      }
      if (__builtin_mul_overflow(terms, parts, &terms)) terms = INT64_MAX;
      most = std::max(most, terms);
    });
    return most;
  }
  // The number of elements; 0 where the stage is no such sum.
  int64_t parts_of(const Stage& stage) {
    const auto is_term = [](const Axis& axis) { return axis.kind == AxisKind::kReduce; };
    const auto term = std::ranges::find_if(stage.axes, is_term);
    if (std::ranges::count_if(stage.axes, is_term) != 1 || stage.init.empty()) return 0;
    const int64_t count = term->extent.constant().value_or(0);
    if (count != 16 && count != 64) return 0;
    bool reads_parts = false, reads_else = false;
    std::optional<BufferId> to;
    for_each_access(stage, [&](const Access& access) {
      if (access.writes) to = access.buffer;
    });
    for_each_access(stage, [&](const Access& access) {
      if (access.buffer == to) return;
      const bool is_part = !access.indices.empty() && access.indices.back() == context_.dim(term->var) &&
                           find_alloc(function_.body, access.buffer);
      (is_part ? reads_parts : reads_else) = true;
    });
    return reads_parts && !reads_else ? count : 0;
  }

  // All threads of a warp compute the last sum, in registers; one of them copies it.
  Status write_locally(Symbol stage) {
    (void)loops_of(stage);
    bool is_local = true;
    for_each_access(path_->stage(), [&](const Access& access) {
      if (access.writes) is_local &= find_alloc(function_.body, access.buffer).has_value();
    });
    if (is_local) return {};
    return apply(cache_write(context_, function_, stage, std::nullopt));
  }

  Status add_by_halves(Symbol stage) {
    for (;;) {
      const For* terms = loops_of(stage).back();
      const int64_t count = terms->extent.constant().value_or(0), half = count / 2;
      if (count == 2) return {};
      if (!feeds(path_->stage(), terms->var, AxisKind::kReduce) || count % 2 != 0)
        return error("the loop over the partial sums is not the innermost one");
      TENON_TRY(apply(split(context_, function_, stage, terms->var, {&half, 1})));
      const Symbol lower = loops_of(stage).back()->var;
      const Symbol name = fresh(context_, function_, fmt::format("{}_rf", context_.name(stage)));
      TENON_TRY(apply(rfactor(context_, function_, stage, lower)));
      const std::vector<const For*> loops = loops_of(name);
      const Symbol order[] = {loops.back()->var, loops[loops.size() - 2]->var};
      TENON_TRY(apply(reorder(context_, function_, name, order)));
    }
  }

  // --- Bindings ---

  Status bind(Symbol first_stage) {
    // The loops around all stages of the nest.
    (void)loops_of(first_stage);
    Body* body = nullptr;
    std::vector<Symbol> rows;
    for (const Path::Step& step : path_->steps) {
      if (std::holds_alternative<Alloc>(step.stmt().form)) continue;
      auto* loop = std::get_if<For>(&step.stmt().form);
      if (!loop || number_of_stages({step.stmt()}) < 2) break;
      rows.push_back(loop->var);
      body = &loop->body;
    }
    if (rows.empty() || rows.size() > std::size(kBlockKinds)) return error("blocks have more than three axes");
    const std::vector<Symbol> stages = stages_of(*body);
    const bool has_many_rows = std::ranges::all_of(stages, [&](Symbol stage) { return has_row(stage, rows.size()); });
    const int64_t rows_of_block = has_many_rows ? *loops_of(first_stage)[rows.size()]->extent.constant() : 1;
    TENON_TRY(put_into_registers(*body, rows_of_block * threads_));
    for (const Symbol stage : stages) TENON_TRY(bind_threads(stage, rows.size(), has_many_rows));
    for (size_t i = 0; i < rows.size(); ++i)
      TENON_TRY(apply(annotate(context_, function_, first_stage, rows[i], kBlockKinds[rows.size() - 1 - i])));
    Function launch = function_;
    launch.body = {nest_of(first_stage)};
    TENON_TRY(launches_of(context_, launch));
    return {};
  }
  Stmt nest_of(Symbol stage) {
    const auto path = find_stage(context_, function_, stage);
    const auto step = std::ranges::find_if(
        path->steps, [](const Path::Step& candidate) { return std::holds_alternative<For>(candidate.stmt().form); });
    return step->stmt();
  }

  // Whether the stage's first loop in the block is over rows: a spatial one with few iterations.
  bool has_row(Symbol stage, size_t block_loops) {
    const std::vector<const For*> loops = loops_of(stage);
    if (loops.size() <= block_loops) return false;
    const For& row = *loops[block_loops];
    const int64_t count = row.extent.constant().value_or(0);
    return count > 1 && count <= options_.threads / threads_ && feeds(path_->stage(), row.var, AxisKind::kSpatial);
  }

  Status bind_threads(Symbol stage, size_t first, bool has_many_rows) {
    const auto inner = [&] {
      std::vector<const For*> loops = loops_of(stage);
      loops.erase(loops.begin(), loops.begin() + static_cast<ptrdiff_t>(first));
      return loops;
    };
    if (has_many_rows) TENON_TRY(apply(annotate(context_, function_, stage, inner()[0]->var, LoopKind::kThreadY)));
    first += has_many_rows ? 1 : 0;
    std::vector<Symbol> elements, terms;
    for (const For* loop : inner()) {
      if (loop->body.size() != 1) return error("stages share a loop in a block");
      (feeds(path_->stage(), loop->var, AxisKind::kSpatial) ? elements : terms).push_back(loop->var);
    }
    std::vector<Symbol> order = elements;
    order.insert(order.end(), terms.begin(), terms.end());
    if (order.size() > 1) TENON_TRY(apply(reorder(context_, function_, stage, order)));
    for (size_t i = 1; i < elements.size(); ++i)
      TENON_TRY(apply(fuse(context_, function_, stage, inner()[0]->var, inner()[1]->var)));
    std::vector<Symbol> unrolled = terms;
    if (!elements.empty()) {
      const int64_t count = inner()[0]->extent.constant().value_or(0);
      if (count == 0) return error("the size of a row is not constant");
      if (count > threads_) {
        TENON_TRY(apply(split(context_, function_, stage, inner()[0]->var, {&threads_, 1})));
        const Symbol swapped[] = {inner()[1]->var, inner()[0]->var};
        TENON_TRY(apply(reorder(context_, function_, stage, swapped)));
        unrolled.insert(unrolled.begin(), swapped[1]);
      }
      TENON_TRY(apply(annotate(context_, function_, stage, inner()[0]->var, LoopKind::kThreadX)));
    }
    if (elements.empty() && !has_many_rows) by_first_thread(stage, first);
    int64_t points = 1;
    for (const For* loop : inner()) {
      if (std::ranges::find(unrolled, loop->var) == unrolled.end()) continue;
      const auto count = loop->extent.constant();
      if (!count || __builtin_mul_overflow(points, *count, &points) || points > kMostUnrolled)
        return error("a thread has too many elements of a row");
    }
    for (const Symbol loop : unrolled)
      TENON_TRY(apply(annotate(context_, function_, stage, loop, LoopKind::kUnrolled)));
    return {};
  }

  // Thread 0 executes the nest of the stage inside of the block's loops.
  void by_first_thread(Symbol stage, size_t block_loops) {
    (void)loops_of(stage);
    size_t loops = 0;
    for (const Path::Step& step : path_->steps) {
      if (std::holds_alternative<Alloc>(step.stmt().form) || loops++ < block_loops) continue;
      For thread{.var = fresh(context_, function_, "thread"),
                 .extent = context_.dim(1),
                 .kind = LoopKind::kThreadX,
                 .body = {}};
      thread.body.push_back(std::move(step.stmt()));
      step.stmt() = Stmt{std::move(thread)};
      return;
    }
  }

  // The block's buffers: threads of a row have the elements along an axis of more elements that have their index modulo
  // the number of threads.
  Status put_into_registers(Body& body, int64_t threads_of_block) {
    std::vector<BufferId> buffers;
    for_each_statement(body, [&](Stmt& stmt) {
      auto* alloc = std::get_if<Alloc>(&stmt.form);
      if (!alloc) return;
      alloc->scope = Scope::kRegisters;
      buffers.push_back(alloc->buffer);
    });
    int64_t registers = 0;
    for (const BufferId id : buffers) {
      const Buffer& buffer = function_.buffer(id);
      std::string old, axes;
      size_t splits = 0;
      const auto elements = constant_elements(buffer);
      if (!elements) return error("a buffer of a row has no constant size");
      for (size_t i = 0; i < buffer.rank(); ++i) {
        const int64_t size = *buffer.axes[i].extent.constant();
        old += fmt::format("a{} ", i);
        splits += size > threads_ ? 1 : 0;
        axes += size > threads_ ? fmt::format("a{0}%{1} a{0}/{1} ", i, threads_) : fmt::format("a{} ", i);
      }
      if (splits > 1) return error("two axes of a buffer have more elements than a row has threads");
      const auto bytes = static_cast<int64_t>(runtime::bytes(buffer.dtype));
      registers += (*elements + threads_of_block - 1) / threads_of_block * ((bytes + 3) / 4);
      if (splits == 1) TENON_TRY(apply(layout(context_, function_, buffer.name, old + "-> " + axes)));
    }
    if (registers > options_.registers) return error("rows have too many elements");
    return {};
  }

  TypeContext& context_;
  Function function_;
  const WarpRowOptions options_;
  int64_t threads_ = 0;  // of a row
  Expected<Path> path_ = Path{};
};

}  // namespace

Function with_warp_rows(TypeContext& context, Function function, const WarpRowOptions& options) {
  if (!WarpRows(context, function, options).has_rows()) return function;
  // As many blocks as are wanted, or warps of two short rows.
  for (const auto& [blocks, rows] : {std::pair{options.blocks, options.threads}, std::pair{int64_t{1}, int64_t{2}}}) {
    auto bound = WarpRows(context, function, options).run(blocks, rows);
    if (bound) return std::move(*bound);
  }
  return function;
}

}  // namespace tenon::compiler::loop
