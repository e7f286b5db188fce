// Structural equality of loop functions.
#include <algorithm>

#include "compiler/loop/expr.h"

namespace tenon::compiler::loop {
namespace {

class Comparison {
 public:
  Comparison(const Function& a, const Function& b) : a_(a), b_(b) {}

  bool run() {
    return a_.name == b_.name && a_.dims == b_.dims && a_.bounds == b_.bounds && a_.inexact == b_.inexact &&
           same(a_.params, b_.params) && same(a_.results, b_.results) &&
           std::ranges::equal(a_.intrinsics, b_.intrinsics,
                              [](const Function& x, const Function& y) { return equal(x, y); }) &&
           same_tables() && same(a_.body, b_.body);
  }

 private:
  bool same_tables() const {
    return std::ranges::equal(a_.tables, b_.tables, [](const Table& x, const Table& y) {
      return x.kind == y.kind && x.name == y.name && x.var == y.var && x.count == y.count && x.width == y.width &&
             x.limit == y.limit;
    });
  }
  // Buffers are compared by name, which is unique in a function.
  bool same(BufferId a, BufferId b) const {
    const Buffer &x = a_.buffer(a), &y = b_.buffer(b);
    return x.name == y.name && x.dtype == y.dtype && x.swizzles == y.swizzles &&
           std::ranges::equal(x.axes, y.axes,
                              [](const BufferAxis& p, const BufferAxis& q) { return p.extent == q.extent; });
  }
  bool same(const std::vector<BufferId>& a, const std::vector<BufferId>& b) const {
    return std::ranges::equal(a, b, [&](BufferId x, BufferId y) { return same(x, y); });
  }
  // Compares after the buffers of `b_` in the second expression are replaced by those of `a_`.
  bool same(const Expr& a, const Expr& b) const {
    return equal(a, rewrite(b, [&](const ExprNode& node) -> Expr {
                   const auto* load = std::get_if<Load>(&node.form);
                   if (!load) return nullptr;
                   for (size_t i = 0; i < a_.buffers.size(); ++i) {
                     if (!same(static_cast<BufferId>(i), load->buffer)) continue;
                     ExprNode copy = node;
                     std::get<Load>(copy.form).buffer = static_cast<BufferId>(i);
                     return std::make_shared<const ExprNode>(std::move(copy));
                   }
                   return nullptr;
                 }));
  }
  bool same(const Body& a, const Body& b) const {
    return std::ranges::equal(a, b, [&](const Stmt& x, const Stmt& y) {
      if (x.form.index() != y.form.index()) return false;
      return std::visit(
          [&](const auto& form) { return same(form, std::get<std::remove_cvref_t<decltype(form)>>(y.form)); }, x.form);
    });
  }
  bool same(const For& a, const For& b) const {
    return a.var == b.var && a.extent == b.extent && a.kind == b.kind && same(a.body, b.body);
  }
  bool same(const Stage& a, const Stage& b) const {
    return a.name == b.name && a.async == b.async && a.where == b.where && same(a.init, b.init) &&
           same(a.body, b.body) && std::ranges::equal(a.axes, b.axes, [](const Axis& x, const Axis& y) {
             return x.var == y.var && x.extent == y.extent && x.kind == y.kind && x.value == y.value;
           });
  }
  bool same(const Store& a, const Store& b) const {
    return same(a.buffer, b.buffer) && a.indices == b.indices && same(a.value, b.value);
  }
  bool same(const If& a, const If& b) const {
    return same(a.condition, b.condition) && same(a.then, b.then) && same(a.otherwise, b.otherwise);
  }
  bool same(const Let& a, const Let& b) const {
    return a.var == b.var && a.extent == b.extent && same(a.value, b.value) && same(a.body, b.body);
  }
  bool same(const Alloc& a, const Alloc& b) const {
    return same(a.buffer, b.buffer) && a.scope == b.scope && same(a.body, b.body);
  }
  bool same(const Intrinsic& a, const Intrinsic& b) const {
    auto same_operand = [&](const Operand& x, const Operand& y) {
      return same(x.buffer, y.buffer) && x.parts == y.parts;
    };
    return a.name == b.name && a.inexact == b.inexact && std::ranges::equal(a.inputs, b.inputs, same_operand) &&
           std::ranges::equal(a.outputs, b.outputs, same_operand);
  }
  bool same(const Barrier&, const Barrier&) const { return true; }
  bool same(const Commit&, const Commit&) const { return true; }
  bool same(const Wait& a, const Wait& b) const { return a.groups == b.groups; }
  bool same(const CallLibrary& a, const CallLibrary& b) const {
    return a.symbol == b.symbol && same(a.inputs, b.inputs) && same(a.outputs, b.outputs);
  }

  const Function &a_, &b_;
};

}  // namespace

bool equal(const Function& a, const Function& b) { return Comparison(a, b).run(); }

}  // namespace tenon::compiler::loop
