// The parser of the parts of statements of loop functions: sizes, buffers, expressions.
#pragma once

#include <map>
#include <set>

#include "compiler/base/type_reader.h"
#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

class ExprReader {
 public:
  ExprReader(TypeContext& context, Cursor& cursor)
      : context_(context), cursor_(cursor), types_(context, cursor, defined_) {}

 protected:
  Expected<Dim> sizes();  // (n + 1)
  Expected<Symbol> variable();
  Status keyword(std::string_view keyword);

  Status declarations(std::vector<BufferId>& ids);  // (%a: Tensor[(n, 4), f32], ...)
  Expected<BufferId> declaration();
  Expected<BufferId> buffer();                         // one in scope
  Expected<Dims> indices(BufferId id, size_t offset);  // errors point at `offset`
  Expected<Operand> block();                           // %a[i, 4*k : 4]

  // Reads up to an operator that binds no closer than `above`.
  Expected<Expr> expression(int depth, int above = 0);
  Expected<Let> bound_index(int depth);  // t in (n) = x

  TypeContext& context_;
  Cursor& cursor_;
  const std::set<Symbol> defined_;  // a loop function names no type definitions
  TypeReader types_;
  TypeScope scope_;
  Function function_;
  std::map<std::string, BufferId> buffers_;  // buffers in scope

 private:
  Expected<DType> dtype();
  Expected<Expr> primary(int depth);
  Expected<Expr> applied(const std::string& text, const std::vector<Expr>& args, size_t offset);
  Expected<Expr> typed(DType dtype, int depth);  // f32(x): a literal or a conversion
  Expected<Expr> literal_of(DType dtype, const Token& token, bool negative);
  Status check_element_type(DType dtype, size_t offset) const;
  Expected<Expr> let(int depth);  // (let t in (n) = x; y), starting after `let`
};

}  // namespace tenon::compiler::loop
