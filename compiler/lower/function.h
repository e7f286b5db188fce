// Lowering of one function or lambda to one function of the machine. Its subjects are files of their own: where values
// are (locations.cpp), blocks (blocks.cpp), matches (matches.cpp), operators (operators.cpp), calls (calls.cpp),
// regions of targets (regions.cpp) and sizes (sizes.cpp).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/lower/decision_tree.h"
#include "compiler/lower/program.h"

namespace tenon::compiler {

// Where a value is: in one register, or, for a tuple, in those of its fields.
struct Location {
  runtime::Register reg = 0;
  std::optional<std::vector<Location>> fields = {};
};

class FunctionLowering {
 public:
  // The entry: its ports are tensors where their types are, its results the fields of a tuple.
  // Others take and return one word for each value, and are called inside the program, where types prove shapes.
  enum class Role : uint8_t { kEntry, kCallee, kClosure };

  FunctionLowering(ProgramLowering& program, const Function& function, std::string name, Role role)
      : program_(program), function_(&function), name_(std::move(name)), role_(role) {}

  // Adds the function at its index in the executable.
  Status run(uint32_t index);

 private:
  using Register = runtime::Register;
  using Registers = runtime::Registers;
  using Label = uint32_t;
  // What becomes of a block's result: it is the function's, or is moved to a location.
  struct Destination {
    bool returns = false;
    Location location = {};
  };

  FunctionLowering(FunctionLowering& parent, VarId self);
  Status finish(uint32_t index);

  Register fresh() { return next_++; }
  Location fresh_location(Type type);
  void emit(runtime::Operation operation, std::string layer = {});
  Label label();
  void bind(Label label);
  void jump(Label label) { emit(runtime::Jump{label}); }

  // Values.
  Expected<Location> locate(const Atom& atom);
  std::optional<Location> locate(VarId var);
  Expected<Register> word(const Atom& atom);
  Register word(const Location& location);
  Expected<Registers> words(const Atoms& atoms);
  Location field(const Location& location, uint32_t index);
  void flatten(const Location& location, Type type, Registers& words);
  Register load(const runtime::Tensor& tensor);
  void move(const Location& from, const Location& to, Type type);
  void define(VarId var, Location location) { locations_.insert_or_assign(var, std::move(location)); }

  // Blocks.
  Status block(const Block& block, const Destination& to);
  Status deliver(const Atom& result, Type type, const Destination& to);
  Status binding(const Binding& binding);
  Status branch(const If& branch, const Destination& to);
  Status match(const Case& match, const Destination& to);
  Status match_by_tree(const DecisionTree& tree, const Case& match, const Destination& to, Label end);
  Status match_by_rows(const Case& match, const Location& subject, const Destination& to, Label end);
  Status test(const MatchPattern& pattern, const Location& value, Label otherwise);
  Expected<bool> tail(const Binding& binding, const Destination& to);

  // Values of bindings.
  Status apply(const Binding& binding, const Apply& apply);
  bool scalar(const Binding& binding, const Apply& apply);
  bool grows(const Binding& binding);
  Status append(const Binding& binding, const Apply& concat);
  Status call(const Binding& binding, const Call& call);
  Status call_loops(const Binding& binding, const Call& call, const loop::Function& callee);
  Status call_region(const Binding& binding, const Call& call, Symbol name, const Function& callee);
  Expected<bool> call_group(const Binding& binding, const Call& call, Symbol name, const Function& callee);
  Status call_inline(const Binding& binding, const Call& call, const Function& callee);
  Status call_external(const Binding& binding, const Call& call, Symbol name);
  Status call_native(const NativeKernels::Entry& entry, const Atoms& args, const Binding& binding);
  Status call_steps(Symbol name, BoundKernels kernels, const Atoms& args, const Binding& binding);
  Status call_gpu(Symbol name, BoundKernels kernels, const Atoms& args, const Binding& binding);
  Expected<Registers> arguments(Symbol name, const Function& callee, const Atoms& args);
  Status lambda(const Binding& binding, const Lambda& lambda);
  Status cast(const Binding& binding, const Cast& cast);
  Registers results_of(const Binding& binding);
  Registers operands_of(const std::vector<kernels::Operand>& operands, const Registers& args);
  void report(const Binding& binding, std::string kernel, std::string knobs, std::string reason);
  void add_slots(Type type, std::vector<runtime::ArenaSlot>& slots) const;

  // Sizes.
  struct TensorPart {
    const TensorType* type = nullptr;
    Register reg = 0;
  };
  void tensors(const Location& location, Type type, std::vector<TensorPart>& parts);
  Register size(Symbol dim);
  runtime::Size program(Dim dim, Registers& sizes);
  Register value_of(Dim dim);
  bool solve(const std::vector<TensorPart>& parts, std::vector<Symbol>& open);
  void check(const TensorPart& part, const Registers& known, bool strict, std::string subject, std::string expected);
  void begin_sizes();

  // Ports of the entry.
  runtime::Port port(Type type, std::string name) const;
  Status returns(const Atom& result);
  void add_result_port(Type type, const Atom& field);
  Atoms result_fields() const;

  std::string origin(VarId var) const;
  std::string layer(VarId var) const;

  ProgramLowering& program_;
  const Function* function_;  // whose bindings are being lowered
  const std::string name_;
  const Role role_;
  FunctionLowering* parent_ = nullptr;  // of a lambda
  std::optional<VarId> self_;           // the variable of the lambda
  std::optional<Register> self_register_;
  Registers params_;                                      // hidden sizes behind the parameters
  Registers captures_;                                    // here
  Registers captured_;                                    // in the parent
  std::map<const Function*, std::vector<bool>> growing_;  // by variable: see compiler/passes/growth.h
  std::unordered_map<VarId, Location> locations_;         // of variables
  std::map<Symbol, Register> sizes_;                      // of dims
  runtime::Function code_;
  std::vector<uint32_t> labels_;  // instructions
  Register next_ = 0;
  int lambdas_ = 0;
};

// Whether the code of a function reads the values of its dims: for values that are computed of them, for casts, for
// callees with hidden dims, or for the checks at its beginning: of bounds, and of sizes that the dims do not determine,
// as n * m. Such a function has a frame of its own, in which its dims have their values.
bool needs_sizes(Context& context, const Module& module, const Function& function);

}  // namespace tenon::compiler
