// Operators: the open set. One record says everything that the compiler knows about an operator; adding one touches the
// file of its family in compiler/ir/operators (and its reference kernel), nothing else.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/base/dim_prover.h"
#include "compiler/base/op_pattern.h"
#include "compiler/ir/context.h"
#include "runtime/attrs.h"
#include "runtime/reference/dtypes.h"
#include "runtime/reference/kernels.h"

namespace tenon::compiler {

// The index of the alternative in runtime::Attr.
enum class AttrKind : uint8_t { kInt, kFloat, kString, kInts, kFloats };
std::string_view name(AttrKind kind);

struct AttrSpec {
  std::string name;
  AttrKind kind;
  std::optional<runtime::Attr> default_value;  // none: it must be given
  std::string documentation;
};

// An argument: its name and the dtypes that it may have.
struct Input {
  std::string name;  // a last name "...x" takes one or more
  runtime::DTypes dtypes = runtime::kAnyDType;
  bool as_first = false;  // it has the first argument's dtype

  Input(const char* name, runtime::DTypes dtypes = runtime::kAnyDType) : name(name), dtypes(dtypes) {}  // NOLINT
  Input(const char* name, std::initializer_list<DType> dtypes) : name(name), dtypes(dtypes) {}
  static Input same(const char* name) {
    Input input(name);
    input.as_first = true;
    return input;
  }
};

// A size that argument `arg` must have along `axis`, where only a check at run time can say that it has.
struct Requirement {
  size_t arg, axis;
  Dim size;
};

struct RuleInput {
  Context& context;
  const runtime::Attrs& attrs;                   // complete and of the right kinds
  std::span<const Type> args;                    // as many as `inputs` says, all tensors of the dtypes that it states
  const DimProver& prover;                       // with the bounds of the variables in scope
  std::vector<Requirement>* required = nullptr;  // takes what cannot be proved (require_size()); nullptr: an error
  std::span<const Input> inputs = {};            // of the record, for messages
  const TensorType& arg(size_t i) const { return *args[i].tensor(); }
};
// The type of the result, or what is wrong with the arguments, naming both shapes. The caller adds operator and place.
using TypeRule = Expected<Type> (*)(const RuleInput&);

// Arguments whose types are not known yet, in the face of the others and of the result.
struct SchemeInput {
  Context& context;
  const runtime::Attrs& attrs;
  std::vector<Type>& args;            // as far as they are known; the scheme replaces those of which nothing is
  Type result;                        // as far as it is known
  const std::function<Dim()>& fresh;  // a size to be found
};
// The signature of an operator, unified both ways: says of what arguments are as much as their rank and dtype, by the
// result or the other arguments. Whether the type rule may then run on sizes that are still to be found; what it
// requires of them, and its result, decides them.
using Scheme = bool (*)(const SchemeInput&);

// What is known of an application before it runs.
struct Application {
  struct Argument {
    DType dtype = DType::kF32;
    std::vector<std::optional<int64_t>> sizes;  // as far as they are known
    const runtime::Tensor* constant = nullptr;  // nullptr: it is none
  };
  const runtime::Attrs& attrs;
  std::vector<Argument> args;
};
// Whether its kernel may refuse arguments that fit the type rule, by their elements or by sizes that nobody knows.
using MayFail = bool (*)(const Application&);

struct Operator {
  std::string name;
  std::string documentation;
  std::vector<Input> inputs;
  std::vector<AttrSpec> attributes;
  TypeRule rule = nullptr;
  OpPattern pattern = OpPattern::kOpaque;
  MayFail may_fail = nullptr;                      // nullptr: never; otherwise it has an effect (effects.h)
  Scheme scheme = nullptr;                         // nullptr: the rule runs when all arguments are known
  runtime::reference::Kernel reference = nullptr;  // the semantics; nullptr: none yet

  std::string family = {};  // the file of its record; set when the registry is made

  const AttrSpec* attribute(std::string_view name) const;
  bool variadic() const { return !inputs.empty() && inputs.back().name.starts_with("..."); }
};

// Fills in the defaults; an error for a missing, unknown or wrongly typed attribute. An int is taken for a float.
Expected<runtime::Attrs> complete_attrs(const Operator& op, runtime::Attrs attrs);

// The result's type of `op` on arguments of these types, all of it checked. The error says the operator. The result may
// have erased sizes, the arguments must not. What cannot be proved goes to `required`; without it, it is an error.
Expected<Type> infer_apply(Context& context, const Operator& op, const runtime::Attrs& attrs,
                           std::span<const Type> args, const DimProver& prover,
                           std::vector<Requirement>* required = nullptr);

std::vector<Operator> builtin_operators();

}  // namespace tenon::compiler
