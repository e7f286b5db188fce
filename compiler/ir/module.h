// Modules: functions in A-normal form, as plain values.
//
// Semantics: a block binds each variable once, in order, and is evaluated in that order; operands are atoms. The core
// is first order and without effects, so any order that respects the data edges gives the same result, and an unused
// binding may go. Modules move through passes and share nothing; `clone` is explicit. Equality (`equal`) ignores spans,
// local names and the numbering of variables and constants; constants compare by content.
#pragma once

#include <concepts>
#include <map>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "compiler/ir/context.h"
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
// A global function called by name.
struct Call {
  Atom callee;
  Atoms args;
};
struct Tuple {
  Atoms fields;
};
struct Project {
  Atom tuple;
  uint32_t index = 0;
};
using Value = std::variant<Apply, Call, Tuple, Project>;

struct Binding {
  VarId var;
  Value value;
};
struct Block {
  std::vector<Binding> bindings;
  Atom result;
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
  std::vector<VarId> params;
  Type result;
  Block body;
  std::vector<VarInfo> vars;
  std::string target;     // the code generator that takes it; empty: not decided
  std::string composite;  // the pattern that it is an instance of, as "accel.conv2d"; empty: none

  const VarInfo& info(VarId id) const { return vars[index(id)]; }
  Type type(VarId id) const { return vars[index(id)].type; }
};

using Global = std::variant<Function>;  // loop functions and library calls join here

struct Module {
  std::map<Symbol, Global> globals;
  std::vector<runtime::Tensor> constants;
  std::vector<Span> spans{Span{}};

  // nullptr where there is no such function.
  const Function* function(Symbol name) const;
  Function* function(Symbol name);

  ConstId add_constant(runtime::Tensor tensor);
  SpanId add_span(Span span);
  const runtime::Tensor& constant(ConstId id) const { return constants[index(id)]; }
  const Span& span(SpanId id) const { return spans[index(id)]; }
};

// A copy that shares nothing with the original.
Module clone(const Module& module);

// Equal but for spans, local names and numbering. Both are of one Context.
bool equal(const Module& a, const Module& b);
bool equal(const Module& module_a, const Function& a, const Module& module_b, const Function& b);

// Every operand of a value, in order; with a reference it may be replaced. A callee is not an operand.
template <class V, class F>
requires std::same_as<std::remove_const_t<V>, Value>
void for_each_operand(V& value, F&& visit) {
  auto list = [&](auto& atoms) {
    for (auto& atom : atoms) visit(atom);
  };
  std::visit(
      [&](auto& node) {
        using Node = std::remove_cvref_t<decltype(node)>;
        if constexpr (std::same_as<Node, Apply> || std::same_as<Node, Call>) {
          list(node.args);
        } else if constexpr (std::same_as<Node, Tuple>) {
          list(node.fields);
        } else {
          static_assert(std::same_as<Node, Project>);
          visit(node.tuple);
        }
      },
      value);
}

// How often each variable of the function is used, its result included.
std::vector<uint32_t> use_counts(const Function& function);

// The attribute; its presence and kind are the caller's knowledge (asserted).
int64_t int_attr(const Attrs& attrs, std::string_view name);
double float_attr(const Attrs& attrs, std::string_view name);
const std::string& string_attr(const Attrs& attrs, std::string_view name);
const std::vector<int64_t>& ints_attr(const Attrs& attrs, std::string_view name);
const std::vector<double>& floats_attr(const Attrs& attrs, std::string_view name);

}  // namespace tenon::compiler
