// The RTL's observability: waves on request, and a timeline that agrees with the hardware's counters.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "driver/accelerator.h"
#include "sim/fuzz/generator.h"
#include "sim/simulator.h"

namespace tenon::driver {
namespace {

TEST(Waves, AVcdFileHasTheTopAndTheClock) {
  const auto file = std::filesystem::temp_directory_path() / ("tenon-waves-" + std::to_string(getpid()) + ".vcd");
  {
    const auto accelerator = open("verilator:tiny?memory=1M&trace=" + file.string());
    ASSERT_TRUE(accelerator) << accelerator.error().str();
    EXPECT_EQ((*accelerator)->read_register(spec::reg::kVersion).value() & 0xffff, uint32_t{spec::kRegisterMapVersion});
  }
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  std::filesystem::remove(file);
  EXPECT_NE(text.find("$scope module tenon"), std::string::npos);
  EXPECT_NE(text.find("clk_i"), std::string::npos);
  EXPECT_NE(text.find("\n#100\n"), std::string::npos);
}

TEST(Timeline, IntervalsOfAnEngineAreInOrderAndInsideTheLaunch) {
  const auto program =
      sim::fuzz::generate(spec::load_config("tiny").value(), 5, {.profile = spec::Profile::kNative, .max_launches = 1});
  const auto accelerator = open("verilator:tiny?memory=1M");
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  sim::Simulator& simulator = *(*accelerator)->simulator();
  simulator.record_timeline(true);
  const auto status = sim::fuzz::run(simulator, program);
  ASSERT_TRUE(status) << status.error().str();
  const Counters counters = read_counters(**accelerator).value();
  std::map<uint8_t, uint64_t> begin;
  std::map<uint32_t, int> seen;
  for (const sim::Interval& interval : simulator.timeline()) {
    EXPECT_LT(interval.engine, spec::kEngines);
    EXPECT_LE(interval.begin, interval.end);
    EXPECT_LE(interval.end, counters.cycles + 16);
    if (interval.kind != sim::Interval::Kind::kBusy) continue;
    EXPECT_GE(interval.begin, begin[interval.engine]);
    begin[interval.engine] = interval.begin;
    ++seen[interval.instruction];
  }
  // Every instruction was busy exactly once.
  for (size_t i = 0; i < program.launches[0].instructions.size(); ++i)
    EXPECT_EQ(seen[static_cast<uint32_t>(2 * i)], 1) << i;
}

}  // namespace
}  // namespace tenon::driver
