#include "compiler/fuzz/campaign.h"

#include <fmt/format.h>

#include <utility>

#include "compiler/fuzz/shrink.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/text.h"

namespace tenon::compiler::fuzz {
namespace {

// Only the check that failed: "pass NAME" needs its pass alone, and no mutants but for a mutant's failure.
OracleOptions focused(OracleOptions options, const std::string& check) {
  if (check.starts_with("mutant")) return options;
  options.mutants = 0;
  options.text = check == "text" || check == "infer";
  options.pipeline = check.starts_with("pipeline");
  if (check.starts_with("pass ")) {
    std::erase_if(options.passes, [&](const Pass& pass) { return "pass " + pass.name != check; });
  } else {
    options.passes.clear();
  }
  return options;
}

Failure fail(Context& context, Module module, uint64_t seed, Violation violation, const CampaignOptions& options) {
  OracleOptions checks = focused(options.oracle, violation.check);
  auto fails = [&](const Module& candidate) {
    Counts counts;
    const auto found = examine(context, candidate, seed, checks, counts);
    return found && found->check == violation.check;
  };
  // What has lost the end of its recursion on the way is given up soon.
  const int64_t steps = std::exchange(checks.steps, std::min<int64_t>(checks.steps, 2000));
  if (!fails(module)) checks.steps = steps;
  // A mutant depends on all of the module: a smaller one would have other mutants.
  if (options.shrink_budget > 0 && !violation.check.starts_with("mutant")) {
    module = shrink(context, std::move(module), fails, options.shrink_budget);
  }
  Counts counts;
  const auto remaining = examine(context, module, seed, checks, counts);
  Failure failure{.seed = seed, .violation = violation, .text = print(context, module).text, .file = {}, .report = {}};
  const std::filesystem::path path = options.directory / fmt::format("fuzz-ir-{}.tn", seed);
  std::error_code ignored;
  std::filesystem::create_directories(options.directory, ignored);
  if (save(context, module, path)) failure.file = path.string();
  failure.report = fmt::format("seed {}: {}: {}\n", seed, violation.check, violation.problem.str());
  if (remaining)
    failure.report += fmt::format("small: {}: {}\n{}", remaining->check, remaining->problem.str(), failure.text);
  if (!failure.file.empty()) {
    failure.report +=
        fmt::format("written to {}; again: tenon fuzz ir --file {} --seed {}\n", failure.file, failure.file, seed);
  }
  failure.report += fmt::format("the whole: tenon fuzz ir --seed {} --count 1", seed);
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
