// The parser of function bodies, which produces bindings without types.
#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>

#include "compiler/base/type_reader.h"
#include "compiler/ir/text/elaborate.h"
#include "support/function_ref.h"

namespace tenon::compiler {

using Constants = std::unordered_map<std::string, ConstId>;  // by the names in the text
using Locals = std::unordered_map<std::string, Atom>;

class ExpressionReader {
 public:
  ExpressionReader(Context& context, Module& module, Cursor& cursor, TypeReader types, const Constants& constants,
                   Draft& draft, TypeScope scope, Locals locals, FunctionRef<SpanId(size_t)> span)
      : context_(context),
        module_(module),
        cursor_(cursor),
        types_(types),
        constants_(constants),
        draft_(draft),
        function_(draft.function),
        scope_(std::move(scope)),
        locals_(std::move(locals)),
        span_(span) {}

  // { ... }
  Expected<Block> block(int depth);

 private:
  using Result = Expected<Atom>;

  // The numbers of visible locals and dims at the begin of a block, which are restored at its end.
  struct Visible {
    size_t names, dims;
  };
  Visible enter() {
    open_.emplace_back();
    return {names_.size(), scope_.dims.size()};
  }
  Block leave(const Visible& outside, Atom result, size_t result_at);

  VarId variable(size_t offset, Type type, std::string_view name);
  // Names the atom until hide(). A name may shadow an earlier one, but not one of the same list: those from `list` on.
  Status define(size_t offset, const std::string& name, Atom atom, size_t list);
  Status define(size_t offset, const std::string& name, Atom atom) { return define(offset, name, atom, names_.size()); }
  // Ends the scope of all names but the first ones; the names that they shadowed are visible again.
  void hide(size_t first);
  // A global as a value: itself, or a closure that calls it where it is polymorphic.
  Atom global_value(size_t offset, Symbol name);
  Result gradient(std::string_view name, int depth);
  Atom gradient_value(size_t offset, Gradient value, const Signature& signature, std::string_view name);
  void unname(const Atom& inner, size_t variables);
  Atom bind(size_t offset, Value value, std::string_view name);

  Status statements(int depth);
  Status let(int depth);
  // Parses up to an infix operator that binds no tighter than `precedence`.
  Result expression(std::string_view name, int depth, int precedence = 0);
  Result operand(std::string_view name, int depth);
  Result primary(std::string_view name, int depth);
  Result word(std::string_view name, int depth);
  Result literal();
  Result negation(std::string_view name, int depth);
  Result operation(std::string_view name, int depth);
  Result construct(std::string_view name, int depth);
  Result lambda(std::string_view name, int depth);
  Result branch(std::string_view name, int depth);
  Result match(std::string_view name, int depth);
  Result cast(std::string_view name, int depth);
  Result tuple(std::string_view name, int depth);
  Expected<Arm> arm(int depth);
  Expected<MatchPattern> pattern(int depth, size_t list);
  Expected<Block> arm_block(int depth);
  // (a, b, key=value): attributes are accepted only where an operator and `attrs` are passed.
  Expected<Atoms> arguments(const Operator* op, Attrs* attrs, int depth, ComputedAttrs* computed = nullptr);
  Expected<std::optional<ComputedAttr>> computed_attribute(int depth);
  bool is_dim(const std::string& name) const {
    const Symbol symbol = context_.symbol(name);
    return scope_.declared(symbol) && std::ranges::find(scope_.types, symbol) == scope_.types.end();
  }
  // The error "WHAT, did you mean ...?" at the token.
  std::unexpected<Diagnostic> unknown(std::string what, std::string_view wrong,
                                      const std::vector<std::string_view>& candidates,
                                      std::string_view sigil = "") const;

  Context& context_;
  Module& module_;
  Cursor& cursor_;
  TypeReader types_;
  const Constants& constants_;
  Draft& draft_;
  Function& function_;
  TypeScope scope_;
  Locals locals_;
  FunctionRef<SpanId(size_t)> span_;
  struct Named {
    std::string name;
    std::optional<Atom> shadowed;  // the meaning of the name before
  };
  std::vector<Named> names_;  // the visible locals, in the order of their definition
  std::vector<Block> open_;
};

}  // namespace tenon::compiler
