// The interned names, dims and types that the loop level and the functional language share. A TypeContext outlives
// every module and loop function that uses it, and one thread uses it at a time.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "compiler/base/type.h"
#include "support/function_ref.h"

namespace tenon::compiler {

class TypeContext : public DimPool {
 public:
  TypeContext();
  TypeContext(const TypeContext&) = delete;
  TypeContext& operator=(const TypeContext&) = delete;

  Symbol symbol(std::string_view name);
  std::string_view name(Symbol symbol) const { return names_[static_cast<uint32_t>(symbol)]; }

  // A name for a dim that is not in `used`: _0, _1, ... The name is added to `used`.
  Symbol fresh_dim(std::set<Symbol>& used);
  using DimPool::substitute;
  Type substitute(Type type, const std::map<Symbol, Dim>& values, const std::map<Symbol, Type>& types = {});
  // The type with every leaf (a type variable or an unknown type) and every dim replaced.
  Type map_type(Type type, FunctionRef<Type(Type)> leaf, FunctionRef<Dim(Dim)> dim);

  // The type with every visible size replaced: the sizes of a tensor and of the fields of a tuple.
  Type map_sizes(Type type, FunctionRef<Dim(Dim)> size);

  Type tensor(Dims dims, DType dtype);
  Type tensor(std::span<const int64_t> shape, DType dtype);
  Type tuple(std::vector<Type> fields);
  Type function(std::vector<Type> params, Type result);
  Type adt(Symbol name, std::vector<Type> args);
  Type reference(Type value);
  Type type_variable(Symbol name);
  Type unknown(uint32_t id);
  Type unit() { return tuple({}); }
  Type type_of(const runtime::Tensor& tensor) { return this->tensor(tensor.shape(), tensor.dtype()); }

  // The syntax of the text form: "4*n + 1", "(N, 64)", "Tensor[(N, 64), f32]".
  std::string str(Dim dim) const;
  std::string str(const Dims& dims) const;
  // Parts beyond TypeNode::kMaxWritten, which a type that shares parts may have, are abbreviated to three dots.
  std::string str(Type type) const;

  // The work of the compiler, counted instead of timed: every visit of a node of a module, or of a node of an analysis,
  // is counted here. Tests compare the count with the size of the module to find superlinear algorithms.
  void visit(uint64_t nodes = 1) { visits_ += nodes; }
  uint64_t visits() const { return visits_; }

 private:
  class Facts;
  class Mapping;
  Type intern(TypeNode node);
  std::string str(Type type, size_t& budget) const;

  uint64_t visits_ = 0;
  std::deque<std::string> names_;  // a deque: the views in symbols_ stay valid
  std::unordered_map<std::string_view, Symbol> symbols_;
  std::set<TypeNode> types_;
};

}  // namespace tenon::compiler
