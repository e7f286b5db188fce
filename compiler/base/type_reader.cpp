// The recursive-descent parser of types and dims.
#include "compiler/base/type_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/suggest.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

bool contains(const std::vector<Symbol>& names, Symbol name) { return std::ranges::find(names, name) != names.end(); }

// Whether the name is in `kind`; an unclassified name moves into `kind` by this use.
bool use_as(std::vector<Symbol>& kind, std::vector<Symbol>& unclassified, Symbol name) {
  if (contains(kind, name)) return true;
  if (std::erase(unclassified, name) == 0) return false;
  kind.push_back(name);
  return true;
}

}  // namespace

bool TypeScope::declared(Symbol name) const {
  return contains(dims, name) || contains(types, name) || contains(unclassified, name);
}

Status TypeReader::variables(TypeScope& scope) {
  if (!cursor_.accept("[")) return {};
  return cursor_.list("]", [&]() -> Status {
    const size_t offset = cursor_.offset();
    TENON_TRY_ASSIGN(text, cursor_.take(Tok::kName, "a dim or type variable"));
    const Symbol name = context_.symbol(*text);
    if (scope.declared(name)) return cursor_.error_at(offset, fmt::format("{} is declared twice", *text));
    scope.unclassified.push_back(name);
    if (!cursor_.accept_name("in")) return {};
    TENON_TRY_ASSIGN(range, bounds());
    scope.bounds.emplace(name, *range);
    return {};
  });
}

// 1..512, or 1.. without an upper bound.
Expected<DimRange> TypeReader::bounds() {
  DimRange range;
  const size_t offset = cursor_.offset();
  TENON_TRY_ASSIGN(lo, cursor_.integer());
  range.lo = *lo;
  if (!cursor_.is(".") || !cursor_.is(".", 1))
    return cursor_.fail("expected '..'", "bounds are written as [n in 1..512]");
  cursor_.skip(2);
  if (cursor_.peek().kind == Tok::kInteger || cursor_.is("-")) {
    TENON_TRY_ASSIGN(hi, cursor_.integer());
    range.hi = *hi;
  }
  if (*lo < 0 || range.hi.value_or(*lo) < *lo) return cursor_.error_at(offset, "the bounds contain no size");
  return range;
}

void TypeReader::classify(TypeScope& scope, const std::vector<Symbol>& order) {
  const TypeScope parsed = std::move(scope);
  scope = {};
  scope.bounds = parsed.bounds;
  for (Symbol name : order) (contains(parsed.types, name) ? scope.types : scope.dims).push_back(name);
}

Type TypeReader::opened(TypeScope& scope, Type type) {
  return context_.map_sizes(type, [&](Dim size) {
    if (!size.erased()) return size;
    std::set<Symbol> used(scope.dims.begin(), scope.dims.end());
    used.insert(scope.types.begin(), scope.types.end());
    scope.dims.push_back(context_.fresh_dim(used));
    return context_.dim(scope.dims.back());
  });
}

// Terms, as a + b - c.
Expected<Dim> TypeReader::dim(TypeScope& scope, int depth) {
  if (depth > kMaxNesting) return cursor_.fail("nested too deeply");
  TENON_TRY_ASSIGN(sum, dim_term(scope, depth));
  while (cursor_.is("+") || cursor_.is("-")) {
    const bool minus = cursor_.is("-");
    cursor_.skip();
    TENON_TRY_ASSIGN(term, dim_term(scope, depth));
    sum = minus ? context_.subtract(*sum, *term) : context_.add(*sum, *term);
  }
  return sum;
}

// Factors, as a * b // c % d, from left to right.
Expected<Dim> TypeReader::dim_term(TypeScope& scope, int depth) {
  TENON_TRY_ASSIGN(term, dim_factor(scope, depth));
  while (cursor_.is("*") || cursor_.is("//") || cursor_.is("%")) {
    const size_t offset = cursor_.offset();
    const std::string op = cursor_.peek().text;
    cursor_.skip();
    TENON_TRY_ASSIGN(factor, dim_factor(scope, depth));
    if (op == "*") {
      term = context_.multiply(*term, *factor);
      continue;
    }
    if (factor->constant().value_or(1) <= 0) return cursor_.error_at(offset, "the divisor of a size must be > 0");
    term = op == "//" ? context_.floor_divide(*term, *factor) : context_.modulo(*term, *factor);
  }
  return term;
}

// An integer, a variable, min(a, ...), max(a, ...), (a) or -a.
Expected<Dim> TypeReader::dim_factor(TypeScope& scope, int depth) {
  if (depth > kMaxNesting) return cursor_.fail("nested too deeply");
  if (cursor_.accept("-")) {
    TENON_TRY_ASSIGN(factor, dim_factor(scope, depth + 1));
    return context_.multiply(context_.dim(-1), *factor);
  }
  if (cursor_.accept("(")) {
    TENON_TRY_ASSIGN(inner, dim(scope, depth + 1));
    TENON_TRY(cursor_.expect(")"));
    return inner;
  }
  if (cursor_.peek().kind != Tok::kName) {
    TENON_TRY_ASSIGN(value, cursor_.integer());
    return context_.dim(*value);
  }
  const std::string text = cursor_.peek().text;
  if ((text == "min" || text == "max") && cursor_.is("(", 1)) {
    cursor_.skip(2);
    Dims args;
    TENON_TRY(cursor_.list(")", [&]() -> Status {
      TENON_TRY_ASSIGN(next, dim(scope, depth + 1));
      args.push_back(*next);
      return {};
    }));
    if (args.empty()) return cursor_.fail(fmt::format("{} requires at least one size", text));
    return text == "min" ? context_.minimum(std::move(args)) : context_.maximum(std::move(args));
  }
  const Symbol variable = context_.symbol(text);
  if (contains(scope.functions, variable) && cursor_.is("(", 1)) {
    cursor_.skip(2);
    std::vector<Dim> args;
    TENON_TRY(cursor_.list(")", [&]() -> Status {
      TENON_TRY_ASSIGN(next, dim(scope, depth + 1));
      args.push_back(*next);
      return {};
    }));
    return context_.apply(variable, std::move(args));
  }
  if (!use_as(scope.dims, scope.unclassified, variable)) {
    std::vector<std::string_view> candidates{"min", "max"};
    for (const auto* variables : {&scope.dims, &scope.unclassified}) {
      for (Symbol other : *variables) candidates.push_back(context_.name(other));
    }
    const std::string suggestion = suggest(text, candidates);
    return cursor_.fail("the dim variable is not declared",
                        suggestion.empty() ? "declare it after the function's name, as @f[N](...)" : suggestion);
  }
  cursor_.skip();
  return context_.dim(variable);
}

Expected<std::vector<Type>> TypeReader::types(std::string_view end, TypeScope& scope, int depth) {
  std::vector<Type> types;
  TENON_TRY(cursor_.list(end, [&]() -> Status {
    TENON_TRY_ASSIGN(next, type(scope, depth));
    types.push_back(*next);
    return {};
  }));
  return types;
}

Expected<Type> TypeReader::type(TypeScope& scope, int depth) {
  if (depth > kMaxNesting) return cursor_.fail("nested too deeply");
  if (cursor_.accept("(")) {
    TENON_TRY_ASSIGN(fields, types(")", scope, depth + 1));
    return context_.tuple(std::move(*fields));
  }
  if (cursor_.peek().kind != Tok::kName) {
    return cursor_.fail("expected a type", "as Tensor[(N, 64), f32] or a tuple of types");
  }
  if (cursor_.accept_name("Tensor")) return tensor(scope);
  if (cursor_.accept_name("Ref")) {
    TENON_TRY(cursor_.expect("["));
    TENON_TRY_ASSIGN(value, type(scope, depth + 1));
    TENON_TRY(cursor_.expect("]"));
    return context_.reference(*value);
  }
  if (cursor_.accept_name("fn")) {
    TENON_TRY(cursor_.expect("("));
    TENON_TRY_ASSIGN(params, types(")", scope, depth + 1));
    TENON_TRY(cursor_.expect("->"));
    TENON_TRY_ASSIGN(result, type(scope, depth + 1));
    return context_.function(std::move(*params), *result);
  }
  return named(scope, depth);
}

Expected<Type> TypeReader::tensor(TypeScope& scope) {
  TENON_TRY(cursor_.expect("["));
  TENON_TRY(cursor_.expect("("));
  Dims dims;
  TENON_TRY(cursor_.list(")", [&]() -> Status {
    const size_t offset = cursor_.offset();
    if (cursor_.accept("?")) {
      dims.push_back(context_.erased());
      return {};
    }
    TENON_TRY_ASSIGN(size, dim(scope));
    if (*size == context_.invalid()) return cursor_.error_at(offset, "the size is too large to be computed");
    if (size->constant().value_or(0) < 0) return cursor_.error_at(offset, "a size must not be negative");
    dims.push_back(*size);
    return {};
  }));
  TENON_TRY(cursor_.expect(","));
  const size_t offset = cursor_.offset();
  TENON_TRY_ASSIGN(text, cursor_.take(Tok::kName, "a dtype"));
  auto dtype = runtime::parse_dtype(*text);
  if (!dtype) {
    const std::string suggestion = suggest_dtype(*text);
    return cursor_.error_at(offset, dtype.error().what, suggestion.empty() ? dtype.error().help : suggestion);
  }
  TENON_TRY(cursor_.expect("]"));
  return context_.tensor(std::move(dims), *dtype);
}

// A defined type or a type variable.
Expected<Type> TypeReader::named(TypeScope& scope, int depth) {
  const size_t offset = cursor_.offset();
  const std::string text = cursor_.peek().text;
  const Symbol name = context_.symbol(text);
  cursor_.skip();
  if (!scope.bounds.contains(name) && use_as(scope.types, scope.unclassified, name))
    return context_.type_variable(name);
  if (!defined_.contains(name)) {
    std::vector<std::string_view> candidates{"Tensor", "Ref", "fn"};
    for (Symbol other : defined_) candidates.push_back(context_.name(other));
    for (const auto* variables : {&scope.types, &scope.unclassified}) {
      for (Symbol other : *variables) candidates.push_back(context_.name(other));
    }
    const std::string suggestion = suggest(text, candidates);
    return cursor_.error_at(offset, fmt::format("there is no type {}", text),
                            suggestion.empty() ? "a type is Tensor, Ref, fn, a tuple, a definition (type T { ... }) or "
                                                 "a variable (@f[T])"
                                               : suggestion);
  }
  std::vector<Type> args;
  if (cursor_.accept("[")) {
    TENON_TRY_ASSIGN(list, types("]", scope, depth + 1));
    args = std::move(*list);
  }
  return context_.adt(name, std::move(args));
}

}  // namespace tenon::compiler
