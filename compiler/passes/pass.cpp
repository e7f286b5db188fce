#include "compiler/passes/pass.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/passes.h"

namespace tenon::compiler {
namespace {

size_t binding_count(const Module& module) {
  size_t count = 0;
  for_each_function(module, [&](Symbol, const Function& function) {
    for_each_binding(function.body, [&](const Binding&) { ++count; });
  });
  return count;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> kPasses{
      {"infer", "Types of all bindings, anew from the parameters'.", infer},
      {"simplify", "Drops what does nothing and joins neighbours: reshapes, transposes, rectifiers, padding.",
       simplify},
      {"fold_constants", "Computes what depends on constants alone.", fold_constants},
      {"fold_scales", "Batch norms and constant factors behind a convolution or dense layer go into its weights.",
       fold_scales},
      {"fold_bias", "Constants added behind a convolution or dense layer become its bias.", fold_bias},
      {"dead_code", "Drops bindings and constants that nothing uses.", dead_code},
  };
  return kPasses;
}

const std::vector<Pass>& standard_passes() { return all_passes(); }

Expected<std::vector<Pass>> find_passes(std::span<const std::string> names) {
  std::vector<Pass> found;
  for (const std::string& name : names) {
    const auto pass = std::ranges::find(all_passes(), name, &Pass::name);
    if (pass == all_passes().end()) {
      std::vector<std::string> known;
      for (const Pass& next : all_passes()) known.push_back(next.name);
      return error(fmt::format("there is no pass '{}'", name), "", fmt::format("known are {}", fmt::join(known, ", ")),
                   Fault::kUsage);
    }
    found.push_back(*pass);
  }
  return found;
}

Expected<Module> run_passes(Context& context, Module module, std::span<const Pass> passes, const PassOptions& options) {
  for (const Pass& pass : passes) {
    auto show = [&](std::string_view when) {
      if (options.print)
        options.print(fmt::format("{} {}", when, pass.name), print(context, module, {.constants = false}).text);
    };
    if (contains(options.print_before, pass.name)) show("before");
    PassReport report{pass.name, 0, binding_count(module), 0};
    const auto start = std::chrono::steady_clock::now();
    Expected<Module> result = pass.run(context, std::move(module));
    if (!result) return result;
    module = std::move(*result);
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report.bindings_after = binding_count(module);
    if (options.report) options.report(report);
    if (contains(options.print_after, pass.name)) show("after");
    if (!options.verify) continue;
    if (Status status = verify(context, module); !status) {
      status.error().what = fmt::format("after pass {}, {}", pass.name, status.error().what);
      return std::unexpected(status.error());
    }
  }
  return module;
}

}  // namespace tenon::compiler
