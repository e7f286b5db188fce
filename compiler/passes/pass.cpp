#include "compiler/passes/pass.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <chrono>

#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "support/suggest.h"
#include "support/try.h"

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
  return std::ranges::any_of(names, [&](const std::string& next) { return next == name || next == "all"; });
}

std::unexpected<Diagnostic> no_pass(const std::string& name, std::span<const Pass> passes) {
  std::vector<std::string_view> names;
  for (const Pass& next : passes) names.push_back(next.name);
  const std::string suggestion = suggest(name, names);
  return error(fmt::format("there is no pass '{}'", name), "",
               fmt::format("{}{}the passes are {}", suggestion, suggestion.empty() ? "" : " ", fmt::join(names, ", ")),
               Fault::kUsage);
}

std::vector<Pass> by_name(std::initializer_list<std::string> names) {
  auto found = find_passes(names);
  assert(found);
  return std::move(*found);
}

}  // namespace

const std::vector<Pass>& standard_passes() {
  static const std::vector<Pass> kPasses =
      by_name({"differentiate", "infer", "inline", "simplify", "fold_constants", "cse", "fold_scales",
               "fold_scale_axis", "cancel_layouts", "fold_bias", "hoist_rows", "dead_code"});
  return kPasses;
}

// Regions that read one value convert its layout once each: `cse` makes that one. It makes one widening of the bytes
// that several contractions read, too, of which each wants its own.
const std::vector<Pass>& kernel_passes() {
  static const std::vector<Pass> kPasses = by_name({"slice_splits", "cse", "copy_widenings", "fuse"});
  return kPasses;
}

Expected<std::vector<Pass>> find_passes(std::span<const std::string> names) {
  std::vector<Pass> found;
  for (const std::string& name : names) {
    const auto pass = std::ranges::find(all_passes(), name, &Pass::name);
    if (pass == all_passes().end()) return no_pass(name, all_passes());
    found.push_back(*pass);
  }
  return found;
}

bool verifies_always() { return TENON_VERIFY_PASSES; }

Status check(const PassOptions& options, std::span<const Pass> more) {
  std::vector<Pass> known = all_passes();
  known.insert(known.end(), more.begin(), more.end());
  for (const auto* names : {&options.print_before, &options.print_after, &options.diff}) {
    for (const std::string& name : *names) {
      if (name != "all" && std::ranges::find(known, name, &Pass::name) == known.end()) return no_pass(name, known);
    }
  }
  return {};
}

Expected<Module> run_passes(Context& context, Module module, std::span<const Pass> passes, const PassOptions& options) {
  for (const Pass& pass : passes) {
    const auto text = [&] { return print(context, module, {.constants = false}).text; };
    const auto show = [&](std::string_view when, const std::string& what) {
      if (options.print) options.print(fmt::format("{} {}", when, pass.name), what);
    };
    if (contains(options.print_before, pass.name)) show("before", text());
    const std::string before = contains(options.diff, pass.name) ? text() : "";
    PassReport report{pass.name, 0, binding_count(module), 0, context.visits()};
    const auto start = std::chrono::steady_clock::now();
    Expected<Module> result = pass.run(context, std::move(module));
    if (!result) return result;
    module = std::move(*result);
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report.bindings_after = binding_count(module);
    report.visits = context.visits() - report.visits;
    if (options.report) options.report(report);
    if (contains(options.print_after, pass.name)) show("after", text());
    if (contains(options.diff, pass.name)) show("changes by", diff_lines(before, text()));
    if (!options.verify) continue;
    if (Status status = verify(context, module); !status) {
      status.error().what = fmt::format("after pass {}, {}", pass.name, status.error().what);
      return std::unexpected(status.error());
    }
  }
  return module;
}

}  // namespace tenon::compiler
