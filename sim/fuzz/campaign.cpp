#include "sim/fuzz/campaign.h"

#include <fmt/format.h>

#include "sim/behavioral/behavioral.h"
#include "sim/fuzz/disturb.h"
#include "sim/fuzz/shrink.h"
#include "support/random.h"
#include "support/try.h"

namespace tenon::sim::fuzz {

std::string command(std::string_view config, uint64_t seed, const GeneratorOptions& options) {
  std::string text = fmt::format("tenon fuzz accel --config {} --seed {} --count 1 --length {}..{}", config, seed,
                                 options.min_length, options.max_length);
  if (options.profile) text += fmt::format(" --profile {}", name(*options.profile));
  return text;
}

CampaignResult campaign(const spec::Config& config, const CampaignOptions& options, const Runner& run,
                        const std::function<void(const Program&)>& progress) {
  CampaignResult result;
  for (int i = 0; i < options.count; ++i) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(i);
    Program program = generate(config, seed, options.generator);
    ++result.programs;
    result.instructions += program.length();
    Status status = run(program);
    if (status) {
      if (progress) progress(program);
      continue;
    }
    const size_t length = program.length();
    Failure failure{.seed = seed, .found = status.error(), .smallest = {}, .remaining = status.error(), .report = {}};
    const Fails fails = [&](const Program& candidate) {
      Status again = run(candidate);
      if (!again) failure.remaining = again.error();
      return !again;
    };
    failure.smallest =
        options.shrink_budget > 0 ? shrink(std::move(program), fails, options.shrink_budget) : std::move(program);
    if (Status last = run(failure.smallest); !last) failure.remaining = last.error();
    failure.report = fmt::format(
        "seed {} fails ({} instructions):\n{}\nrepeat with: {}\n\nsmallest program that fails ({} "
        "instructions):\n{}\n{}",
        seed, length, failure.found.str(),
        command(options.config.empty() ? config.name : options.config, seed, options.generator),
        failure.smallest.length(), failure.remaining.str(), to_text(failure.smallest));
    result.failure = std::move(failure);
    return result;
  }
  return result;
}

std::string memory_options(const Program& program) {
  Random random(program.seed * 977 + 5);
  // Braces fix the order of evaluation; the order of a call's arguments differs between compilers.
  const int values[] = {random.of({0, 0, 5, 30, 70}),
                        random.of({1, 3, 20, 60, 300}),
                        random.of({1, 5, 40, 200}),
                        random.of({1, 2, 16}),
                        random.of({0, 1}),
                        random.of({0, 0, 1})};
  const char* const writes = random.of({"address", "data", "together", "any"});
  return fmt::format(
      "memory={}&stall_seed={}&stalls={}&latency={}&write_latency={}&outstanding={}&interleave={}&late_ready={}&"
      "writes={}",
      program.memory.size(), program.seed, values[0], values[1], values[2], values[3], values[4], values[5], writes);
}

Runner behavioral_runner() {
  return [](const Program& program) -> Status {
    TENON_TRY_ASSIGN(simulator, make_behavioral(program.config, {.memory_bytes = program.memory.size()}));
    return run_disturbed(**simulator, program);
  };
}

}  // namespace tenon::sim::fuzz
