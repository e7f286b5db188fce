#include "compiler/lower/function.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "compiler/ir/code.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/sizes.h"
#include "compiler/lower/memory.h"
#include "compiler/lower/overlap.h"
#include "compiler/lower/registers.h"
#include "compiler/passes/growth.h"
#include "compiler/passes/memory.h"
#include "runtime/executable/liveness.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::Register;
using runtime::Registers;

// The types of the registers of a value: a tuple has those of its fields.
void add_leaves(Type type, std::vector<Type>& leaves) {
  if (!type.tuple()) return leaves.push_back(type);
  for (const Type field : type.parts()) add_leaves(field, leaves);
}

}  // namespace

FunctionLowering::FunctionLowering(FunctionLowering& parent, VarId self)
    : program_(parent.program_),
      function_(parent.function_),
      name_(fmt::format("{}.lambda{}", parent.name_, parent.lambdas_++)),
      role_(Role::kClosure),
      parent_(&parent),
      self_(self) {}

Status FunctionLowering::run(uint32_t index) {
  Context& context = program_.context;
  if (role_ == Role::kEntry) {
    for (const VarId param : function_->params) program_.add_types(function_->type(param));
  }
  for (const VarId param : function_->params) {
    const Register reg = fresh();
    define(param, {reg});
    params_.push_back(reg);
    const std::string name(context.name(function_->info(param).name));
    code_.params.push_back(role_ == Role::kEntry ? port(function_->type(param), name)
                                                 : runtime::Port{.name = fmt::format("{}.{}", name, reg),
                                                                 .type = context.str(function_->type(param))});
  }
  if (role_ == Role::kCallee) {
    for (const Symbol dim : hidden_dims(context, *function_)) {
      const Register reg = fresh();
      sizes_.emplace(dim, reg);
      params_.push_back(reg);
      code_.params.push_back({.name = fmt::format("{}.{}", context.name(dim), reg),
                              .dtype = {},
                              .shape = {},
                              .symbols = {},
                              .type = "size"});
    }
  }
  begin_sizes();
  TENON_TRY(block(function_->body, {.returns = true}));
  return finish(index);
}

Status FunctionLowering::finish(uint32_t index) {
  for (runtime::Instruction& i : code_.code) {
    runtime::for_each_target(i.operation, [&](uint32_t& target) { target = labels_[target]; });
  }
  code_.name = name_;
  code_.registers = next_;
  overlap_devices(code_, ProgramLowering::kGpuCode, program_.accelerators);
  code_.captures = static_cast<uint32_t>(captures_.size());
  code_.self = self_register_.has_value();
  if (role_ != Role::kEntry) {
    if (code_.results.empty())
      code_.results.push_back({.name = "result", .dtype = {}, .shape = {}, .symbols = {}, .type = "value"});
    // The registers that a call fills come first.
    std::vector<Register> order(next_, next_);
    Register filled = 0;
    for (const auto* registers : {&params_, &captures_}) {
      for (const Register r : *registers) order[r] = filled++;
    }
    if (self_register_) order[*self_register_] = filled++;
    for (Register& r : order) {
      if (r == next_) r = filled++;
    }
    for (runtime::Instruction& i : code_.code) {
      runtime::rename_registers(i.operation, [&](Register r) { return order[r]; });
    }
    allocate_registers(code_);
  }
  insert_kills(code_);
  program_.out.functions[index] = std::move(code_);
  return {};
}

void FunctionLowering::emit(runtime::Operation operation, std::string layer) {
  code_.code.push_back({std::move(operation), std::move(layer)});
}
FunctionLowering::Label FunctionLowering::label() {
  labels_.push_back(0);
  return static_cast<Label>(labels_.size() - 1);
}
void FunctionLowering::bind(Label label) { labels_[label] = static_cast<uint32_t>(code_.code.size()); }

std::string FunctionLowering::origin(VarId var) const { return program_.module.span(function_->info(var).span).str(); }
std::string FunctionLowering::layer(VarId var) const { return program_.module.span(function_->info(var).span).node; }

// Values.

Location FunctionLowering::fresh_location(Type type) {
  const TupleType* tuple = type.tuple();
  if (!tuple) return {fresh()};
  Location location{.reg = 0, .fields = std::vector<Location>()};
  for (const Type field : tuple->fields) location.fields->push_back(fresh_location(field));
  return location;
}

// A variable of the function around a lambda is captured.
std::optional<Location> FunctionLowering::locate(VarId var) {
  const auto found = locations_.find(var);
  if (found != locations_.end()) return found->second;
  if (self_ == var) {
    if (!self_register_) self_register_ = fresh();
    return Location{*self_register_};
  }
  if (!parent_) return std::nullopt;
  const auto outer = parent_->locate(var);
  if (!outer) return std::nullopt;
  captured_.push_back(parent_->word(*outer));
  captures_.push_back(fresh());
  define(var, {captures_.back()});
  return Location{captures_.back()};
}

Expected<Location> FunctionLowering::locate(const Atom& atom) {
  if (const auto* var = std::get_if<VarId>(&atom)) {
    const auto found = locate(*var);
    if (!found) return error("a variable has no value", origin(*var), {}, Fault::kInternal);
    return *found;
  }
  // A constant is loaded at each use: the instruction's time is negligible beside a kernel's.
  if (const auto* constant = std::get_if<ConstId>(&atom)) return Location{load(program_.module.constant(*constant))};
  TENON_TRY_ASSIGN(function, program_.value(std::get<Symbol>(atom)));
  const Register to = fresh();
  emit(runtime::MakeClosure{to, *function, {}});
  return Location{to};
}

Register FunctionLowering::load(const runtime::Tensor& tensor) {
  const Register to = fresh();
  emit(runtime::LoadConstant{to, program_.constant(tensor)});
  return to;
}

Register FunctionLowering::word(const Location& location) {
  if (!location.fields) return location.reg;
  Registers fields;
  for (const Location& field : *location.fields) fields.push_back(word(field));
  const Register to = fresh();
  emit(runtime::Construct{to, runtime::kTupleType, 0, std::move(fields)});
  return to;
}
Expected<Register> FunctionLowering::word(const Atom& atom) {
  TENON_TRY_ASSIGN(found, locate(atom));
  return word(*found);
}
Expected<Registers> FunctionLowering::words(const Atoms& atoms) {
  Registers all;
  for (const Atom& atom : atoms) {
    TENON_TRY_ASSIGN(one, word(atom));
    all.push_back(*one);
  }
  return all;
}

Location FunctionLowering::field(const Location& location, uint32_t index) {
  if (location.fields) return (*location.fields)[index];
  const Register to = fresh();
  emit(runtime::ReadField{to, location.reg, index});
  return {to};
}

// Adds the registers of all fields that are no tuples.
void FunctionLowering::flatten(const Location& location, Type type, Registers& words) {
  const TupleType* tuple = type.tuple();
  if (!tuple) return words.push_back(location.reg);
  for (uint32_t i = 0; i < tuple->fields.size(); ++i) flatten(field(location, i), tuple->fields[i], words);
}

void FunctionLowering::move(const Location& from, const Location& to, Type type) {
  if (!to.fields) return emit(runtime::Move{to.reg, word(from)});
  for (uint32_t i = 0; i < to.fields->size(); ++i) move(field(from, i), (*to.fields)[i], type.tuple()->fields[i]);
}

// Blocks.

Status FunctionLowering::block(const Block& block, const Destination& to) {
  for (const Binding& binding : block.bindings) {
    if (&binding == &block.bindings.back() && block.result == Atom{binding.var}) {
      TENON_TRY_ASSIGN(done, tail(binding, to));
      if (*done) return {};
    }
    TENON_TRY(this->binding(binding));
  }
  const auto* var = std::get_if<VarId>(&block.result);
  return deliver(block.result, var ? function_->type(*var) : Type(), to);
}

Status FunctionLowering::deliver(const Atom& result, Type type, const Destination& to) {
  if (to.returns) return returns(result);
  TENON_TRY_ASSIGN(from, locate(result));
  move(*from, to.location, type);
  return {};
}

Status FunctionLowering::returns(const Atom& result) {
  TENON_TRY_ASSIGN(from, locate(result));
  if (role_ != Role::kEntry) {
    emit(runtime::Return{{word(*from)}});
    return {};
  }
  Registers values;
  const TupleType* tuple = function_->result.tuple();
  const bool first = code_.results.empty();
  const Atoms fields = result_fields();
  if (!tuple) {
    values.push_back(word(*from));
    if (first) add_result_port(function_->result, fields.front());
  }
  for (uint32_t i = 0; tuple && i < tuple->fields.size(); ++i) {
    values.push_back(word(field(*from, i)));
    if (first) add_result_port(tuple->fields[i], i < fields.size() ? fields[i] : result);
  }
  emit(runtime::Return{std::move(values)});
  return {};
}

// The last binding of a block whose value is the block's: control flow hands the destination on, and a call of the
// function's result ends the frame. Returns whether the block is done.
Expected<bool> FunctionLowering::tail(const Binding& binding, const Destination& to) {
  const Type type = function_->type(binding.var);
  if (const auto* branch = std::get_if<If>(&binding.value)) {
    TENON_TRY(this->branch(*branch, type, to));
    return true;
  }
  if (const auto* match = std::get_if<Case>(&binding.value)) {
    TENON_TRY(this->match(*match, type, to));
    return true;
  }
  const auto* call = std::get_if<Call>(&binding.value);
  if (!call || !to.returns || role_ == Role::kEntry) return false;
  if (const auto* symbol = std::get_if<Symbol>(&call->callee)) {
    const Function* callee = program_.module.function(*symbol);
    if (!callee || !callee->target.empty() || !callee->composite.empty() || program_.is_unit(*symbol) ||
        program_.inlines(*symbol, *callee))
      return false;
    TENON_TRY_ASSIGN(args, arguments(*symbol, *callee, call->args));
    emit(runtime::TailCall{program_.callee(*symbol), std::move(*args)}, layer(binding.var));
    return true;
  }
  TENON_TRY_ASSIGN(closure, word(call->callee));
  TENON_TRY_ASSIGN(args, words(call->args));
  emit(runtime::TailCallClosure{*closure, std::move(*args)}, layer(binding.var));
  return true;
}

Status FunctionLowering::branch(const If& branch, Type type, const Destination& to) {
  TENON_TRY_ASSIGN(condition, word(branch.condition));
  const Label otherwise = label(), end = label();
  emit(runtime::Branch{*condition, otherwise});
  TENON_TRY(block(branch.arms[0], to));
  if (!to.returns) jump(end);
  bind(otherwise);
  TENON_TRY(block(branch.arms[1], to));
  bind(end);
  (void)type;
  return {};
}

Status FunctionLowering::match(const Case& match, Type type, const Destination& to) {
  const Label end = label();
  constexpr size_t kNodesPerTest = 8;
  const auto tree = decide(program_.module, match.arms, kNodesPerTest * count_tests(match.arms) + 8);
  if (tree) {
    TENON_TRY(match_by_tree(*tree, match, type, to, end));
  } else {
    TENON_TRY_ASSIGN(subject, locate(match.subject));
    TENON_TRY(match_by_rows(match, *subject, type, to, end));
  }
  bind(end);
  return {};
}

Status FunctionLowering::match_by_tree(const DecisionTree& tree, const Case& match, Type type, const Destination& to,
                                       Label end) {
  struct ArmCode {
    size_t leaves = 0;
    std::optional<Label> label;  // of an arm with several leaves
  };
  std::vector<ArmCode> arms(match.arms.size());
  for (const auto& node : tree.nodes) {
    if (const auto* leaf = std::get_if<DecisionTree::Leaf>(&node)) ++arms[leaf->arm].leaves;
  }
  TENON_TRY_ASSIGN(subject, locate(match.subject));
  std::vector<std::optional<Location>> parts(tree.parts.size());
  parts[0] = *subject;
  // Parts that are read on the way to a node are known below it.
  std::vector<uint32_t> read;
  const auto part = [&](auto& self, uint32_t index) -> Location {
    if (!parts[index]) {
      parts[index] = field(self(self, tree.parts[index].parent), tree.parts[index].field);
      read.push_back(index);
    }
    return *parts[index];
  };
  struct Open {
    uint32_t node;
    std::optional<Label> label;
    size_t known;  // entries of `read` that hold here
  };
  const auto emit_leaf = [&](const DecisionTree::Leaf& leaf) -> Status {
    ArmCode& arm = arms[leaf.arm];
    if (arm.leaves == 1) {
      for (const auto& [var, index] : leaf.variables) define(var, part(part, index));
      TENON_TRY(block(match.arms[leaf.arm].block, to));
      if (!to.returns) jump(end);
      return {};
    }
    const bool is_new = !arm.label;
    if (is_new) arm.label = label();
    // The pattern binds its variables in one order, so the leaves of an arm agree on them.
    for (const auto& [var, index] : leaf.variables) {
      const Location from = part(part, index);
      if (is_new) define(var, {fresh()});
      emit(runtime::Move{locations_.at(var).reg, word(from)});
    }
    jump(*arm.label);
    return {};
  };
  std::vector<Open> open{{0, std::nullopt, 0}};
  while (!open.empty()) {
    const Open next = open.back();
    open.pop_back();
    while (read.size() > next.known) {
      parts[read.back()].reset();
      read.pop_back();
    }
    if (next.label) bind(*next.label);
    if (const auto* leaf = std::get_if<DecisionTree::Leaf>(&tree.nodes[next.node])) {
      TENON_TRY(emit_leaf(*leaf));
      continue;
    }
    const auto& test = std::get<DecisionTree::Test>(tree.nodes[next.node]);
    const Register value = word(part(part, test.part));
    if (test.children.size() == 1) {
      open.push_back({test.children[0], std::nullopt, read.size()});
      continue;
    }
    runtime::Switch select{value, program_.type(test.type), {}};
    for (size_t i = 0; i < test.children.size(); ++i) select.targets.push_back(label());
    for (size_t i = test.children.size(); i-- > 0;) open.push_back({test.children[i], select.targets[i], read.size()});
    emit(std::move(select));
  }
  for (size_t i = 0; i < arms.size(); ++i) {
    if (!arms[i].label) continue;
    bind(*arms[i].label);
    TENON_TRY(block(match.arms[i].block, to));
    if (!to.returns) jump(end);
  }
  (void)type;
  return {};
}

// One arm after another, each of which tests its own pattern: the code is as long as the patterns.
Status FunctionLowering::match_by_rows(const Case& match, const Location& subject, Type type, const Destination& to,
                                       Label end) {
  for (const Arm& arm : match.arms) {
    const Label otherwise = label();
    TENON_TRY(test(arm.pattern, subject, otherwise));
    TENON_TRY(block(arm.block, to));
    if (!to.returns) jump(end);
    bind(otherwise);
  }
  // The arms match every value, which the last one proves by an error.
  const Register value = word(subject);
  emit(runtime::ReadField{fresh(), value, UINT32_MAX});
  emit(runtime::Jump{label()});
  bind(static_cast<Label>(labels_.size() - 1));
  labels_.back() = static_cast<uint32_t>(code_.code.size() - 1);
  (void)type;
  return {};
}

Status FunctionLowering::test(const MatchPattern& pattern, const Location& value, Label otherwise) {
  if (const auto* bind = std::get_if<BindPattern>(&pattern.form)) {
    define(bind->var, value);
  } else if (const auto* tuple = std::get_if<TuplePattern>(&pattern.form)) {
    for (uint32_t i = 0; i < tuple->fields.size(); ++i) TENON_TRY(test(tuple->fields[i], field(value, i), otherwise));
  } else if (const auto* construct = std::get_if<ConstructPattern>(&pattern.form)) {
    const auto decl = program_.module.constructor(construct->constructor);
    const Label matches = label();
    runtime::Switch select{word(value), program_.type(decl->name), {}};
    for (size_t i = 0; i < decl->adt->constructors.size(); ++i)
      select.targets.push_back(i == decl->index ? matches : otherwise);
    emit(std::move(select));
    this->bind(matches);
    for (uint32_t i = 0; i < construct->fields.size(); ++i)
      TENON_TRY(test(construct->fields[i], field(value, i), otherwise));
  }
  return {};
}

Status FunctionLowering::binding(const Binding& binding) {
  const Type type = function_->type(binding.var);
  struct Visitor {
    FunctionLowering& self;
    const Binding& binding;
    Type type;

    Status operator()(const Apply& x) const { return self.apply(binding, x); }
    Status operator()(const Call& x) const { return self.call(binding, x); }
    Status operator()(const Gradient&) const {
      return error("a gradient must be expanded before it is compiled",
                   self.program_.module.span(self.function_->info(binding.var).span).str(),
                   "run the pass differentiate first");
    }
    Status operator()(const Tuple& x) const {
      Location tuple{.reg = 0, .fields = std::vector<Location>()};
      for (const Atom& field : x.fields) {
        TENON_TRY_ASSIGN(location, self.locate(field));
        tuple.fields->push_back(std::move(*location));
      }
      self.define(binding.var, std::move(tuple));
      return {};
    }
    Status operator()(const DimValue& x) const {
      self.define(binding.var, {self.value_of(x.dim)});
      return {};
    }
    Status operator()(const Project& x) const {
      TENON_TRY_ASSIGN(tuple, self.locate(x.tuple));
      self.define(binding.var, self.field(*tuple, x.index));
      return {};
    }
    Status operator()(const Construct& x) const {
      TENON_TRY_ASSIGN(fields, self.words(x.fields));
      const auto decl = self.program_.module.constructor(x.constructor);
      self.emit(runtime::Construct{result(), self.program_.type(decl->name), static_cast<uint32_t>(decl->index),
                                   std::move(*fields)});
      return {};
    }
    Status operator()(const Lambda& x) const { return self.lambda(binding, x); }
    Status operator()(const If& x) const {
      const Location to = self.fresh_location(type);
      TENON_TRY(self.branch(x, type, {.returns = false, .location = to}));
      self.define(binding.var, to);
      return {};
    }
    Status operator()(const Case& x) const {
      const Location to = self.fresh_location(type);
      TENON_TRY(self.match(x, type, {.returns = false, .location = to}));
      self.define(binding.var, to);
      return {};
    }
    Status operator()(const Cast& x) const { return self.cast(binding, x); }
    Status operator()(const MakeReference& x) const {
      TENON_TRY_ASSIGN(value, self.word(x.value));
      self.emit(runtime::MakeReference{result(), *value});
      return {};
    }
    Status operator()(const ReadReference& x) const {
      TENON_TRY_ASSIGN(reference, self.word(x.reference));
      self.emit(runtime::ReadReference{result(), *reference});
      return {};
    }
    Status operator()(const WriteReference& x) const {
      TENON_TRY_ASSIGN(reference, self.word(x.reference));
      TENON_TRY_ASSIGN(value, self.word(x.value));
      self.emit(runtime::WriteReference{*reference, *value});
      self.define(binding.var, {.reg = 0, .fields = std::vector<Location>()});
      return {};
    }
    Register result() const {
      const Register to = self.fresh();
      self.define(binding.var, {to});
      return to;
    }
  };
  return std::visit(Visitor{*this, binding, type}, binding.value);
}

Status FunctionLowering::lambda(const Binding& binding, const Lambda& lambda) {
  FunctionLowering inner(*this, binding.var);
  for (const VarId param : lambda.params) {
    const Register reg = inner.fresh();
    inner.define(param, {reg});
    inner.params_.push_back(reg);
    inner.code_.params.push_back({.name = fmt::format("{}.{}", program_.context.name(function_->info(param).name), reg),
                                  .dtype = {},
                                  .shape = {},
                                  .symbols = {},
                                  .type = program_.context.str(function_->type(param))});
  }
  TENON_TRY(inner.block(lambda.body[0], {.returns = true}));
  const uint32_t index = program_.add_function();
  const Registers captured = inner.captured_;
  TENON_TRY(inner.finish(index));
  const Register to = fresh();
  emit(runtime::MakeClosure{to, index, captured}, layer(binding.var));
  define(binding.var, {to});
  return {};
}

// Operators and calls.

// New registers for the results of the call that computes the binding's value.
Registers FunctionLowering::results_of(const Binding& binding) {
  const Type type = function_->type(binding.var);
  const Location location = fresh_location(type);
  Registers results;
  flatten(location, type, results);
  define(binding.var, location);
  return results;
}

// The slots that place_results() gives offsets: as large as the results may be, 0 where that is not known.
void FunctionLowering::add_slots(Type type, std::vector<runtime::ArenaSlot>& slots) const {
  if (const TupleType* tuple = type.tuple()) {
    for (const Type field : tuple->fields) add_slots(field, slots);
    return;
  }
  const TensorType* tensor = type.tensor();
  slots.push_back({0, tensor ? static_cast<uint64_t>(most_bytes(*tensor, function_->bounds)) : 0});
}

void FunctionLowering::report(const Binding& binding, std::string kernel, std::string knobs, std::string reason) {
  if (!program_.options.placements) return;
  const auto* apply = std::get_if<Apply>(&binding.value);
  std::string op =
      apply ? apply->op->name
            : fmt::format("@{}", program_.context.name(std::get<Symbol>(std::get<Call>(binding.value).callee)));
  program_.options.placements->push_back(
      {function_->info(binding.var).span, std::move(op), std::move(kernel), std::move(knobs), std::move(reason)});
}

// The registers of a kernel's operands: arguments by index, and constants, which are loaded here.
Registers FunctionLowering::operands_of(const std::vector<kernels::Operand>& operands, const Registers& args) {
  Registers registers;
  for (const kernels::Operand& operand : operands) {
    if (const auto* argument = std::get_if<size_t>(&operand)) registers.push_back(args[*argument]);
    else registers.push_back(load(std::get<runtime::Tensor>(operand)));
  }
  return registers;
}

// Adds one instruction for the kernel; its operands are the group's arguments and constants.
Status FunctionLowering::call_native(const NativeKernels::Entry& entry, const Atoms& args, const Binding& binding) {
  TENON_TRY_ASSIGN(inputs, words(args));
  const Registers operands = operands_of(entry.operands, *inputs);
  const Registers results = results_of(binding);
  runtime::CallNative call{ProgramLowering::kCpuCode, entry.kernel, operands, results};
  add_slots(function_->type(binding.var), call.slots);
  emit(std::move(call), layer(binding.var));
  return {};
}

// An operator on scalars that is one instruction. Returns whether it is.
bool FunctionLowering::scalar(const Binding& binding, const Apply& apply) {
  if (!apply.op->scalar) return false;
  const runtime::ScalarOp op = *apply.op->scalar;
  const auto dtype_of = [&](const Atom& atom) -> std::optional<DType> {
    if (const auto* constant = std::get_if<ConstId>(&atom)) {
      const runtime::Tensor& tensor = program_.module.constant(*constant);
      return tensor.shape().empty() ? std::optional(tensor.dtype()) : std::nullopt;
    }
    const auto* var = std::get_if<VarId>(&atom);
    const TensorType* type = var ? function_->type(*var).tensor() : nullptr;
    return type && type->dims.empty() ? std::optional(type->dtype) : std::nullopt;
  };
  const auto dtype = dtype_of(apply.args[0]);
  const bool is_unary = apply.args.size() == 1;
  if (!dtype || !runtime::is_defined(op, *dtype) || (!is_unary && dtype_of(apply.args[1]) != dtype)) return false;
  const auto a = word(apply.args[0]);
  if (!a) return false;
  Expected<Register> b = 0;
  if (is_unary) {
    const bool kTrue[] = {true};
    b = load(runtime::Tensor::of<bool>({}, kTrue));
  } else {
    b = word(apply.args[1]);
  }
  if (!b) return false;
  const Register to = fresh();
  emit(runtime::ScalarCompute{op, *dtype, to, *a, *b}, layer(binding.var));
  define(binding.var, {to});
  return true;
}

// Whether the binding is a concatenation for the machine, which writes after its first operand where it can.
bool FunctionLowering::grows(const Binding& binding) {
  const auto [found, is_new] = growing_.try_emplace(function_);
  if (is_new) found->second = growing_concats(*function_, role_ == Role::kEntry || !function_->composite.empty());
  return found->second[index(binding.var)];
}

Status FunctionLowering::append(const Binding& binding, const Apply& concat) {
  report(binding, {}, {}, "it grows its first operand in place");
  TENON_TRY_ASSIGN(args, words(concat.args));
  const TensorType& type = *function_->type(binding.var).tensor();
  const int64_t axis = int_attr(concat.attrs, "axis"), rank = static_cast<int64_t>(type.dims.size());
  emit(runtime::Append{.to = results_of(binding)[0],
                       .first = (*args)[0],
                       .second = (*args)[1],
                       .axis = static_cast<uint32_t>(axis < 0 ? axis + rank : axis),
                       .capacity = static_cast<uint64_t>(most_bytes(type, function_->bounds))},
       layer(binding.var));
  return {};
}

Status FunctionLowering::apply(const Binding& binding, const Apply& apply) {
  if (scalar(binding, apply)) return {};
  if (grows(binding)) return append(binding, apply);
  std::string reason = "native kernels are off";
  if (program_.options.cpu.native) {
    auto native = program_.natives.operator_kernel(*function_, binding);
    if (native) {
      TENON_TRY(call_native(*native, native->args, binding));
      report(binding, native->name, native->knobs, {});
      return {};
    }
    reason = native.error().what;
  }
  report(binding, {}, {}, reason);
  if (program_.options.placements && program_.options.cpu.native)
    program_.options.placements->back().interpreted = apply.op->elements != Elements::kSame;
  TENON_TRY_ASSIGN(args, words(apply.args));
  if (!apply.op->reference) {
    return error(fmt::format("{} has no kernel on the CPU", apply.op->name), origin(binding.var));
  }
  runtime::CallKernel kernel{apply.op->name, apply.attrs, std::move(*args), {}};
  for (const auto& [name, attr] : apply.computed) {
    const size_t before = kernel.args.size();
    if (auto* dims = std::get_if<Dims>(&attr)) {
      for (const Dim dim : *dims) kernel.args.push_back(value_of(dim));
    } else {
      TENON_TRY_ASSIGN(value, word(std::get<Atom>(attr)));
      kernel.args.push_back(*value);
    }
    kernel.computed.push_back({name, computed_kind(apply, name), static_cast<uint32_t>(kernel.args.size() - before)});
  }
  kernel.results = results_of(binding);
  emit(std::move(kernel), layer(binding.var));
  return {};
}

Status FunctionLowering::call(const Binding& binding, const Call& call) {
  const auto* symbol = std::get_if<Symbol>(&call.callee);
  if (!symbol) {
    TENON_TRY_ASSIGN(closure, word(call.callee));
    TENON_TRY_ASSIGN(args, words(call.args));
    const Register to = fresh();
    emit(runtime::CallClosure{*closure, std::move(*args), {to}}, layer(binding.var));
    define(binding.var, {to});
    return {};
  }
  const loop::Function* loops = program_.module.loop_function(*symbol);
  const Library* library = program_.module.library(*symbol);
  if ((loops || library) && program_.options.cpu.external) return call_external(binding, call, *symbol);
  // The runtime has no evaluator, so a loop function or a call of a library function requires native code.
  if ((loops || library) && !program_.options.cpu.native) {
    return error(fmt::format("@{} is a {}, and native kernels are off", program_.context.name(*symbol),
                             loops ? "loop function" : "library's function"),
                 origin(binding.var), "it has no reference kernel; `tenon run` of the .tn file interprets it");
  }
  if (loops) return call_loops(binding, call, *loops);
  if (library) {
    TENON_TRY_ASSIGN(made, calling_function(program_.context, *symbol, *library));
    return call_loops(binding, call, *made);
  }
  const Function* callee = program_.module.function(*symbol);
  if (!callee) return error("the callee is not a function of the module", origin(binding.var), {}, Fault::kInternal);
  if (!callee->target.empty()) return call_region(binding, call, *symbol, *callee);
  if (!callee->composite.empty()) {
    TENON_TRY_ASSIGN(is_one_kernel, call_group(binding, call, *symbol, *callee));
    if (*is_one_kernel) return {};
  }
  const bool composite = !callee->composite.empty() && !needs_sizes(program_.context, program_.module, *callee);
  if (composite || program_.inlines(*symbol, *callee)) return call_inline(binding, call, *callee);
  TENON_TRY_ASSIGN(args, arguments(*symbol, *callee, call.args));
  const Register to = fresh();
  emit(runtime::CallFunction{program_.callee(*symbol), std::move(*args), {to}}, layer(binding.var));
  define(binding.var, {to});
  return {};
}

// The words of the arguments and of the hidden sizes.
Expected<Registers> FunctionLowering::arguments(Symbol, const Function& callee, const Atoms& args) {
  TENON_TRY_ASSIGN(registers, words(args));
  const auto hidden = hidden_dims(program_.context, callee);
  if (hidden.empty()) return registers;
  std::vector<std::pair<Dim, Dim>> pairs;
  for (size_t i = 0; i < std::min(args.size(), callee.params.size()); ++i) {
    const auto* var = std::get_if<VarId>(&args[i]);
    if (var) pair_dims(callee.type(callee.params[i]), function_->type(*var), pairs);
  }
  for (const Symbol dim : hidden) {
    runtime::ComputeSize compute{.to = fresh(), .sizes = {}, .value = {}};
    for (const auto& [wanted, found] : pairs) {
      const auto linear = program_.context.linear_in(dim, wanted);
      const auto factor = linear ? linear->first.constant() : std::nullopt;
      const auto offset = linear ? linear->second.constant() : std::nullopt;
      if (!factor || *factor == 0 || !offset) continue;
      const Dim value = program_.context.floor_divide(program_.context.subtract(found, program_.context.dim(*offset)),
                                                      program_.context.dim(*factor));
      compute.value = program(value, compute.sizes);
      break;
    }
    registers->push_back(compute.to);
    emit(std::move(compute));
  }
  return registers;
}

Status FunctionLowering::call_external(const Binding& binding, const Call& call, Symbol name) {
  TENON_TRY_ASSIGN(args, words(call.args));
  const Registers results = results_of(binding);
  emit(runtime::CallKernel{fmt::format("@{}", program_.context.name(name)), {}, *args, results}, layer(binding.var));
  return {};
}

Status FunctionLowering::call_loops(const Binding& binding, const Call& call, const loop::Function& callee) {
  const std::string name(program_.context.name(callee.name));
  const auto native = program_.natives.loops(callee);
  if (!native) {
    return error(fmt::format("@{} has no native kernel: {}{}{}", name, native.error().where,
                             native.error().where.empty() ? "" : ": ", native.error().what),
                 origin(binding.var), native.error().help);
  }
  TENON_TRY(call_native(*native, call.args, binding));
  report(binding, native->name, {}, {});
  return {};
}

Status FunctionLowering::call_region(const Binding& binding, const Call& call, Symbol name, const Function& callee) {
  const auto target = std::ranges::find(program_.targets, callee.target, &Target::name);
  if (target == program_.targets.end()) {
    return error(
        fmt::format("@{} is for target \"{}\", which is not given", program_.context.name(name), callee.target),
        origin(binding.var));
  }
  TENON_TRY_ASSIGN(kernel, target->generate(program_.context, program_.module, name, callee));
  program_.made_kernel(callee);
  if (auto* bound = std::get_if<BoundKernels>(&*kernel)) {
    program_.natives.add_scheduled(*bound);
    if (!program_.options.cpu.native)
      return error(fmt::format("target {} requires native kernels, which are off", target->name), origin(binding.var));
    return bound->emulated ? call_steps(name, std::move(*bound), call.args, binding)
                           : call_gpu(name, std::move(*bound), call.args, binding);
  }
  TENON_TRY_ASSIGN(args, words(call.args));
  const Registers results = results_of(binding);
  if (const auto* library = std::get_if<LibraryCall>(&*kernel)) {
    emit(runtime::CallKernel{library->kernel, library->attrs, operands_of(library->operands, *args), results},
         std::string(program_.context.name(name)));
    // What follows is generated for these types, and the library is foreign code.
    std::vector<Type> types;
    add_leaves(function_->type(binding.var), types);
    for (size_t i = 0; i < results.size(); ++i) {
      check({types[i].tensor(), results[i]}, {}, false, fmt::format("result {} of the kernel {}", i, library->kernel),
            program_.context.str(types[i]));
    }
    return {};
  }
  auto& program = std::get<runtime::AcceleratorProgram>(*kernel);
  if (program.inputs.size() != args->size() || program.outputs.size() != results.size()) {
    return error(fmt::format("target {} made a program of {} inputs and {} outputs for a region of {} and {}",
                             target->name, program.inputs.size(), program.outputs.size(), args->size(), results.size()),
                 origin(binding.var), {}, Fault::kInternal);
  }
  program.device = target->name;
  const auto id = static_cast<uint32_t>(program_.out.programs.size());
  program_.accelerators.push_back(spec::hash(program.config));
  program_.out.programs.push_back(std::move(program));
  emit(runtime::CallProgram{id, *args, results}, std::string(program_.context.name(name)));
  return {};
}

// The steps of a region on an emulated GPU: native kernels, one after another.
Status FunctionLowering::call_steps(Symbol name, BoundKernels kernels, const Atoms& args, const Binding& binding) {
  TENON_TRY_ASSIGN(values, words(args));
  for (BoundStep& step : kernels.steps) {
    runtime::CallNative call{ProgramLowering::kCpuCode, 0, operands_of(step.operands, *values), {}};
    for (const loop::BufferId result : step.function.results) {
      const loop::Buffer& buffer = step.function.buffer(result);
      TensorType type{{}, buffer.dtype};
      for (const loop::BufferAxis& axis : buffer.axes) type.dims.push_back(axis.extent);
      call.results.push_back(fresh());
      call.slots.push_back({0, static_cast<uint64_t>(most_bytes(type, function_->bounds))});
    }
    values->insert(values->end(), call.results.begin(), call.results.end());
    call.kernel = program_.natives.step(program_.context.name(name), std::move(step));
    emit(std::move(call), layer(binding.var));
  }
  const Registers results = results_of(binding);
  for (size_t i = 0; i < results.size(); ++i) emit(runtime::Move{results[i], (*values)[kernels.results[i]]});
  return {};
}

// A region on a GPU is one kernel of several launches, so that the values between them stay there.
Status FunctionLowering::call_gpu(Symbol name, BoundKernels kernels, const Atoms& args, const Binding& binding) {
  TENON_TRY_ASSIGN(inputs, words(args));
  const Registers results = results_of(binding);
  GpuRegion region(program_.context.name(name), inputs->size(), kernels);
  Registers operands;
  for (const auto& operand : region.operands()) {
    const auto* argument = std::get_if<size_t>(&operand);
    operands.push_back(argument ? (*inputs)[*argument] : load(std::get<runtime::Tensor>(operand)));
  }
  runtime::CallNative call{ProgramLowering::kGpuCode, 0, std::move(operands), {}};
  std::vector<runtime::ArenaSlot> slots;
  add_slots(function_->type(binding.var), slots);
  std::vector<runtime::Move> moves;
  std::map<size_t, Register> registers;  // of the values that the region computes
  for (size_t i = 0; i < results.size(); ++i) {
    const size_t value = kernels.results[i];
    if (value >= inputs->size() && registers.emplace(value, results[i]).second) {
      call.results.push_back(results[i]);
      call.slots.push_back(slots[i]);
    } else {
      moves.push_back({results[i], value < inputs->size() ? (*inputs)[value] : registers.at(value)});
    }
  }
  for (BoundStep& step : kernels.steps)
    region.add_kernel(program_.gpu_kernels.step(program_.context.name(name), std::move(step)));
  call.kernel = static_cast<uint32_t>(program_.gpu_regions.size());
  program_.gpu_regions.push_back(std::move(region));
  emit(std::move(call), layer(binding.var));
  for (const runtime::Move& move : moves) emit(move);
  return {};
}

// Calls the native kernel of a group of fused operators; returns false where it has none.
Expected<bool> FunctionLowering::call_group(const Binding& binding, const Call& call, Symbol name,
                                            const Function& callee) {
  if (!program_.options.cpu.native || callee.composite != "fused") return false;
  const auto native = program_.natives.group(program_.context.name(name), callee);
  if (!native) return false;
  program_.made_kernel(callee);
  TENON_TRY(call_native(*native, call.args, binding));
  const Function* caller = std::exchange(function_, &callee);
  for (const Binding& inner : callee.body.bindings) {
    if (std::holds_alternative<Apply>(inner.value) || std::holds_alternative<Call>(inner.value))
      report(inner, native->name, native->knobs, {});
  }
  function_ = caller;
  return true;
}

// A straight line for the CPU: its operators one after another.
Status FunctionLowering::call_inline(const Binding& binding, const Call& call, const Function& callee) {
  std::unordered_map<VarId, Location> locations;
  for (size_t i = 0; i < callee.params.size(); ++i) {
    TENON_TRY_ASSIGN(argument, locate(call.args[i]));
    locations.emplace(callee.params[i], std::move(*argument));
  }
  const Function* caller = std::exchange(function_, &callee);
  locations_.swap(locations);
  for (const Binding& inner : callee.body.bindings) TENON_TRY(this->binding(inner));
  TENON_TRY_ASSIGN(result, locate(callee.body.result));
  function_ = caller;
  locations_.swap(locations);
  define(binding.var, std::move(*result));
  return {};
}

// The entry's ports.

runtime::Port FunctionLowering::port(Type type, std::string name) const {
  const Context& context = program_.context;
  const TensorType* tensor = type.tensor();
  if (!tensor) return {.name = std::move(name), .dtype = {}, .shape = {}, .symbols = {}, .type = context.str(type)};
  runtime::Port port{.name = std::move(name), .dtype = tensor->dtype, .shape = {}, .symbols = {}, .type = {}};
  for (const Dim dim : tensor->dims) port.shape.push_back(dim.constant().value_or(runtime::kAnySize));
  if (!port.is_static()) {
    for (const Dim dim : tensor->dims) port.symbols.push_back(dim.constant() ? "" : context.str(dim));
  }
  return port;
}

void FunctionLowering::add_result_port(Type type, const Atom& field) {
  const auto* var = std::get_if<VarId>(&field);
  const size_t index = code_.results.size();
  std::string name = var ? std::string(program_.context.name(function_->info(*var).name)) : "";
  const auto taken = [&] {
    return std::ranges::any_of(code_.results, [&](const auto& port) { return port.name == name; });
  };
  if (name.empty() || taken()) name = fmt::format("output{}", index);
  while (taken()) name += '_';
  code_.results.push_back(port(type, std::move(name)));
}

// The fields of the result if it is a tuple, else the result itself.
Atoms FunctionLowering::result_fields() const {
  const auto* var = std::get_if<VarId>(&function_->body.result);
  for (const Binding& binding : function_->body.bindings) {
    if (var && binding.var == *var) {
      if (const auto* tuple = std::get_if<Tuple>(&binding.value)) return tuple->fields;
    }
  }
  return {function_->body.result};
}

}  // namespace tenon::compiler
