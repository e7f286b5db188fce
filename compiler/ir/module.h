// Modules: functions in A-normal form, as plain values.
//
// Semantics: a block binds each variable once, in order, is evaluated in that order and gives its result; operands are
// atoms. Evaluation is strict. Of an If or a Case one arm is evaluated, of a Case the first whose pattern fits; an arm
// sees what is bound around it. A Lambda sees its own binding (so it may recurse) and captures what it uses from around
// it, sizes included. References are cells with identity; all other values never change. A binding may have an effect
// (effects.h): bindings without one may be reordered along data edges and go when unused, those with one keep their
// order. Every variable is bound in one place of its function, whatever the nesting. Modules move through passes and
// share nothing; `clone` is explicit. Equality (`equal`) ignores spans, local names and the numbering of variables and
// constants; constants compare by content.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "compiler/ir/context.h"
#include "compiler/loop/loop.h"
#include "runtime/attrs.h"
#include "runtime/tensor.h"

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

// The operator applied to tensors. The attributes are complete: defaults are filled in when the binding is made.
struct Apply {
  const Operator* op = nullptr;
  Attrs attrs;
  Atoms args;
};
// A global by name, or a closure, called. `types`: for the type variables of the callee that no parameter has
// (types_to_give), in that order; the arguments decide all others.
struct Call {
  Atom callee;
  Atoms args;
  std::vector<Type> types = {};
};
struct Tuple {
  Atoms fields;
};
struct Project {
  Atom tuple;
  uint32_t index = 0;
};
// A value of a defined type, on these type arguments.
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
// The arms' patterns together take every value of the subject.
// match: the first arm whose pattern fits.
struct Case {
  Atom subject;
  std::vector<Arm> arms;
};
// The value, if its sizes are those of `type`, where the dim variables `fresh` take theirs from it and are in scope
// from here to the end of the block; an error at run time otherwise. With `?` it forgets sizes, with fresh variables it
// opens them again.
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
// Gives ().
struct WriteReference {
  Atom reference;
  Atom value;
};
using Value = std::variant<Apply, Call, Tuple, Project, Construct, Lambda, If, Case, Cast, MakeReference, ReadReference,
                           WriteReference>;

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

// Where something came from: a node of a model, or a place in a text file (line 0: no place).
struct Span {
  std::string file;
  std::string node;  // as "/stem/Conv"
  std::string op;    // in the model's words, as "Conv"
  int line = 0, column = 0;

  std::string str() const;  // "model.onnx: Conv '/stem/Conv'" or "m.tn:3:5"
};

struct VarInfo {
  Type type;
  Symbol name{};  // for people; empty or repeated names are fine
  SpanId span{};
};

struct Function {
  std::vector<Symbol> dims;  // variables that the parameters' types bind
  DimBounds bounds;  // of those for which [n in 1..512] says some; they are checked when the function is entered
  std::vector<Symbol> types;  // as well
  std::vector<VarId> params;
  Type result;
  Block body;
  std::vector<VarInfo> vars;
  std::string target;     // the code generator that takes it; empty: not decided
  std::string composite;  // the pattern that it is an instance of, as "accel.conv2d"; empty: none

  const VarInfo& info(VarId id) const { return vars[index(id)]; }
  Type type(VarId id) const { return vars[index(id)].type; }
};

// A function that lives outside: a symbol with a type.
struct Library {
  std::vector<Symbol> dims, types;
  std::vector<Type> params;
  Type result;
  std::string symbol;  // as the run time finds it
  DimBounds bounds;    // of dims, as a function's
};

// A loop function (compiler/loop/loop.h) has the name that the module knows it by.
using Global = std::variant<Function, loop::Function, Library>;

// How a global is called, whatever it is.
struct Signature {
  std::vector<Symbol> dims, types;
  DimBounds bounds;
  std::vector<Type> params;
  Type result;  // none: it is not inferred yet
};
// Of a loop function: its parameters are tensors, its result the tensor that it fills, or a tuple of several. The axes
// of a ragged buffer that are one in its tensor have a size of their own, a dim that the arguments decide; it is the
// same one for buffers of the same rows.
Signature signature_of(Context& context, const Global& global);

// The type variables that a type has.
void note_variables(Type type, std::set<Symbol>& names);
// The type variables of the signature that only its result has, in their order.
std::vector<Symbol> types_to_give(const Signature& signature);

struct Constructor {
  Symbol name{};
  std::vector<Type> fields;
};
// type Name[params] { Constructor(fields), ... }; fields may name any type of the module, this one too.
struct Adt {
  std::vector<Symbol> params;
  std::vector<Constructor> constructors;
};

struct Module {
  std::map<Symbol, Global> globals;
  std::map<Symbol, Adt> adts;
  std::vector<runtime::Tensor> constants;
  std::vector<Span> spans{Span{}};

  // nullptr where there is no such function.
  const Function* function(Symbol name) const;
  Function* function(Symbol name);
  const Library* library(Symbol name) const;
  const loop::Function* loop_function(Symbol name) const;
  // The type that a constructor belongs to and its place there; nothing where there is none of that name.
  struct ConstructorPlace {
    Symbol name{};
    const Adt* adt = nullptr;
    size_t index = 0;
    const Constructor& constructor() const { return adt->constructors[index]; }
  };
  std::optional<ConstructorPlace> constructor(Symbol name) const;

  ConstId add_constant(runtime::Tensor tensor);
  SpanId add_span(Span span);
  const runtime::Tensor& constant(ConstId id) const { return constants[index(id)]; }
  const Span& span(SpanId id) const { return spans[index(id)]; }
};

// Each function of the module, in the order of their symbols.
template <class M, class F>
requires std::same_as<std::remove_const_t<M>, Module>
void for_each_function(M& module, F&& visit) {
  for (auto& [name, global] : module.globals) {
    if (auto* function = std::get_if<Function>(&global)) visit(name, *function);
  }
}

// A copy that shares nothing with the original.
Module clone(const Module& module);

// Equal but for spans, local names and numbering. Both are of one Context.
bool equal(const Module& a, const Module& b);
bool equal(const Module& module_a, const Function& a, const Module& module_b, const Function& b);

// The function with dim and type variables replaced in every type.
void substitute(Context& context, Function& function, const std::map<Symbol, Dim>& dims,
                const std::map<Symbol, Type>& types = {});
// Each type of the function: of variables, results, constructions and casts.
void for_each_type(Function& function, const std::function<void(Type&)>& visit);

// Whether the function has neither control flow nor closures, references, constructors or checks and, within `module`,
// does not call itself: one straight line of tensors and tuples. Loop functions and libraries may be called.
bool first_order(const Module& module, const Function& function);

// Visits of what a value is made of. They name every kind of value, so that a new one does not compile until they have
// handled it.

// Every operand of a value itself, in order; with a reference it may be replaced. A callee that is a variable is an
// operand, a callee by name is not; what the blocks of the value use is not either.
template <class V, class F>
requires std::same_as<std::remove_const_t<V>, Value>
void for_each_operand(V& value, F&& visit) {
  auto list = [&](auto& atoms) {
    for (auto& atom : atoms) visit(atom);
  };
  std::visit(
      [&](auto& node) {
        using Node = std::remove_cvref_t<decltype(node)>;
        if constexpr (std::same_as<Node, Apply>) {
          list(node.args);
        } else if constexpr (std::same_as<Node, Call>) {
          if (std::holds_alternative<VarId>(node.callee)) visit(node.callee);
          list(node.args);
        } else if constexpr (std::same_as<Node, Tuple> || std::same_as<Node, Construct>) {
          list(node.fields);
        } else if constexpr (std::same_as<Node, Project>) {
          visit(node.tuple);
        } else if constexpr (std::same_as<Node, If>) {
          visit(node.condition);
        } else if constexpr (std::same_as<Node, Case>) {
          visit(node.subject);
        } else if constexpr (std::same_as<Node, Cast> || std::same_as<Node, MakeReference>) {
          visit(node.value);
        } else if constexpr (std::same_as<Node, ReadReference>) {
          visit(node.reference);
        } else if constexpr (std::same_as<Node, WriteReference>) {
          visit(node.reference);
          visit(node.value);
        } else {
          static_assert(std::same_as<Node, Lambda>);
        }
      },
      value);
}

// Every block of a value, in order.
template <class V, class F>
requires std::same_as<std::remove_const_t<V>, Value>
void for_each_block(V& value, F&& visit) {
  std::visit(
      [&](auto& node) {
        using Node = std::remove_cvref_t<decltype(node)>;
        if constexpr (std::same_as<Node, Lambda>) {
          for (auto& block : node.body) visit(block);
        } else if constexpr (std::same_as<Node, If>) {
          for (auto& block : node.arms) visit(block);
        } else if constexpr (std::same_as<Node, Case>) {
          for (auto& arm : node.arms) visit(arm.block);
        } else {
          static_assert(std::same_as<Node, Apply> || std::same_as<Node, Call> || std::same_as<Node, Tuple> ||
                        std::same_as<Node, Project> || std::same_as<Node, Construct> || std::same_as<Node, Cast> ||
                        std::same_as<Node, MakeReference> || std::same_as<Node, ReadReference> ||
                        std::same_as<Node, WriteReference>);
        }
      },
      value);
}

// Every variable that a pattern binds, from left to right.
template <class P, class F>
requires std::same_as<std::remove_const_t<P>, MatchPattern>
void for_each_variable(P& pattern, F&& visit) {
  std::visit(
      [&](auto& node) {
        using Node = std::remove_cvref_t<decltype(node)>;
        if constexpr (std::same_as<Node, BindPattern>) {
          visit(node.var);
        } else if constexpr (std::same_as<Node, ConstructPattern> || std::same_as<Node, TuplePattern>) {
          for (auto& field : node.fields) for_each_variable(field, visit);
        } else {
          static_assert(std::same_as<Node, AnyPattern>);
        }
      },
      pattern.form);
}

// Every binding of a block and of the blocks inside, each before those inside it.
template <class B, class F>
requires std::same_as<std::remove_const_t<B>, Block>
void for_each_binding(B& block, F&& visit) {
  for (auto& binding : block.bindings) {
    visit(binding);
    for_each_block(binding.value, [&](auto& inner) { for_each_binding(inner, visit); });
  }
}

// Every atom that a block uses: operands and results, its own and those of the blocks inside.
template <class B, class F>
requires std::same_as<std::remove_const_t<B>, Block>
void for_each_use(B& block, F&& visit) {
  for (auto& binding : block.bindings) {
    for_each_operand(binding.value, visit);
    for_each_block(binding.value, [&](auto& inner) { for_each_use(inner, visit); });
  }
  visit(block.result);
}

// How often each variable of the function is used, results and nested blocks included.
std::vector<uint32_t> use_counts(const Function& function);

// The attribute; its presence and kind are the caller's knowledge (asserted).
int64_t int_attr(const Attrs& attrs, std::string_view name);
double float_attr(const Attrs& attrs, std::string_view name);
const std::string& string_attr(const Attrs& attrs, std::string_view name);
const std::vector<int64_t>& ints_attr(const Attrs& attrs, std::string_view name);
const std::vector<double>& floats_attr(const Attrs& attrs, std::string_view name);

}  // namespace tenon::compiler
