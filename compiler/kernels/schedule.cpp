#include "compiler/kernels/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/kernels/accesses.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/schedule.h"
#include "compiler/loop/tree.h"

namespace tenon::compiler::kernels {
namespace {

using loop::AxisKind;
using loop::Mark;

constexpr int64_t kLanes = 64;                // of a vector, as many as some registers hold
constexpr int64_t kParallelPoints = 1 << 15;  // below, threads cost more than they save

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
    int64_t size() const { return extent.constant().value_or(0); }  // 0: not known
  };

  // The loops that stand around the stage alone, outermost first; none where some are marked already.
  std::vector<Loop> loops_of(Symbol stage) {
    function_ = schedule_.function();
    path_ = loop::find_stage(context_, function_, stage);
    std::vector<Loop> loops;
    if (!path_) return loops;
    for (size_t i = 0; i + 1 < path_->steps.size(); ++i) {
      if (!path_->is_loop(i)) continue;
      const loop::For& one = path_->loop_at(i);
      if (one.mark != Mark::kSerial) return {};
      Loop loop{one.var, one.extent, AxisKind::kSpatial};
      for (const loop::Axis& axis : path_->stage().axes) {
        if (loop::mentions({&axis.value, 1}, one.var) && axis.kind != AxisKind::kSpatial) loop.kind = axis.kind;
      }
      if (one.body.size() > 1) loops.clear();
      else loops.push_back(loop);
    }
    return loops;
  }

  // Whether any place in the stage's expressions, but for those of elements, depends on the variable.
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

  // What the elements that the stage takes are apart along a loop, one number each access.
  std::vector<std::optional<int64_t>> strides(Symbol var) {
    std::vector<std::optional<int64_t>> all;
    for_each_access(path_->stage(), [&](const loop::Access& access) {
      const Dims indices = loop::over_loops(context_, path_->stage(), access.indices);
      all.push_back(stride(context_, var, offset(context_, function_.buffer(access.buffer), indices)));
    });
    return all;
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
    // Short inner loops become one with those around them, where the elements lie so that nobody sees it.
    while (loops.size() > 1) {
      const Loop outer = loops[loops.size() - 2], inner = loops.back();
      if (inner.size() == 0 || outer.size() == 0 || inner.size() >= 4 * kLanes) break;
      const auto a = strides(outer.var), b = strides(inner.var);
      bool one = !computes_with(outer.var) && !computes_with(inner.var);
      for (size_t i = 0; i < a.size(); ++i) one &= a[i] && b[i] && *a[i] == *b[i] * inner.size();
      if (!one || !schedule_.fuse(stage, outer.var, inner.var)) break;
      loops = loops_of(stage);
    }
    vector(stage, loops.back());
    threads(stage);
  }

  void vector(Symbol stage, const Loop& loop) {
    if (loop.size() == 1) return;
    if (loop.size() > 0 && loop.size() <= 8 * kLanes) {
      (void)schedule_.mark(stage, loop.var, Mark::kVector);
      return;
    }
    // A length that is not known has lanes that are off at its end.
    const int64_t lanes = loop.size() > 0 ? 8 * kLanes : 16;
    if (loop.size() % lanes != 0 && loop.size() > 0) {
      if (loop.size() < kParallelPoints) (void)schedule_.mark(stage, loop.var, Mark::kVector);
      else if (schedule_.split(stage, loop.var, kLanes))
        (void)schedule_.mark(stage, loops_of(stage).back().var, Mark::kVector);
      return;
    }
    if (schedule_.split(stage, loop.var, lanes)) (void)schedule_.mark(stage, loops_of(stage).back().var, Mark::kVector);
  }

  void threads(Symbol stage) {
    function_ = schedule_.function();
    path_ = loop::find_stage(context_, function_, stage);
    double points = 1;
    std::optional<Symbol> outermost;
    for (size_t i = 0; path_ && i + 1 < path_->steps.size(); ++i) {
      if (!path_->is_loop(i)) continue;
      const loop::For& one = path_->loop_at(i);
      if (one.mark == Mark::kParallel) return;
      if (!outermost && one.mark == Mark::kSerial && one.extent.constant() != 1) outermost = one.var;
      points *= static_cast<double>(one.extent.constant().value_or(kLanes));
    }
    if (outermost && points >= kParallelPoints) (void)schedule_.mark(stage, *outermost, Mark::kParallel);
  }

  // Where neighbours of the result come from neighbours, these are the vector, and the sum runs around them.
  void reduction(Symbol stage, const std::vector<Loop>& loops) {
    std::vector<Symbol> order, sum;
    std::optional<Loop> last;
    for (const Loop& loop : loops) {
      if (loop.kind == AxisKind::kReduce) sum.push_back(loop.var);
      else last = loop;
    }
    if (!last || last->size() < 2) return threads(stage);
    bool side_by_side = true;
    size_t moves = 0;
    for (const auto& one : strides(last->var)) side_by_side &= one && *one >= 0 && *one <= 2, moves += one && *one != 0;
    if (!side_by_side || moves < 2) return threads(stage);
    for (const Loop& loop : loops) {
      if (loop.kind == AxisKind::kSpatial && loop.var != last->var) order.push_back(loop.var);
    }
    order.insert(order.end(), sum.begin(), sum.end());
    order.push_back(last->var);
    if (!schedule_.reorder(stage, order)) return threads(stage);
    if (!path_->stage().init.empty() && schedule_.split_init(stage, sum.front())) {
      const Symbol init = context_.symbol(fmt::format("{}_init", context_.name(stage)));
      if (const auto inner = loops_of(init); !inner.empty()) vector(init, inner.back());
    }
    (void)schedule_.mark(stage, last->var, Mark::kVector);
    threads(stage);
  }

  TypeContext& context_;
  loop::Schedule schedule_;
  loop::Function function_;  // as path_ sees it
  Expected<loop::Path> path_ = loop::Path();
};

}  // namespace

Scheduled schedule(TypeContext& context, loop::Function function) {
  return Scheduler(context, std::move(function)).run();
}

}  // namespace tenon::compiler::kernels
