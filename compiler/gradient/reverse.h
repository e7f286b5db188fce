// Reverse-mode differentiation of one function: its forward code, which keeps what is needed, followed by the code that
// computes the adjoints of its parameters from that of its result, binding by binding from the last to the first.
// (Griewank and Walther, "Evaluating Derivatives", 2nd edition, chapter 3.)
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "compiler/gradient/activity.h"
#include "compiler/gradient/tape.h"

namespace tenon::compiler::gradient {

// A function's forward and backward pass as functions of their own: forward(args) -> (result, tape), and
// backward(tape, adjoint of the result) -> the adjoints of the active parameters, in their order. The sizes in the type
// of the adjoints are `?` unless they are constants.
struct Passes {
  Symbol forward{}, backward{};
  TapeType tape;
};

// What a function's derivative needs of others.
class PassesOfCallees {
 public:
  virtual Expected<Passes> passes(Symbol function, const std::vector<bool>& active) = 0;

 protected:
  ~PassesOfCallees() = default;
};

// The types of the fields of a value of the defined type `type` with the constructor.
std::vector<Type> field_types(Context& context, const Module& module, Symbol constructor, Type type);

// Tables of a module that is differentiated.
struct Tables {
  explicit Tables(Context& context, const Module& module) : activity(context, module), dims(module) {}
  Activity activity;
  AdjointAdders adders;
  DimNames dims;
  std::vector<Diagnostic> problems;  // operators without a rule and other findings, of all functions
};

// The derivative of `function`, of `name`, by its active parameters.
class Reverse {
 public:
  Reverse(Context& context, Module& module, Tables& tables, PassesOfCallees& callees, Symbol name,
          const std::vector<bool>& active);

  // args -> (result, (adjoints)), for a result that is a scalar.
  Expected<Function> gradient();
  // The pair of functions, for which `passes` has the names and the type of the tape.
  Status passes(const Passes& passes, Function& forward, Function& backward);

 private:
  // A binding of the forward pass that has an adjoint.
  struct ForwardArm;
  struct Record {
    const Binding* binding = nullptr;  // of the function
    Atom value;                        // in the forward code
    std::optional<Passes> callee;      // of a call
    std::optional<Symbol> gradient;    // of a call, whose callee has a gradient of its own
    std::vector<bool> active;          // of a call: the arguments
    Atom tape;                         // of a call or a branch
    bool effects = false;              // on references: runs even if its result has no adjoint
    std::vector<ForwardArm> arms;      // of a branch
  };
  struct ForwardArm {
    std::vector<Record> records;
    const MatchPattern* pattern = nullptr;  // of the function; nullptr: of an if
    Atom result;                            // of the function
    Symbol constructor{};                   // of the tape
    VarId construct{};                      // which makes the tape
    std::set<VarId> vars;                   // which the forward code of the arm defines
    std::set<Symbol> dims;
  };
  using Adjoints = std::map<VarId, Adjoint>;  // by variable of the function

  bool active(const Atom& atom) const;
  bool has_effects(const Binding& binding) const;
  Type type(VarId var) const { return from_.type(var); }
  Atom renamed(const Atom& atom) const;
  void rename(Atom& atom) const { atom = renamed(atom); }
  VarId declare(VarId old);
  void at(VarId old) { builder_.at(from_.info(old).span); }

  // --- The forward pass.
  Status forward(const Block& block, std::vector<Record>& records);
  Status copy(const Binding& binding);
  Expected<Block> copy(const Block& block);
  Status forward_call(const Binding& binding, Record& record);
  Status forward_branch(const Binding& binding, Record& record);
  Expected<Block> forward_arm(const Block& block, ForwardArm& arm);

  // --- The backward pass.
  Status backward(const std::vector<Record>& records, Adjoints& adjoints);
  Status apply(const Record& record, const Adjoint& adjoint, Adjoints& adjoints);
  Status call(const Record& record, const Adjoint& adjoint, Adjoints& adjoints);
  Status own_gradient(const Record& record, const Adjoint& adjoint, Adjoints& adjoints);
  Status construct(const Record& record, const Adjoint& adjoint, Adjoints& adjoints);
  Status branch(const Record& record, const Adjoint& adjoint, Adjoints& adjoints);
  Status accumulate(const Atom& atom, const Adjoint& adjoint, Adjoints& adjoints);
  Expected<Adjoint> pattern_adjoint(const MatchPattern& pattern, Type type, Adjoints& adjoints);
  Expected<Atoms> param_adjoints(Adjoints& adjoints);
  void unsupported(VarId var, std::string what, std::string help);
  void set_fields(Block& block);

  Context& context_;
  Module& module_;
  Tables& tables_;
  PassesOfCallees& callees_;
  Symbol name_;
  const Function from_;  // a copy: the module gets more functions meanwhile
  std::vector<bool> wrt_;
  std::vector<bool> active_;  // by variable
  Function out_;
  Builder builder_;
  AdjointBuilder adjoints_;
  std::map<VarId, Atom> renamed_;
  std::map<VarId, SavedFields> fields_;  // of the tapes, by the variable that is bound to the tape
};

}  // namespace tenon::compiler::gradient
