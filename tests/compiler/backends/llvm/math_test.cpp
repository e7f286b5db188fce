// Functions that native code computes itself: sin and cos of large arguments, pow and fmod, in loops and in vectors.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "tests/compiler/backends/llvm/operations.h"

namespace tenon::compiler::native {
namespace {

template <class T>
constexpr DType kTypeOf = std::is_same_v<T, float> ? DType::kF32 : DType::kF64;

template <class T>
Tensor vector_of(const std::vector<T>& values) {
  return Tensor::of<T>({static_cast<int64_t>(values.size())}, values);
}

// The expression's values, which are the same in vectors and in a serial loop.
template <class T>
std::vector<T> values_of(const std::string& expression, const std::vector<T>& x, const std::vector<T>& y) {
  TypeContext context;
  std::vector<Tensor> found;
  for (bool vector : {false, true}) {
    const auto function = must_parse(context, elementwise("f", kTypeOf<T>, {{expression, kTypeOf<T>}}, vector));
    const auto results = compile_and_run(context, function, std::vector{vector_of(x), vector_of(y)});
    EXPECT_TRUE(results) << results.error().str();
    found.push_back(results->front());
  }
  EXPECT_TRUE(same(found[0], found[1])) << expression;
  const auto data = found[1].data<T>();
  return {data.begin(), data.end()};
}

// In units of the last place of the nearest f32; infinite if a special value, or a result that overflows, is another.
double error_of(float found, double wanted) {
  const auto rounded = static_cast<float>(wanted);
  if (std::isnan(rounded)) return std::isnan(found) ? 0 : INFINITY;
  if (std::isinf(rounded) || rounded == 0) {
    const bool is_same = std::bit_cast<uint32_t>(rounded) == std::bit_cast<uint32_t>(found);
    return is_same ? 0 : INFINITY;
  }
  const double unit = std::ldexp(1.0, std::max(std::ilogb(wanted), -126) - 23);
  return std::fabs(static_cast<double>(found) - wanted) / unit;
}

constexpr double kStated = 0.51;

TEST(NativeMath, SineAndCosineAreAsCloseAsStated) {
  std::mt19937 random(1);
  std::vector<float> x{0.f, -0.f, INFINITY, -INFINITY, NAN, 1e-45f, -1e-40f, 131072.f, 131071.99f, -131072.f, 3.4e38f};
  for (int i = 0; i < 300000; ++i) x.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  for (int i = 0; i < 100000; ++i) x.push_back(static_cast<float>(random()) / 65536.f - 32768.f);
  // The neighbours of multiples of pi/2, where one of the results is small.
  for (int exponent = 0; exponent < 127; ++exponent) {
    for (int i = 0; i < 500; ++i) {
      const double turns = std::nearbyint(std::ldexp(1 + static_cast<double>(random()) * 0x1p-32, exponent));
      x.push_back(static_cast<float>(turns * 1.5707963267948966));
    }
  }
  x.push_back(std::bit_cast<float>(0x6f79be45));  // 5.3e-9 from a multiple, the nearest of all f32
  const std::pair<const char*, double (*)(double)> cases[] = {{"sin(%x[i])", std::sin}, {"cos(%x[i])", std::cos}};
  for (const auto& [expression, exact] : cases) {
    const auto found = values_of(expression, x, x);
    double largest = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double error = error_of(found[i], exact(static_cast<double>(x[i])));
      ASSERT_LE(error, kStated) << expression << " of " << x[i] << " = " << found[i];
      largest = std::max(largest, error);
    }
    EXPECT_GE(largest, 0.49) << expression << ": too few samples";
  }
}

TEST(NativeMath, PowersAreAsCloseAsStated) {
  std::mt19937 random(2);
  std::vector<float> x, y;
  const std::vector<float> special = {0.f,
                                      -0.f,
                                      1.f,
                                      -1.f,
                                      INFINITY,
                                      -INFINITY,
                                      NAN,
                                      2.f,
                                      -2.f,
                                      3.f,
                                      -3.f,
                                      0.5f,
                                      -0.5f,
                                      1.5f,
                                      -1.5f,
                                      1e-45f,
                                      -1e-45f,
                                      3e38f,
                                      -3e38f,
                                      16777215.f,
                                      -16777215.f,
                                      16777216.f,
                                      8388607.5f,
                                      33554434.f,
                                      0.999999940395f,
                                      1.00000011920929f,
                                      -0.999999940395f,
                                      149.f,
                                      -149.f,
                                      -151.f};
  for (float a : special) {
    for (float b : special) x.push_back(a), y.push_back(b);
  }
  for (int i = 0; i < 300000; ++i) {
    const auto base = std::bit_cast<float>(static_cast<uint32_t>(random()));
    x.push_back(i % 3 != 0 ? std::fabs(base) : base);
    const double power = static_cast<double>(random()) * 0x1p-32 * 290 - 155;  // of two
    const double exponent = power / std::log2(std::fabs(static_cast<double>(base)));
    y.push_back(static_cast<float>(i % 3 != 0 ? exponent : std::nearbyint(exponent)));
  }
  for (int i = 0; i < 100000; ++i) {  // bases around 1
    x.push_back(1.f + (static_cast<float>(random() % 65536) - 32768.f) * 0x1p-22f);
    y.push_back(static_cast<float>(random() % 20000) - 10000.25f);
  }
  const auto found = values_of("pow(%x[i], %y[i])", x, y);
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = error_of(found[i], std::pow(static_cast<double>(x[i]), static_cast<double>(y[i])));
    ASSERT_LE(error, kStated) << fmt::format("pow({}, {}) = {}", x[i], y[i], found[i]);
    largest = std::max(largest, error);
  }
  EXPECT_GE(largest, 0.49) << "too few samples";
}

template <class T, class Bits>
void expect_exact_remainders() {
  std::mt19937_64 random(3);
  using Limits = std::numeric_limits<T>;
  const std::vector<T> special = {0,
                                  T(-0.0),
                                  1,
                                  -1,
                                  Limits::infinity(),
                                  -Limits::infinity(),
                                  Limits::quiet_NaN(),
                                  3,
                                  T(-2.5),
                                  Limits::max(),
                                  Limits::lowest(),
                                  Limits::min(),
                                  Limits::denorm_min(),
                                  -Limits::denorm_min(),
                                  Limits::min() / 3,
                                  T(5.3),
                                  T(1e20)};
  std::vector<T> x, y;
  for (T a : special) {
    for (T b : special) x.push_back(a), y.push_back(b);
  }
  for (int i = 0; i < 20000; ++i) {
    x.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
    y.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
    x.push_back(static_cast<T>(random() % 100000) / 8);  // often multiples
    y.push_back(static_cast<T>(random() % 100 + 1) / 8);
  }
  const auto found = values_of("rem(%x[i], %y[i])", x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    const T wanted = std::fmod(x[i], y[i]);
    if (std::isnan(wanted) && std::isnan(found[i])) continue;
    ASSERT_EQ(std::bit_cast<Bits>(found[i]), std::bit_cast<Bits>(wanted))
        << fmt::format("fmod({}, {}) = {}, not {}", x[i], y[i], found[i], wanted);
  }
}

TEST(NativeMath, RemaindersAreExact) {
  expect_exact_remainders<float, uint32_t>();
  expect_exact_remainders<double, uint64_t>();
}

// Vectors of any number of lanes are passed in parts.
TEST(NativeMath, AnyNumberOfLanes) {
  for (int lanes : {1, 2, 3, 7, 8, 9, 16, 23, 32}) {
    TypeContext context;
    const auto function = must_parse(
        context,
        fmt::format("loop @f(%x: Tensor[({0},), f32]) -> (%y: Tensor[({0},), f32]) {{ for i in ({0}) vector {{ "
                    "stage s(i in ({0}) at (i)) {{ %y[i] = rem(%x[i], f32(3)); }} }} }}",
                    lanes));
    std::vector<float> x;
    for (int i = 0; i < lanes; ++i) x.push_back(static_cast<float>(i) * 1.25f);
    const auto results = compile_and_run(context, function, std::vector{vector_of(x)});
    ASSERT_TRUE(results) << results.error().str();
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(results->front().data<float>()[i], std::fmod(x[i], 3.f)) << lanes;
  }
}

}  // namespace
}  // namespace tenon::compiler::native
