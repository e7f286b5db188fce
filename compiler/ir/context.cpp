#include "compiler/ir/context.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "compiler/ir/operator.h"

namespace tenon::compiler {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();

int64_t saturated_sum(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? kMax : kMin;
}
int64_t saturated_product(int64_t a, int64_t b) {
  int64_t product;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a > 0) == (b > 0) ? kMax : kMin;
}

using Terms = std::map<Monomial, int64_t>;

void accumulate(Terms& terms, const Monomial& monomial, int64_t coefficient) {
  int64_t& slot = terms[monomial];
  slot = saturated_sum(slot, coefficient);
}

DimNode normal(const Terms& terms) {
  DimNode node;
  for (const auto& [monomial, coefficient] : terms) {
    if (coefficient != 0) node.terms.emplace_back(monomial, coefficient);
  }
  return node;
}

}  // namespace

std::optional<runtime::Shape> TensorType::shape() const {
  runtime::Shape shape;
  for (Dim dim : dims) {
    auto value = dim.constant();
    if (!value) return std::nullopt;
    shape.push_back(*value);
  }
  return shape;
}

Context::Context() {
  symbol("");  // Symbol 0 is the empty name
  for (Operator& op : builtin_operators()) add_operator(std::move(op));
}
Context::~Context() = default;

Symbol Context::symbol(std::string_view name) {
  auto found = symbols_.find(name);
  if (found != symbols_.end()) return found->second;
  const auto symbol = static_cast<Symbol>(names_.size());
  names_.emplace_back(name);
  symbols_.emplace(names_.back(), symbol);
  return symbol;
}

Dim Context::intern(DimNode node) { return Dim{&*dims_.insert(std::move(node)).first}; }
Type Context::intern(TypeNode node) { return Type{&*types_.insert(std::move(node)).first}; }

Dim Context::dim(int64_t value) { return intern(normal({{{}, value}})); }
Dim Context::dim(Symbol variable) { return intern(normal({{{variable}, 1}})); }

Dim Context::add(Dim a, Dim b) {
  Terms terms;
  for (const auto& [monomial, coefficient] : a.node->terms) accumulate(terms, monomial, coefficient);
  for (const auto& [monomial, coefficient] : b.node->terms) accumulate(terms, monomial, coefficient);
  return intern(normal(terms));
}

Dim Context::subtract(Dim a, Dim b) { return add(a, multiply(dim(-1), b)); }

Dim Context::multiply(Dim a, Dim b) {
  Terms terms;
  for (const auto& [left, x] : a.node->terms) {
    for (const auto& [right, y] : b.node->terms) {
      Monomial both;
      std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(both));
      accumulate(terms, both, saturated_product(x, y));
    }
  }
  return intern(normal(terms));
}

std::optional<Dim> Context::divide(Dim a, Dim b) {
  if (b.node->terms.size() != 1) return std::nullopt;
  const auto& [divisor, by] = b.node->terms[0];
  Terms terms;
  for (const auto& [monomial, coefficient] : a.node->terms) {
    if ((coefficient == kMin && by == -1) || coefficient % by != 0 ||
        !std::includes(monomial.begin(), monomial.end(), divisor.begin(), divisor.end())) {
      return std::nullopt;
    }
    Monomial rest;
    std::set_difference(monomial.begin(), monomial.end(), divisor.begin(), divisor.end(), std::back_inserter(rest));
    accumulate(terms, rest, coefficient / by);
  }
  return intern(normal(terms));
}

Dim Context::product(std::span<const Dim> dims) {
  Dim result = dim(1);
  for (Dim factor : dims) result = multiply(result, factor);
  return result;
}

Dim Context::substitute(Dim dim, const std::map<Symbol, Dim>& values) {
  Dim result = this->dim(0);
  for (const auto& [monomial, coefficient] : dim.node->terms) {
    Dim term = this->dim(coefficient);
    for (Symbol variable : monomial) {
      auto found = values.find(variable);
      term = multiply(term, found == values.end() ? this->dim(variable) : found->second);
    }
    result = add(result, term);
  }
  return result;
}

Type Context::substitute(Type type, const std::map<Symbol, Dim>& values) {
  if (const TensorType* tensor = type.tensor()) {
    Dims dims;
    for (Dim dim : tensor->dims) dims.push_back(substitute(dim, values));
    return this->tensor(std::move(dims), tensor->dtype);
  }
  std::vector<Type> fields;
  for (Type field : type.tuple()->fields) fields.push_back(substitute(field, values));
  return tuple(std::move(fields));
}

Type Context::tensor(Dims dims, DType dtype) { return intern(TypeNode(TensorType{std::move(dims), dtype})); }

Type Context::tensor(std::span<const int64_t> shape, DType dtype) {
  Dims dims;
  for (int64_t value : shape) dims.push_back(dim(value));
  return tensor(std::move(dims), dtype);
}

Type Context::tuple(std::vector<Type> fields) { return intern(TypeNode(TupleType{std::move(fields)})); }

std::string Context::str(Dim dim) const {
  if (dim.node->terms.empty()) return "0";
  std::string text;
  auto write = [&](const Monomial& monomial, int64_t coefficient) {
    const bool negative = coefficient < 0;
    if (!text.empty()) text += negative ? " - " : " + ";
    else if (negative) text += "-";
    const uint64_t size = negative ? 0 - static_cast<uint64_t>(coefficient) : static_cast<uint64_t>(coefficient);
    if (size != 1 || monomial.empty()) text += fmt::format("{}{}", size, monomial.empty() ? "" : "*");
    for (size_t i = 0; i < monomial.size(); ++i) text += fmt::format("{}{}", i ? "*" : "", name(monomial[i]));
  };
  for (const auto& [monomial, coefficient] : dim.node->terms) {  // the constant comes last
    if (!monomial.empty()) write(monomial, coefficient);
  }
  if (dim.node->terms[0].first.empty()) write({}, dim.node->terms[0].second);
  return text;
}

std::string Context::str(const Dims& dims) const {
  std::vector<std::string> parts;
  for (Dim dim : dims) parts.push_back(str(dim));
  return fmt::format("({}{})", fmt::join(parts, ", "), parts.size() == 1 ? "," : "");
}

std::string Context::str(Type type) const {
  if (!type) return "unknown";
  if (const TensorType* tensor = type.tensor()) {
    return fmt::format("Tensor[{}, {}]", str(tensor->dims), runtime::name(tensor->dtype));
  }
  std::vector<std::string> parts;
  for (Type field : type.tuple()->fields) parts.push_back(str(field));
  return fmt::format("({}{})", fmt::join(parts, ", "), parts.size() == 1 ? "," : "");
}

const Operator* Context::find_operator(std::string_view name) const {
  auto found = operators_.find(name);
  return found == operators_.end() ? nullptr : found->second.get();
}

const Operator* Context::add_operator(Operator op) {
  std::string name = op.name;
  auto& slot = operators_[name];
  slot = std::make_unique<Operator>(std::move(op));
  return slot.get();
}

std::vector<const Operator*> Context::operators() const {
  std::vector<const Operator*> all;
  for (const auto& [name, op] : operators_) all.push_back(op.get());
  return all;
}

}  // namespace tenon::compiler
