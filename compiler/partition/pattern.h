// Patterns over the data flow into one binding, as values. match.h finds their matches, pattern_text.h has their text.
//
// Semantics: a pattern is a tree, each node of which describes one value.
// - A name captures the value. Equal names are equal values: the same variable, or constants of the same elements.
// - A type restricts dtype and sizes. Equal names of sizes are equal sizes throughout the pattern.
// - `any` matches every value and makes it an input of the match; `constant` matches a constant.
// - `op` matches the result of an operator, by its attributes and operands.
// - `either` matches one of its alternatives, which are tried in order; `optional` an operator that may be missing:
// then
//   the value is what its first operand describes.
// - `path` (start, step, end) matches where every path from the value `start` to a use leads through values that
//   `step` describes to `end` (in Relay's pattern language: a dominator).
// - `tuple` and `field` match a tuple and a projection; `branch` (condition, then, else) an `if`, whose arms have the
//   results described; `function` the call of a global function whose result the first part describes, by its
//   arguments. Of an arm or of a callee only the result is described, the match has it as a whole.
// A match lies within one block. A value inside a match, except its root, has no user outside: otherwise fusing would
// compute it twice.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ir/operator_id.h"
#include "runtime/attrs.h"
#include "runtime/dtype.h"

namespace tenon::compiler {

// The attribute equals one of the values, or it is a list each number of which does.
struct AttrPattern {
  std::string name;
  std::vector<runtime::Attr> values;
  bool operator==(const AttrPattern&) const = default;
};

// A size of a type: a number, or a name for it; neither: any size.
struct SizePattern {
  std::optional<int64_t> size;
  std::string name;
  bool operator==(const SizePattern&) const = default;
};

enum class SizeRelation : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };

// NAME RELATION SIZE, as h <= 1024 or m == n. A size that is not known does not match.
struct SizeCondition {
  std::string name;
  SizeRelation relation = SizeRelation::kEqual;
  SizePattern bound;
  bool operator==(const SizeCondition&) const = default;
};

struct TypePattern {
  std::optional<runtime::DType> dtype;            // nullopt: any
  std::optional<std::vector<SizePattern>> sizes;  // outermost first; nullopt: any rank
  std::vector<SizeCondition> conditions;          // all of them hold; of sizes that the pattern names
  bool operator==(const TypePattern&) const = default;
};

struct GraphPattern {
  enum class Kind : uint8_t {
    kAny,
    kConstant,
    kOp,
    kEither,
    kOptional,
    kPath,
    kTuple,
    kField,
    kBranch,
    kFunction,
  };
  Kind kind = Kind::kAny;
  OperatorId op{};                       // kOp, kOptional
  std::vector<AttrPattern> attrs = {};   // kOp, kOptional
  bool any_operands = false;             // kOp, kFunction: whatever the operands are; there are no parts for them
  bool commutative = false;              // kOp, kOptional: the operands match in any order
  uint32_t field = 0;                    // kField: its index
  std::vector<GraphPattern> parts = {};  // operands, alternatives, (start, step, end), fields, (condition, then, else)
  std::string name = {};                 // of the captured value; empty: none
  std::optional<TypePattern> type = {};
  bool operator==(const GraphPattern&) const = default;
};

GraphPattern any();
GraphPattern constant();
GraphPattern op(OperatorId op, std::vector<GraphPattern> operands);
// The operator with whatever operands.
GraphPattern op(OperatorId op);
GraphPattern commutative(OperatorId op, std::vector<GraphPattern> operands);
GraphPattern either(std::vector<GraphPattern> alternatives);
// `op` applied to the operands, or the first operand itself.
GraphPattern optional(OperatorId op, std::vector<GraphPattern> operands);
GraphPattern path(GraphPattern start, GraphPattern step, GraphPattern end);
GraphPattern tuple(std::vector<GraphPattern> fields);
GraphPattern field(GraphPattern tuple, uint32_t index);
GraphPattern branch(GraphPattern condition, GraphPattern then_result, GraphPattern else_result);
// The call of a global function, with whatever arguments or with these.
GraphPattern function(GraphPattern result);
GraphPattern function(GraphPattern result, std::vector<GraphPattern> args);
// The same pattern with a name, a type, or a condition on an attribute.
GraphPattern named(std::string_view name, GraphPattern pattern);
GraphPattern typed(GraphPattern pattern, TypePattern type);
GraphPattern with_attr(GraphPattern pattern, std::string_view attr, std::vector<runtime::Attr> values);

// Whether an application of `op` can be part of a match.
bool mentions(const GraphPattern& pattern, OperatorId op);

}  // namespace tenon::compiler
