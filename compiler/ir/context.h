// What modules share: the names, dims and types of a TypeContext, and the operators. A Context outlives every module
// made with it; one thread uses it at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/type_context.h"

namespace tenon::compiler {

struct Operator;

class Context : public TypeContext {
 public:
  Context();  // with the built-in operators
  ~Context();

  // nullptr where no operator has the name. A record never moves once it is added.
  const Operator* find_operator(std::string_view name) const;
  // Replaces an operator of the same name.
  const Operator* add_operator(Operator op);
  // By name, for messages and the reference page.
  std::vector<const Operator*> operators() const;

 private:
  std::map<std::string, std::unique_ptr<Operator>, std::less<>> operators_;
};

}  // namespace tenon::compiler
