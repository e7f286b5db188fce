#include "compiler/loop/work.h"

#include <algorithm>
#include <set>

#include "compiler/loop/access.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/state.h"
#include "compiler/loop/tree.h"
#include "support/try.h"

namespace tenon::compiler::loop {
namespace {

// Whether the number of points inside depends on the variable.
bool depends_on(const Body& body, Symbol var) {
  return std::ranges::any_of(body, [&](const Stmt& stmt) {
    if (const auto* loop = std::get_if<For>(&stmt.form); loop && mentions({&loop->extent, 1}, var)) return true;
    if (const auto* stage = std::get_if<Stage>(&stmt.form)) {
      return std::ranges::any_of(stage->where, [&](const Guard& guard) {
        const Dim sides[] = {guard.left, guard.right};
        return mentions(sides, var);
      });
    }
    bool inside = false;
    for_each_body(stmt, [&](const Body& inner) { inside |= depends_on(inner, var); });
    return inside;
  });
}

std::set<BufferId> buffers_of(const Expr& value) {
  std::set<BufferId> found;
  for_each_node(value, [&](const ExprNode& node) {
    if (const auto* load = std::get_if<Load>(&node.form)) found.insert(load->buffer);
  });
  return found;
}

// Whether a term of the stage's sums is the product of elements that are not of the same tensors.
bool adds_products(const Stage& stage) {
  bool found = false;
  for_each_statement(stage.body, [&](const Stmt& stmt) {
    const auto* store = std::get_if<Store>(&stmt.form);
    if (!store) return;
    for_each_node(store->value, [&](const ExprNode& node) {
      const auto* product = std::get_if<Binary>(&node.form);
      if (!product || product->op != BinaryOp::kMultiply) return;
      const std::set<BufferId> left = buffers_of(product->left), right = buffers_of(product->right);
      found |= !std::ranges::includes(left, right) && !std::ranges::includes(right, left);
    });
  });
  return found;
}

class Counter {
 public:
  Counter(const TypeContext& context, const Function& function) : state_(context, function, INT64_MAX) {}

  Expected<Work> run(std::span<const runtime::Tensor> params) {
    TENON_TRY(state_.bind(params));
    TENON_TRY(body(state_.function().body, 1));
    return work_;
  }
  Expected<Work> run(const std::map<Symbol, int64_t>& dims) {
    for (const auto& [name, value] : dims) state_.variables().bind(name, value);
    TENON_TRY(body(state_.function().body, 1));
    return work_;
  }

 private:
  // `times`: of equal iterations around the body.
  Status body(const Body& body, int64_t times) {
    for (const Stmt& stmt : body) {
      if (const auto* loop = std::get_if<For>(&stmt.form)) {
        TENON_TRY(this->loop(*loop, times));
      } else if (const auto* stage = std::get_if<Stage>(&stmt.form)) {
        TENON_TRY(this->stage(*stage, times));
      } else {
        Status status;
        for_each_body(stmt, [&](const Body& inner) {
          if (status) status = this->body(inner, times);
        });
        TENON_TRY(status);
      }
    }
    return {};
  }
  Status loop(const For& loop, int64_t times) {
    TENON_TRY_ASSIGN(extent, state_.value(loop.extent));
    const bool is_vector = loop.kind == LoopKind::kVectorized;
    if (*extent <= 0) return {};
    if (is_vector || !depends_on(loop.body, loop.var)) {
      const Binding first(state_.variables(), loop.var, 0);
      int64_t all = 0;
      if (__builtin_mul_overflow(times, *extent, &all)) return error("the loops have more than 2^63 points");
      return body(loop.body, all);
    }
    for (int64_t i = 0; i < *extent; ++i) {
      const Binding binding(state_.variables(), loop.var, i);
      TENON_TRY(body(loop.body, times));
    }
    return {};
  }
  Status stage(const Stage& stage, int64_t times) {
    for (const Guard& guard : stage.where) {
      TENON_TRY_ASSIGN(left, state_.value(guard.left));
      TENON_TRY_ASSIGN(right, state_.value(guard.right));
      if (*left >= *right) return {};
    }
    const bool reduces = std::ranges::find(stage.axes, AxisKind::kReduce, &Axis::kind) != stage.axes.end();
    (reduces ? work_.terms : work_.points) += times;
    if (reduces && adds_products(stage)) work_.products += times;
    return {};
  }

  State state_;
  Work work_;
};

}  // namespace

Expected<Work> work_of(const TypeContext& context, const Function& function, std::span<const runtime::Tensor> params) {
  return Counter(context, function).run(params);
}
Expected<Work> work_of(const TypeContext& context, const Function& function, const std::map<Symbol, int64_t>& dims) {
  return Counter(context, function).run(dims);
}

}  // namespace tenon::compiler::loop
