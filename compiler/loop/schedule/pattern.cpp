#include "compiler/loop/schedule/pattern.h"

#include <algorithm>
#include <functional>
#include <set>

#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/schedule/primitives.h"

namespace tenon::compiler::loop {
namespace {

OpPattern weaker(OpPattern a, OpPattern b) { return std::max(a, b); }

// How the indices of a read follow from the indices of the stage's write.
OpPattern pattern_of(const Function& function, const Access& write, const Access& read) {
  const Buffer &to = function.buffer(write.buffer), &from = function.buffer(read.buffer);
  auto extents = [](const Buffer& buffer) {
    Dims dims;
    for (const BufferAxis& axis : buffer.axes) dims.push_back(axis.extent);
    return dims;
  };
  if (read.indices == write.indices && extents(to) == extents(from)) return OpPattern::kElementwise;
  // A broadcast operand has a subsequence of the written indices, in order, and 0 on axes of size 1.
  size_t next = 0;
  for (size_t i = 0; i < read.indices.size(); ++i) {
    if (read.indices[i].constant() == 0 && from.axes[i].extent.constant() == 1) continue;
    while (next < write.indices.size() && write.indices[next] != read.indices[i]) ++next;
    if (next == write.indices.size() || to.axes[next].extent != from.axes[i].extent) return OpPattern::kInjective;
    ++next;
  }
  return OpPattern::kBroadcast;
}

// The load that is a factor, perhaps under conversions.
const Load* factor(const Expr& expr) {
  if (const auto* converted = std::get_if<Convert>(&expr->form)) return factor(converted->value);
  return std::get_if<Load>(&expr->form);
}

// Whether the stage sums products of two elements whose indices both contain an axis of the reduction.
bool contracts(const Stage& stage) {
  bool found = false;
  for_each_statement(stage.body, [&](const Stmt& stmt) {
    const auto* store = std::get_if<Store>(&stmt.form);
    const auto* sum = store ? std::get_if<Binary>(&store->value->form) : nullptr;
    if (!sum || sum->op != BinaryOp::kAdd) return;
    for_each_node(store->value, [&](const ExprNode& node) {
      const auto* product = std::get_if<Binary>(&node.form);
      if (!product || product->op != BinaryOp::kMultiply) return;
      const Load *left = factor(product->left), *right = factor(product->right);
      for (const Axis& axis : stage.axes)
        found |= axis.kind == AxisKind::kReduce && left && right && left->buffer != right->buffer &&
                 mentions(left->indices, axis.var) && mentions(right->indices, axis.var);
    });
  });
  return found;
}

OpPattern pattern_of(const Function& function, const Stage& stage, const std::set<BufferId>& heavy) {
  OpPattern pattern = OpPattern::kElementwise;
  bool reduces = false;
  for (const Axis& axis : stage.axes) {
    if (axis.kind == AxisKind::kScan || axis.kind == AxisKind::kGiven) return OpPattern::kOpaque;
    reduces |= axis.kind == AxisKind::kReduce;
  }
  for_each_statement(stage.body, [&](const Stmt& stmt) {
    if (std::holds_alternative<Intrinsic>(stmt.form)) pattern = OpPattern::kOpaque;
  });
  std::vector<Access> reads, writes;
  for_each_access(stage, [&](const Access& access) { (access.writes ? writes : reads).push_back(access); });
  for (const Access& write : writes) {
    for (const Access& read : reads) {
      if (read.buffer == write.buffer) continue;
      const OpPattern of_read = pattern_of(function, write, read);
      // Only elementwise stages may follow a reduction.
      if (heavy.contains(read.buffer) && (reduces || of_read != OpPattern::kElementwise)) return OpPattern::kOpaque;
      if (!reduces) pattern = weaker(pattern, of_read);
    }
  }
  if (!reduces || pattern == OpPattern::kOpaque) return pattern;
  return contracts(stage) ? OpPattern::kAnchor : OpPattern::kReduction;
}

}  // namespace

Function without_inlined(TypeContext& context, Function function) {
  std::vector<Symbol> stages;
  for_each_statement(function.body, [&](const Stmt& stmt) {
    if (const auto* stage = std::get_if<Stage>(&stmt.form)) stages.push_back(stage->name);
  });
  for (Symbol stage : stages) {
    if (auto next = inlined(context, function, stage)) function = std::move(*next);
  }
  return function;
}

OpPattern pattern_of(TypeContext& context, const Function& function) {
  const Function plain = without_inlined(context, function);
  std::set<BufferId> heavy;  // results of reductions, and values computed from them
  bool opaque = false;
  std::set<Symbol> sums;
  OpPattern whole = OpPattern::kElementwise;
  const std::function<void(const Body&)> visit = [&](const Body& body) {
    for (const Stmt& stmt : body) {
      opaque |= std::holds_alternative<CallLibrary>(stmt.form) || std::holds_alternative<If>(stmt.form) ||
                std::holds_alternative<Let>(stmt.form);
      const auto* stage = std::get_if<Stage>(&stmt.form);
      if (!stage) {
        for_each_body(stmt, visit);
        continue;
      }
      const OpPattern of_stage = pattern_of(plain, *stage, heavy);
      const bool sum = of_stage == OpPattern::kReduction || of_stage == OpPattern::kAnchor;
      if (sum) sums.insert(stage->name);
      whole = weaker(whole, of_stage);
      bool follows = sum;
      for_each_access(*stage, [&](const Access& access) { follows |= heavy.contains(access.buffer); });
      for_each_access(*stage, [&](const Access& access) {
        if (access.writes && follows) heavy.insert(access.buffer);
      });
    }
  };
  visit(plain.body);
  return opaque || sums.size() > 1 ? OpPattern::kOpaque : whole;
}

bool has_schedule(const Function& function) {
  bool found = !function.intrinsics.empty();
  for_each_statement(function.body, [&](const Stmt& stmt) {
    if (const auto* loop = std::get_if<For>(&stmt.form)) found |= loop->kind != LoopKind::kSerial;
    if (const auto* alloc = std::get_if<Alloc>(&stmt.form)) found |= alloc->scope != Scope::kHeap;
  });
  return found;
}

}  // namespace tenon::compiler::loop
