// Random programs on RTL and behavioral simulator in lockstep: equal at every architectural write, on each of three
// configurations, under latencies, stalls and orders of the memory that differ from program to program.
//
// TENON_FUZZ_COUNT and TENON_FUZZ_SEED make it as long, and as different, as one likes.
#include "sim/fuzz/campaign.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "driver/accelerator.h"
#include "sim/fuzz/random.h"

namespace tenon::sim::fuzz {
namespace {

uint64_t from_environment(const char* name, uint64_t fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : std::strtoull(value, nullptr, 10);
}

// The memory's behaviour belongs to the program's seed, so that a seed repeats a failure.
std::string device(const Program& program) {
  Random random(program.seed * 977 + 5);
  return fmt::format(
      "lockstep:{}?memory={}&stall_seed={}&stalls={}&latency={}&write_latency={}&outstanding={}&interleave={}",
      program.config.name, program.memory.size(), program.seed, random.of({0, 0, 5, 30, 70}),
      random.of({1, 3, 20, 60, 300}), random.of({1, 5, 40, 200}), random.of({1, 2, 16}), random.of({"on", "off"}));
}

struct FuzzTest : testing::TestWithParam<const char*> {};

TEST_P(FuzzTest, RtlEqualsBehavioralAtEveryWrite) {
  const auto config = spec::load_config(GetParam()).value();
  const auto runner = [](const Program& program) -> Status {
    auto accelerator = driver::open(device(program));
    if (!accelerator) return forward_error(accelerator);
    return run(*(*accelerator)->simulator(), program, 4'000'000);
  };
  CampaignOptions options;
  options.seed = from_environment("TENON_FUZZ_SEED", 1);
  options.count = static_cast<int>(from_environment("TENON_FUZZ_COUNT", 200));
  options.shrink_budget = 200;
  const CampaignResult result = campaign(config, options, runner);
  fmt::print("{}: {} programs, {} instructions\n", config.name, result.programs, result.instructions);
  EXPECT_FALSE(result.failure) << result.failure->report;
}

INSTANTIATE_TEST_SUITE_P(Configurations, FuzzTest, testing::Values("tiny", "wide-8x16", "default-128"));

}  // namespace
}  // namespace tenon::sim::fuzz
