// The parser of dims and types.
#pragma once

#include <set>

#include "compiler/base/cursor.h"
#include "compiler/base/type_context.h"

namespace tenon::compiler {

// The variables that types may use. The declaration in brackets does not distinguish dims from types: the first use of
// a name classifies it, and a name without a use is a dim.
struct TypeScope {
  std::vector<Symbol> dims, types, unclassified;
  std::vector<Symbol> functions;  // functions that sizes may apply, as lengths(b)
  DimBounds bounds;               // the declared bounds

  bool declared(Symbol name) const;
};

class TypeReader {
 public:
  // `defined`: the names of all type definitions of the module.
  TypeReader(TypeContext& context, Cursor& cursor, const std::set<Symbol>& defined)
      : context_(context), cursor_(cursor), defined_(defined) {}

  // The optional declaration [n in 1..512, A, ...].
  Status variables(TypeScope& scope);
  // Sorts the classified dims and types by the `order` of their declaration; the names still unclassified become dims.
  static void classify(TypeScope& scope, const std::vector<Symbol>& order);
  // The type of a parameter, where every visible `?` becomes a fresh dim of the scope.
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
