// tenon fuzz partition: random modules partitioned for synthetic targets, and random problems of assignment against
// exhaustive search.
#include <fmt/format.h>

#include <chrono>

#include "compiler/cli/command.h"
#include "compiler/fuzz/assignments.h"
#include "compiler/fuzz/campaign.h"
#include "compiler/fuzz/partitions.h"
#include "compiler/ir/text.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

struct FuzzPartition {
  uint64_t seed = 0;
  int64_t count = 1000, size = 24, shrink = 4000;
  std::string file, directory = ".";
  bool optimal = false;

  Status run() const {
    const uint64_t first =
        seed != 0 ? seed : static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    return optimal ? problems(first) : modules(first);
  }

  Status problems(uint64_t first) const {
    for (const uint32_t labels : {2u, 3u}) {
      for (const bool launches : {false, true}) {
        TENON_TRY_ASSIGN(tally, compiler::fuzz::check_assignments(first, count, labels, launches));
        print_stdout(
            "{} labels, with{} launches: the search finds the optimum of {} of {} problems, the worst costs "
            "{:.2f} % more; branch and bound finds it of all\n",
            labels, launches ? "" : "out", tally->optimal, tally->problems, 100 * tally->worst);
      }
    }
    return {};
  }

  Status modules(uint64_t first) const {
    compiler::fuzz::CampaignOptions options;
    options.seed = first;
    options.count = count;
    options.command = "fuzz partition";
    options.generator = {.size = static_cast<int>(size), .floats = {}};
    options.shrink_budget = static_cast<int>(shrink);
    options.directory = directory;
    options.oracle.passes = {compiler::fuzz::random_partition()};
    options.oracle.pipeline = options.oracle.text = options.oracle.machine = options.oracle.batch = false;
    options.oracle.mutants = 0;
    if (!file.empty()) {
      compiler::Context context;
      TENON_TRY_ASSIGN(module, compiler::load(context, file));
      compiler::fuzz::Counts counts;
      const auto violation = compiler::fuzz::replay(context, *module, options, counts);
      if (violation) return error(fmt::format("{}: {}", violation->check, violation->problem.str()), file);
      print_stdout("{}: holds\n", file);
      return {};
    }
    const auto result = compiler::fuzz::campaign(options);
    if (result.failure) return error(fmt::format("a promise does not hold\n{}", result.failure->report), "fuzz");
    print_stdout("{} modules, {} bindings, seeds {} to {}: all promises hold; {} have regions or composites\n",
                 result.counts.modules, result.counts.bindings, first, first + static_cast<uint64_t>(count) - 1,
                 result.counts.changed);
    return {};
  }
};

}  // namespace

Action fuzz_partition(Options& options) {
  auto command = std::make_shared<FuzzPartition>();
  options.option(command->count, "--count", "N", "number of modules, or of problems of each kind", {.least = 1});
  options.option(command->seed, "--seed", "N", "of the first one; 0: by the clock", {});
  options.option(command->size, "--size", "N", "number of bindings of a module, about", {.least = 1, .most = 1000});
  options.option(command->shrink, "--shrink", "N", "attempts to make a failing module smaller", {.least = 0});
  options.option(command->file, "--file", "FILE", "check the module of this file instead");
  options.option(command->directory, "--directory", "DIR", "where a failing module is written");
  options.flag(command->optimal, "--optimal",
               "random problems of assigning units to targets, against exhaustive search, instead of modules");
  options.footer("tenon fuzz partition --count 1000\ntenon fuzz partition --optimal --count 100");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
