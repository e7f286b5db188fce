// Visits of the parts of values, patterns and blocks. They name every kind of value, so that a new kind does not
// compile until they handle it.
#include <concepts>
#include <type_traits>

#include "compiler/ir/module.h"

namespace tenon::compiler {
namespace {

// Each visit is one template for constant and for mutable values.

template <class V, class F>
void visit_operands(V& value, F visit) {
  auto list = [&](auto& atoms) {
    for (auto& atom : atoms) visit(atom);
  };
  std::visit(
      [&](auto& node) {
        using Node = std::remove_cvref_t<decltype(node)>;
        if constexpr (std::same_as<Node, Apply>) {
          list(node.args);
          for (auto& [name, attr] : node.computed) {
            if (auto* atom = std::get_if<Atom>(&attr)) visit(*atom);
          }
        } else if constexpr (std::same_as<Node, Call>) {
          if (std::holds_alternative<VarId>(node.callee)) visit(node.callee);
          list(node.args);
        } else if constexpr (std::same_as<Node, Gradient>) {
          if (std::holds_alternative<VarId>(node.call.callee)) visit(node.call.callee);
          list(node.call.args);
        } else if constexpr (std::same_as<Node, Tuple> || std::same_as<Node, Construct>) {
          list(node.fields);
        } else if constexpr (std::same_as<Node, Project>) {
          visit(node.tuple);
        } else if constexpr (std::same_as<Node, If>) {
          visit(node.condition);
        } else if constexpr (std::same_as<Node, Case>) {
          visit(node.subject);
        } else if constexpr (std::same_as<Node, Cast> || std::same_as<Node, MakeReference>) {
          visit(node.value);
        } else if constexpr (std::same_as<Node, ReadReference>) {
          visit(node.reference);
        } else if constexpr (std::same_as<Node, WriteReference>) {
          visit(node.reference);
          visit(node.value);
        } else {
          static_assert(std::same_as<Node, Lambda> || std::same_as<Node, DimValue>);
        }
      },
      value);
}

template <class V, class F>
void visit_dims(V& value, F visit) {
  if (auto* dim = std::get_if<DimValue>(&value)) visit(dim->dim);
  auto* apply = std::get_if<Apply>(&value);
  if (!apply) return;
  for (auto& [name, attr] : apply->computed) {
    if (auto* dims = std::get_if<Dims>(&attr)) {
      for (auto& dim : *dims) visit(dim);
    }
  }
}

template <class V, class F>
void visit_blocks(V& value, F visit) {
  std::visit(
      [&](auto& node) {
        using Node = std::remove_cvref_t<decltype(node)>;
        if constexpr (std::same_as<Node, Lambda>) {
          for (auto& block : node.body) visit(block);
        } else if constexpr (std::same_as<Node, If>) {
          for (auto& block : node.arms) visit(block);
        } else if constexpr (std::same_as<Node, Case>) {
          for (auto& arm : node.arms) visit(arm.block);
        } else {
          static_assert(std::same_as<Node, Apply> || std::same_as<Node, Call> || std::same_as<Node, Tuple> ||
                        std::same_as<Node, Project> || std::same_as<Node, Construct> || std::same_as<Node, Cast> ||
                        std::same_as<Node, MakeReference> || std::same_as<Node, ReadReference> ||
                        std::same_as<Node, WriteReference> || std::same_as<Node, DimValue> ||
                        std::same_as<Node, Gradient>);
        }
      },
      value);
}

template <class P, class F>
void visit_variables(P& pattern, F visit) {
  std::visit(
      [&](auto& node) {
        using Node = std::remove_cvref_t<decltype(node)>;
        if constexpr (std::same_as<Node, BindPattern>) {
          visit(node.var);
        } else if constexpr (std::same_as<Node, ConstructPattern> || std::same_as<Node, TuplePattern>) {
          for (auto& field : node.fields) for_each_variable(field, visit);
        } else {
          static_assert(std::same_as<Node, AnyPattern>);
        }
      },
      pattern.form);
}

template <class B, class F>
void visit_bindings(B& block, F visit) {
  for (auto& binding : block.bindings) {
    visit(binding);
    for_each_block(binding.value, [&](B& inner) { for_each_binding(inner, visit); });
  }
}

template <class B, class F>
void visit_uses(B& block, F visit) {
  for (auto& binding : block.bindings) {
    for_each_operand(binding.value, visit);
    for_each_block(binding.value, [&](B& inner) { for_each_use(inner, visit); });
  }
  visit(block.result);
}

}  // namespace

void for_each_operand(Value& value, FunctionRef<void(Atom&)> visit) { visit_operands(value, visit); }
void for_each_operand(const Value& value, FunctionRef<void(const Atom&)> visit) { visit_operands(value, visit); }
void for_each_dim(Value& value, FunctionRef<void(Dim&)> visit) { visit_dims(value, visit); }
void for_each_dim(const Value& value, FunctionRef<void(const Dim&)> visit) { visit_dims(value, visit); }
void for_each_block(Value& value, FunctionRef<void(Block&)> visit) { visit_blocks(value, visit); }
void for_each_block(const Value& value, FunctionRef<void(const Block&)> visit) { visit_blocks(value, visit); }
void for_each_variable(MatchPattern& pattern, FunctionRef<void(VarId&)> visit) { visit_variables(pattern, visit); }
void for_each_variable(const MatchPattern& pattern, FunctionRef<void(const VarId&)> visit) {
  visit_variables(pattern, visit);
}
void for_each_binding(Block& block, FunctionRef<void(Binding&)> visit) { visit_bindings(block, visit); }
void for_each_binding(const Block& block, FunctionRef<void(const Binding&)> visit) { visit_bindings(block, visit); }
void for_each_use(Block& block, FunctionRef<void(Atom&)> visit) { visit_uses(block, visit); }
void for_each_use(const Block& block, FunctionRef<void(const Atom&)> visit) { visit_uses(block, visit); }

}  // namespace tenon::compiler
