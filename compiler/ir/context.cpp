// The table of operators.
#include "compiler/ir/context.h"

#include "compiler/ir/operator.h"

namespace tenon::compiler {

Context::Context() {
  for (Operator& op : builtin_operators()) add_operator(std::move(op));
}
Context::~Context() = default;

const Operator* Context::find_operator(std::string_view name) const {
  auto found = operators_.find(name);
  return found == operators_.end() ? nullptr : found->second.get();
}

const Operator* Context::add_operator(Operator op) {
  std::string name = op.name;
  auto& slot = operators_[name];
  slot = std::make_unique<Operator>(std::move(op));
  return slot.get();
}

std::vector<const Operator*> Context::operators() const {
  std::vector<const Operator*> all;
  for (const auto& [name, op] : operators_) all.push_back(op.get());
  return all;
}

}  // namespace tenon::compiler
