// Conversions of f16 and bf16 in native code have the bits of the runtime's, on every level of this machine.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "compiler/loop/evaluate.h"
#include "tests/compiler/backends/llvm/native.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler::native {
namespace {

using runtime::DType;
using runtime::Tensor;

constexpr int64_t kAll = 1 << 16;

loop::Function conversion(TypeContext& context, std::string_view from, std::string_view to, bool vectorized) {
  return must_parse(context,
                    fmt::format("loop @convert[n](%x: Tensor[(n, 16), {0}]) -> (%y: Tensor[(n, 16), {1}]) {{ for i in "
                                "(n) {{ for j in (16) {2} {{ stage y(i in (n) at (i), j in (16) at (j)) {{ %y[i, j] = "
                                "{1}(%x[i, j]); }} }} }} }}",
                                from, to, vectorized ? "vector" : ""));
}

// All values of 16 bits, those in the middle between two of them, and their neighbours.
std::vector<float> samples(auto type) {
  std::vector<float> values;
  for (int64_t bits = 0; bits < kAll; ++bits) {
    const auto value = static_cast<float>(decltype(type)::of_bits(static_cast<uint16_t>(bits)));
    const auto next = static_cast<float>(decltype(type)::of_bits(static_cast<uint16_t>(bits + 1)));
    const float middle = value / 2 + next / 2;
    for (const float x : {value, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, HUGE_VALF)})
      values.push_back(x);
  }
  return values;
}

template <class T>
void expect_conversions(const std::string& level) {
  const std::string name(runtime::name(runtime::dtype_of<T>));
  Tensor all(runtime::dtype_of<T>, {kAll / 16, 16});
  for (int64_t bits = 0; bits < kAll; ++bits)
    all.data<T>()[static_cast<size_t>(bits)] = T::of_bits(static_cast<uint16_t>(bits));
  const std::vector<float> values = samples(T{});
  const Tensor reals = Tensor::of<float>({static_cast<int64_t>(values.size()) / 16, 16}, values);
  Options options;
  options.levels = {level};
  for (const bool vectorized : {false, true}) {
    TypeContext context;
    const auto wide = compile_and_run(context, conversion(context, name, "f32", vectorized), {{all}}, options);
    ASSERT_TRUE(wide) << wide.error().str();
    for (size_t i = 0; i < static_cast<size_t>(kAll); ++i) {
      const auto expected = static_cast<float>(all.data<T>()[i]), found = (*wide)[0].data<float>()[i];
      ASSERT_TRUE(std::isnan(expected) ? std::isnan(found)
                                       : std::bit_cast<uint32_t>(expected) == std::bit_cast<uint32_t>(found))
          << level << " " << name << " " << i << ": " << found << ", expected " << expected;
    }
    const auto narrow = compile_and_run(context, conversion(context, "f32", name, vectorized), {{reals}}, options);
    ASSERT_TRUE(narrow) << narrow.error().str();
    for (size_t i = 0; i < values.size(); ++i) {
      const T expected(values[i]), found = (*narrow)[0].data<T>()[i];
      ASSERT_TRUE(std::isnan(values[i]) ? std::isnan(static_cast<float>(found)) : expected.bits == found.bits)
          << level << " " << values[i] << ": " << found.bits << ", expected " << expected.bits;
    }
  }
}

TEST(ShortFloats, ConversionsHaveTheBitsOfTheRuntime) {
  const auto levels = levels_of({});
  const auto host_levels = runtime::host_levels();
  for (const std::string& level : *levels) {
    if (std::ranges::find(host_levels, level) == host_levels.end()) continue;
    expect_conversions<runtime::Half>(level);
    expect_conversions<runtime::BFloat16>(level);
  }
}

// Loads, zeros beside them, and stores, without arithmetic.
TEST(ShortFloats, AreSelectedAsTheyAre) {
  TypeContext context;
  const loop::Function function = must_parse(
      context,
      "loop @padded[n](%x: Tensor[(n,), bf16]) -> (%y: Tensor[(n + 3,), bf16]) { for i in (n + 3) { stage y(i in (n + "
      "3) at (i)) { %y[i] = select(index(i) < index(n), %x[i], bf16(-0.5)); } } }");
  Tensor x(DType::kBF16, {5});
  for (size_t i = 0; i < 5; ++i) x.data<runtime::BFloat16>()[i] = runtime::BFloat16(static_cast<float>(i) / 3);
  const auto expected = loop::evaluate(context, function, {{x}}), found = compile_and_run(context, function, {{x}});
  ASSERT_TRUE(expected) << expected.error().str();
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_EQ(*found, *expected);
  EXPECT_EQ(static_cast<float>((*found)[0].data<runtime::BFloat16>()[7]), -0.5f);
}

}  // namespace
}  // namespace tenon::compiler::native
