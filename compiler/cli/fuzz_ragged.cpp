// tenon fuzz ragged: random loops over batches of different lengths, under random steps of schedules.
#include <fmt/format.h>

#include <chrono>

#include "compiler/cli/command.h"
#include "compiler/fuzz/ragged.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

struct FuzzRagged {
  uint64_t seed = 0;
  int64_t count = 500;
  bool json = false, quiet = false;

  Status run() const {
    const uint64_t first =
        seed != 0 ? seed : static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    const auto begin = std::chrono::steady_clock::now();
    TENON_TRY_ASSIGN(result, compiler::fuzz::ragged_campaign(first, count, [&](int64_t done) {
                       if (!quiet && done % 500 == 0) print_stderr("{} of {} programs\n", done, count);
                     }));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (json) {
      Json out;
      out.begin_object().field("seed", first).field("programs", result->programs).field("native", result->native);
      out.field("paddings_refused", result->paddings_refused).field("seconds", seconds.count());
      out.key("steps").begin_object();
      for (const auto& [primitive, steps] : result->steps)
        out.key(primitive).begin_object().field("accepted", steps.accepted).field("refused", steps.refused).end();
      out.end().field("failure", result->failure.value_or(""));
      print_stdout("{}", out.end().str());
    }
    // A finding, not a fault of this run.
    if (result->failure)
      return error(fmt::format("a schedule changes what a program computes\n{}", *result->failure), "fuzz");
    if (json) return {};
    print_stdout("{} programs, seeds {} to {}: all equal, {} of them as native code, {:.0f} s\n", result->programs,
                 first, first + static_cast<uint64_t>(count) - 1, result->native, seconds.count());
    print_stdout("{} paddings of loops beyond their storage, all refused\n", result->paddings_refused);
    for (const auto& [primitive, steps] : result->steps)
      print_stdout("  {}: {} accepted, {} refused\n", primitive, steps.accepted, steps.refused);
    return {};
  }
};

}  // namespace

Action fuzz_ragged(Options& options) {
  auto command = std::make_shared<FuzzRagged>();
  options.option(command->count, "-n,--count", "N", "programs", {.least = 1});
  options.option(command->seed, "--seed", "N", "seed of the first program, the next ones count up; 0: from the clock",
                 {});
  options.flag(command->quiet, "-q,--quiet", "no progress");
  options.flag(command->json, "--json", "print JSON");
  options.footer("tenon fuzz ragged --count 100");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
