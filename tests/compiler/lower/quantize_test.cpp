// Quantization in native code, bit for bit: quotients beside the halves between two integers, infinities, NaN.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/lower/lower.h"
#include "runtime/vm/session.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

// Values whose quotients are beside the halves between two integers, and any other bits.
Tensor values_around(float scale, std::mt19937& random) {
  constexpr int64_t kCount = 4096;
  Tensor tensor(DType::kF32, {kCount});
  std::uniform_int_distribution<int> steps(-1100, 1100), ulps(-2, 2), kind(0, 7);
  for (float& value : tensor.data<float>()) {
    value = static_cast<float>((steps(random) + 0.5) * static_cast<double>(scale));
    for (int i = ulps(random); i > 0; --i) value = std::nextafter(value, HUGE_VALF);
    for (int i = ulps(random); i < 0; ++i) value = std::nextafter(value, -HUGE_VALF);
    if (kind(random) == 0) value = std::bit_cast<float>(static_cast<uint32_t>(random()));
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float special[] = {0.0F, -0.0F, kInfinity, -kInfinity, std::nanf(""), 1e-45F, -1e-45F, 3.4e38F, -3.4e38F};
  std::ranges::copy(special, tensor.data<float>().begin());
  return tensor;
}

TEST(QuantizeKernels, BytesAreTheReferencesForEveryScale) {
  std::mt19937 random(test_seed(29));
  std::uniform_real_distribution<float> exponent(-20, 20);
  std::vector<float> scales{1, 0.5F, 0.1F, 2e-37F, 9e36F, 0x1p-60F, 0x1p60F, std::bit_cast<float>(0x3fffffffu)};
  for (int i = 0; i < rounds(40); ++i) scales.push_back(std::exp2(exponent(random)));
  for (const float scale : scales) {
    const std::string dtype = random() % 2 == 0 ? "u8" : "i8";
    const int64_t zero = static_cast<int64_t>(random() % 256) - (dtype == "i8" ? 128 : 0);
    Context context;
    const std::string text = fmt::format(
        "#[version = \"1\"]\ndef @main(%x: Tensor[(4096,), f32]) -> Tensor[(4096,), {}] {{\n"
        "  quantize(%x, scale=[{:.17g}], zero_point=[{}], dtype=\"{}\")\n}}\n",
        dtype, static_cast<double>(scale), zero, dtype);
    const auto module = parse(context, text);
    ASSERT_TRUE(module) << module.error().str();
    const Symbol main = context.symbol("main");
    const auto executable = lower(context, *module, main, {}, {.name = "test", .facts = {}});
    ASSERT_TRUE(executable) << executable.error().str();
    ASSERT_EQ(executable->natives.size(), 1u);
    const Tensor input = values_around(scale, random);
    const auto expected = interpret(context, *module, main, std::span(&input, 1));
    ASSERT_TRUE(expected) << expected.error().str();
    for (const std::string_view level : runtime::host_levels()) {
      if (std::ranges::find(executable->natives[0].levels, level) == executable->natives[0].levels.end()) continue;
      auto session = runtime::Session::create(*executable, {.native_level = std::string(level)});
      ASSERT_TRUE(session) << session.error().str();
      const auto found = session->run(std::span(&input, 1));
      ASSERT_TRUE(found) << found.error().str();
      EXPECT_EQ(*expected, *found) << text << level;
    }
  }
}

}  // namespace
}  // namespace tenon::compiler
