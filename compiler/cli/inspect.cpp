// tenon inspect | plan: what an executable is made of, and the memory that its functions take.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/backends/llvm/disassemble.h"
#include "compiler/cli/command.h"
#include "compiler/cli/executable_text.h"
#include "compiler/cli/program_text.h"
#include "runtime/executable/executable.h"
#include "support/suggest.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using runtime::Executable;

struct Inspect {
  std::string input, function, kernel, part;
  bool json = false;

  Status run() const {
    if (json && !(function.empty() && kernel.empty() && part.empty())) {
      return error("--json prints the whole executable", input, "omit --function, --kernel and --part", Fault::kUsage);
    }
    TENON_TRY_ASSIGN(e, runtime::load(input));
    if (!function.empty()) TENON_TRY(print_function(*e));
    if (!kernel.empty()) TENON_TRY(print_machine_code(*e));
    if (!function.empty() || !kernel.empty()) return {};
    if (json) {
      print_stdout("{}", executable_json(*e));
      return {};
    }
    return print_parts(*e);
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
    print_stdout("\nmemory plan\n");
    print_plan(e, name);
    return {};
  }

  // PTX of a kernel's launches, each entry once, without the declarations before them.
  Status print_ptx(const runtime::NativeCode& native, const runtime::NativeKernel& launched) const {
    const std::string_view ptx(reinterpret_cast<const char*>(native.object.data()), native.object.size());
    std::set<std::string_view> entries;
    for (const runtime::GpuLaunch& launch : launched.launches) {
      if (!entries.insert(launch.entry).second) continue;
      const size_t begin = ptx.find(fmt::format(".visible .entry {}(", launch.entry)), end = ptx.find("\n}", begin);
      if (begin == std::string_view::npos || end == std::string_view::npos)
        return error(fmt::format("the PTX has no entry '{}'", launch.entry), input,
                     "compile the model again with this version's tenon compile");
      print_stdout("\n{}\n}}\n", ptx.substr(begin, end - begin));
    }
    return {};
  }

  // The machine code of one kernel, for each level.
  Status print_machine_code(const Executable& e) const {
    std::vector<std::string_view> names;
    for (const runtime::NativeCode& native : e.natives) {
      for (const runtime::NativeKernel& each : native.kernels) names.push_back(each.name);
      const auto found = std::ranges::find(native.kernels, kernel, &runtime::NativeKernel::name);
      if (found == native.kernels.end()) continue;
      if (native.triple == runtime::kGpuTriple) {
        print_stdout("\nPTX for {}\n", native.levels.front());
        print_native_kernel(*found);
        return print_ptx(native, *found);
      }
      auto functions = compiler::native::disassemble(native.object, native.triple, kernel);
      if (!functions) {
        functions.error().where = input;
        return std::unexpected(std::move(functions.error()));
      }
      print_stdout("\nnative code for {}\n", native.triple);
      print_native_kernel(*found);
      if (functions->empty())
        return error(fmt::format("the native code has no symbols of kernel '{}'", kernel), input,
                     "compile the model again with this version's tenon compile");
      for (const auto& [symbol, instructions] : *functions) {
        print_stdout("\n{}: {} instructions\n", symbol, instructions.size());
        for (const auto& [address, size, text] : instructions) print_stdout("{:>8x}  {}\n", address, text);
      }
      return {};
    }
    return unknown("native kernel", kernel, names);
  }

  // Everything, or the given part.
  Status print_parts(const Executable& e) const {
    const auto wanted = [&](std::string_view name) { return part.empty() || part == name; };
    const auto heading = [&](std::string_view title) {
      if (part.empty()) print_stdout("\n{}\n", title);
    };
    if (wanted("signature")) print_signature(e);
    if (wanted("code")) {
      for (const runtime::Function& each : e.functions) print_code(e, each);
    }
    if (wanted("memory")) heading("memory plan"), print_plan(e);
    if (wanted("constants")) heading("constants"), print_constants(e);
    if (wanted("kernels")) {
      for (const runtime::NativeCode& native : e.natives) print_native_code(native);
      if (e.compiled) {
        print_stdout("\nfunctions compiled ahead of time for {}: {} bytes\n", e.compiled->triple,
                     e.compiled->object.size());
      }
    }
    if (wanted("programs")) {
      for (const runtime::AcceleratorProgram& program : e.programs) {
        print_stdout("\n");
        TENON_TRY(print_program(program, input));
      }
    }
    return {};
  }
};

}  // namespace

Action inspect(Options& options) {
  auto command = std::make_shared<Inspect>();
  options.argument(command->input, "FILE", "an executable (.tnx)");
  options.option(command->function, "--function", "@NAME", "only the code and the memory plan of this function");
  options.option(command->kernel, "--kernel", "NAME",
                 "the machine code of this native kernel, for each level, or its PTX");
  options.choice(command->part, "--part", {"signature", "code", "memory", "constants", "kernels", "programs"},
                 "only this part of the executable");
  options.flag(command->json, "--json", "the executable without its data as JSON");
  options.footer("tenon inspect model.tnx --kernel dense");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
