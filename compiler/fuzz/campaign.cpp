#include "compiler/fuzz/campaign.h"

#include <fmt/format.h>

#include <utility>

#include "compiler/fuzz/gradients.h"
#include "compiler/fuzz/shrink.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/text.h"
#include "support/file.h"

namespace tenon::compiler::fuzz {
namespace {

// The options of the failed check alone: "pass NAME" needs only its pass, and mutants only where a mutant failed.
OracleOptions focused(OracleOptions options, const std::string& check) {
  if (check.starts_with("mutant")) return options;
  options.mutants = 0;
  options.text = check == "text" || check == "binary" || check == "shadowing" || check == "infer";
  options.pipeline = check.starts_with("pipeline");
  const bool budget = check.find("budget") != std::string::npos;
  options.machine = check == "machine" || check == "ahead of time" || budget;
  if (!budget) options.budgets = 0;
  options.native = check == "native" ? 1 : 0;
  if (check.starts_with("pass ")) {
    std::erase_if(options.passes, [&](const Pass& pass) { return "pass " + pass.name != check; });
  } else {
    options.passes.clear();
  }
  return options;
}

// Writes the module, or the text that is not a module, and adds the command that repeats the failure.
void report(Context& context, const Module& module, const Violation& remaining, Failure& failure,
            const std::filesystem::path& directory, const CampaignOptions& options) {
  const bool mutant = !failure.violation.mutant.text.empty();
  const std::filesystem::path path = directory / fmt::format("fuzz-ir-{}.tn", failure.seed);
  std::error_code ignored;
  std::filesystem::create_directories(directory, ignored);
  const Text written = mutant ? failure.violation.mutant : print(context, module, {.side = side_file(failure.seed)});
  failure.text = written.text;
  const bool side = written.side.empty() || write_file(directory / side_file(failure.seed), written.side);
  if (side && write_file(path, written.text)) failure.file = path.string();
  const auto& [check, problem, text] = failure.violation;
  std::string flags = check.ends_with("native") ? " --native 1" : "";
  if (check.find("budget") != std::string::npos) flags += fmt::format(" --budget {}", options.oracle.budgets);
  if (options.oracle.gradients) flags += " --gradients";
  failure.report = fmt::format("seed {}: {}: {}\n", failure.seed, check, problem.str());
  failure.report += fmt::format("small: {}: {}\n{}", remaining.check, remaining.problem.str(), failure.text);
  if (!failure.file.empty()) {
    failure.report += fmt::format("written to {}; again: tenon {} --file {} --seed {}{}\n", failure.file,
                                  options.command, failure.file, failure.seed, flags);
  }
  failure.report += fmt::format("the whole: tenon {} --seed {} --count 1{}", options.command, failure.seed, flags);
}

Failure fail(Context& context, Module module, uint64_t seed, Violation violation, const CampaignOptions& options) {
  OracleOptions checks = focused(options.oracle, violation.check);
  std::optional<Violation> last;
  auto fails = [&](const Module& candidate) {
    Counts counts;
    auto found = examine(context, candidate, seed, checks, counts);
    if (!found || found->check != violation.check) return false;
    last = std::move(found);
    return true;
  };
  // A mutant depends on the whole module: a smaller module would have other mutants.
  if (options.shrink_budget > 0 && violation.mutant.text.empty()) {
    // A module whose recursion has lost its end while shrinking is abandoned soon.
    const int64_t steps = std::exchange(checks.steps, std::min<int64_t>(checks.steps, 2000));
    if (!fails(module)) checks.steps = steps;
    module = shrink(context, std::move(module), fails, options.shrink_budget);
  }
  Failure failure{.seed = seed, .violation = violation, .text = {}, .file = {}, .report = {}};
  report(context, module, last ? *last : violation, failure, options.directory, options);
  return failure;
}

}  // namespace

CampaignResult campaign(const CampaignOptions& options, const std::function<void(uint64_t seed)>& before) {
  CampaignResult result;
  for (int64_t i = 0; i < options.count && !result.failure; ++i) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(i);
    if (before) before(seed);
    Context context;
    Module module = random_module(context, seed, options.generator);
    if (options.oracle.gradients) {
      auto made = with_gradient(context, module, seed % 3 == 0);
      if (!made) continue;
      module = std::move(*made);
    }
    auto violation = examine(context, module, seed, options.oracle, result.counts);
    if (violation) result.failure = fail(context, std::move(module), seed, std::move(*violation), options);
  }
  Context context;
  for (const Operator* op : context.operators()) {
    if (!result.counts.operators.contains(op->name)) result.uncovered.push_back(op->name);
  }
  return result;
}

std::optional<Violation> replay(Context& context, const Module& module, const CampaignOptions& options,
                                Counts& counts) {
  return examine(context, module, options.seed, options.oracle, counts);
}

}  // namespace tenon::compiler::fuzz
