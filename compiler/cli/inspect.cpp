// tenon inspect | plan: what an executable is made of, and the memory that its functions take.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/backends/llvm/disassemble.h"
#include "compiler/cli/command.h"
#include "compiler/cli/program_text.h"
#include "compiler/lower/memory.h"
#include "runtime/executable/executable.h"
#include "support/suggest.h"
#include "support/try.h"
#include "support/visitor.h"

namespace tenon::cli {
namespace {

using runtime::Executable;
using runtime::Registers;

std::string registers_text(const Registers& registers) {
  std::string text;
  for (const runtime::Register r : registers) text += fmt::format("{}r{}", text.empty() ? "" : ", ", r);
  return text;
}
std::string assigned(const Registers& results) { return results.empty() ? "" : registers_text(results) + " = "; }

// One instruction of the virtual machine as text.
std::string instruction_text(const Executable& e, const runtime::Operation& operation) {
  const auto function = [&](uint32_t index) { return fmt::format("@{}", e.functions[index].name); };
  return std::visit(
      Overloaded{
          [&](const runtime::CallKernel& c) {
            return fmt::format("{}kernel {}({})", assigned(c.results), c.kernel, registers_text(c.args));
          },
          [&](const runtime::CallProgram& c) {
            return fmt::format("{}program {}({})", assigned(c.results), e.programs[c.program].name,
                               registers_text(c.args));
          },
          [&](const runtime::CallNative& c) {
            return fmt::format("{}native {}({})", assigned(c.results), e.natives[c.code].kernels[c.kernel].name,
                               registers_text(c.args));
          },
          [&](const runtime::CallFunction& c) {
            return fmt::format("{}call {}({})", assigned(c.results), function(c.function), registers_text(c.args));
          },
          [](const runtime::Move& m) { return fmt::format("r{} = r{}", m.to, m.from); },
          [&](const runtime::LoadConstant& c) {
            const runtime::Tensor& constant = e.constants[c.constant];
            return fmt::format("r{} = constant {}: {} {}", c.to, c.constant, name(constant.dtype()),
                               runtime::to_string(constant.shape()));
          },
          [](const runtime::Jump& j) { return fmt::format("jump {}", j.target); },
          [](const runtime::Branch& b) { return fmt::format("branch r{} else {}", b.condition, b.otherwise); },
          [](const runtime::Kill& k) { return fmt::format("kill {}", registers_text(k.registers)); },
          [](const runtime::Return& r) { return fmt::format("return {}", registers_text(r.values)); },
          [](const runtime::CallClosure& c) {
            return fmt::format("{}call r{}({})", assigned(c.results), c.closure, registers_text(c.args));
          },
          [&](const runtime::TailCall& c) {
            return fmt::format("tail call {}({})", function(c.function), registers_text(c.args));
          },
          [](const runtime::TailCallClosure& c) {
            return fmt::format("tail call r{}({})", c.closure, registers_text(c.args));
          },
          [](const runtime::ScalarCompute& c) {
            return fmt::format("r{} = {} {} r{}, r{}", c.to, name(c.op), name(c.dtype), c.a, c.b);
          },
          [](const runtime::BindSize& b) {
            return fmt::format("r{} = size of r{} along axis {}", b.to, b.tensor, b.axis);
          },
          [](const runtime::ComputeSize& c) {
            return fmt::format("r{} = size of ({})", c.to, registers_text(c.sizes));
          },
          [](const runtime::CheckShape& c) { return fmt::format("check r{} is {}", c.tensor, c.expected); },
          [](const runtime::CheckSize& c) { return fmt::format("check r{} in {}..{}", c.size, c.low, c.high); },
          [&](const runtime::Construct& c) {
            const std::string type =
                c.type == runtime::kTupleType ? "" : e.types[c.type].constructors[c.constructor].name;
            return fmt::format("r{} = {}({})", c.to, type, registers_text(c.fields));
          },
          [](const runtime::ReadField& f) { return fmt::format("r{} = r{}.{}", f.to, f.from, f.index); },
          [](const runtime::Switch& s) { return fmt::format("switch r{} to {}", s.value, fmt::join(s.targets, ", ")); },
          [&](const runtime::MakeClosure& c) {
            return fmt::format("r{} = closure {}({})", c.to, function(c.function), registers_text(c.captures));
          },
          [](const runtime::MakeReference& m) { return fmt::format("r{} = ref r{}", m.to, m.value); },
          [](const runtime::ReadReference& r) { return fmt::format("r{} = read r{}", r.to, r.reference); },
          [](const runtime::WriteReference& w) { return fmt::format("write r{}, r{}", w.reference, w.value); },
      },
      operation);
}

void print_code(const Executable& e, const runtime::Function& function) {
  fmt::print("\nfunction @{}: {} parameters, {} registers\n", function.name, function.params.size(),
             function.registers);
  for (size_t i = 0; i < function.code.size(); ++i) {
    const auto& [operation, layer] = function.code[i];
    const std::string text = instruction_text(e, operation);
    if (layer.empty()) fmt::print("{:>5}  {}\n", i, text);
    else fmt::print("{:>5}  {:<56} # {}\n", i, text, layer);
  }
}

std::string_view reason_of(compiler::Outside outside) {
  switch (outside) {
    case compiler::Outside::kEscapes: return "may outlive the frame";
    case compiler::Outside::kUnbounded: return "no bound of its size is known, or its function is entered again";
    case compiler::Outside::kOtherKernel: return "made by a reference kernel, a library or the accelerator";
  }
  return "";
}

// The plan of each function that computes tensors: the bytes of its arena, the most that are live at once, and the
// results for which each run of the frame allocates memory.
void print_plan(const Executable& e, std::string_view only = "") {
  for (const runtime::Function& function : e.functions) {
    if (!only.empty() && function.name != only) continue;
    const auto planned = compiler::planned_results(function);
    if (planned.empty()) continue;
    const compiler::FrameMemory memory = compiler::frame_memory(function);
    fmt::print("@{}: {} bytes planned for {} results, {} live at once, {} without reuse; {} allocated when made\n",
               function.name, memory.arena, memory.placed, memory.peak, memory.total, memory.outside);
    for (const compiler::PlannedResult& result : planned) {
      const std::string text = instruction_text(e, function.code[result.call].operation);
      if (result.slot.bytes != 0)
        fmt::print("  {:>5}..{:<5} {:>10} bytes at {:<10} {}\n", result.call, result.last_use, result.slot.bytes,
                   result.slot.offset, text);
      else fmt::print("  {:>5}        allocated: {}: {}\n", result.call, reason_of(result.outside), text);
    }
  }
}

void print_native_kernel(const runtime::NativeKernel& kernel) {
  fmt::print("  {}: {} parameters, {} results, sizes", kernel.name, kernel.signature.params.size(),
             kernel.signature.results.size());
  for (const runtime::SignatureDim& dim : kernel.signature.dims) fmt::print(" {}", dim.name);
  fmt::print("\n");
}

struct Inspect {
  std::string input, function, kernel;

  Status run() const {
    TENON_TRY_ASSIGN(e, runtime::load(input));
    if (!function.empty()) TENON_TRY(print_function(*e));
    if (!kernel.empty()) TENON_TRY(print_machine_code(*e));
    return function.empty() && kernel.empty() ? print_all(*e) : Status();
  }

 private:
  std::unexpected<Diagnostic> unknown(std::string_view what, std::string_view name,
                                      const std::vector<std::string_view>& names) const {
    const std::string suggestion = suggest(name, names);
    return error(fmt::format("there is no {} '{}'", what, name), input,
                 fmt::format("{}{}tenon inspect {} lists all", suggestion, suggestion.empty() ? "" : " ", input),
                 Fault::kUsage);
  }

  Status print_function(const Executable& e) const {
    std::vector<std::string_view> names;
    for (const runtime::Function& each : e.functions) names.push_back(each.name);
    const std::string_view name = std::string_view(function).substr(function.starts_with('@') ? 1 : 0);
    const auto found = std::ranges::find(e.functions, name, &runtime::Function::name);
    if (found == e.functions.end()) return unknown("function", name, names);
    print_code(e, *found);
    fmt::print("\nmemory plan\n");
    print_plan(e, name);
    return {};
  }

  // The machine code of one kernel, for each level.
  Status print_machine_code(const Executable& e) const {
    std::vector<std::string_view> names;
    for (const runtime::NativeCode& native : e.natives) {
      for (const runtime::NativeKernel& each : native.kernels) names.push_back(each.name);
      const auto found = std::ranges::find(native.kernels, kernel, &runtime::NativeKernel::name);
      if (found == native.kernels.end()) continue;
      auto functions = compiler::native::disassemble(native.object, native.triple, kernel);
      if (!functions) {
        functions.error().where = input;
        return std::unexpected(std::move(functions.error()));
      }
      fmt::print("\nnative code for {}\n", native.triple);
      print_native_kernel(*found);
      if (functions->empty())
        return error(fmt::format("the native code has no symbols of kernel '{}'", kernel), input,
                     "compile the model again with this version's tenon compile");
      for (const auto& [symbol, instructions] : *functions) {
        fmt::print("\n{}: {} instructions\n", symbol, instructions.size());
        for (const auto& [address, size, text] : instructions) fmt::print("{:>8x}  {}\n", address, text);
      }
      return {};
    }
    return unknown("native kernel", kernel, names);
  }

  Status print_all(const Executable& executable) const {
    const Executable* e = &executable;
    fmt::print("{}\n", e->name);
    for (const auto& [key, value] : e->facts) fmt::print("  {}: {}\n", key, value);
    for (const runtime::Port& port : e->main().params) fmt::print("  input   {}\n", to_string(port));
    for (const runtime::Port& port : e->main().results) fmt::print("  output  {}\n", to_string(port));
    for (const runtime::DataType& type : e->types) {
      fmt::print("  type    {}:", type.name);
      for (const runtime::DataConstructor& c : type.constructors) fmt::print(" {}/{}", c.name, c.fields);
      fmt::print("\n");
    }
    for (const runtime::Function& each : e->functions) print_code(*e, each);
    fmt::print("\nmemory plan\n");
    print_plan(*e);
    for (const runtime::NativeCode& native : e->natives) {
      fmt::print("\nnative code for {}: levels {}, {} bytes\n", native.triple, fmt::join(native.levels, ", "),
                 native.object.size());
      for (const runtime::NativeKernel& each : native.kernels) print_native_kernel(each);
    }
    for (const runtime::AcceleratorProgram& program : e->programs) {
      fmt::print("\n");
      TENON_TRY(print_program(program, input));
    }
    return {};
  }
};

struct Plan {
  std::string input;

  Status run() const {
    TENON_TRY_ASSIGN(executable, runtime::load(input));
    print_plan(*executable);
    return {};
  }
};

}  // namespace

Action inspect(Options& options) {
  auto command = std::make_shared<Inspect>();
  options.argument(command->input, "FILE", "an executable (.tnx)");
  options.option(command->function, "--function", "@NAME", "only the code and the memory plan of this function");
  options.option(command->kernel, "--kernel", "NAME", "the machine code of this native kernel, for each level");
  options.footer("tenon inspect model.tnx --kernel dense");
  return [command] { return command->run(); };
}

Action print_memory_plan(Options& options) {
  auto command = std::make_shared<Plan>();
  options.argument(command->input, "FILE", "an executable (.tnx)");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
