// The state that modules share: the names, dims and types of a TypeContext, and the operators. A Context outlives every
// module that uses it, and one thread uses it at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/type_context.h"
#include "compiler/ir/operator_id.h"

namespace tenon::compiler {

struct Operator;

class Context : public TypeContext {
 public:
  Context();  // with the built-in operators
  ~Context();

  // nullptr where no operator has the name. The address of a record is stable.
  const Operator* find_operator(std::string_view name) const;
  // A built-in operator or its replacement, or an added operator.
  const Operator& op(OperatorId id) const { return *by_id_[static_cast<size_t>(id)]; }
  // Replaces an operator of the same name.
  const Operator* add_operator(Operator op);
  // All operators, sorted by name, for messages and the reference page.
  std::vector<const Operator*> operators() const;

 private:
  std::map<std::string, std::unique_ptr<Operator>, std::less<>> operators_;
  std::vector<const Operator*> by_id_ = std::vector<const Operator*>(kOperatorNames.size());
};

}  // namespace tenon::compiler
