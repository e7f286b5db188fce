// Random regions on every kind of configuration equal the integer reference, with the race detector on.
// TENON_TEST_SEED repeats a run, TENON_TEST_CASES sets the number of cases.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/compiler/backends/accel/random_region.h"
#include "tests/rounds.h"

namespace tenon::compiler::accel {
namespace {

uint64_t from_environment(const char* name, uint64_t standard) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 0) : standard;
}

// The first difference between a problem's results on the simulator and the reference's; empty where there is none.
std::string difference(const spec::Config& config, const Problem& problem, const ScheduleOptions& options = {}) {
  const auto expected = reference(problem.region, problem.inputs);
  const auto found = run_on_simulator(config, problem.region, problem.inputs, options);
  if (!found) return found.error().str();
  for (size_t i = 0; i < found->size(); ++i) {
    const Values& values = expected[problem.region.outputs[i]];
    for (size_t j = 0; j < values.size(); ++j) {
      if ((*found)[i][j] == values[j]) continue;
      return "output " + std::to_string(i) + " element " + std::to_string(j) + " is " + std::to_string((*found)[i][j]) +
             ", must be " + std::to_string(values[j]);
    }
  }
  return {};
}

// The failure of a case; empty if it passes.
std::string failure(const spec::Config& config, const Case& c) {
  return difference(config, problem_of(c), {.fusing = c.data % 4 == 0 ? Fusing::kCheapest : Fusing::kWherePossible});
}

// Makes one number after the other smaller as long as the case still fails.
Case shrink(const spec::Config& config, Case c) {
  const Case standard;
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const auto& [name, field] : Case::kFields) {
      for (const int64_t value : {standard.*field, (c.*field + standard.*field) / 2, c.*field - 1}) {
        Case next = c;
        next.*field = value;
        if (field == &Case::c && c.groups == c.c && c.groups == c.o) next.groups = next.o = next.c;  // depthwise
        if (value >= c.*field || value < standard.*field || !next.valid() || failure(config, next).empty()) continue;
        c = next;
        smaller = true;
        break;
      }
    }
  }
  return c;
}

void run_cases(const spec::Config& fixed, bool random_configurations, uint64_t cases, int64_t macs) {
  const uint64_t seed = from_environment("TENON_TEST_SEED", 1);
  Random random(seed);
  cases = from_environment("TENON_TEST_CASES", cases);
  for (uint64_t i = 0; i < cases; ++i) {
    const spec::Config config = random_configurations ? random_config(random) : fixed;
    const Case c = random_case(random, config, macs);
    if (failure(config, c).empty()) continue;
    const Case small = shrink(config, c);
    FAIL() << "seed " << seed << ", case " << i << " on " << spec::to_json(config) << "\n  " << c.str()
           << "\n  smallest: " << small.str() << "\n  " << failure(config, small)
           << "\nrun it again: TENON_TEST_SEED=" << seed << " TENON_TEST_CASES=" << i + 1 << " accel_random_test";
  }
}

void run_products(const spec::Config& fixed, bool random_configurations, uint64_t cases, int64_t macs) {
  const uint64_t seed = from_environment("TENON_TEST_SEED", 1);
  Random random(seed);
  cases = from_environment("TENON_TEST_CASES", cases);
  for (uint64_t i = 0; i < cases; ++i) {
    const spec::Config config = random_configurations ? random_config(random) : fixed;
    std::string text;
    const Problem problem = random_products(random, config, macs, text);
    EXPECT_EQ(difference(config, problem), "")
        << "seed " << seed << ", case " << i << ", products of " << text << " on " << spec::to_json(config);
  }
}

spec::Config named(const char* name) {
  auto config = spec::load_config(name);
  EXPECT_TRUE(config) << config.error().str();
  return *config;
}

TEST(AccelRandom, RegionsOnTinyEqualTheReference) { run_cases(named("tiny"), false, rounds(100), 1 << 20); }
TEST(AccelRandom, RegionsOnDefaultEqualTheReference) { run_cases(named("default"), false, rounds(70), 40 << 20); }
TEST(AccelRandom, RegionsOnWide8x16EqualTheReference) { run_cases(named("wide-8x16"), false, rounds(70), 8 << 20); }
TEST(AccelRandom, RegionsOnRandomConfigurationsEqualTheReference) { run_cases({}, true, rounds(100), 1 << 18); }
TEST(AccelRandom, ProductsOnDefaultEqualTheReference) { run_products(named("default"), false, rounds(40), 1 << 20); }
TEST(AccelRandom, ProductsOnWide8x16EqualTheReference) { run_products(named("wide-8x16"), false, rounds(30), 1 << 18); }
TEST(AccelRandom, ProductsOnRandomConfigurationsEqualTheReference) { run_products({}, true, rounds(60), 1 << 16); }

}  // namespace
}  // namespace tenon::compiler::accel
