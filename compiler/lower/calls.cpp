// Calls of functions, of fused groups, and of loop functions and libraries of the module.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/ir/code.h"
#include "compiler/ir/sizes.h"
#include "compiler/lower/function.h"
#include "support/try.h"

namespace tenon::compiler {

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
Expected<runtime::Registers> FunctionLowering::arguments(Symbol, const Function& callee, const Atoms& args) {
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

}  // namespace tenon::compiler
