// The benchmark's programs compute the right results, and the benchmark measures them; the test asserts no time.
#include "sim/bench/bench.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "hw/spec/requantize.h"
#include "sim/behavioral/behavioral.h"
#include "sim/behavioral/kernels.h"
#include "sim/fuzz/shrink.h"

namespace tenon::sim::bench {
namespace {

// DRAM offsets of bench.cpp: the inputs of each tile, the weights, the parameters and the results of each channel
// block.
constexpr size_t kInputs = 4096, kWeights = 65536, kParameters = 1 << 19, kResults = 1 << 20, kResultBytes = 65536;
constexpr size_t kMap = 14, kPadded = 16, kKernel = 3;

// The results of the last of `tiles` tiles by the definition of a convolution, block by block of output channels. The
// layouts are [channel block, y, x, lane] for maps and [output block, input block, y, x, output lane, input lane] for
// weights.
std::vector<std::vector<std::byte>> convolution_results(const fuzz::Program& program, int tiles) {
  const auto& instructions = program.launches[0].instructions;
  const auto* gemm = [&] {
    for (const auto& i : instructions)
      if (const auto* g = std::get_if<spec::native::Gemm>(&i)) return g;
    return static_cast<const spec::native::Gemm*>(nullptr);
  }();
  const auto gemms =
      std::ranges::count_if(instructions, [](const auto& i) { return std::holds_alternative<spec::native::Gemm>(i); });
  const auto blocks_in = static_cast<size_t>(gemm->r0), rows = static_cast<size_t>(gemm->y);
  const size_t blocks_out = static_cast<size_t>(gemms) / static_cast<size_t>(tiles);
  const auto lanes_in = static_cast<size_t>(program.config.block_in);
  const auto lanes_out = static_cast<size_t>(program.config.block_out);
  const auto value = [&](size_t offset) { return static_cast<int32_t>(static_cast<int8_t>(program.memory[offset])); };
  const size_t inputs = kInputs * static_cast<size_t>((tiles - 1) % 8);
  const spec::LayerParameters layer;  // clamps to the whole range

  std::vector<std::vector<std::byte>> results(blocks_out, std::vector<std::byte>(rows * kMap * lanes_out));
  for (size_t o = 0; o < blocks_out; ++o) {
    for (size_t y = 0; y < rows; ++y) {
      for (size_t x = 0; x < kMap; ++x) {
        for (size_t lane = 0; lane < lanes_out; ++lane) {
          int32_t sum = 0;
          for (size_t c = 0; c < blocks_in; ++c) {
            for (size_t k = 0; k < kKernel * kKernel; ++k) {
              const size_t ky = k / kKernel, kx = k % kKernel;
              const size_t input = inputs + ((c * (rows + 2) + y + ky) * kPadded + x + kx) * lanes_in;
              const size_t matrix = (o * blocks_in + c) * kKernel * kKernel + k;
              const size_t weight = kWeights + (matrix * lanes_out + lane) * lanes_in;
              for (size_t i = 0; i < lanes_in; ++i) sum += value(input + i) * value(weight + i);
            }
          }
          const std::byte* parameters =
              &program.memory[kParameters + (o * lanes_out + lane) * spec::kChannelParameterBytes];
          results[o][(y * kMap + x) * lanes_out + lane] =
              static_cast<std::byte>(spec::requantize(sum, kernels::channel_parameters(parameters), layer, 0));
        }
      }
    }
  }
  return results;
}

TEST(Bench, the_convolution_is_legal_and_right_on_every_native_configuration) {
  constexpr int kTiles = 2;
  for (const auto& name : spec::named_configs()) {
    SCOPED_TRACE(name);
    const auto config = *spec::load_config(name);
    if (!config.native) continue;
    const auto program = convolution(config, kTiles);
    EXPECT_TRUE(fuzz::legal(program));
    const auto expected = convolution_results(program, kTiles);
    EXPECT_TRUE(std::ranges::any_of(expected[0], [](std::byte b) { return b != std::byte{}; })) << "not all are zero";
    for (const KernelSet* kernels : kernel_sets()) {
      if (!kernels->supported()) continue;
      auto simulator = make_behavioral(program.config,
                                       {.memory_bytes = program.memory.size(), .kernels = std::string(kernels->name)});
      ASSERT_TRUE(simulator) << simulator.error().str();
      const Status status = fuzz::run(**simulator, program);
      ASSERT_TRUE(status) << status.error().str();
      for (size_t o = 0; o < expected.size(); ++o) {
        const auto stored = (*simulator)->memory().subspan(kResults + o * kResultBytes, expected[o].size());
        EXPECT_TRUE(std::ranges::equal(stored, expected[o])) << kernels->name << ", output block " << o;
      }
    }
  }
}

TEST(Bench, figures_are_printed_for_each_kernel_set) {
  const auto print = [](const std::vector<Measurement>& measurements) {
    for (const Measurement& m : measurements) {
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
