// Writes functions: bindings as statements, or nested where that reads better.
//
// Operands are evaluated from left to right, inner ones first, so a chain of bindings may stand nested exactly when the
// order of the text is the order of the bindings. A binding is nested in its one use where that keeps the order, it is
// short, and its type is inferred there.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/text.h"

namespace tenon::compiler {

class FunctionPrinter {
 public:
  // `module`: for constants and spans; none where a value is shown in a message. `constants`: how the text numbers the
  // module's; none: as the module does.
  FunctionPrinter(const Context& context, const Function& function, const Module* module, const PrintOptions& options,
                  const std::vector<uint32_t>* constants = nullptr);

  std::string print(Symbol name);
  // One value, its operands by name.
  std::string print(const Value& value);

  // [n in 1..512, A], or nothing.
  static std::string variables(const Context& context, const std::vector<Symbol>& dims,
                               const std::vector<Symbol>& types, const DimBounds& bounds = {});

 private:
  // An expression's text. `decided`: its type can be inferred without its surroundings.
  struct Text {
    std::string text;
    int precedence = 0;
    bool decided = true, open = false;  // open: has blocks that stand in several lines
  };
  struct Statements {
    std::string text;  // all but the result
    Text result;
  };
  // A binding that is written where it is used, or as a statement of its own if that cannot be.
  struct Waiting {
    const Binding* binding;
    Text text;
  };
  struct Visitor;

  Text value(const Value& value, std::optional<VarId> self, std::vector<Waiting> inside);
  Statements statements(const Block& block);
  Text braces(const Block& block);
  std::vector<Waiting> take_operands(const Binding& consumer, std::vector<Waiting>& waiting) const;
  bool may_stand_in(const Binding& consumer, size_t operand, const Waiting& nested,
                    const std::vector<Waiting>& waiting) const;
  bool gives_type(const Value& consumer, size_t operand, const std::vector<Waiting>& waiting) const;
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
  std::vector<bool> results_;  // by variable: a result of the function that has a name, by which users know it
  std::vector<std::string> names_;
  std::vector<uint32_t> uses_;
};

}  // namespace tenon::compiler
