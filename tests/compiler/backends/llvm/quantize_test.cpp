// Quantization of floats to bytes has the results of its division, which its code does not contain, on every level of
// this machine: beside the half integers, where quotients decide, and for infinities and NaN.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>

#include "compiler/backends/llvm/disassemble.h"
#include "tests/compiler/backends/llvm/native.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler::native {
namespace {

using runtime::Tensor;

struct Quantization {
  float scale = 1;
  int zero = 0;
  bool is_signed = false;

  int lowest() const { return is_signed ? -128 : 0; }
  int highest() const { return lowest() + 255; }
  int of(float x) const {
    if (std::isnan(x)) return 0;
    const float q = std::nearbyint(x / scale) + static_cast<float>(zero);
    return static_cast<int>(std::clamp(q, static_cast<float>(lowest()), static_cast<float>(highest())));
  }
  std::string text(bool vectorized) const {
    const std::string q = fmt::format("round(%x[i, j] / f32({:.9g})) + f32({})", scale, zero);
    return fmt::format(
        "loop @quantize[n](%x: Tensor[(n, 16), f32]) -> (%y: Tensor[(n, 16), {0}]) {{ for i in (n) {{ for j in (16) "
        "{1} "
        "{{ stage y(i in (n) at (i), j in (16) at (j)) {{ %y[i, j] = {0}(select({2} == {2}, min(max({2}, f32({3})), "
        "f32({4})), f32(0))); }} }} }} }}",
        is_signed ? "i8" : "u8", vectorized ? "vector" : "", q, lowest(), highest());
  }
};

// The floats nearest to each half integer times the scale, and the extremes.
Tensor samples(const Quantization& byte) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values{0, -0.0F, kInfinity, -kInfinity, std::nanf(""), FLT_MAX, -FLT_MAX, FLT_MIN, FLT_TRUE_MIN};
  for (int k = byte.lowest() - byte.zero - 2; k <= byte.highest() - byte.zero + 2; ++k) {
    auto x = static_cast<float>((k + 0.5) * static_cast<double>(byte.scale));
    for (int i = 0; i < 6; ++i) x = std::nextafter(x, -kInfinity);
    for (int i = 0; i < 12; ++i) values.push_back(x), x = std::nextafter(x, kInfinity);
  }
  values.resize((values.size() + 15) / 16 * 16);
  return Tensor::of<float>({static_cast<int64_t>(values.size()) / 16, 16}, values);
}

void expect_quantized(const Quantization& byte, const std::string& level, bool vectorized) {
  TypeContext context;
  const loop::Function function = must_parse(context, byte.text(vectorized));
  const Tensor x = samples(byte);
  Options options;
  options.levels = {level};
  const auto found = compile_and_run(context, function, {{x}}, options);
  ASSERT_TRUE(found) << found.error().str();
  for (size_t i = 0; i < static_cast<size_t>(x.size()); ++i) {
    const float value = x.data<float>()[i];
    const int result = byte.is_signed ? (*found)[0].data<int8_t>()[i] : (*found)[0].data<uint8_t>()[i];
    ASSERT_EQ(result, byte.of(value)) << level << ": "
                                      << fmt::format("{:.9g} / {:.9g} + {}", value, byte.scale, byte.zero);
  }
}

TEST(Quantize, BytesAreThoseOfTheDivision) {
  std::mt19937 random(test_seed(91));
  std::vector<Quantization> cases{
      {1, 0, false}, {0.5F, 128, false}, {0x1p-20F, 7, true}, {FLT_MIN, 0, true}, {1e30F, 3, false}};
  std::uniform_real_distribution<float> exponent(-12, 4);
  std::uniform_int_distribution<int> zero(0, 255);
  for (int64_t i = 0; i < rounds(12); ++i) {
    const bool is_signed = i % 2 == 1;
    cases.push_back({std::exp2(exponent(random)), zero(random) - (is_signed ? 128 : 0), is_signed});
  }
  const auto levels = levels_of({});
  const auto host_levels = runtime::host_levels();
  for (const std::string& level : *levels) {
    if (std::ranges::find(host_levels, level) == host_levels.end()) continue;
    for (size_t i = 0; i < cases.size(); ++i) expect_quantized(cases[i], level, i % 3 != 2);
  }
}

TEST(Quantize, TheCodeDividesOnlyWithoutFusedMultiplyAdd) {
  for (const auto& [level, divides] : {std::pair("x86-64-v2", true), std::pair("x86-64-v3", false)}) {
    TypeContext context;
    const loop::Function function = must_parse(context, Quantization{0.0231F, 3, false}.text(true));
    const loop::Function* functions[] = {&function};
    const auto code = compile(context, functions, {.triple = "x86_64-unknown-linux-gnu", .levels = {level}});
    ASSERT_TRUE(code) << code.error().str();
    const auto kernels = disassemble(code->object, code->triple, "quantize");
    ASSERT_TRUE(kernels) << kernels.error().str();
    ASSERT_EQ(kernels->size(), 1u);
    const bool found = std::ranges::any_of((*kernels)[0].instructions, [](const MachineInstruction& instruction) {
      return instruction.text.find("divps") != std::string::npos;
    });
    EXPECT_EQ(found, divides) << level;
  }
}

}  // namespace
}  // namespace tenon::compiler::native
