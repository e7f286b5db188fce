// The table of operators.
#include "compiler/ir/context.h"

#include <algorithm>
#include <cassert>

#include "compiler/ir/operator.h"

namespace tenon::compiler {

Context::Context() {
  for (Operator& op : builtin_operators()) add_operator(std::move(op));
  assert(std::ranges::count(by_id_, nullptr) == 0);  // a handle without a record: see operator_id.h
}
Context::~Context() = default;

const Operator* Context::find_operator(std::string_view name) const {
  auto found = operators_.find(name);
  return found == operators_.end() ? nullptr : found->second.get();
}

const Operator* Context::add_operator(Operator op) {
  std::string name = op.name;
  auto& slot = operators_[name];
  op.id = slot ? slot->id : find_operator_id(name);
  if (!slot && op.id == OperatorId::kAdded) {
    op.id = static_cast<OperatorId>(by_id_.size());
    by_id_.push_back(nullptr);
  }
  slot = std::make_unique<Operator>(std::move(op));
  by_id_[static_cast<size_t>(slot->id)] = slot.get();
  return slot.get();
}

std::vector<const Operator*> Context::operators() const {
  std::vector<const Operator*> records;
  for (const auto& [name, op] : operators_) records.push_back(op.get());
  return records;
}

}  // namespace tenon::compiler
