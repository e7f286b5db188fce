// Calls of regions: an accelerator's program, a library's kernel, the launches of a GPU.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/lower/function.h"
#include "compiler/passes/memory.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

// The types of the registers of a value: a tuple has those of its fields.
void add_leaves(Type type, std::vector<Type>& leaves) {
  if (!type.tuple()) return leaves.push_back(type);
  for (const Type field : type.parts()) add_leaves(field, leaves);
}

}  // namespace

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

}  // namespace tenon::compiler
