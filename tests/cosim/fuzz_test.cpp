// Random programs on RTL and behavioral simulator in lockstep: equal at every architectural write, on each of three
// configurations, under latencies, stalls and orders of the memory that differ from program to program, and after soft
// resets and errors of the memory.
//
// TENON_FUZZ_COUNT and TENON_FUZZ_SEED set the number of programs and the first seed.
#include "sim/fuzz/campaign.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "driver/accelerator.h"
#include "sim/fuzz/disturb.h"
#include "support/try.h"
#include "tests/cosim/software_checks.h"

namespace tenon::sim::fuzz {
namespace {

uint64_t from_environment(const char* name, uint64_t fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : std::strtoull(value, nullptr, 10);
}

struct Tested {
  const char* config;
  const char* options;
};
void PrintTo(const Tested& tested, std::ostream* out) { *out << tested.config; }

struct FuzzTest : testing::TestWithParam<Tested> {};

TEST_P(FuzzTest, RtlEqualsBehavioralAtEveryWrite) {
  const auto config = spec::load_config(GetParam().config).value();
  const auto runner = [](const Program& program) -> Status {
    TENON_TRY_ASSIGN(accelerator, driver::open(fmt::format("lockstep:{}?{}{}", program.config.name,
                                                           memory_options(program), GetParam().options)));
    return run_disturbed(*(*accelerator)->simulator(), program, 4'000'000);
  };
  CampaignOptions options;
  options.seed = from_environment("TENON_FUZZ_SEED", 1);
  options.count = static_cast<int>(from_environment("TENON_FUZZ_COUNT", 50));
  options.shrink_budget = 200;
  const CampaignResult result = campaign(config, options, runner);
  fmt::print("{}: {} programs, {} instructions\n", config.name, result.programs, result.instructions);
  EXPECT_FALSE(result.failure) << result.failure->report;
}

// One of them with the array of multipliers that is synthesized, which the other models replace.
INSTANTIATE_TEST_SUITE_P(Configurations, FuzzTest,
                         testing::Values(Tested{"tiny", ""}, Tested{"wide-8x16", "&fast_dot=off"},
                                         Tested{"default-128", ""}));

TEST(Software, SeesInterruptsProgressAndErrorsOfFetches) {
  for (const auto check : {check_interrupts, check_progress, check_fetch_errors}) {
    const Status status = check("");
    EXPECT_TRUE(status) << status.error().str();
  }
}

}  // namespace
}  // namespace tenon::sim::fuzz
