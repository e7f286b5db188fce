// Random configurations besides the named ones: RTL equals the behavioral simulator at every architectural write.
//
// Each requires the build of a Verilated model, about a minute. TENON_FUZZ_COUNT sets the number of programs on each,
// TENON_FUZZ_CONFIG the first configuration, TENON_FUZZ_CONFIG_FILE one in a file instead of random ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "driver/accelerator.h"
#include "sim/fuzz/campaign.h"
#include "sim/fuzz/disturb.h"
#include "support/try.h"
#include "tests/sim/random_config.h"

namespace tenon::sim::fuzz {
namespace {

uint64_t from_environment(const char* name, uint64_t fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : std::strtoull(value, nullptr, 10);
}

struct RandomConfig : ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomConfig, RtlEqualsBehavioralAtEveryWrite) {
  const char* const path = std::getenv("TENON_FUZZ_CONFIG_FILE");
  const spec::Config config = path != nullptr
                                  ? spec::load_config(path).value()
                                  : sim::testing::random_config(from_environment("TENON_FUZZ_CONFIG", 0) + GetParam());
  const std::string file = fmt::format("{}/{}.json", ::testing::TempDir(), config.name);
  std::ofstream(file) << spec::to_json(config);
  SCOPED_TRACE(spec::to_json(config));
  const auto runner = [&](const Program& program) -> Status {
    TENON_TRY_ASSIGN(accelerator,
                     driver::open(fmt::format("lockstep:{}?{}&fast_dot=off", file, memory_options(program))));
    return run_disturbed(*(*accelerator)->simulator(), program, 4'000'000);
  };
  CampaignOptions options;
  options.count = static_cast<int>(from_environment("TENON_FUZZ_COUNT", 100));
  options.shrink_budget = 200;
  options.config = file;
  const CampaignResult result = campaign(config, options, runner);
  EXPECT_FALSE(result.failure) << result.failure->report;
}

// 12 has own lanes with packed products, 74 with serial ones.
INSTANTIATE_TEST_SUITE_P(Seeds, RandomConfig, ::testing::Values(1, 2, 3, 12, 74));

}  // namespace
}  // namespace tenon::sim::fuzz
