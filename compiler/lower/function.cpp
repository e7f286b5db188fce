// A function of the machine from its parameters to its finished code: ports, labels, the order of its registers.
#include "compiler/lower/function.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/sizes.h"
#include "compiler/lower/memory.h"
#include "compiler/lower/overlap.h"
#include "compiler/lower/registers.h"
#include "runtime/executable/liveness.h"
#include "support/try.h"

namespace tenon::compiler {

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
