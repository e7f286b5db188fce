// The benchmark's programs are right, and it measures them; it asserts no time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/bench/bench.h"
#include "sim/fuzz/shrink.h"
#include "tests/sim/oracle.h"

namespace tenon::sim::bench {
namespace {

TEST(Bench, the_convolution_is_legal_and_right_on_every_configuration) {
  for (const auto& name : spec::named_configs()) {
    const auto program = convolution(*spec::load_config(name), 2);
    EXPECT_TRUE(fuzz::legal(program)) << name;
  }
  const auto program = convolution(*spec::load_config("tiny"), 2);
  sim::testing::Oracle oracle(program.config, program.memory);
  for (const auto& i : program.launches[0].instructions) oracle.execute(i, program.bases);
  EXPECT_FALSE(std::equal(oracle.dram.begin(), oracle.dram.end(), program.memory.begin())) << "it stores something";
}

TEST(Bench, figures_are_printed_for_each_kernel_set) {
  const auto print = [](const std::vector<Measurement>& all) {
    for (const Measurement& m : all) {
      fmt::print("{:12} {:26} {:7.2f} GMAC/s, {:9} cycles\n", m.program, m.simulator, m.gmacs_per_second(), m.cycles);
      EXPECT_GT(m.macs, 0u);
      EXPECT_GT(m.cpu_seconds, 0);
    }
  };
  const auto conv = behavioral(convolution(*spec::load_config("default"), 4), "conv3x3", 3);
  ASSERT_TRUE(conv) << conv.error().str();
  print(*conv);
  for (const char* name : {"conv_C2", "conv_C8", "gemm_256x256x256_b128_vt2"}) {
    const auto vta = behavioral_vta(std::string(TENON_SOURCE_DIR "/tests/vta/") + name + ".bin", 3);
    ASSERT_TRUE(vta) << vta.error().str();
    print(*vta);
  }
}

}  // namespace
}  // namespace tenon::sim::bench
