// tenon dtr-sim and dtr-linear: rematerialization under a budget of memory, on logs of training steps and on the linear
// network of the paper's theorem.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/cli/command.h"
#include "compiler/cli/pass_options.h"
#include "runtime/remat/best.h"
#include "runtime/remat/linear.h"
#include "runtime/remat/simulate.h"
#include "support/json.h"
#include "support/number.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using runtime::remat::CoreOptions;
using runtime::remat::Failure;
using runtime::remat::Policy;
using runtime::remat::Release;
using runtime::remat::Replay;
using runtime::remat::StepLog;

constexpr int64_t kLargestNetwork = 1 << 20;
constexpr int64_t kLinearLimit = 10;  // times 2 N operators

constexpr std::string_view kBest = "best";

std::string policy_names() {
  std::string names;
  for (const Policy policy : runtime::remat::kPolicies) names += fmt::format("{},", name(policy));
  names.pop_back();
  return names;
}

std::string_view name_of(Failure failure) {
  switch (failure) {
    case Failure::kMemory: return "memory";
    case Failure::kExtraCost: return "time";
    case Failure::kExtraCount: return "operators";
    case Failure::kHost: return "host";
  }
  return "";
}

struct DtrSim {
  std::vector<std::string> logs;
  std::string policies = policy_names();
  std::string ratios = "0.9,0.8,0.7,0.6,0.5,0.4,0.3,0.2,0.1";
  std::string release = "evict";
  double max_slowdown = 2;
  int64_t effort = 50;
  bool json = false;

  Status run() const {
    std::vector<std::optional<Policy>> chosen;  // nothing is the best replay
    for (const std::string& policy : split(policies)) {
      if (policy == kBest) {
        chosen.emplace_back();
        continue;
      }
      auto found = runtime::remat::find_policy(policy);
      if (!found) {
        found.error().help += fmt::format(", and {} for a known future", kBest);
        return std::unexpected(found.error());
      }
      chosen.emplace_back(*found);
    }
    std::vector<double> fractions;
    for (const std::string& ratio : split(ratios)) {
      TENON_TRY_ASSIGN(fraction, read_number<double>("--ratio", ratio, {0, 1000, true}));
      fractions.push_back(*fraction);
    }
    Json out;
    out.begin_array();
    for (const std::string& path : logs) {
      TENON_TRY_ASSIGN(log, runtime::remat::read_log(path));
      TENON_TRY(simulate(*log, chosen, fractions, out));
    }
    if (json) print_stdout("{}", out.end().str());
    return {};
  }

  Status simulate(const StepLog& log, const std::vector<std::optional<Policy>>& chosen,
                  const std::vector<double>& fractions, Json& out) const {
    const Replay base = runtime::remat::undisturbed(log);
    out.begin_object().field("log", log.name).field("operators", base.operators).field("clock", base.clock);
    out.field("peak_bytes", base.peak).field("constant_bytes", log.constant_bytes());
    out.field("ignored_releases", log.ignored_releases).key("policies").begin_object();
    if (!json) {
      print_stdout("{}: {} operators, time {}, peak {:.1f} MB, of which constants {:.1f} MB\n", log.name,
                   base.operators, base.clock, 1e-6 * static_cast<double>(base.peak),
                   1e-6 * static_cast<double>(log.constant_bytes()));
      if (log.ignored_releases > 0) {
        print_stdout("  {} releases of names from before the step are ignored\n", log.ignored_releases);
      }
      std::string header;
      for (const double fraction : fractions) header += fmt::format("{:>7}", fraction);
      print_stdout("  {:<8}{}\n", "budget", header);
    }
    for (const std::optional<Policy> policy : chosen) {
      const std::string_view title = policy ? name(*policy) : kBest;
      out.key(title).begin_array();
      std::string row;
      for (const double fraction : fractions) {
        CoreOptions options = runtime::remat::options_for(log, base, fraction, max_slowdown);
        options.release = *std::ranges::find(runtime::remat::kReleases, release,
                                             [](Release how) { return runtime::remat::name(how); });
        std::string found_by;
        Replay result;
        if (policy) {
          options.policy = *policy;
          result = runtime::remat::replay(log, options);
        } else {
          runtime::remat::Best best = runtime::remat::best_replay(log, options, effort);
          result = std::move(best.replay);
          found_by = std::move(best.found_by);
        }
        const double slowdown = static_cast<double>(result.clock) / static_cast<double>(base.clock);
        out.begin_object().field("ratio", fraction).field("budget", options.budget).field("clock", result.clock);
        out.field("slowdown", slowdown).field("evictions", result.evictions).field("recomputed", result.recomputed);
        if (result.failure) out.field("fails", name_of(*result.failure)).field("problem", result.problem);
        if (!policy) out.field("found_by", found_by);
        out.end();
        row += fmt::format("{:>7}", cell(result, slowdown));
      }
      out.end();
      if (!json) print_stdout("  {:<8}{}\n", title, row);
    }
    out.end().end();
    return {};
  }

  std::string cell(const Replay& result, double slowdown) const {
    if (!result.failure) return fmt::format("{:.3f}", slowdown);
    switch (*result.failure) {
      case Failure::kMemory: return "memory";
      case Failure::kExtraCost: return fmt::format(">{}", max_slowdown);
      case Failure::kExtraCount: return "ops";
      case Failure::kHost: return "host";
    }
    return "";
  }
};

struct DtrLinear {
  int64_t layers = 2048;
  bool json = false;

  Status run() const {
    constexpr Policy kCompared[] = {Policy::kEq, Policy::kDtr, Policy::kLocal, Policy::kLru};
    Json out;
    out.begin_array();
    if (!json) {
      print_stdout("operators / 2N within a budget of 2 ceil(sqrt N) tensors\n  {:>8}{:>8}", "N", "budget");
      for (const Policy policy : kCompared) print_stdout("{:>8}", name(policy));
      print_stdout("\n");
    }
    for (int64_t n = std::min<int64_t>(layers, 64); n <= layers; n = n == layers ? n + 1 : std::min(2 * n, layers)) {
      const StepLog log = runtime::remat::linear_network(n);
      const int64_t budget = runtime::remat::linear_budget(n);
      out.begin_object().field("layers", n).field("budget", budget);
      std::string row;
      for (const Policy policy : kCompared) {
        // Gradients that are not needed again are banished: exact neighbourhoods remain small.
        const Replay result = runtime::remat::replay(log, {.budget = budget,
                                                           .max_extra_count = 2 * n * (kLinearLimit - 1),
                                                           .policy = policy,
                                                           .release = Release::kBanish});
        const double factor = static_cast<double>(result.operators) / static_cast<double>(2 * n);
        if (result.failure) out.key(name(policy)).value("more than 10");
        else out.field(name(policy), factor);
        row += fmt::format("{:>8}", result.failure ? fmt::format(">{}", kLinearLimit) : fmt::format("{:.3f}", factor));
      }
      out.end();
      if (!json) print_stdout("  {:>8}{:>8}{}\n", n, budget, row);
    }
    if (json) print_stdout("{}", out.end().str());
    return {};
  }
};

}  // namespace

Action dtr_sim(Options& options) {
  auto command = std::make_shared<DtrSim>();
  options.arguments(command->logs, "LOG", "logs of training steps, in the JSON lines of the published DTR simulator");
  options.option(command->policies, "--policy", "NAME,...",
                 "eviction policies, and best: the fastest replay that a search finds");
  options.option(command->ratios, "--ratio", "R,...", "budgets, as fractions of the undisturbed step's peak");
  options.choice(command->release, "--release", {"evict", "prompt", "forget", "banish"},
                 "what becomes of a tensor that nothing refers to; best tries all");
  options.option(command->max_slowdown, "--max-slowdown", "X", "a step fails beyond X times its undisturbed time",
                 {1, 1000});
  options.option(command->effort, "--effort", "N", "replays of best's local search", {0, 1'000'000});
  options.flag(command->json, "--json", "print JSON");
  options.footer(
      "Cells are times relative to the undisturbed step; memory: the budget cannot be kept.\n"
      "--release evict: it is evicted at its release; prompt: also when it was computed again for another "
      "one;\nforget: and leaves the graph when nothing was computed from it; banish: when nothing evicted was, so "
      "that\nwhat was computed from it remains resident.\n"
      "Example: tenon dtr-sim step.log --policy eq,local --ratio 0.8,0.5");
  return [command] { return command->run(); };
}

Action dtr_linear(Options& options) {
  auto command = std::make_shared<DtrLinear>();
  options.option(command->layers, "-n,--layers", "N", "layers of the largest network; smaller ones come first",
                 {1, kLargestNetwork});
  options.flag(command->json, "--json", "print JSON");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
