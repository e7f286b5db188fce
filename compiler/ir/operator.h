// Operators, an open set. The record of an operator, in the file of its family in compiler/ir/operators, states its
// types and its facts; passes ask for facts, not for names. What computes it is a row of the same name in a table of
// its own: the kernel in runtime/reference, the lowering to loops in compiler/kernels.
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/base/dim_prover.h"
#include "compiler/base/op_pattern.h"
#include "compiler/ir/context.h"
#include "compiler/ir/operator_id.h"
#include "compiler/ir/sample_arguments.h"
#include "runtime/attrs.h"
#include "runtime/dtype.h"
#include "runtime/reference/kernels.h"
#include "runtime/scalar_op.h"
#include "support/function_ref.h"

namespace tenon::compiler {

// The largest kernel size, stride, dilation and padding of a window, in any operator.
inline constexpr int64_t kMaxWindow = 1 << 20;

// The index of the alternative in runtime::Attr.
enum class AttrKind : uint8_t { kInt, kFloat, kString, kInts, kFloats };
std::string_view name(AttrKind kind);

struct AttrSpec {
  std::string name;
  AttrKind kind;
  std::optional<runtime::Attr> default_value;  // std::nullopt: the attribute is required
  std::string documentation;
  bool computable = false;  // whether dims or an operand may be its value
  bool in_type = false;     // whether the sizes of the result's type tell its value
};

// An argument: its name and its supported dtypes.
struct Input {
  std::string name;  // the last name "...x" stands for one or more arguments
  runtime::DTypes dtypes = runtime::kAnyDType;
  bool as_first = false;  // the dtype must be the first argument's dtype

  Input(const char* name, runtime::DTypes dtypes = runtime::kAnyDType) : name(name), dtypes(dtypes) {}  // NOLINT
  Input(const char* name, std::initializer_list<DType> dtypes) : name(name), dtypes(dtypes) {}
  static Input same(const char* name) {
    Input input(name);
    input.as_first = true;
    return input;
  }
};

// A size that argument `arg` must have along `axis`, which only a check at run time can establish.
struct Requirement {
  size_t arg, axis;
  Dim size;
};

// The values of computed attributes: dims, or `?` for each number of an operand.
using AttrDims = std::map<std::string, Dims, std::less<>>;

struct RuleInput {
  Context& context;
  const runtime::Attrs& attrs;                   // complete, but for the computed ones, and of the right kinds
  std::span<const Type> args;                    // tensors, in the number and of the dtypes that `inputs` states
  const DimProver& prover;                       // with the bounds of the variables in scope
  std::vector<Requirement>* required = nullptr;  // receives unproven sizes (require_size()); nullptr: they are errors
  std::span<const Input> inputs = {};            // of the record, for messages
  const AttrDims& computed;
  bool is_computed(std::string_view attr) const { return computed.find(attr) != computed.end(); }
  const TensorType& arg(size_t i) const { return *args[i].tensor(); }
};
// Returns the type of the result, or an error that names the shapes of the arguments. The caller adds the operator and
// the location.
using TypeRule = Expected<Type> (*)(const RuleInput&);

// The types of the arguments and of the result as far as inference has resolved them.
struct SchemeInput {
  Context& context;
  const runtime::Attrs& attrs;
  std::vector<Type>& args;   // the scheme replaces unknown types
  Type result;               // may be unknown
  FunctionRef<Dim()> fresh;  // a new unknown size
};
// The signature of an operator for unification in both directions: derives the rank and dtype of arguments from the
// result or from the other arguments. Returns whether the type rule may then run on unknown sizes, which its
// requirements and its result determine.
using Scheme = bool (*)(const SchemeInput&);

// The static properties of an application of an operator.
struct Application {
  struct Argument {
    DType dtype = DType::kF32;
    std::vector<std::optional<int64_t>> sizes;  // std::nullopt: not a constant
    const runtime::Tensor* constant = nullptr;  // nullptr: the argument is not a constant
  };
  const runtime::Attrs& attrs;
  std::vector<Argument> args;
};
// Whether the kernel may fail for arguments that the type rule accepts, because of their elements or symbolic sizes.
using MayFail = bool (*)(const Application&);

// Where the elements of the result come from.
enum class Elements : uint8_t {
  kComputed,  // they are computed, or the operator has several results
  kSame,      // the argument's elements in their order: the result is another shape of the same memory
  kMoved,     // elements of the arguments, at indices that sizes and attributes determine
  kPadded,    // moved elements, and elements of the attribute `value`
  kSelected,  // elements of the argument that comparisons select: an increasing function may be applied before or after
};

class GradientBuilder;
class BatchBuilder;
struct RowsInput;
using GradientRule = Status (*)(GradientBuilder&);  // the adjoints of the arguments from that of the result
using BatchingRule = Status (*)(BatchBuilder&);     // the operator on arguments of several instances at once
using RowsRule = bool (*)(const RowsInput&);        // whether the rows of an application are independent of each other

struct Operator {
  std::string name = {};
  std::string documentation = {};
  std::vector<Input> inputs = {};
  std::vector<AttrSpec> attributes = {};
  TypeRule rule = nullptr;
  OpPattern pattern = OpPattern::kOpaque;
  MayFail may_fail = nullptr;                      // nullptr: never; otherwise it has an effect (effects.h)
  Scheme scheme = nullptr;                         // nullptr: the rule runs when all arguments are resolved
  runtime::reference::Kernel reference = nullptr;  // the semantics; of a built-in operator, from runtime/reference
  GradientRule gradient = nullptr;                 // of a built-in operator, from gradients; nullptr: there is none
  std::string_view gradient_note = {};             // its value at a kink, or why there is none (GradientRow)
  BatchingRule batching = nullptr;                 // of a built-in operator, from batching.cpp; nullptr: there is none
  RowsRule rows = nullptr;                         // whether rows are independent (batching.h); nullptr: they are not

  // Whether each float of the result is a continuous function of the float arguments, so that rounding errors stay
  // small and results may be compared with a tolerance. false: not continuous, or not known to be.
  bool continuous = false;
  SampleArguments samples = {};
  Elements elements = Elements::kComputed;
  // The instruction of the virtual machine that computes the operator for scalars, where it is defined on their dtype.
  // An operator of one argument has `true` as the instruction's second operand.
  std::optional<runtime::ScalarOp> scalar = std::nullopt;
  std::string_view interpreted = {};  // why the operator has no lowering to loops (compiler/kernels); empty: it has one

  std::string family = {};             // the file of the record; set when the registry is built
  OperatorId id = OperatorId::kAdded;  // set when the record is added to a Context

  bool is(OperatorId wanted) const { return id == wanted; }
  bool is_one_of(std::initializer_list<OperatorId> ids) const { return std::ranges::find(ids, id) != ids.end(); }
  bool has(std::initializer_list<Elements> kinds) const { return std::ranges::find(kinds, elements) != kinds.end(); }
  const AttrSpec* attribute(std::string_view name) const;
  bool variadic() const { return !inputs.empty() && inputs.back().name.starts_with("..."); }
};

// Fills in the defaults; an error for a missing, unknown or wrongly typed attribute. An integer is converted to a
// float. `computed`: attributes that have another value.
Expected<runtime::Attrs> complete_attrs(const Operator& op, runtime::Attrs attrs,
                                        std::span<const std::string_view> computed = {});

// The checked type of the result of `op` for arguments of these types. The error names the operator. The result may
// have erased sizes, the arguments must not. Unproven requirements are appended to `required`; without it, they are
// errors.
Expected<Type> infer_apply(Context& context, const Operator& op, const runtime::Attrs& attrs,
                           std::span<const Type> args, const DimProver& prover,
                           std::vector<Requirement>* required = nullptr, const AttrDims& computed = {});

std::vector<Operator> builtin_operators();

}  // namespace tenon::compiler
