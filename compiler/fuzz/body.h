// The body of one random function: statements one after the other, each of which uses locals in scope, and values of a
// wanted type.
//
// The work of a body is estimated as it grows: a binding costs 1, a call the cost of its callee, a recursion its depth
// times its body. Where the limit is reached, values are taken from the scope, or made in the shortest way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/fuzz/types.h"
#include "compiler/ir/builder.h"
#include "support/function_ref.h"

namespace tenon::compiler::fuzz {

inline constexpr int64_t kMaxFuel = 3;

// The largest cost of a call of a function value of this type; a more expensive function is never used as a value.
int64_t call_cost(Type type);

// A function that a body may call by name.
struct Callee {
  Atom atom;
  std::vector<Symbol> dims, types;
  std::vector<Type> params;
  Type result;
  int64_t cost = 1;
  std::optional<size_t> fuel;     // the parameter that limits the recursion
  std::optional<size_t> subject;  // the parameter that gets smaller in each recursive call
  DimBounds bounds = {};
};

struct Local {
  Atom atom;
  Type type;
  bool fuel = false;     // counts a recursion: never more than kMaxFuel
  bool smaller = false;  // part of the subject of the recursion
  bool exact = false;    // no pass rounds it differently
};

class Body {
 public:
  Body(Types& types, Random& random, Builder& builder, const Options& options)
      : types_(types), random_(random), builder_(builder), context_(builder.context()), options_(options) {}

  // The context of the body; the generator of the module fills it.
  std::vector<Callee> callees;  // complete functions
  std::vector<Callee> group;    // the functions of this recursion, this one among them
  std::vector<Callee> libraries;
  int64_t limit = 2000;  // of the cost

  void add(const Local& local) { scope_.push_back(local); }
  const std::vector<Local>& scope() const { return scope_; }
  int64_t cost() const { return cost_; }
  int64_t recursions() const { return recursions_; }

  void statements(int64_t count);
  // A value of this type; nothing where none can be made from the scope.
  std::optional<Atom> value(Type type, int depth);
  bool constructible(Type type) const;
  // A block with `count` statements and a result of this type; nothing where it cannot be made.
  std::optional<Block> block(Type result, int64_t count, const std::vector<Local>& locals = {});
  // The result of a recursive function: an if on the fuel or a match on the structure, with calls of `group` in one
  // arm.
  std::optional<Atom> by_fuel(Atom fuel, Type result, int64_t count);
  std::optional<Atom> by_structure(const Local& subject, Type result);

  // For the operands of operators.
  Atom constant(DType dtype, const runtime::Shape& shape) { return builder_.constant(types_.constant(dtype, shape)); }
  Atom constant(runtime::Tensor tensor) { return builder_.constant(std::move(tensor)); }
  const Local* any(FunctionRef<bool(const Local&)> wanted);
  std::optional<Atom> apply(OperatorId op, Atoms args, Attrs attrs = {});
  Expected<Type> infer(const Value& value) const {
    return infer_value(context_, builder_.module(), builder_.function(), value);
  }
  Type type_of(const Atom& atom) const { return *builder_.type_of(atom); }
  Context& context() const { return context_; }
  Random& random() { return random_; }
  Types& types() { return types_; }
  bool is_exact(const Atom& atom) const;

 private:
  using Made = std::optional<Atom>;

  bool exhausted() const { return cost_ > limit; }
  Made bind(Value value, std::string_view name = "");
  Made add_result(Made made);  // adds the value to the scope

  // Forms of statements; false where none was made.
  bool statement();
  bool operation();
  bool chain();
  bool any_call();
  bool any_match();
  bool any_if();
  bool any_closure();
  bool any_data();
  bool any_reference();
  bool any_cast();
  bool any_size();
  bool any_library();
  bool any_recursion();

  Type some_type();
  Made construct(Type type, int depth);
  Made compute(Type type, int depth);
  Made tensor_by_operator(Type type, int depth);
  Made lambda(const FunctionType& type, int depth, std::string_view name = "");
  Made call(const Callee& callee, std::optional<Type> result, int depth);
  Made call_value(const Local& callee, int depth);
  Made fuel();
  Made branch(Type type, int depth);
  Made match(const Local& subject, Type type, int depth, bool recursion = false);
  Made condition(int depth);
  Made value_of_not(Atom a);
  std::vector<MatchPattern> cover(Type type, int depth);
  MatchPattern leaf(Type type);
  void bound_by(const MatchPattern& pattern, bool smaller, bool inside, std::vector<Local>& found) const;
  std::string fresh(std::string_view prefix) { return std::string(prefix) + std::to_string(names_++); }

  Types& types_;
  Random& random_;
  Builder& builder_;
  Context& context_;
  Options options_;
  std::vector<Local> scope_;
  int64_t cost_ = 0, recursions_ = 0;
  int depth_ = 0;                           // of blocks
  bool may_recur_ = false;                  // the arm of a recursion, outside closures
  Made less_;                               // the fuel of a recursive call
  std::map<uint32_t, int64_t> call_costs_;  // of the closures bound in this body
  int names_ = 0;
};

}  // namespace tenon::compiler::fuzz
