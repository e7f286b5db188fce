// The printer of functions: bindings are statements, or nested expressions where these are more readable.
//
// Operands are evaluated from left to right, inner operands first, so a chain of bindings may be nested exactly when
// the order of the text is the order of the bindings. A binding is nested in its single use where the order is kept,
// the text is short, and its type can be inferred there.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/text.h"

namespace tenon::compiler {

class FunctionPrinter {
 public:
  // `module`: the module of constants and spans; nullptr where a value is printed in a message. `constants`: the
  // indices of the module's constants in the text; nullptr: the ids of the module.
  FunctionPrinter(const Context& context, const Function& function, const Module* module, const PrintOptions& options,
                  const std::vector<uint32_t>* constants = nullptr);

  std::string print(Symbol name);
  // One value with its operands by name.
  std::string print(const Value& value);

  // [n in 1..512, A], or an empty string.
  static std::string variables(const Context& context, const std::vector<Symbol>& dims,
                               const std::vector<Symbol>& types, const DimBounds& bounds = {});

 private:
  // The text of an expression. `inferable`: its type can be inferred without its context.
  struct Text {
    std::string text;
    int precedence = 0;
    bool inferable = true, open = false;  // open: contains blocks of several lines
  };
  struct Statements {
    std::string text;  // without the result
    Text result;
  };
  // A binding that is printed nested in its use, or as a statement if it cannot be nested.
  struct Waiting {
    const Binding* binding;
    Text text;
  };
  struct Visitor;

  Text value(const Value& value, std::optional<VarId> self, std::vector<Waiting> inside);
  Statements statements(const Block& block);
  Text braces(const Block& block);
  std::vector<Waiting> take_operands(const Binding& consumer, std::vector<Waiting>& waiting) const;
  bool may_nest(const Binding& consumer, size_t operand, const Waiting& nested,
                const std::vector<Waiting>& waiting) const;
  bool determines_type(const Value& consumer, size_t operand, const std::vector<Waiting>& waiting) const;
  bool may_wait(const Binding& binding, const Text& text, bool result) const;
  std::string statement(const Waiting& ready) const;
  std::string origin(VarId var) const;

  std::string atom(const Atom& atom) const;
  std::string params(const std::vector<VarId>& list) const;
  std::string pattern(const MatchPattern& pattern) const;

  const Context& context_;
  const Function& function_;
  const Module* module_;
  PrintOptions options_;
  const std::vector<uint32_t>* constants_;
  std::vector<bool> results_;  // by variable: a named result of the function (named_results())
  std::vector<std::string> names_;
  std::vector<uint32_t> uses_;
};

}  // namespace tenon::compiler
