// Reads dims and types.
#pragma once

#include <set>

#include "compiler/base/cursor.h"
#include "compiler/base/type_context.h"

namespace tenon::compiler {

// The variables that types may name. Brackets do not say which of their names are dims and which are types: the first
// use decides; one that is not used is a dim.
struct TypeScope {
  std::vector<Symbol> dims, types, undecided;
  std::vector<Symbol> functions;  // that sizes may apply, as lengths(b)
  DimBounds bounds;               // of those that were declared with some

  bool declared(Symbol name) const;
};

class TypeReader {
 public:
  // `defined`: the names of all type definitions of the module.
  TypeReader(TypeContext& context, Cursor& cursor, const std::set<Symbol>& defined)
      : context_(context), cursor_(cursor), defined_(defined) {}

  // [n in 1..512, A, ...], where there is a bracket.
  Status variables(TypeScope& scope);
  // The order of the brackets for those that were decided; the rest are dims.
  static void decide(TypeScope& scope, const std::vector<Symbol>& order);
  // A parameter's type, where each `?` that can be seen is a fresh dim of the scope.
  Type opened(TypeScope& scope, Type type);
  Expected<Dim> dim(TypeScope& scope, int depth = 0);
  Expected<Type> type(TypeScope& scope, int depth = 0);

 private:
  Expected<DimRange> bounds();
  Expected<Dim> dim_term(TypeScope& scope, int depth);
  Expected<Dim> dim_factor(TypeScope& scope, int depth);
  Expected<Type> tensor(TypeScope& scope);
  Expected<Type> named(TypeScope& scope, int depth);
  Expected<std::vector<Type>> types(std::string_view end, TypeScope& scope, int depth);

  TypeContext& context_;
  Cursor& cursor_;
  const std::set<Symbol>& defined_;
};

}  // namespace tenon::compiler
