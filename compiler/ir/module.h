// Modules: functions in A-normal form, as plain values.
//
// Semantics: a block binds each variable once, its bindings are evaluated in order, and its value is its result;
// operands are atoms. Evaluation is strict. An If or a Case evaluates one arm; a Case evaluates the first arm whose
// pattern matches. The bindings around an arm are visible inside it. A Lambda may use its own variable (recursion) and
// captures the variables and sizes from around it that its body uses. References are cells with identity; all other
// values are immutable. A binding may have an effect (effects.h): bindings without an effect may be reordered along
// data edges and removed when unused, bindings with an effect keep their order. Every variable has a single binding in
// its function, across all nested blocks. Modules move through passes; `clone` shares constants alone. Equality
// (`equal`) ignores spans, local names and the numbering of variables and constants; constants compare by content.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/context.h"
#include "compiler/loop/loop.h"
#include "runtime/attrs.h"
#include "runtime/computed_attr.h"
#include "runtime/tensor.h"
#include "support/function_ref.h"

namespace tenon::compiler {

using runtime::Attr;
using runtime::Attrs;

enum class VarId : uint32_t {};    // dense in its function: an analysis is a vector
enum class ConstId : uint32_t {};  // index into Module::constants
enum class SpanId : uint32_t {};   // index into Module::spans; 0 is "nowhere"

inline size_t index(VarId id) { return static_cast<size_t>(id); }
inline size_t index(ConstId id) { return static_cast<size_t>(id); }
inline size_t index(SpanId id) { return static_cast<size_t>(id); }

using Atom = std::variant<VarId, Symbol, ConstId>;  // local, global, constant
using Atoms = std::vector<Atom>;

// The value of an attribute that is no constant: dims (one for an integer, several for a list of integers), or an
// operand that the operator reads when it runs: a scalar for a number, a vector for a list, of i64 for integers.
using ComputedAttr = std::variant<Dims, Atom>;
using ComputedAttrs = std::map<std::string, ComputedAttr, std::less<>>;

// The application of an operator to tensors. The attributes are complete: the builder fills in the defaults. An
// attribute is in `attrs` or in `computed`; those whose dims are all constants are in `attrs`.
struct Apply {
  const Operator* op = nullptr;
  Attrs attrs;
  Atoms args;
  ComputedAttrs computed = {};
};
// The value of a dim, a scalar i64.
struct DimValue {
  Dim dim;
};
// The call of a global by name, or of a closure. `types`: the arguments for the callee's type variables that no
// parameter has (explicit_type_params), in that order; the arguments of the call determine all others.
struct Call {
  Atom callee;
  Atoms args;
  std::vector<Type> types = {};
};
// The derivative of a call: of the callee by the parameters `wrt`, in ascending order, at the arguments. D is the type
// of an adjoint (adjoint.h), and R the result of the call.
struct Gradient {
  enum class Kind : uint8_t {
    kGradient,  // (R, (D, ...)): the result, a scalar of floats, and its derivatives by the parameters
    kPullback,  // (R, fn(D) -> (D, ...)): the result, and the adjoints of the parameters from that of the result
  };
  Call call;
  std::vector<uint32_t> wrt;
  Kind kind = Kind::kGradient;
};
struct Tuple {
  Atoms fields;
};
struct Project {
  Atom tuple;
  uint32_t index = 0;
};
// A value of a defined type with the given type arguments.
struct Construct {
  Symbol constructor{};
  std::vector<Type> types;
  Atoms fields;
};

struct Binding;
struct Block {
  std::vector<Binding> bindings;
  Atom result;
};

// The body is one block; a vector, since the type is not complete yet.
struct Lambda {
  std::vector<VarId> params;
  Type result;
  std::vector<Block> body;
};
// The condition is a Tensor[(), bool]. Two arms: then, else.
struct If {
  Atom condition;
  std::vector<Block> arms;
};
struct Arm;
// A `match`: the first arm whose pattern matches. The patterns of the arms together cover every value of the subject.
struct Case {
  Atom subject;
  std::vector<Arm> arms;
};
// A `match_cast`: the value itself if its sizes are the sizes of `type`, otherwise an error at run time. The dim
// variables `fresh` are bound to sizes of the value and are in scope from here to the end of the block. A `?` in `type`
// erases a size, and a fresh variable names an erased size again.
struct Cast {
  Atom value;
  Type type;
  std::vector<Symbol> fresh;
};
struct MakeReference {
  Atom value;
};
struct ReadReference {
  Atom reference;
};
// The value is the unit ().
struct WriteReference {
  Atom reference;
  Atom value;
};
using Value = std::variant<Apply, Call, Tuple, Project, Construct, Lambda, If, Case, Cast, MakeReference, ReadReference,
                           WriteReference, DimValue, Gradient>;

// The call that the value is, or the derivative of which it is; nullptr where it is neither.
Call* call_of(Value& value);
const Call* call_of(const Value& value);

struct Binding {
  VarId var;
  Value value;
};

struct MatchPattern;
struct AnyPattern {};
struct BindPattern {
  VarId var;
};
struct ConstructPattern {
  Symbol constructor{};
  std::vector<MatchPattern> fields;
};
struct TuplePattern {
  std::vector<MatchPattern> fields;
};
struct MatchPattern {
  std::variant<AnyPattern, BindPattern, ConstructPattern, TuplePattern> form;
};
struct Arm {
  MatchPattern pattern;
  Block block;
};

// The origin of a binding: a node of a model, or a location in a text file (line 0: no location).
struct Span {
  std::string file;
  std::string node;  // as "/stem/Conv"
  std::string op;    // the model format's name of the operator, as "Conv"
  int line = 0, column = 0;

  std::string str() const;  // "model.onnx: Conv '/stem/Conv'" or "m.tn:3:5"
};

struct VarInfo {
  Type type;
  Symbol name{};  // for readers; names may be empty or repeated
  SpanId span{};
};

struct Function {
  std::vector<Symbol> dims;   // variables that the parameters' types bind
  DimBounds bounds;           // declared bounds, as [n in 1..512], which are checked when the function is entered
  std::vector<Symbol> types;  // type variables that the parameters' types bind
  std::vector<VarId> params;
  Type result;
  Block body;
  std::vector<VarInfo> vars;
  std::string target;     // the code generator of the function; empty: not assigned
  std::string composite;  // the pattern that the function is an instance of, as "accel.conv2d"; empty: none
  // Of a unit (compiler/batch): the function that computes several of its calls at once. It is used where this one is.
  std::optional<Symbol> batched = {};
  // The function that computes the adjoints of the arguments where a derivative of a call is needed, in place of a
  // derivative of the body: from the arguments, the result and the adjoint of the result to a tuple with the adjoint of
  // each argument, (compiler/ir/adjoint.h). `differentiate` uses and removes it.
  std::optional<Symbol> gradient = {};
  // Of a unit: the first axes of its result, and of the parameters whose first dims are the same, along which rows are
  // independent, so that it computes several of its calls at once: the last of these axes has the rows of all calls,
  // one after the other, and the others have size 1. 0: there are none.
  uint32_t joined_axes = 0;

  const VarInfo& info(VarId id) const { return vars[index(id)]; }
  Type type(VarId id) const { return vars[index(id)].type; }
};

// An external function: a symbol with a type.
struct Library {
  std::vector<Symbol> dims, types;
  std::vector<Type> params;
  Type result;
  std::string symbol;  // the name under which the run time finds the function
  DimBounds bounds;    // declared bounds of dims, as in Function
};

// The name of a loop function (compiler/loop/loop.h) equals its key in the module.
using Global = std::variant<Function, loop::Function, Library>;

// The parameters and the result of a global of any kind.
struct Signature {
  std::vector<Symbol> dims, types;
  DimBounds bounds;
  std::vector<Type> params;
  Type result;  // null: not inferred yet
};
// For a loop function, the parameters are tensors and the result is the output tensor, or a tuple of several outputs.
// The axes of a ragged buffer that are packed into one axis of its tensor have a new dim as their total size, which the
// arguments determine; buffers with the same rows share this dim.
Signature signature_of(Context& context, const Global& global);

// Adds the type variables of a type to `names`.
void collect_type_variables(Type type, std::set<Symbol>& names);
// The type variables of the signature that only its result has, in their order: a call must state them explicitly.
std::vector<Symbol> explicit_type_params(const Signature& signature);

struct Constructor {
  Symbol name{};
  std::vector<Type> fields;
};
// type Name[params] { Constructor(fields), ... }; fields may have any type of the module, including this type itself.
struct Adt {
  std::vector<Symbol> params;
  std::vector<Constructor> constructors;
};

struct Module {
  std::map<Symbol, Global> globals;
  std::map<Symbol, Adt> adts;
  std::vector<runtime::Tensor> constants;
  std::vector<Span> spans{Span{}};

  // nullptr where the module has no such function.
  const Function* function(Symbol name) const;
  Function* function(Symbol name);
  const Library* library(Symbol name) const;
  const loop::Function* loop_function(Symbol name) const;
  // The declaration of a constructor; std::nullopt where the module has no constructor of this name.
  struct ConstructorDecl {
    Symbol name{};  // of the type
    const Adt* adt = nullptr;
    size_t index = 0;  // among the constructors of the type
    const Constructor& constructor() const { return adt->constructors[index]; }
  };
  std::optional<ConstructorDecl> constructor(Symbol name) const;

  ConstId add_constant(runtime::Tensor tensor);
  SpanId add_span(Span span);
  const runtime::Tensor& constant(ConstId id) const { return constants[index(id)]; }
  const Span& span(SpanId id) const { return spans[index(id)]; }
};

// Visits each function of the module, in the order of their symbols.
template <class M, class F>
requires std::same_as<std::remove_const_t<M>, Module>
void for_each_function(M& module, F&& visit) {
  for (auto& [name, global] : module.globals) {
    if (auto* function = std::get_if<Function>(&global)) visit(name, *function);
  }
}

// A copy, which shares the elements of constants alone: they never change.
Module clone(const Module& module);

// Equality except for spans, local names and numbering. Both modules must use the same Context.
bool equal(const Module& a, const Module& b);
bool equal(const Module& module_a, const Function& a, const Module& module_b, const Function& b);

// Replaces dim and type variables in every type of the function.
void substitute(Context& context, Function& function, const std::map<Symbol, Dim>& dims,
                const std::map<Symbol, Type>& types = {});
// Gives the function `from` the name `to`, which no global has, everywhere in the module.
void rename_global(Module& module, Symbol from, Symbol to);
// Visits each type of the function: of variables, results, constructions and casts.
void for_each_type(Function& function, FunctionRef<void(Type&)> visit);
// The kind of a computed attribute, which its operator's record states.
runtime::ComputedKind computed_kind(const Apply& apply, std::string_view attr);
// Moves computed attributes whose dims are all constants to the constant ones.
void settle_attributes(Apply& apply);

// Whether the function has neither control flow nor closures, references, constructors or checks and, within `module`,
// does not call itself: it is straight-line code over tensors and tuples. It may call loop functions and libraries.
bool first_order(const Module& module, const Function& function);

// Visits of the parts of a value, in order. Those of a mutable value may replace the parts.

// Every operand of the value itself. A callee that is a variable is an operand, but a callee by name is not, and
// neither are the operands inside the blocks of the value.
void for_each_operand(Value& value, FunctionRef<void(Atom&)> visit);
void for_each_operand(const Value& value, FunctionRef<void(const Atom&)> visit);
// Every dim that the value itself computes with: of a DimValue, and of computed attributes.
void for_each_dim(Value& value, FunctionRef<void(Dim&)> visit);
void for_each_dim(const Value& value, FunctionRef<void(const Dim&)> visit);
// Every block of a value.
void for_each_block(Value& value, FunctionRef<void(Block&)> visit);
void for_each_block(const Value& value, FunctionRef<void(const Block&)> visit);
// Every variable that a pattern binds, from left to right.
void for_each_variable(MatchPattern& pattern, FunctionRef<void(VarId&)> visit);
void for_each_variable(const MatchPattern& pattern, FunctionRef<void(const VarId&)> visit);
// Every binding of a block and of its nested blocks, in pre-order.
void for_each_binding(Block& block, FunctionRef<void(Binding&)> visit);
void for_each_binding(const Block& block, FunctionRef<void(const Binding&)> visit);
// Every atom that a block and its nested blocks use: operands and results.
void for_each_use(Block& block, FunctionRef<void(Atom&)> visit);
void for_each_use(const Block& block, FunctionRef<void(const Atom&)> visit);

// The number of uses of each variable of the function, including results and nested blocks.
std::vector<uint32_t> use_counts(const Function& function);

// The value of the attribute, which must exist and have this kind (asserted).
int64_t int_attr(const Attrs& attrs, std::string_view name);
double float_attr(const Attrs& attrs, std::string_view name);
const std::string& string_attr(const Attrs& attrs, std::string_view name);
const std::vector<int64_t>& ints_attr(const Attrs& attrs, std::string_view name);
const std::vector<double>& floats_attr(const Attrs& attrs, std::string_view name);

}  // namespace tenon::compiler
