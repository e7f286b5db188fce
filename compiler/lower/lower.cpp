#include "compiler/lower/lower.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "compiler/ir/operator.h"
#include "compiler/lower/graph.h"
#include "compiler/lower/memory.h"
#include "compiler/lower/native.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::Register;
using runtime::Registers;

// The help of an error about a shape that is not static.
std::string binding_help(const Context& context, const Dims& dims) {
  std::vector<std::string> values;
  for (const Dim dim : dims) {
    for_each_variable(dim, [&](Symbol symbol) {
      const std::string value = fmt::format("{}=1", context.name(symbol));
      if (std::ranges::find(values, value) == values.end()) values.push_back(value);
    });
  }
  if (values.empty())
    return "its size depends on data, which an executable does not support; tenon run interprets a .tn";
  return fmt::format("bind its variables, as --shapes {}", fmt::join(values, ","));
}

class Lowering {
 public:
  Lowering(Context& context, const Module& module, const Function& function, std::span<const Target> targets,
           const LowerOptions& options, runtime::Executable& out)
      : context_(context),
        options_(options),
        natives_(context, module, options.cpu),
        module_(module),
        function_(&function),
        targets_(targets),
        out_(out),
        values_(function.vars.size()) {}

  Status run(std::string name) {
    code_.name = std::move(name);
    for (const VarId param : function_->params) {
      TENON_TRY_ASSIGN(port, make_port(param, "parameter"));
      code_.params.push_back(std::move(*port));
      values_[index(param)] = {fresh()};
    }
    for (const Binding& binding : function_->body.bindings) {
      TENON_TRY(lower_binding(binding));
    }
    TENON_TRY_ASSIGN(results, registers_of(function_->body.result));
    TENON_TRY(add_result_ports(*results));
    code_.code.push_back({runtime::Return{*results}, ""});
    code_.registers = next_;
    insert_kills(code_);
    out_.facts.emplace_back("memory", str(place_results(code_, bytes_)));
    out_.functions.push_back(std::move(code_));
    TENON_TRY_ASSIGN(code, natives_.compile());
    if (*code) out_.natives.push_back(std::move(**code));
    return {};
  }

 private:
  Register fresh() { return next_++; }

  std::string location(VarId var) const { return module_.span(function_->info(var).span).str(); }
  std::string layer(VarId var) const { return module_.span(function_->info(var).span).node; }

  Expected<runtime::Port> port_of(Type type, std::string name, const std::string& where) {
    const TensorType* tensor = type.tensor();
    if (!tensor) return error("parameters and results of a model must be tensors", where, {}, Fault::kInternal);
    const auto shape = tensor->shape();
    if (!shape) {
      return error(fmt::format("the shape {} is not static", context_.str(tensor->dims)), where,
                   binding_help(context_, tensor->dims));
    }
    return runtime::Port{std::move(name), tensor->dtype, *shape};
  }
  Expected<runtime::Port> make_port(VarId var, std::string_view kind) {
    std::string name(context_.name(function_->info(var).name));
    return port_of(function_->type(var), name, fmt::format("{} {}", kind, name));
  }

  // A constant is loaded at each use: the instruction's time is negligible beside a kernel's.
  Expected<Registers> registers_of(const Atom& atom) {
    if (const auto* var = std::get_if<VarId>(&atom)) return values_[index(*var)];
    if (const auto* constant = std::get_if<ConstId>(&atom)) {
      return Registers{load(module_.constant(*constant))};
    }
    return error("a function as a value is not supported yet", {}, {}, Fault::kInternal);
  }
  // Equal constants share one entry: two kernels may pack the same weights in the same way.
  Register load(const runtime::Tensor& tensor) {
    const auto bytes = tensor.bytes();
    auto& same_hash =
        constants_[std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()})];
    auto found = std::ranges::find_if(same_hash, [&](uint32_t i) { return out_.constants[i] == tensor; });
    if (found == same_hash.end()) {
      found = same_hash.insert(same_hash.end(), static_cast<uint32_t>(out_.constants.size()));
      out_.constants.push_back(tensor);
    }
    const Register to = fresh();
    code_.code.push_back({runtime::LoadConstant{to, *found}, ""});
    return to;
  }
  Expected<Registers> registers_of(const Atoms& atoms) {
    Registers joined;
    for (const Atom& atom : atoms) {
      TENON_TRY_ASSIGN(registers, registers_of(atom));
      joined.insert(joined.end(), registers->begin(), registers->end());
    }
    return joined;
  }

  Registers fresh_for(Type type) {
    const TupleType* tuple = type.tuple();
    if (!tuple) return {fresh()};
    Registers fields;
    for (const Type field : tuple->fields) {
      const Registers part = fresh_for(field);
      fields.insert(fields.end(), part.begin(), part.end());
    }
    return fields;
  }

  // New registers for the results of the call that computes the binding's value.
  Registers results_of(const Binding& binding) {
    const Type type = function_->type(binding.var);
    Registers results = fresh_for(type);
    note_bytes(type, results);
    values_[index(binding.var)] = results;
    return results;
  }

  static size_t width(Type type) {
    const TupleType* tuple = type.tuple();
    if (!tuple) return 1;
    size_t sum = 0;
    for (const Type field : tuple->fields) sum += width(field);
    return sum;
  }

  void report(const Binding& binding, std::string kernel, std::string knobs, std::string reason) {
    if (options_.placements) {
      const auto* apply = std::get_if<Apply>(&binding.value);
      std::string op = apply
                           ? apply->op->name
                           : fmt::format("@{}", context_.name(std::get<Symbol>(std::get<Call>(binding.value).callee)));
      options_.placements->push_back(
          {function_->info(binding.var).span, std::move(op), std::move(kernel), std::move(knobs), std::move(reason)});
    }
  }

  // The registers of a kernel's operands: arguments by index, and constants, which are loaded here.
  Registers operands_of(const std::vector<kernels::Operand>& operands, const Registers& args) {
    Registers registers;
    for (const kernels::Operand& operand : operands) {
      if (const auto* argument = std::get_if<size_t>(&operand)) {
        registers.push_back(args[*argument]);
        continue;
      }
      registers.push_back(load(std::get<runtime::Tensor>(operand)));
    }
    return registers;
  }

  // Adds one instruction for the kernel; its operands are the group's arguments and constants.
  Status call_native(const NativeKernels::Entry& entry, const Atoms& args, const Binding& binding) {
    Registers inputs;
    for (const Atom& atom : args) {
      TENON_TRY_ASSIGN(registers, registers_of(atom));
      inputs.push_back(registers->front());
    }
    const Registers operands = operands_of(entry.operands, inputs);
    const Registers results = results_of(binding);
    code_.code.push_back({runtime::CallNative{0, entry.kernel, operands, results}, layer(binding.var)});
    return {};
  }

  Status lower_binding(const Binding& binding) {
    if (const auto* apply = std::get_if<Apply>(&binding.value)) {
      std::string reason = "native kernels are off";
      if (options_.cpu.native) {
        auto native = natives_.operator_kernel(*function_, binding);
        if (native) {
          TENON_TRY(call_native(*native, native->args, binding));
          report(binding, native->name, native->knobs, {});
          return {};
        }
        reason = native.error().what;
      }
      report(binding, {}, {}, reason);
      TENON_TRY_ASSIGN(args, registers_of(apply->args));
      if (!apply->op->reference) {
        return error(fmt::format("{} has no kernel on the CPU", apply->op->name), location(binding.var));
      }
      const Registers results = results_of(binding);
      code_.code.push_back({runtime::CallKernel{apply->op->name, apply->attrs, *args, results}, layer(binding.var)});
      return {};
    }
    if (const auto* call = std::get_if<Call>(&binding.value)) return lower_call(binding, *call);
    if (const auto* tuple = std::get_if<Tuple>(&binding.value)) {
      TENON_TRY_ASSIGN(fields, registers_of(tuple->fields));
      values_[index(binding.var)] = std::move(*fields);
      return {};
    }
    const auto* projection = std::get_if<Project>(&binding.value);
    if (!projection) return error("only operators, calls and tuples are supported yet", location(binding.var));
    const Project& project = *projection;
    const auto* from = std::get_if<VarId>(&project.tuple);
    assert(from && function_->type(*from).tuple());
    const auto& fields = function_->type(*from).tuple()->fields;
    size_t offset = 0;
    for (uint32_t i = 0; i < project.index; ++i) offset += width(fields[i]);
    const auto begin = values_[index(*from)].begin() + static_cast<ptrdiff_t>(offset);
    values_[index(binding.var)] = Registers(begin, begin + static_cast<ptrdiff_t>(width(fields[project.index])));
    return {};
  }

  Status lower_call(const Binding& binding, const Call& call) {
    const auto* symbol = std::get_if<Symbol>(&call.callee);
    const loop::Function* loops = symbol ? module_.loop_function(*symbol) : nullptr;
    const Library* library = symbol ? module_.library(*symbol) : nullptr;
    // The runtime has no evaluator, so a loop function or a call of a library function requires native code.
    if ((loops || library) && !options_.cpu.native) {
      return error(fmt::format("@{} is a {}, and native kernels are off", context_.name(*symbol),
                               loops ? "loop function" : "library's function"),
                   location(binding.var), "it has no reference kernel; `tenon run` of the .tn file interprets it");
    }
    if (loops) return lower_loops(binding, call, *loops);
    if (library) {
      TENON_TRY_ASSIGN(made, calling_function(context_, *symbol, *library));
      return lower_loops(binding, call, *made);
    }
    const Function* callee = symbol ? module_.function(*symbol) : nullptr;
    if (!callee)
      return error("the callee is not a function of the module", location(binding.var), {}, Fault::kInternal);
    if (callee->target.empty()) return lower_inline(binding, call, *callee);
    const auto target = std::ranges::find(targets_, callee->target, &Target::name);
    if (target == targets_.end()) {
      return error(fmt::format("@{} is for target \"{}\", which is not given", context_.name(*symbol), callee->target),
                   location(binding.var));
    }
    TENON_TRY_ASSIGN(args, registers_of(call.args));
    const Registers results = results_of(binding);
    TENON_TRY_ASSIGN(kernel, target->generate(context_, module_, *symbol, *callee));
    if (const auto* library = std::get_if<LibraryCall>(&*kernel)) {
      code_.code.push_back(
          {runtime::CallKernel{library->kernel, library->attrs, operands_of(library->operands, *args), results},
           std::string(context_.name(*symbol))});
      return {};
    }
    auto& program = std::get<runtime::AcceleratorProgram>(*kernel);
    if (program.inputs.size() != args->size() || program.outputs.size() != results.size()) {
      return error(
          fmt::format("target {} made a program of {} inputs and {} outputs for a region of {} and {}", target->name,
                      program.inputs.size(), program.outputs.size(), args->size(), results.size()),
          location(binding.var), {}, Fault::kInternal);
    }
    const auto id = static_cast<uint32_t>(out_.programs.size());
    out_.programs.push_back(std::move(program));
    code_.code.push_back({runtime::CallProgram{id, *args, results}, std::string(context_.name(*symbol))});
    return {};
  }

  Status lower_loops(const Binding& binding, const Call& call, const loop::Function& callee) {
    const std::string name(context_.name(callee.name));
    const auto native = natives_.loops(callee);
    if (!native) {
      return error(fmt::format("@{} has no native kernel: {}{}{}", name, native.error().where,
                               native.error().where.empty() ? "" : ": ", native.error().what),
                   location(binding.var), native.error().help);
    }
    TENON_TRY(call_native(*native, call.args, binding));
    report(binding, native->name, {}, {});
    return {};
  }

  // A function for the CPU: one native kernel if it is a group of fused operators that has one, else its operators one
  // after another.
  Status lower_inline(const Binding& binding, const Call& call, const Function& callee) {
    if (options_.cpu.native && callee.composite == "fused") {
      const auto native = natives_.group(context_.name(std::get<Symbol>(call.callee)), callee);
      if (native) {
        TENON_TRY(call_native(*native, call.args, binding));
        const Function* caller = std::exchange(function_, &callee);
        for (const Binding& inner : callee.body.bindings) {
          if (std::holds_alternative<Apply>(inner.value) || std::holds_alternative<Call>(inner.value))
            report(inner, native->name, native->knobs, {});
        }
        function_ = caller;
        return {};
      }
    }
    std::vector<Registers> values(callee.vars.size());
    for (size_t i = 0; i < callee.params.size(); ++i) {
      TENON_TRY_ASSIGN(registers, registers_of(call.args[i]));
      values[index(callee.params[i])] = std::move(*registers);
    }
    const Function* caller = std::exchange(function_, &callee);
    values_.swap(values);
    for (const Binding& inner : callee.body.bindings) {
      TENON_TRY(lower_binding(inner));
    }
    TENON_TRY_ASSIGN(results, registers_of(callee.body.result));
    function_ = caller;
    values_.swap(values);
    values_[index(binding.var)] = std::move(*results);
    return {};
  }

  Status add_result_ports(const Registers& results) {
    const auto* var = std::get_if<VarId>(&function_->body.result);
    const std::vector<Type> types = function_->result.parts();
    if (types.size() != results.size()) return error("results are nested tuples", {}, {}, Fault::kInternal);
    const Atoms fields = result_fields();
    for (size_t i = 0; i < types.size(); ++i) {
      const auto* field = i < fields.size() ? std::get_if<VarId>(&fields[i]) : var;
      std::string name = field ? std::string(context_.name(function_->info(*field).name)) : "";
      auto taken = [&] {
        return std::ranges::any_of(code_.results, [&](const auto& port) { return port.name == name; });
      };
      if (name.empty() || taken()) name = fmt::format("output{}", i);
      while (taken()) name += '_';
      TENON_TRY_ASSIGN(port, port_of(types[i], name, "result " + name));
      code_.results.push_back(std::move(*port));
    }
    return {};
  }

  // The fields of the result if it is a tuple, else the result itself.
  Atoms result_fields() const {
    const auto* var = std::get_if<VarId>(&function_->body.result);
    for (const Binding& binding : function_->body.bindings) {
      if (var && binding.var == *var) {
        if (const auto* tuple = std::get_if<Tuple>(&binding.value)) return tuple->fields;
      }
    }
    return {function_->body.result};
  }

  void note_bytes(Type type, std::span<const Register> registers) {
    if (const TupleType* tuple = type.tuple()) {
      for (const Type field : tuple->fields) {
        note_bytes(field, registers.first(width(field)));
        registers = registers.subspan(width(field));
      }
      return;
    }
    const auto shape = type.tensor()->shape();
    if (shape) bytes_[registers.front()] = runtime::checked_bytes(type.tensor()->dtype, *shape).value_or(0);
  }

  Context& context_;
  const LowerOptions& options_;
  NativeKernels natives_;
  const Module& module_;
  const Function* function_;  // whose bindings are being lowered
  std::span<const Target> targets_;
  runtime::Executable& out_;
  std::vector<Registers> values_;
  std::unordered_map<size_t, std::vector<uint32_t>> constants_;  // by their bytes' hash
  std::map<Register, int64_t> bytes_;                            // of the results of calls
  runtime::Function code_;
  Register next_ = 0;
};

}  // namespace

Expected<runtime::Executable> lower(Context& context, const Module& module, Symbol entry,
                                    std::span<const Target> targets, const LowerOptions& options) {
  const Function* function = module.function(entry);
  if (!function)
    return error(fmt::format("the module has no function @{}", context.name(entry)), {}, {}, Fault::kInternal);
  if (!first_order(module, *function)) {
    return error(fmt::format("@{} has control flow, closures, recursion or references, which are not compiled yet",
                             context.name(entry)),
                 options.name, "write it as one straight line of operators");
  }
  runtime::Executable executable;
  executable.name = options.name;
  executable.facts = options.facts;
  TENON_TRY(Lowering(context, module, *function, targets, options, executable).run(std::string(context.name(entry))));
  executable.graph = make_graph(context, module, *function);
  return executable;
}

}  // namespace tenon::compiler
