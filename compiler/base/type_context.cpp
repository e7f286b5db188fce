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

void for_each_part(Type type, FunctionRef<void(Type)> visit) {
  std::unordered_set<const TypeNode*> seen;
  for_each_part(type, visit, seen);
}

void for_each_part(Type type, FunctionRef<void(Type)> visit, std::unordered_set<const TypeNode*>& seen) {
  struct Visitor {
    std::vector<Type>& open;
    void add(const std::vector<Type>& types) const { open.insert(open.end(), types.begin(), types.end()); }
    void operator()(const TensorType&) const {}
    void operator()(const TupleType& x) const { add(x.fields); }
    void operator()(const FunctionType& x) const {
      add(x.params);
      open.push_back(x.result);
    }
    void operator()(const AdtType& x) const { add(x.args); }
    void operator()(const ReferenceType& x) const { open.push_back(x.value); }
    void operator()(const TypeVariable&) const {}
    void operator()(const UnknownType&) const {}
  };
  for (std::vector<Type> open{type}; !open.empty();) {
    const Type next = open.back();
    open.pop_back();
    if (!next || !seen.insert(next.node).second) continue;
    visit(next);
    std::visit(Visitor{open}, next.node->alternatives());
  }
}

bool has_erased(Type type) { return type && type.node->erased; }

namespace {

bool accepts_in(Type wanted, Type found, TypePairs& accepted) {
  if (wanted == found) return true;
  const TensorType *a = wanted.tensor(), *b = found.tensor();
  if (a && b) {
    return a->dtype == b->dtype &&
           std::ranges::equal(a->dims, b->dims, [](Dim x, Dim y) { return x == y || x.erased(); });
  }
  const TupleType *x = wanted.tuple(), *y = found.tuple();
  if (!has_erased(wanted) || !x || !y) return false;
  if (accepted.contains({wanted, found})) return true;
  if (!std::ranges::equal(x->fields, y->fields, [&](Type p, Type q) { return accepts_in(p, q, accepted); }))
    return false;
  accepted.insert({wanted, found});
  return true;
}

}  // namespace

bool accepts(Type wanted, Type found) {
  TypePairs accepted;
  return accepts_in(wanted, found, accepted);
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

// The facts of a new node, from those of its parts.
class TypeContext::Facts {
 public:
  Facts(const TypeContext& context, TypeNode& node) : context_(context), node_(node) {
    std::visit([this](const auto& alternative) { (*this)(alternative); }, node.alternatives());
  }

 private:
  void operator()(const TensorType& x) {
    for (Dim dim : x.dims) {
      node_.erased |= dim.erased();
      for_each_variable(dim, [&](Symbol name) {
        node_.variables = true;
        node_.unknowns |= context_.name(name).starts_with('?');
      });
    }
  }
  void operator()(const TupleType& x) {
    add(x.fields);
    for (Type field : x.fields) node_.erased |= field.node->erased;
  }
  void operator()(const FunctionType& x) {
    add(x.params);
    if (x.result) add(x.result);
  }
  void operator()(const AdtType& x) { add(x.args); }
  void operator()(const ReferenceType& x) { add(x.value); }
  void operator()(const TypeVariable&) { node_.variables = true; }
  void operator()(const UnknownType&) { node_.unknowns = true; }
  void add(const std::vector<Type>& types) {
    for (Type type : types) add(type);
  }
  void add(Type type) {
    node_.unknowns |= type.node->unknowns;
    node_.variables |= type.node->variables;
    node_.size = std::min(node_.size + type.node->size, TypeNode::kMaxSize);
    node_.depth = std::max(node_.depth, type.node->depth + 1);
  }

  const TypeContext& context_;
  TypeNode& node_;
};

Type TypeContext::intern(TypeNode node) {
  const auto found = types_.find(node);
  if (found != types_.end()) return Type{&*found};
  Facts(*this, node);
  return Type{&*types_.insert(std::move(node)).first};
}

// The types that a map has replaced already: a part that a type shares is mapped once.
class TypeContext::Mapping {
 public:
  Mapping(TypeContext& context, FunctionRef<Type(Type)> leaf, FunctionRef<Dim(Dim)> dim)
      : context_(context), leaf_(leaf), dim_(dim) {}

  Type operator()(Type type) {
    context_.visit();
    const auto found = mapped_.find(type.node);
    if (found != mapped_.end()) return found->second;
    const Type result = std::visit([&](const auto& form) { return map(type, form); }, type.node->alternatives());
    mapped_.emplace(type.node, result);
    return result;
  }

 private:
  std::vector<Type> map(const std::vector<Type>& types) {
    std::vector<Type> mapped;
    mapped.reserve(types.size());
    for (Type next : types) mapped.push_back((*this)(next));
    return mapped;
  }
  Type map(Type, const TensorType& x) {
    Dims dims;
    dims.reserve(x.dims.size());
    for (Dim next : x.dims) dims.push_back(dim_(next));
    return context_.tensor(std::move(dims), x.dtype);
  }
  Type map(Type, const TupleType& x) { return context_.tuple(map(x.fields)); }
  Type map(Type, const FunctionType& x) {
    std::vector<Type> params = map(x.params);
    return context_.function(std::move(params), (*this)(x.result));
  }
  Type map(Type, const AdtType& x) { return context_.adt(x.name, map(x.args)); }
  Type map(Type, const ReferenceType& x) { return context_.reference((*this)(x.value)); }
  Type map(Type type, const TypeVariable&) { return leaf_(type); }
  Type map(Type type, const UnknownType&) { return leaf_(type); }

  TypeContext& context_;
  FunctionRef<Type(Type)> leaf_;
  FunctionRef<Dim(Dim)> dim_;
  TypeMap<Type> mapped_;
};

Type TypeContext::map_type(Type type, FunctionRef<Type(Type)> leaf, FunctionRef<Dim(Dim)> dim) {
  return Mapping(*this, leaf, dim)(type);
}

Type TypeContext::map_sizes(Type type, FunctionRef<Dim(Dim)> size) {
  TypeMap<Type> mapped;
  const std::function<Type(Type)> map = [&](Type next) -> Type {
    if (const TensorType* tensor = next.tensor()) {
      Dims dims;
      for (Dim dim : tensor->dims) dims.push_back(size(dim));
      return this->tensor(std::move(dims), tensor->dtype);
    }
    const TupleType* tuple = next.tuple();
    if (!tuple) return next;
    const auto found = mapped.find(next.node);
    if (found != mapped.end()) return found->second;
    visit();
    std::vector<Type> fields;
    for (Type field : tuple->fields) fields.push_back(map(field));
    return mapped.emplace(next.node, this->tuple(std::move(fields))).first->second;
  };
  return map(type);
}

Type TypeContext::substitute(Type type, const std::map<Symbol, Dim>& values, const std::map<Symbol, Type>& types) {
  if ((values.empty() && types.empty()) || !type.node->variables) return type;
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
  size_t budget = TypeNode::kMaxWritten;
  return str(type, budget);
}

std::string TypeContext::str(Type type, size_t& budget) const {
  if (!type) return "unknown";
  if (budget == 0) return "...";
  --budget;
  auto list = [&](const std::vector<Type>& types) {
    std::vector<std::string> parts;
    for (Type next : types) {
      parts.push_back(str(next, budget));
      if (budget == 0) break;
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  };
  struct Visitor {
    const TypeContext& self;
    size_t& budget;
    decltype(list)& join_types;
    std::string operator()(const TensorType& x) const {
      return fmt::format("Tensor[{}, {}]", self.str(x.dims), runtime::name(x.dtype));
    }
    std::string operator()(const TupleType& x) const {
      return fmt::format("({}{})", join_types(x.fields), x.fields.size() == 1 ? "," : "");
    }
    std::string operator()(const FunctionType& x) const {
      const std::string params = join_types(x.params);
      return fmt::format("fn({}) -> {}", params, self.str(x.result, budget));
    }
    std::string operator()(const AdtType& x) const {
      return fmt::format("{}{}", self.name(x.name), x.args.empty() ? "" : "[" + join_types(x.args) + "]");
    }
    std::string operator()(const ReferenceType& x) const { return fmt::format("Ref[{}]", self.str(x.value, budget)); }
    std::string operator()(const TypeVariable& x) const { return std::string(self.name(x.name)); }
    std::string operator()(const UnknownType&) const { return "_"; }
  };
  return std::visit(Visitor{*this, budget, list}, type.node->alternatives());
}

std::string suggest_dtype(std::string_view wrong) {
  std::vector<std::string_view> names;
  for (DType dtype : runtime::all_dtypes()) names.push_back(runtime::name(dtype));
  return suggest(wrong, names);
}

}  // namespace tenon::compiler
