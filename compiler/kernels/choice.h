// Decisions that the loops of an operator leave open, between programs that compute the same and take different times.
//
// Semantics: a lowering asks Emitter::decide() for one of several options, with what each costs by counting. What costs
// least is taken, the first of equal ones, unless something that has measured says otherwise: a record, or a search
// that tries one after the other (compiler/tune). Options give the same results bit for bit: each sum has the same
// terms in the same order. Later decisions may depend on earlier ones. A name that is no option here, as of a record
// that an older version made, counts for nothing: a Choice makes a kernel slow at worst.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler::kernels {

struct Option {
  std::string name;  // of letters, digits and '_'
  double cost = 0;   // comparable within the decision
};
struct Decision {
  std::string name;
  std::vector<Option> options;
  size_t taken = 0;
};

// Names of options by decisions.
using Choice = std::map<std::string, std::string, std::less<>>;
std::string str(const Choice& choice);       // "order=weights tile=14x2"
Choice parse_choice(std::string_view text);  // words without '=' are left out

// An operator with what decides about its loops: attributes that are not as they are by default, types, what is
// constant. "conv2d(Tensor[(1, 3, 8, 8), f32], const Tensor[(4, 3, 3, 3), f32], padding=(1, 1, 1, 1))".
std::string operator_key(const Operator& op, const Attrs& attrs, const std::vector<std::string>& args);

// What is known to be good for an operator; empty: nothing.
using Choices = std::function<Choice(const std::string& key)>;

// What was decided about one operator of a kernel.
struct Decided {
  std::string key;
  std::vector<Decision> decisions;
  Choice choice() const;
};

}  // namespace tenon::compiler::kernels
