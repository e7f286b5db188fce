// Patterns over the data flow into one binding, and their matches.
//
// Semantics: a pattern is a tree. `op` matches an operator's application with matching operands; `any` matches every
// atom and makes it an input; `constant` matches a constant; `either` tries its alternatives in order, the first that
// matches wins. A match lies within one block. A value inside a match, except its root, must
// have no user outside: otherwise fusing would compute it twice.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

struct GraphPattern {
  enum class Kind : uint8_t { kAny, kConstant, kOp, kEither };
  Kind kind = Kind::kAny;
  OperatorId op{};                  // kOp
  std::vector<GraphPattern> parts;  // kOp: its operands; kEither: its alternatives
};

GraphPattern any();
GraphPattern constant();
GraphPattern op(OperatorId op, std::vector<GraphPattern> operands);
GraphPattern either(std::vector<GraphPattern> alternatives);
// `op` applied to `operand`, or `operand` itself.
GraphPattern optional(OperatorId op, const GraphPattern& operand);

// As "requantize(conv2d(_, const), const, const, const)"; of many alternatives the first ones, and how many others.
std::string to_string(const GraphPattern& pattern);
// Whether an application of `op` can be part of a match.
bool mentions(const GraphPattern& pattern, OperatorId op);

// The def-use information of one block of a function: the binding that defines each variable, and the count of its uses
// in the block and in those inside it.
class DataFlow {
 public:
  DataFlow(const Function& function, const Block& block);
  const Block& block() const { return *block_; }
  // The index of the binding of this block that defines the variable; nullopt for variables of other blocks.
  std::optional<size_t> producer(VarId var) const;
  uint32_t uses(VarId var) const { return uses_[index(var)]; }

 private:
  const Block* block_;
  std::vector<size_t> producers_;
  std::vector<uint32_t> uses_;
};

struct Match {
  std::vector<size_t> bindings;                                       // ascending; the root is the last
  const Apply& apply(const Function& function, OperatorId op) const;  // the first of that operator (asserted)
  const Apply* find(const Function& function, OperatorId op) const;   // nullptr where the match has none
};

// The match of `pattern` with its root at binding `root`, over bindings that are not yet `taken`.
std::optional<Match> match(const GraphPattern& pattern, const DataFlow& flow, size_t root,
                           const std::vector<bool>& taken);

}  // namespace tenon::compiler
