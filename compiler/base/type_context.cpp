// Interning of names, dims and types: equal ones are stored once and compare by address.
#include "compiler/base/type_context.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/tensor.h"
#include "support/suggest.h"

namespace tenon::compiler {

std::optional<runtime::Shape> TensorType::shape() const {
  runtime::Shape shape;
  for (Dim dim : dims) {
    auto value = dim.constant();
    if (!value) return std::nullopt;
    shape.push_back(*value);
  }
  return shape;
}

bool has_erased(Type type) {
  if (const TensorType* tensor = type.tensor()) return std::ranges::any_of(tensor->dims, &Dim::erased);
  const TupleType* tuple = type.tuple();
  return tuple && std::ranges::any_of(tuple->fields, has_erased);
}

bool accepts(Type wanted, Type found) {
  if (wanted == found) return true;
  const TensorType *a = wanted.tensor(), *b = found.tensor();
  if (a && b) {
    return a->dtype == b->dtype &&
           std::ranges::equal(a->dims, b->dims, [](Dim x, Dim y) { return x == y || x.erased(); });
  }
  const TupleType *x = wanted.tuple(), *y = found.tuple();
  return x && y && std::ranges::equal(x->fields, y->fields, accepts);
}

TypeContext::TypeContext() {
  symbol("");  // Symbol 0 is the empty name
}

Symbol TypeContext::symbol(std::string_view name) {
  auto found = symbols_.find(name);
  if (found != symbols_.end()) return found->second;
  const auto symbol = static_cast<Symbol>(names_.size());
  names_.emplace_back(name);
  symbols_.emplace(names_.back(), symbol);
  return symbol;
}

Symbol TypeContext::fresh_dim(std::set<Symbol>& used) {
  for (size_t i = 0;; ++i) {
    const Symbol name = symbol(fmt::format("_{}", i));
    if (used.insert(name).second) return name;
  }
}

Type TypeContext::intern(TypeNode node) { return Type{&*types_.insert(std::move(node)).first}; }

Type TypeContext::map_type(Type type, const std::function<Type(Type)>& leaf, const std::function<Dim(Dim)>& dim) {
  auto list = [&](const std::vector<Type>& types) {
    std::vector<Type> mapped;
    mapped.reserve(types.size());
    for (Type next : types) mapped.push_back(map_type(next, leaf, dim));
    return mapped;
  };
  struct Visitor {
    TypeContext& self;
    Type type;
    const std::function<Type(Type)>& leaf;
    const std::function<Dim(Dim)>& dim;
    decltype(list)& map_list;
    Type operator()(const TensorType& x) const {
      if (!dim) return type;
      Dims dims;
      dims.reserve(x.dims.size());
      for (Dim next : x.dims) dims.push_back(dim(next));
      return self.tensor(std::move(dims), x.dtype);
    }
    Type operator()(const TupleType& x) const { return self.tuple(map_list(x.fields)); }
    Type operator()(const FunctionType& x) const {
      return self.function(map_list(x.params), self.map_type(x.result, leaf, dim));
    }
    Type operator()(const AdtType& x) const { return self.adt(x.name, map_list(x.args)); }
    Type operator()(const ReferenceType& x) const { return self.reference(self.map_type(x.value, leaf, dim)); }
    Type operator()(const TypeVariable&) const { return leaf ? leaf(type) : type; }
    Type operator()(const UnknownType&) const { return leaf ? leaf(type) : type; }
  };
  return std::visit(Visitor{*this, type, leaf, dim, list}, type.node->alternatives());
}

Type TypeContext::map_sizes(Type type, const std::function<Dim(Dim)>& size) {
  if (const TensorType* tensor = type.tensor()) {
    Dims dims;
    for (Dim dim : tensor->dims) dims.push_back(size(dim));
    return this->tensor(std::move(dims), tensor->dtype);
  }
  const TupleType* tuple = type.tuple();
  if (!tuple) return type;
  std::vector<Type> fields;
  for (Type field : tuple->fields) fields.push_back(map_sizes(field, size));
  return this->tuple(std::move(fields));
}

Type TypeContext::substitute(Type type, const std::map<Symbol, Dim>& values, const std::map<Symbol, Type>& types) {
  if (values.empty() && types.empty()) return type;
  return map_type(
      type,
      [&](Type leaf) {
        const TypeVariable* variable = leaf.variable();
        auto found = variable ? types.find(variable->name) : types.end();
        return found == types.end() ? leaf : found->second;
      },
      [&](Dim dim) { return substitute(dim, values); });
}

Type TypeContext::tensor(Dims dims, DType dtype) { return intern(TypeNode(TensorType{std::move(dims), dtype})); }

Type TypeContext::tensor(std::span<const int64_t> shape, DType dtype) {
  Dims dims;
  for (int64_t value : shape) dims.push_back(dim(value));
  return tensor(std::move(dims), dtype);
}

Type TypeContext::tuple(std::vector<Type> fields) { return intern(TypeNode(TupleType{std::move(fields)})); }
Type TypeContext::function(std::vector<Type> params, Type result) {
  return intern(TypeNode(FunctionType{std::move(params), result}));
}
Type TypeContext::adt(Symbol name, std::vector<Type> args) { return intern(TypeNode(AdtType{name, std::move(args)})); }
Type TypeContext::reference(Type value) { return intern(TypeNode(ReferenceType{value})); }
Type TypeContext::type_variable(Symbol name) { return intern(TypeNode(TypeVariable{name})); }
Type TypeContext::unknown(uint32_t id) { return intern(TypeNode(UnknownType{id})); }

std::string TypeContext::str(Dim dim) const {
  return compiler::str(dim, [this](Symbol symbol) { return name(symbol); });
}

std::string TypeContext::str(const Dims& dims) const {
  std::vector<std::string> parts;
  for (Dim dim : dims) parts.push_back(str(dim));
  return fmt::format("({}{})", fmt::join(parts, ", "), parts.size() == 1 ? "," : "");
}

std::string TypeContext::str(Type type) const {
  if (!type) return "unknown";
  auto list = [this](const std::vector<Type>& types) {
    std::vector<std::string> parts;
    for (Type next : types) parts.push_back(str(next));
    return fmt::format("{}", fmt::join(parts, ", "));
  };
  struct Visitor {
    const TypeContext& self;
    decltype(list)& join_types;
    std::string operator()(const TensorType& x) const {
      return fmt::format("Tensor[{}, {}]", self.str(x.dims), runtime::name(x.dtype));
    }
    std::string operator()(const TupleType& x) const {
      return fmt::format("({}{})", join_types(x.fields), x.fields.size() == 1 ? "," : "");
    }
    std::string operator()(const FunctionType& x) const {
      return fmt::format("fn({}) -> {}", join_types(x.params), self.str(x.result));
    }
    std::string operator()(const AdtType& x) const {
      return fmt::format("{}{}", self.name(x.name), x.args.empty() ? "" : "[" + join_types(x.args) + "]");
    }
    std::string operator()(const ReferenceType& x) const { return fmt::format("Ref[{}]", self.str(x.value)); }
    std::string operator()(const TypeVariable& x) const { return std::string(self.name(x.name)); }
    std::string operator()(const UnknownType&) const { return "_"; }
  };
  return std::visit(Visitor{*this, list}, type.node->alternatives());
}

std::string suggest_dtype(std::string_view wrong) {
  std::vector<std::string_view> names;
  for (DType dtype : {DType::kBool, DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kI64,
                      DType::kF32, DType::kF64}) {
    names.push_back(runtime::name(dtype));
  }
  return suggest(wrong, names);
}

}  // namespace tenon::compiler
