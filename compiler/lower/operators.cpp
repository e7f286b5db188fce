// Operators: scalar instructions, native kernels, kernels of the reference.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/ir/code.h"
#include "compiler/ir/operator.h"
#include "compiler/lower/function.h"
#include "compiler/passes/growth.h"
#include "compiler/passes/memory.h"
#include "support/try.h"

namespace tenon::compiler {

// New registers for the results of the call that computes the binding's value.
runtime::Registers FunctionLowering::results_of(const Binding& binding) {
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
runtime::Registers FunctionLowering::operands_of(const std::vector<kernels::Operand>& operands, const Registers& args) {
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

}  // namespace tenon::compiler
