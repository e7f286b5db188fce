#include "compiler/kernels/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/kernels/accesses.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/pattern.h"
#include "compiler/loop/schedule/schedule.h"
#include "compiler/loop/tree.h"
#include "support/try.h"

namespace tenon::compiler::kernels {
namespace {

using loop::AxisKind;
using loop::LoopKind;

constexpr int64_t kLanes = 64;                // elements of a vector, as many as several registers hold
constexpr int64_t kParallelPoints = 1 << 15;  // iterations below which threads cost more than they save

class Scheduler {
 public:
  Scheduler(TypeContext& context, loop::Function function)
      : context_(context), schedule_(context, std::move(function)) {}

  Scheduled run() {
    std::vector<Symbol> stages;
    for_each_statement(schedule_.function().body, [&](const loop::Stmt& stmt) {
      if (const auto* stage = std::get_if<loop::Stage>(&stmt.form)) stages.push_back(stage->name);
    });
    for (const Symbol stage : stages) schedule(stage);
    return {schedule_.function(), schedule_.steps()};
  }

 private:
  struct Loop {
    Symbol var{};
    Dim extent;
    AxisKind kind{};
    int64_t size() const { return extent.constant().value_or(0); }  // 0: not constant
  };

  // The loops around this stage only, outermost first; none where one of them is annotated already.
  std::vector<Loop> loops_of(Symbol stage) {
    function_ = schedule_.function();
    path_ = loop::find_stage(context_, function_, stage);
    std::vector<Loop> loops;
    if (!path_) return loops;
    for (size_t i = 0; i < path_->steps.size(); ++i) {
      if (path_->steps[i].body->size() > 1) loops.clear();
      if (!path_->is_loop(i)) continue;
      const loop::For& loop_stmt = path_->loop_at(i);
      if (loop_stmt.kind != LoopKind::kSerial) return {};
      Loop loop{loop_stmt.var, loop_stmt.extent, AxisKind::kSpatial};
      for (const loop::Axis& axis : path_->stage().axes) {
        if (loop::mentions({&axis.value, 1}, loop_stmt.var) && axis.kind != AxisKind::kSpatial) loop.kind = axis.kind;
      }
      loops.push_back(loop);
    }
    return loops;
  }

  // Whether an expression of the stage, apart from the indices of accesses, depends on the variable.
  bool computes_with(Symbol var) {
    bool found = false;
    for_each_expr(path_->stage(), [&](loop::Expr& expr) {
      for_each_node(expr, [&](const loop::ExprNode& node) {
        if (const auto* index = std::get_if<loop::IndexValue>(&node.form))
          found |= mentions(over_loops(index->value), var);
        found |= std::holds_alternative<loop::LetIndex>(node.form);
      });
    });
    return found;
  }
  static bool mentions(Dim dim, Symbol var) { return loop::mentions({&dim, 1}, var); }
  Dim over_loops(Dim dim) { return loop::over_loops(context_, path_->stage(), {dim})[0]; }

  // The stride of each access of the stage along a loop.
  std::vector<std::optional<int64_t>> strides(Symbol var) {
    std::vector<std::optional<int64_t>> result;
    for_each_access(path_->stage(), [&](const loop::Access& access) {
      const Dims indices = loop::over_loops(context_, path_->stage(), access.indices);
      result.push_back(stride(context_, var, offset(context_, function_.buffer(access.buffer), indices)));
    });
    return result;
  }

  void schedule(Symbol stage) {
    std::vector<Loop> loops = loops_of(stage);
    if (loops.empty() || std::ranges::any_of(loops, [](const Loop& loop) { return loop.kind == AxisKind::kScan; }))
      return;
    if (std::ranges::any_of(loops, [](const Loop& loop) { return loop.kind == AxisKind::kReduce; }))
      reduction(stage, loops);
    else elementwise(stage);
  }

  void elementwise(Symbol stage) {
    std::vector<Loop> loops = loops_of(stage);
    // Fuses short inner loops with the loops around them where all accesses remain strided.
    while (loops.size() > 1) {
      const Loop outer = loops[loops.size() - 2], inner = loops.back();
      if (inner.size() == 0 || outer.size() == 0 || inner.size() >= 4 * kLanes) break;
      const auto a = strides(outer.var), b = strides(inner.var);
      bool can_fuse = !computes_with(outer.var) && !computes_with(inner.var);
      for (size_t i = 0; i < a.size(); ++i) can_fuse &= a[i] && b[i] && *a[i] == *b[i] * inner.size();
      if (!can_fuse || !schedule_.fuse(stage, outer.var, inner.var)) break;
      loops = loops_of(stage);
    }
    vectorize(stage, loops.back());
    parallelize(stage);
  }

  void vectorize(Symbol stage, const Loop& loop) {
    if (loop.size() == 1) return;
    if (loop.size() > 0 && loop.size() <= 8 * kLanes) {
      (void)schedule_.annotate(stage, loop.var, LoopKind::kVectorized);
      return;
    }
    // A loop whose extent is not constant masks the lanes past its end.
    const int64_t lanes = loop.size() > 0 ? 8 * kLanes : 16;
    if (loop.size() % lanes != 0 && loop.size() > 0) {
      if (loop.size() < kParallelPoints) (void)schedule_.annotate(stage, loop.var, LoopKind::kVectorized);
      else if (schedule_.split(stage, loop.var, kLanes))
        (void)schedule_.annotate(stage, loops_of(stage).back().var, LoopKind::kVectorized);
      return;
    }
    if (!schedule_.split(stage, loop.var, lanes)) return;
    const std::vector<Loop> blocks = loops_of(stage);
    (void)schedule_.annotate(stage, blocks.back().var, LoopKind::kVectorized);
    // A masked store takes as long as a dozen operations, so that only the last block has one.
    if (loop.size() == 0) (void)schedule_.partition(stage, blocks[blocks.size() - 2].var);
  }

  void parallelize(Symbol stage) {
    function_ = schedule_.function();
    path_ = loop::find_stage(context_, function_, stage);
    double points = 1;
    const loop::For *outermost = nullptr, *second = nullptr;
    for (size_t i = 0; path_ && i + 1 < path_->steps.size(); ++i) {
      if (!path_->is_loop(i)) continue;
      const loop::For& loop_stmt = path_->loop_at(i);
      if (loop_stmt.kind == LoopKind::kParallel) return;
      const std::optional<int64_t> extent = loop_stmt.extent.constant();
      points *= static_cast<double>(extent.value_or(kLanes));
      if (loop_stmt.kind != LoopKind::kSerial || extent == 1) continue;
      if (!outermost) outermost = &loop_stmt;
      else if (!second) second = &loop_stmt;
    }
    // An unknown batch is one image more often than not: the next loop is better where it has enough iterations.
    constexpr int64_t kEnough = 8;
    if (second && !outermost->extent.constant() && second->extent.constant().value_or(kEnough) >= kEnough)
      outermost = second;
    if (outermost && points >= kParallelPoints) (void)schedule_.annotate(stage, outermost->var, LoopKind::kParallel);
  }

  // Vectorizes the innermost spatial loop where it accesses contiguous elements, with the reduction loops around it.
  void reduction(Symbol stage, const std::vector<Loop>& loops) {
    std::vector<Symbol> order, sum;
    std::optional<Loop> last;
    for (const Loop& loop : loops) {
      if (loop.kind == AxisKind::kReduce) sum.push_back(loop.var);
      else last = loop;
    }
    if (!last || last->size() < 2) return parallelize(stage);
    bool is_contiguous = true;
    size_t num_moving = 0;
    for (const auto& step : strides(last->var))
      is_contiguous &= step && *step >= 0 && *step <= 2, num_moving += step && *step != 0;
    if (!is_contiguous || num_moving < 2) return parallelize(stage);
    for (const Loop& loop : loops) {
      if (loop.kind == AxisKind::kSpatial && loop.var != last->var) order.push_back(loop.var);
    }
    order.insert(order.end(), sum.begin(), sum.end());
    order.push_back(last->var);
    if (!schedule_.reorder(stage, order)) return parallelize(stage);
    if (!path_->stage().init.empty() && schedule_.split_init(stage, sum.front())) {
      const Symbol init = context_.symbol(fmt::format("{}_init", context_.name(stage)));
      if (const auto inner = loops_of(init); !inner.empty()) vectorize(init, inner.back());
    }
    (void)schedule_.annotate(stage, last->var, LoopKind::kVectorized);
    parallelize(stage);
  }

  TypeContext& context_;
  loop::Schedule schedule_;
  loop::Function function_;  // into which path_ points
  Expected<loop::Path> path_ = loop::Path();
};

}  // namespace

Expected<Scheduled> schedule_loops(TypeContext& context, const loop::Function& function,
                                   const schedules::UserSchedule* own) {
  if (own) {
    loop::Schedule scheduled(context, function);
    TENON_TRY(schedules::apply(scheduled, *own));
    std::vector<std::string> steps = scheduled.steps();
    return Scheduled{std::move(scheduled).take(), std::move(steps)};
  }
  if (loop::has_schedule(function)) return Scheduled{function, {}};
  return schedule(context, function);
}

Scheduled schedule(TypeContext& context, loop::Function function) {
  return Scheduler(context, std::move(function)).run();
}

}  // namespace tenon::compiler::kernels
