// Kernels against the formulas of their definitions, element by element; and the inputs that they refuse.
#include "runtime/reference/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "hw/spec/requantize.h"
#include "tests/seed.h"

namespace tenon::runtime::reference {
namespace {

using testing::HasSubstr;
using Ints = std::vector<int64_t>;

std::mt19937 generator{test_seed(3)};

template <class T>
Tensor random(Shape shape) {
  Tensor tensor(dtype_of<T>, std::move(shape));
  for (T& value : tensor.data<T>()) {
    if constexpr (std::is_floating_point_v<T>) value = std::uniform_real_distribution<T>(-1, 1)(generator);
    else value = static_cast<T>(generator());
  }
  return tensor;
}

Tensor run(std::string_view op, const Attrs& attrs, std::vector<Tensor> inputs) {
  auto result = find(op)(attrs, inputs);
  EXPECT_TRUE(result) << result.error().str();
  return result ? result->at(0) : Tensor();
}

Tensor cast(const Tensor& x, std::string dtype) {
  return run("cast", {{"dtype", std::move(dtype)}, {"saturate", int64_t{1}}, {"rounding", std::string("nearest")}},
             {x});
}

template <class T>
T at(const Tensor& t, int64_t a, int64_t b, int64_t c, int64_t d) {
  const Shape& s = t.shape();
  return t.data<T>()[static_cast<size_t>(((a * s[1] + b) * s[2] + c) * s[3] + d)];
}

// The definition: the sum over all kernel elements.
template <class In, class Sum>
void expect_convolution(int64_t groups, Ints strides, Ints padding, Ints dilation, int64_t pad_value) {
  const Tensor x = random<In>({2, 6, 9, 7}), w = random<In>({4, 6 / groups, 3, 2});
  const Tensor y = run("conv2d",
                       {{"groups", groups},
                        {"strides", strides},
                        {"padding", padding},
                        {"dilation", dilation},
                        {"pad_value", pad_value}},
                       {x, w});
  ASSERT_EQ(y.shape()[2], (9 + padding[0] + padding[2] - 2 * dilation[0] - 1) / strides[0] + 1);
  ASSERT_EQ(y.shape()[3], (7 + padding[1] + padding[3] - dilation[1] - 1) / strides[1] + 1);
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t o = 0; o < 4; ++o) {
      for (int64_t oy = 0; oy < y.shape()[2]; ++oy) {
        for (int64_t ox = 0; ox < y.shape()[3]; ++ox) {
          double sum = 0;
          for (int64_t i = 0; i < 6 / groups; ++i) {
            for (int64_t ky = 0; ky < 3; ++ky) {
              for (int64_t kx = 0; kx < 2; ++kx) {
                const int64_t row = oy * strides[0] + ky * dilation[0] - padding[0],
                              column = ox * strides[1] + kx * dilation[1] - padding[1];
                const bool inside = row >= 0 && row < 9 && column >= 0 && column < 7;
                const int64_t channel = o / (4 / groups) * (6 / groups) + i;
                const double value =
                    inside ? static_cast<double>(at<In>(x, n, channel, row, column)) : static_cast<double>(pad_value);
                sum += value * at<In>(w, o, i, ky, kx);
              }
            }
          }
          ASSERT_NEAR(static_cast<double>(at<Sum>(y, n, o, oy, ox)), sum, std::is_integral_v<In> ? 0 : 1e-4);
        }
      }
    }
  }
}

TEST(Kernels, ConvolutionIsTheSumOverItsKernel) {
  for (int64_t groups : {1, 2}) {
    expect_convolution<int8_t, int32_t>(groups, {1, 1}, {0, 0, 0, 0}, {1, 1}, 0);
    expect_convolution<int8_t, int32_t>(groups, {2, 3}, {1, 2, 3, 0}, {2, 1}, -77);
    expect_convolution<float, float>(groups, {1, 2}, {2, 0, 1, 1}, {1, 3}, 0);
  }
}

TEST(Kernels, LongIntegerSumsWrap) {
  const int64_t depth = 200000;  // 200000 * 2^14 is beyond 2^31
  Tensor x(DType::kI8, {1, depth}), w(DType::kI8, {1, depth});
  std::ranges::fill(x.data<int8_t>(), int8_t{-128});
  std::ranges::fill(w.data<int8_t>(), int8_t{-128});
  EXPECT_EQ(run("dense", {}, {x, w}).data<int32_t>()[0], static_cast<int32_t>(static_cast<uint32_t>(depth * 16384)));
}

TEST(Kernels, MatrixProductsBroadcast) {
  const Tensor a = random<float>({2, 1, 3, 4}), b = random<float>({5, 4, 2});
  const Tensor c = run("matmul", {}, {a, b});
  ASSERT_EQ(c.shape(), (Shape{2, 5, 3, 2}));
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t m = 0; m < 5; ++m) {
      for (int64_t i = 0; i < 3; ++i) {
        for (int64_t j = 0; j < 2; ++j) {
          float sum = 0;
          for (int64_t k = 0; k < 4; ++k)
            sum += at<float>(a, n, 0, i, k) * b.data<float>()[static_cast<size_t>((m * 4 + k) * 2 + j)];
          EXPECT_NEAR(at<float>(c, n, m, i, j), sum, 1e-6);
        }
      }
    }
  }
}

TEST(Kernels, RequantizationIsTheOneOfTheSpecification) {
  const Tensor acc = random<int32_t>({2, 3, 5, 4}), bias = random<int32_t>({3}), multiplier = random<uint16_t>({3}),
               r = random<int8_t>({2, 3, 5, 4});
  Tensor shift(DType::kU8, {3});
  for (uint8_t& s : shift.data<uint8_t>()) s = static_cast<uint8_t>(generator() % 40);
  spec::LayerParameters layer{-500, 600, 3, -100, 99, true, -7, 50000, 9};
  const Attrs attrs{
      {"axis", int64_t{1}},    {"zero", int64_t{3}},   {"lo", int64_t{-100}},   {"hi", int64_t{99}},
      {"v_lo", int64_t{-500}}, {"v_hi", int64_t{600}}, {"r_zero", int64_t{-7}}, {"r_multiplier", int64_t{50000}},
      {"r_shift", int64_t{9}}};
  const Tensor with = run("requantize_add", attrs, {acc, bias, multiplier, shift, r});
  const Tensor without = run("requantize", attrs, {acc, bias, multiplier, shift});
  for (size_t i = 0; i < 120; ++i) {
    const size_t c = i / 20 % 3;
    const spec::ChannelParameters channel{bias.data<int32_t>()[c], multiplier.data<uint16_t>()[c],
                                          shift.data<uint8_t>()[c]};
    layer.residual = true;
    EXPECT_EQ(with.data<int8_t>()[i], spec::requantize(acc.data<int32_t>()[i], channel, layer, r.data<int8_t>()[i]));
    layer.residual = false;
    EXPECT_EQ(without.data<int8_t>()[i], spec::requantize(acc.data<int32_t>()[i], channel, layer));
  }
}

TEST(Kernels, QuantizationRoundsHalvesToEvenAndSaturates) {
  const Tensor x = Tensor::of<float>({7}, std::vector<float>{0.5f, 1.5f, -2.5f, 1000, -1000, NAN, 0.74f});
  const Tensor q = run(
      "quantize",
      {{"scale", std::vector<double>{1}}, {"zero_point", Ints{1}}, {"axis", int64_t{0}}, {"dtype", std::string("i8")}},
      {x});
  EXPECT_THAT(std::vector<int>(q.data<int8_t>().begin(), q.data<int8_t>().end()),
              testing::ElementsAre(1, 3, -1, 127, -128, 0, 2));
  const Tensor back =
      run("dequantize", {{"scale", std::vector<double>{0.5}}, {"zero_point", Ints{1}}, {"axis", int64_t{0}}}, {q});
  EXPECT_EQ(back.data<float>()[1], 1.0f);
}

TEST(Kernels, BlockedLayoutsPadWithZerosAndRoundTrip) {
  const Tensor x = random<int8_t>({2, 20, 3, 2});
  const Tensor blocked =
      run("layout_transform", {{"from", std::string("NCHW")}, {"to", std::string("NCHW16c")}, {"channels", int64_t{0}}},
          {x});
  ASSERT_EQ(blocked.shape(), (Shape{2, 2, 3, 2, 16}));
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t c = 0; c < 32; ++c) {
      for (int64_t h = 0; h < 3; ++h) {
        for (int64_t w = 0; w < 2; ++w) {
          const int64_t offset = (((n * 2 + c / 16) * 3 + h) * 2 + w) * 16 + c % 16;
          EXPECT_EQ(blocked.data<int8_t>()[static_cast<size_t>(offset)], c < 20 ? at<int8_t>(x, n, c, h, w) : 0);
        }
      }
    }
  }
  EXPECT_EQ(run("layout_transform",
                {{"from", std::string("NCHW16c")}, {"to", std::string("NCHW")}, {"channels", int64_t{20}}}, {blocked}),
            x);
  const Tensor rows = run("layout_transform",
                          {{"from", std::string("NCHW")}, {"to", std::string("NHWC")}, {"channels", int64_t{0}}}, {x});
  EXPECT_EQ(rows, run("transpose", {{"axes", Ints{0, 2, 3, 1}}}, {x}));
}

TEST(Kernels, PoolsSeeOnlyTheInput) {
  const Tensor x = Tensor::of<float>({1, 1, 2, 3}, std::vector<float>{-1, -2, -3, -4, -5, -6});
  const Attrs attrs{{"kernel", Ints{2, 2}},
                    {"strides", Ints{2, 2}},
                    {"padding", Ints{1, 1, 0, 0}},
                    {"dilation", Ints{1, 1}},
                    {"ceil", int64_t{1}}};
  const Tensor most = run("max_pool2d", attrs, {x});
  ASSERT_EQ(most.shape(), (Shape{1, 1, 2, 2}));
  EXPECT_THAT(std::vector<float>(most.data<float>().begin(), most.data<float>().end()),
              testing::ElementsAre(-1, -2, -4, -5));
  Attrs average = attrs;
  average["count_include_pad"] = int64_t{0};
  EXPECT_EQ(run("avg_pool2d", average, {x}).data<float>()[1], -2.5f);
  average["count_include_pad"] = int64_t{1};
  EXPECT_EQ(run("avg_pool2d", average, {x}).data<float>()[1], -1.25f);
}

TEST(Kernels, CastsSaturateFromFloatAndWrapBetweenIntegers) {
  const Tensor x = Tensor::of<float>({5}, std::vector<float>{-1.9f, 300, -300, NAN, 127.5f});
  const Tensor q = cast(x, "i8");
  EXPECT_THAT(std::vector<int>(q.data<int8_t>().begin(), q.data<int8_t>().end()),
              testing::ElementsAre(-1, 127, -128, 0, 127));
  const Tensor wide = Tensor::of<int32_t>({2}, std::vector<int32_t>{300, -129});
  const Tensor narrow = cast(wide, "i8");
  EXPECT_THAT(std::vector<int>(narrow.data<int8_t>().begin(), narrow.data<int8_t>().end()),
              testing::ElementsAre(44, 127));
}

TEST(Kernels, IntegerDivisionByZeroIsAnError) {
  const Tensor lowest = Tensor::of<int32_t>({1}, std::vector<int32_t>{INT32_MIN}), zero(DType::kI32, {1});
  auto result = find("divide")({}, std::vector{lowest, zero});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().what, HasSubstr("division by zero"));
  const Tensor minus = Tensor::of<int32_t>({1}, std::vector<int32_t>{-1});
  EXPECT_EQ(run("divide", {}, {lowest, minus}).data<int32_t>()[0], INT32_MIN);
}

TEST(Kernels, AnIndexOutsideOfTheAxisIsReportedByItsValue) {
  const auto what = [](std::string_view op, int64_t size, Ints indices) {
    const Tensor x(DType::kI32, {size});
    const auto shape = static_cast<int64_t>(indices.size());
    auto result = find(op)({{"axis", int64_t{0}}}, std::vector{x, Tensor::of<int64_t>({shape}, indices)});
    return result ? std::string() : result.error().what;
  };
  EXPECT_EQ(what("gather", 5, {-5, 4}), "");
  EXPECT_THAT(what("gather", 5, {1, -24}), HasSubstr("gather: the index -24 is not in -5 .. 4"));
  EXPECT_THAT(what("gather_elements", 5, {5}), HasSubstr("the index 5 is not in -5 .. 4"));
  EXPECT_THAT(what("gather", 0, {0}), HasSubstr("the index 0 is on an axis of no elements"));
}

TEST(Kernels, NoUnsignedDivisorIsMinusOne) {
  const auto bytes = [](runtime::Shape shape, const std::vector<uint8_t>& values) {
    return Tensor::of<uint8_t>(std::move(shape), values);
  };
  const Tensor x = bytes({3}, {7, 254, 255}), largest = bytes({}, {255});
  EXPECT_EQ(run("remainder", {}, {x, largest}), bytes({3}, {7, 254, 0}));
  EXPECT_EQ(run("modulo", {}, {x, largest}), bytes({3}, {7, 254, 0}));
  EXPECT_EQ(run("floor_divide", {}, {x, largest}), bytes({3}, {0, 0, 1}));
}

// NaN at any of the four corners of a sample.
TEST(Kernels, ANaNIsNotTheMaximumOfARegion) {
  const std::vector<float> region{0, 0, 1, 1};
  for (size_t corner = 0; corner < 4; ++corner) {
    std::vector<float> map{4, 4, 4, 4};
    map[(corner + 1) % 4] = 8, map[corner] = NAN;
    const Attrs attrs{{"size", Ints{1, 1}},
                      {"sampling_ratio", int64_t{1}},
                      {"spatial_scale", 1.0},
                      {"mode", std::string("max")},
                      {"half_pixel", int64_t{0}}};
    const Tensor best = run(
        "roi_align", attrs,
        {Tensor::of<float>({1, 1, 2, 2}, map), Tensor::of<float>({1, 4}, region), Tensor::of<int64_t>({1}, Ints{0})});
    EXPECT_EQ(best.data<float>()[0], 2) << "corner " << corner;
  }
}

// A hostile executable may call any kernel with any inputs.
TEST(Kernels, RefuseNonsenseWithoutCrashing) {
  const std::vector<Tensor> pool{Tensor(),
                                 Tensor(DType::kF32, {}),
                                 Tensor(DType::kF32, {0, 3, 2, 2}),
                                 random<float>({1, 2, 3, 3}),
                                 random<int8_t>({1, 2, 3, 3}),
                                 random<float>({2, 2}),
                                 random<int8_t>({2, 2}),
                                 random<int32_t>({2}),
                                 random<uint16_t>({2}),
                                 random<uint8_t>({2}),
                                 random<int32_t>({1, 2, 3, 3}),
                                 random<int64_t>({3})};
  const std::vector<Attr> values{int64_t{0},
                                 int64_t{-1},
                                 int64_t{1},
                                 INT64_MAX,
                                 INT64_MIN,
                                 0.5,
                                 std::nan(""),
                                 std::string("NCHW"),
                                 std::string("NCHW4c"),
                                 std::string("i8"),
                                 Ints{},
                                 Ints{1, 1},
                                 Ints{0, 1, 2, 3},
                                 Ints{-1},
                                 Ints{INT64_MAX, INT64_MIN},
                                 Ints{1, 1, 1, 1},
                                 std::vector<double>{0.5},
                                 std::vector<double>{}};
  const char* names[] = {
      "strides",    "padding", "dilation", "groups",  "pad_value", "axis", "kernel", "ceil",     "count_include_pad",
      "shape",      "axes",    "before",   "after",   "value",     "from", "to",     "channels", "scale",
      "zero_point", "dtype",   "zero",     "lo",      "hi",        "v_lo", "v_hi",   "r_zero",   "r_multiplier",
      "r_shift",    "min",     "max",      "epsilon", "begin",     "end",  "step"};
  int worked = 0;
  for (std::string_view op : reference::names()) {
    for (int i = 0; i < 200; ++i) {
      Attrs attrs;
      for (const char* name : names) {
        if (generator() % 8) attrs[name] = values[generator() % values.size()];
      }
      if (generator() % 2)
        attrs["strides"] = Ints{1, 1}, attrs["padding"] = Ints{0, 0, 0, 0}, attrs["dilation"] = Ints{1, 1},
        attrs["groups"] = int64_t{1};
      std::vector<Tensor> inputs;
      for (uint32_t k = generator() % 6; k-- > 0;) inputs.push_back(pool[generator() % pool.size()]);
      auto result = find(op)(attrs, inputs);
      if (result) ++worked;
      else EXPECT_FALSE(result.error().what.empty());
    }
  }
  EXPECT_GT(worked, 100);
}

template <class T>
Tensor filled(Shape shape, double value) {
  Tensor tensor(dtype_of<T>, std::move(shape));
  std::ranges::fill(tensor.data<T>(), T(value));
  return tensor;
}

// A sum of ones in f16 itself would stop at 2048, in bf16 at 256.
TEST(ShortFloatKernels, ComputeInF32AndRoundOnce) {
  const Attrs all{{"axes", Ints{0}}, {"keep", int64_t{0}}};
  EXPECT_EQ(run("sum", all, {filled<Half>({4096}, 1)}).data<Half>()[0], Half(4096));
  EXPECT_EQ(run("sum", all, {filled<BFloat16>({4098}, 1)}).data<BFloat16>()[0], BFloat16(4096));
  const Tensor third = run("divide", {}, {filled<Half>({1}, 1), filled<Half>({1}, 3)});
  EXPECT_EQ(third.data<Half>()[0], Half(1.0 / 3));
  EXPECT_EQ(run("less", {}, {filled<Half>({1}, 1), filled<Half>({1}, 3)}).data<bool>()[0], true);
}

TEST(ShortFloatKernels, TheAttributeDtypeIsThatOfTheResult) {
  const auto full = [&](std::string dtype) {
    return run("full", {{"shape", Ints{2}}, {"value", 0.1}, {"dtype", std::move(dtype)}}, {});
  };
  EXPECT_EQ(full("f16").data<Half>()[1], Half(0.1));
  EXPECT_EQ(full("bf16").data<BFloat16>()[1], BFloat16(0.1));
  EXPECT_EQ(cast(filled<Half>({1}, 2.5), "bf16").data<BFloat16>()[0], BFloat16(2.5));
  EXPECT_EQ(cast(filled<Half>({1}, 2.5), "f32").data<float>()[0], 2.5f);
  EXPECT_EQ(cast(filled<Half>({1}, -2.5), "u32").data<uint32_t>()[0], 0u);
  EXPECT_EQ(cast(filled<Half>({1}, NAN), "i32").data<int32_t>()[0], 0);
  EXPECT_EQ(cast(filled<float>({1}, 3e38), "u64").data<uint64_t>()[0], UINT64_MAX);
  EXPECT_EQ(cast(filled<float>({1}, 1e6), "f16").data<Half>()[0], Half(INFINITY));
  // Just above the middle of two f16; as an f32 it is the middle.
  EXPECT_EQ(cast(filled<double>({1}, 1 + 0x1p-11 + 0x1p-40), "f16").data<Half>()[0], Half(1 + 0x1p-10));
}

TEST(ShortFloatKernels, MovedElementsKeepTheirBits) {
  Tensor bits(DType::kF16, {0x10000});
  for (uint32_t i = 0; i < 0x10000; ++i) bits.data<Half>()[i] = Half::of_bits(static_cast<uint16_t>(i));
  EXPECT_EQ(run("reshape", {{"shape", Ints{256, 256}}, {"zero", int64_t{0}}}, {bits}).reshaped({0x10000}), bits);
}

TEST(UnsignedKernels, UseTheWholeRange) {
  const auto max = [](uint64_t x) { return Tensor::of<uint64_t>({1}, std::array{x}); };
  const Tensor big = max(UINT64_MAX), two = max(2);
  EXPECT_EQ(run("divide", {}, {big, two}), max(UINT64_MAX / 2));
  EXPECT_EQ(run("maximum", {}, {big, two}), big);
  EXPECT_EQ(run("add", {}, {big, two}), max(1));
  EXPECT_EQ(run("shift_right", {}, {big, two}), max(UINT64_MAX >> 2));
  EXPECT_EQ(run("less", {}, {two, big}).data<bool>()[0], true);
  EXPECT_EQ(cast(big, "f32").data<float>()[0], 0x1p64f);
}

TEST(Kernels, PreferANaNAsTheDefinitionsDo) {
  const Tensor row = Tensor::of<float>({1, 3}, std::array{1.f, NAN, 7.f});
  const Tensor hot = run("hardmax", {{"axis", int64_t{1}}}, {row});
  EXPECT_EQ(hot, Tensor::of<float>({1, 3}, std::array{0.f, 1.f, 0.f}));
  const auto log_sum_exp = [](float a, float b) {
    return run("log_sum_exp", {{"axes", Ints{0}}, {"keep", int64_t{0}}}, {Tensor::of<float>({2}, std::array{a, b})})
        .data<float>()[0];
  };
  EXPECT_TRUE(std::isnan(log_sum_exp(NAN, NAN)));
  EXPECT_TRUE(std::isnan(log_sum_exp(NAN, -INFINITY)));
  EXPECT_TRUE(std::isnan(log_sum_exp(NAN, 1)));
  EXPECT_EQ(log_sum_exp(-INFINITY, -INFINITY), -INFINITY);
  EXPECT_EQ(log_sum_exp(INFINITY, -INFINITY), INFINITY);
  EXPECT_FLOAT_EQ(log_sum_exp(1, 1), 1 + std::log(2.f));
}

}  // namespace
}  // namespace tenon::runtime::reference
