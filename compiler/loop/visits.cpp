// Visits of nested statements.
#include <concepts>
#include <type_traits>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {
namespace {

// Each visit is one template for constant and for mutable statements.

template <class S, class F>
void visit_bodies(S& stmt, F visit) {
  std::visit(
      [&](auto& node) {
        using Node = std::remove_cvref_t<decltype(node)>;
        if constexpr (std::same_as<Node, For> || std::same_as<Node, Let> || std::same_as<Node, Alloc>) {
          visit(node.body);
        } else if constexpr (std::same_as<Node, Stage>) {
          visit(node.init), visit(node.body);
        } else if constexpr (std::same_as<Node, If>) {
          visit(node.then), visit(node.otherwise);
        } else {
          static_assert(std::same_as<Node, Store> || std::same_as<Node, CallLibrary> || std::same_as<Node, Intrinsic> ||
                        std::same_as<Node, Barrier> || std::same_as<Node, Commit> || std::same_as<Node, Wait>);
        }
      },
      stmt.form);
}

template <class B, class F>
void visit_statements(B& body, F visit) {
  for (auto& stmt : body) {
    visit(stmt);
    for_each_body(stmt, [&](B& inner) { for_each_statement(inner, visit); });
  }
}

}  // namespace

void for_each_statement(Body& body, FunctionRef<void(Stmt&)> visit) { visit_statements(body, visit); }
void for_each_statement(const Body& body, FunctionRef<void(const Stmt&)> visit) { visit_statements(body, visit); }
void for_each_body(Stmt& stmt, FunctionRef<void(Body&)> visit) { visit_bodies(stmt, visit); }
void for_each_body(const Stmt& stmt, FunctionRef<void(const Body&)> visit) { visit_bodies(stmt, visit); }

}  // namespace tenon::compiler::loop
