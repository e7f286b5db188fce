// Operators: the open set. One record says everything that the compiler knows about an operator; adding one touches the
// file of its family in compiler/ir/operators (and its reference kernel), nothing else.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/context.h"
#include "runtime/attrs.h"
#include "runtime/reference/kernels.h"

namespace tenon::compiler {

// How an operator may be fused: what one element of the result needs of the operands.
enum class Pattern : uint8_t {
  kElementwise,  // the element at the same place
  kBroadcast,    // as that, operands repeated along dims
  kInjective,    // one element, at a place that is a function of the result's
  kReduction,    // many elements, combined
  kAnchor,       // a contraction; elementwise operators may follow in its kernel
  kOpaque,
};

// The index of the alternative in runtime::Attr.
enum class AttrKind : uint8_t { kInt, kFloat, kString, kInts, kFloats };
std::string_view name(AttrKind kind);

struct AttrSpec {
  std::string name;
  AttrKind kind;
  std::optional<runtime::Attr> default_value;  // none: it must be given
  std::string documentation;
};

struct RuleInput {
  Context& context;
  const runtime::Attrs& attrs;  // complete and of the right kinds
  std::span<const Type> args;   // as many as `inputs` says, all tensors
  const TensorType& arg(size_t i) const { return *args[i].tensor(); }
};
// The type of the result, or what is wrong with the arguments, naming both shapes. The caller adds operator and place.
using TypeRule = Expected<Type> (*)(const RuleInput&);

struct Operator {
  std::string name;
  std::string documentation;
  std::vector<std::string> inputs;  // the names of the arguments; a last name "...x" takes one or more
  std::vector<AttrSpec> attributes;
  TypeRule rule = nullptr;
  Pattern pattern = Pattern::kOpaque;
  runtime::reference::Kernel reference = nullptr;  // the semantics; nullptr: none yet

  const AttrSpec* attribute(std::string_view name) const;
  bool variadic() const { return !inputs.empty() && inputs.back().starts_with("..."); }
};

// Fills in the defaults; an error for a missing, unknown or wrongly typed attribute. An int is taken for a float.
Expected<runtime::Attrs> complete_attrs(const Operator& op, runtime::Attrs attrs);

// The result's type of `op` on arguments of these types, all of it checked. The error says the operator.
Expected<Type> infer_apply(Context& context, const Operator& op, const runtime::Attrs& attrs,
                           std::span<const Type> args);

std::vector<Operator> builtin_operators();

}  // namespace tenon::compiler
