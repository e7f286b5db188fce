// From the IR to the device: small quantized networks are partitioned, lowered and run on the behavioral simulator with
// the race detector on, and give the interpreter's bits, at every layer.
#include "compiler/backends/accel/target.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/verifier.h"
#include "compiler/lower/lower.h"
#include "compiler/partition/partition.h"
#include "driver/simulated.h"
#include "runtime/vm/session.h"
#include "sim/behavioral/behavioral.h"
#include "tests/seed.h"

namespace tenon::compiler::accel {
namespace {

using runtime::Shape;
using runtime::Tensor;

class AccelTarget : public testing::TestWithParam<const char*> {
 protected:
  Tensor bytes(Shape shape) {
    Tensor tensor(DType::kI8, std::move(shape));
    for (int8_t& x : tensor.data<int8_t>()) x = static_cast<int8_t>(random_());
    return tensor;
  }
  Atom param(Shape shape, const char* name) { return builder_.param(context_.tensor(shape, DType::kI8), name); }
  Atom apply(const char* op, Atoms args, Attrs attrs = {}, std::string_view name = {}) {
    builder_.at(module_.add_span({.file = "m.onnx", .node = std::string(name.empty() ? op : name), .op = op}));
    auto atom = builder_.apply(op, std::move(args), std::move(attrs), name);
    EXPECT_TRUE(atom) << atom.error().str();
    return *atom;
  }
  // requantize, or requantize_add where there is a residual.
  Atom requantize(Atom acc, std::string_view name, std::optional<Atom> residual = {}) {
    const int64_t channels = *builder_.tensor_type(acc)->dims[1].constant();
    std::vector<int32_t> bias(channels);
    std::vector<uint16_t> multiplier(channels);
    std::vector<uint8_t> shift(channels);
    for (int64_t i = 0; i < channels; ++i) {
      bias[i] = static_cast<int32_t>(random_() % 20000) - 10000;
      multiplier[i] = static_cast<uint16_t>(0x8000 + random_() % 0x8000);
      shift[i] = static_cast<uint8_t>(12 + random_() % 4);
    }
    Atoms args{acc, builder_.constant<int32_t>({channels}, bias), builder_.constant<uint16_t>({channels}, multiplier),
               builder_.constant<uint8_t>({channels}, shift)};
    Attrs attrs{{"zero", int64_t{-3}}, {"lo", int64_t{-100}}};
    if (!residual) return apply("requantize", std::move(args), std::move(attrs), name);
    args.push_back(*residual);
    attrs["r_zero"] = int64_t{5};
    attrs["r_multiplier"] = int64_t{40000};
    attrs["r_shift"] = int64_t{8};
    return apply("requantize_add", std::move(args), std::move(attrs), name);
  }
  // A product of two activations, whose parameters are those of the last axis, or equal ones of axis 1.
  Atom product(Atom a, Atom b, std::string_view name, bool equal = false, bool from_the_end = false) {
    const Atom acc = apply("matmul", {a, b});
    const Dims& dims = builder_.tensor_type(acc)->dims;
    const auto rank = static_cast<int64_t>(dims.size());
    int64_t axis = equal ? 1 : rank - 1;
    const int64_t channels = *dims[static_cast<size_t>(axis)].constant();
    if (from_the_end) axis -= rank;
    std::vector<int32_t> bias(channels, 77);
    if (!equal) std::ranges::generate(bias, [&] { return static_cast<int32_t>(random_() % 20000) - 10000; });
    return apply("requantize",
                 {acc, builder_.constant<int32_t>({channels}, bias),
                  builder_.constant<uint16_t>({channels}, std::vector<uint16_t>(channels, 0x9abc)),
                  builder_.constant<uint8_t>({channels}, std::vector<uint8_t>(channels, 12))},
                 {{"axis", axis}, {"zero", int64_t{-3}}}, name);
  }
  Atom transpose(Atom x, std::vector<int64_t> axes) { return apply("transpose", {x}, {{"axes", std::move(axes)}}); }
  Atom reshape(Atom x, std::vector<int64_t> shape, std::string_view name = {}) {
    return apply("reshape", {x}, {{"shape", std::move(shape)}}, name);
  }
  // The heads of [tokens, heads * size] or [images, tokens, heads * size], their rows and columns ordered by `axes`.
  Atom heads(Atom x, int64_t count, std::vector<int64_t> axes) {
    const Shape shape = *builder_.tensor_type(x)->shape();
    const int64_t images = shape.size() == 3 ? shape[0] : 1;
    return transpose(reshape(x, {images, shape[shape.size() - 2], count, shape.back() / count}), std::move(axes));
  }
  Atom conv(Atom x, int64_t channels, int64_t kernel, int64_t stride, int64_t pad) {
    const int64_t in = *builder_.tensor_type(x)->dims[1].constant();
    return apply("conv2d", {x, builder_.constant(bytes({channels, in, kernel, kernel}))},
                 {{"strides", std::vector<int64_t>{stride, stride}},
                  {"padding", std::vector<int64_t>(4, pad)},
                  {"pad_value", int64_t{7}}});
  }
  // Expand, depthwise, project, which may be fused.
  Atom inverted_residual(Atom x) {
    const Atom hidden = requantize(conv(x, 96, 1, 1, 0), "hidden");
    const Atom depthwise = apply("conv2d", {hidden, builder_.constant(bytes({96, 1, 3, 3}))},
                                 {{"groups", int64_t{96}},
                                  {"strides", std::vector<int64_t>{2, 2}},
                                  {"padding", std::vector<int64_t>(4, 1)},
                                  {"pad_value", int64_t{7}}});
    return requantize(conv(requantize(depthwise, "filtered"), 24, 1, 1, 0), "projected");
  }
  Atom dense(Atom x, int64_t features) {
    const int64_t in = *builder_.tensor_type(x)->dims[1].constant();
    return apply("dense", {x, builder_.constant(bytes({features, in}))});
  }

  std::vector<Placement> partition_main(Atom result, const spec::Config& config) {
    builder_.finish(result);
    module_.globals.emplace(main_, std::move(function_));
    targets_ = {records()[0].make({.accelerator = AcceleratorOptions{config}, .fuse = fuse_})};
    auto placements = partition(context_, module_, main_, targets_);
    EXPECT_TRUE(placements) << placements.error().str();
    const auto status = verify(context_, module_);
    EXPECT_TRUE(status) << status.error().str();
    return placements ? *placements : std::vector<Placement>();
  }
  // The reason why the one convolution of a function, or its product, stays on the CPU.
  std::string reason(Atom result, std::string_view op = "conv2d") {
    for (const Placement& p : partition_main(result, *spec::load_config("default"))) {
      EXPECT_EQ(p.target, "") << p.op;
      if (p.op == op) return p.reason;
    }
    return "no such operator";
  }

  // Interprets, partitions, lowers and runs; compares results and the values between layers.
  void expect_same_bits(Atom result, int regions, size_t probes) {
    const auto config = spec::load_config(GetParam());
    ASSERT_TRUE(config) << config.error().str();
    builder_.finish(result);
    Function original = function_;
    std::vector<Tensor> inputs;
    for (const VarId p : original.params) inputs.push_back(bytes(*original.type(p).tensor()->shape()));
    module_.globals.emplace(main_, original);
    std::map<std::string, Tensor> between;
    const auto expected = interpret(context_, module_, main_, std::span<const Tensor>(inputs),
                                    [&](const Function& f, VarId var, const RunValue& value) {
                                      between[std::string(context_.name(f.info(var).name))] = value.tensor();
                                    });
    ASSERT_TRUE(expected) << expected.error().str();
    module_.globals.clear();
    for (const Placement& p : partition_main(result, *config)) EXPECT_EQ(p.target, "accel") << p.reason;
    int found = 0;
    for (const auto& [name, global] : module_.globals) {
      const auto& f = std::get<Function>(global);
      found += !f.target.empty() && f.composite.empty();
    }
    EXPECT_EQ(found, regions);
    const auto interpreted = interpret(context_, module_, main_, std::span<const Tensor>(inputs));
    ASSERT_TRUE(interpreted) << interpreted.error().str();
    EXPECT_EQ(*interpreted, *expected);

    auto executable = lower(context_, module_, main_, targets_, {.name = "test", .facts = {}});
    ASSERT_TRUE(executable) << executable.error().str();
    const auto verified = runtime::verify(*executable, "test");
    ASSERT_TRUE(verified) << verified.error().str();
    const auto device = driver::make_simulated("behavioral:test", *sim::make_behavioral(*config), false);
    size_t seen = 0;
    auto session = runtime::Session::create(
        *executable, {.accelerators = {device.get()}, .hook = [&](const runtime::Step& step) -> Status {
                        for (const runtime::ProbeValue& probe : step.probes) {
                          const Tensor& plain = between.at(probe.probe->name);
                          RegionTensor t{.name = {}, .rank = static_cast<int>(plain.shape().size())};
                          t.c = plain.shape()[1];
                          if (probe.probe->name == "scores") {  // matrices of four dims
                            const Shape& s = plain.shape();
                            t = {.name = {}, .n = s[0] * s[1], .c = s[3], .w = s[2], .rank = 3, .outer = s[0]};
                          } else if (t.rank == 4)
                            t.n = plain.shape()[0], t.h = plain.shape()[2], t.w = plain.shape()[3];
                          else t.w = plain.shape()[0];
                          EXPECT_EQ(probe.value.shape(), boundary_shape(t, Layout::kBlocked, *config));
                          const int64_t block = lane_block(*config), map = t.h * t.w,
                                        blocks = (t.c + block - 1) / block;
                          const auto found = probe.value.data<int8_t>();
                          const auto want = plain.data<int8_t>();
                          for (int64_t i = 0; i < static_cast<int64_t>(want.size()); ++i) {
                            const bool matrix = t.rank < 4;  // its rows are the positions of the map
                            const int64_t n = i / (t.c * map), c = matrix ? i % t.c : i / map % t.c,
                                          at = matrix ? i / t.c % map : i % map;
                            EXPECT_EQ(found[((n * blocks + c / block) * map + at) * block + c % block], want[i])
                                << probe.probe->name << " element " << i;
                          }
                          ++seen;
                        }
                        return {};
                      }});
    ASSERT_TRUE(session) << session.error().str();
    for (int run = 0; run < 2; ++run) {  // tokens and buffers must be ready for another
      const auto found = session->run(inputs);
      ASSERT_TRUE(found) << found.error().str();
      EXPECT_EQ(*found, *expected);
    }
    EXPECT_EQ(seen, 2 * probes);
  }

  std::mt19937 random_{test_seed(7)};
  Context context_;
  Module module_;
  Function function_;
  Builder builder_{context_, module_, function_};
  Symbol main_ = context_.symbol("main");
  std::vector<Target> targets_;
  bool fuse_ = true;  // TargetOptions::fuse
};

TEST_P(AccelTarget, ASmallResidualNetworkRunsAsOneRegion) {
  const Atom x = param({1, 3, 19, 17}, "x");
  const Atom stem = requantize(conv(x, 10, 3, 2, 1), "stem");
  const Atom a = requantize(conv(stem, 10, 3, 1, 1), "a");
  const Atom b = requantize(conv(a, 10, 3, 1, 1), "b", stem);
  const Atom c = requantize(apply("cast", {b}, {{"dtype", std::string("i32")}}), "c", a);
  const Atom pool = requantize(apply("global_sum_pool", {c}), "pool");
  expect_same_bits(requantize(dense(apply("flatten", {pool}), 10), "logits"), 1, 5);
}

TEST_P(AccelTarget, LayersThatAreNotFusedHaveTheirValuesInMemory) {
  fuse_ = false;
  expect_same_bits(inverted_residual(param({1, 16, 28, 28}, "x")), 1, 2);
}

TEST_P(AccelTarget, FusedLayersHaveTheirBits) {
  if (std::string_view(GetParam()) != "default") GTEST_SKIP() << "the lanes are few, and layers may stay as they are";
  expect_same_bits(inverted_residual(param({1, 16, 28, 28}, "x")), 1, 0);
}

// A pool of a convolution's results, which no other layer reads, and one of a map that others read too.
TEST_P(AccelTarget, PoolsRunInTheRegionOfTheirNeighbours) {
  if (!spec::load_config(GetParam())->window_maximum) GTEST_SKIP() << "pools run on the CPU";
  const auto pool = [&](Atom x, int64_t kernel, int64_t stride, std::vector<int64_t> padding, std::string_view name) {
    return apply("max_pool2d", {x},
                 {{"kernel", std::vector<int64_t>(2, kernel)},
                  {"strides", std::vector<int64_t>(2, stride)},
                  {"padding", std::move(padding)}},
                 name);
  };
  const Atom x = param({1, 3, 19, 17}, "x");
  const Atom stem = pool(requantize(conv(x, 10, 3, 2, 1), "stem"), 3, 2, {1, 1, 1, 0}, "pooled");
  const Atom branch = pool(stem, 3, 1, {1, 1, 1, 1}, "branch");
  const Atom sum = requantize(conv(stem, 10, 3, 1, 1), "sum", branch);
  expect_same_bits(pool(sum, 2, 2, {0, 0, 0, 0}, "halved"), 1, 3);  // the first convolution's results stay on the chip
}

TEST_P(AccelTarget, ADenseLayerOfAWholeMapIsAConvolution) {
  const Atom x = param({2, 5, 4, 6}, "x");
  const Atom a = requantize(conv(x, 9, 1, 1, 0), "a");
  const Atom hidden =
      requantize(dense(apply("reshape", {a}, {{"shape", std::vector<int64_t>{2, 9 * 24}}}), 20), "hidden");
  expect_same_bits(requantize(dense(hidden, 7), "logits", requantize(dense(hidden, 7), "side")), 1, 3);
}

TEST_P(AccelTarget, SeveralInputsAndResultsCrossTheBoundary) {
  const Atom x = param({1, 6, 5, 5}, "x"), y = param({1, 6, 5, 5}, "y");
  const Atom a = requantize(apply("cast", {x}, {{"dtype", std::string("i32")}}), "a", y);
  const Atom b = requantize(conv(a, 6, 3, 1, 1), "b", a);
  auto both = builder_.tuple({a, b});
  ASSERT_TRUE(both);
  expect_same_bits(*both, 1, 0);
}

TEST_P(AccelTarget, AProductOfTwoMatrices) {
  expect_same_bits(product(param({13, 20}, "a"), param({20, 37}, "b"), "c"), 1, 0);
}

TEST_P(AccelTarget, AProductWithATransposedMatrix) {
  expect_same_bits(product(param({13, 20}, "a"), transpose(param({37, 20}, "b"), {1, 0}), "c", true), 1, 0);
}

TEST_P(AccelTarget, ProductsOfMatricesOfThreeDims) {
  expect_same_bits(product(param({3, 5, 33}, "a"), param({3, 33, 18}, "b"), "c"), 1, 0);
}

TEST_P(AccelTarget, AnAxisOfParametersMayCountFromTheEnd) {
  const Atom a = param({2, 3, 7, 33}, "a"), b = param({2, 3, 33, 18}, "b"), c = param({2, 3, 18, 9}, "c");
  const Atom scores = product(a, b, "scores", false, true);
  expect_same_bits(product(scores, c, "context", true, true), 1, 1);
}

TEST_P(AccelTarget, ProductsOfMatricesOfFourDimsAreOneRegion) {
  const Atom a = param({2, 3, 7, 33}, "a"), b = param({2, 3, 18, 33}, "b"), c = param({2, 3, 18, 9}, "c");
  const Atom scores = product(a, transpose(b, {0, 1, 3, 2}), "scores");
  expect_same_bits(product(scores, c, "context"), 1, 1);
}

// The rows of a value are the columns of the result of one product, and the terms of the other, in another layout.
TEST_P(AccelTarget, AValueInTwoLayoutsIsOfTwoRegions) {
  const Atom a = param({2, 3, 7, 33}, "a"), b = param({2, 3, 18, 33}, "b");
  const Atom scores = product(a, transpose(b, {0, 1, 3, 2}), "scores");
  expect_same_bits(product(scores, b, "context"), 2, 0);
}

// Heads of whole blocks are views: no value is transposed but V, between two regions.
TEST_P(AccelTarget, AttentionOfWholeBlocksHasNoTransposes) {
  constexpr int64_t kTokens = 21, kHeads = 3, kSize = 32;
  const Atom x = param({kTokens, 40}, "x"), p = param({1, kHeads, kTokens, kTokens}, "p");
  const auto project = [&](const char* name) { return requantize(dense(x, kHeads * kSize), name); };
  const Atom q = heads(project("q"), kHeads, {0, 2, 1, 3}), k = heads(project("k"), kHeads, {0, 2, 3, 1});
  const Atom v = heads(project("v"), kHeads, {0, 2, 1, 3});
  const Atom scores = product(q, k, "scores", true);
  const Atom context = transpose(product(p, v, "context", true), {0, 2, 1, 3});
  const Atom out = requantize(dense(reshape(context, {kTokens, kHeads * kSize}, "joined"), 40), "out");
  auto both = builder_.tuple({scores, out});
  ASSERT_TRUE(both);
  expect_same_bits(*both, 3, 3);
  for (const Binding& binding : module_.function(main_)->body.bindings) {
    const auto* made = std::get_if<Apply>(&binding.value);
    EXPECT_FALSE(made && made->op->is(ops::kTranspose));
  }
}

TEST_P(AccelTarget, AttentionOfSeveralImages) {
  constexpr int64_t kImages = 2, kTokens = 21, kHeads = 3, kSize = 32;
  const Shape joined{kImages, kTokens, kHeads * kSize};
  const Atom p = param({kImages, kHeads, kTokens, kTokens}, "p");
  const Atom q = heads(param(joined, "q"), kHeads, {0, 2, 1, 3}), k = heads(param(joined, "k"), kHeads, {0, 2, 3, 1});
  const Atom v = heads(param(joined, "v"), kHeads, {0, 2, 1, 3});
  const Atom scores = product(q, k, "scores", true);
  const Atom context = transpose(product(p, v, "context", true), {0, 2, 1, 3});
  auto both = builder_.tuple({scores, reshape(context, joined, "joined")});
  ASSERT_TRUE(both);
  expect_same_bits(*both, 2, 0);
}

// Six base registers are available for a region's values: more of them make more regions.
TEST_P(AccelTarget, TenResultsAreSplitOverRegions) {
  const Atom x = param({1, 6, 5, 5}, "x");
  Atoms results;
  for (int i = 0; i < 10; ++i)
    results.push_back(requantize(conv(i == 0 ? x : results.back(), 6, 3, 1, 1), fmt::format("r{}", i)));
  auto all = builder_.tuple(results);
  ASSERT_TRUE(all);
  expect_same_bits(*all, 2, 0);
}

TEST_P(AccelTarget, NineInputsAreSplitOverRegions) {
  Atom sum = param({1, 6, 5, 5}, "x0");
  for (int i = 1; i < 9; ++i) {
    const Atom x = param({1, 6, 5, 5}, fmt::format("x{}", i).c_str());
    sum = requantize(apply("cast", {sum}, {{"dtype", std::string("i32")}}), fmt::format("sum{}", i), x);
  }
  expect_same_bits(sum, 2, 6);
}

TEST_P(AccelTarget, ManyBranchesThatMeetAgainAreFewRegions) {
  const Atom x = param({1, 6, 5, 5}, "x");
  Atoms branches;
  for (int i = 0; i < 8; ++i) branches.push_back(requantize(conv(x, 6, 3, 1, 1), fmt::format("b{}", i)));
  Atom sum = branches[0];
  for (int i = 1; i < 8; ++i) {
    sum = requantize(apply("cast", {sum}, {{"dtype", std::string("i32")}}), fmt::format("sum{}", i), branches[i]);
  }
  expect_same_bits(sum, 1, 14);
}

INSTANTIATE_TEST_SUITE_P(Configurations, AccelTarget, testing::Values("tiny", "default", "wide-8x16"),
                         [](const auto& info) { return info.param == std::string("wide-8x16") ? "wide" : info.param; });

using AccelReasons = AccelTarget;

TEST_F(AccelReasons, GroupsThatAreNoPartsOfABlock) {
  const Atom x = param({1, 27, 5, 5}, "x");
  const Atom acc = apply("conv2d", {x, builder_.constant(bytes({27, 3, 1, 1}))}, {{"groups", int64_t{9}}});
  EXPECT_EQ(
      reason(requantize(acc, "y")),
      "accel.conv2d: groups is 9, must be at most 8 where the channels of a group, 3 and 3, are no multiples of 16, "
      "nor equal and divide it");
}

TEST_F(AccelReasons, APadThatNoMoveHolds) {
  const Atom x = param({1, 4, 5, 5}, "x");
  EXPECT_EQ(reason(requantize(conv(x, 4, 1, 1, 200), "y")),
            "accel.conv2d: the left pad is 200 x 16 bytes, MOVE holds 2047");
}

TEST_F(AccelReasons, AShapeThatIsNotStatic) {
  const Symbol n = context_.symbol("N");
  function_.dims.push_back(n);
  const Atom x = builder_.param(
      context_.tensor(Dims{context_.dim(n), context_.dim(4), context_.dim(5), context_.dim(5)}, DType::kI8), "x");
  EXPECT_EQ(reason(requantize(conv(x, 4, 1, 1, 0), "y")), "accel.conv2d: shape (N, 4, 5, 5) is not static");
}

TEST_F(AccelReasons, WindowsThatTheRequantizerLacks) {
  const Atom x = param({1, 4, 16, 16}, "x");
  const Atom y = apply("max_pool2d", {x}, {{"kernel", std::vector<int64_t>{8, 8}}});
  const std::vector<Placement> placements = partition_main(y, *spec::load_config("default"));
  ASSERT_EQ(placements.size(), 1u);
  EXPECT_EQ(placements[0].target, "");
  EXPECT_EQ(placements[0].reason, "accel.max_pool2d: the window is 8 x 8, RQ holds 1 .. 7");
}

TEST_F(AccelReasons, ConfigurationsWithoutWindows) {
  const Atom x = param({1, 4, 16, 16}, "x");
  const Atom y = apply("max_pool2d", {x}, {{"kernel", std::vector<int64_t>{2, 2}}});
  const std::vector<Placement> placements = partition_main(y, *spec::load_config("native-8x8"));
  ASSERT_EQ(placements.size(), 1u);
  EXPECT_EQ(placements[0].reason, "accel.max_pool2d: configuration native-8x8 has no maximum over windows");
}

TEST_F(AccelReasons, WeightsThatAreComputed) {
  const Atom x = param({1, 4, 5, 5}, "x"), w = param({4, 4, 1, 1}, "w");
  EXPECT_EQ(reason(requantize(apply("conv2d", {x, w}), "y")).substr(0, 59),
            "accel.conv2d requires const as operand 2 of conv2d, in oper");
}

TEST_F(AccelReasons, ProductsWhoseParametersDifferByRow) {
  const Atom acc = apply("matmul", {param({2, 4, 5}, "a"), param({2, 5, 3}, "b")});
  EXPECT_EQ(reason(requantize(acc, "y"), "matmul"),
            "accel.matmul: the parameters of requantize differ along axis 1, must be equal or along the last one");
}

TEST_F(AccelReasons, ProductsWithoutRows) {
  EXPECT_EQ(reason(product(param({2, 0, 5}, "a"), param({2, 5, 3}, "b"), "y", true), "matmul"),
            "accel.matmul: a product has no rows or no columns, every dimension must be at least 1");
}

TEST_F(AccelReasons, ProductsThatAreBroadcast) {
  EXPECT_EQ(reason(product(param({3, 4, 5}, "a"), param({1, 5, 6}, "b"), "y"), "matmul"),
            "accel.matmul: operand b of the product is broadcast: 1 matrices of 3");
}

TEST_F(AccelReasons, ProductsOfOneValueByRowsAndColumns) {
  const Atom x = param({4, 4}, "x");
  EXPECT_EQ(reason(product(x, x, "y"), "matmul"),
            "accel.matmul: one value is both operands of the product, by its rows and by its columns");
}

TEST_F(AccelReasons, ProductsOfUnknownSizes) {
  const Symbol n = context_.symbol("N");
  function_.dims.push_back(n);
  const Atom a = builder_.param(context_.tensor(Dims{context_.dim(n), context_.dim(5)}, DType::kI8), "a");
  EXPECT_EQ(reason(product(a, param({5, 6}, "b"), "y"), "matmul"), "accel.matmul: shape (N, 5) is not static");
}

TEST_F(AccelReasons, ProductsOfFiveDims) {
  EXPECT_EQ(reason(product(param({1, 1, 1, 4, 5}, "a"), param({1, 1, 1, 5, 6}, "b"), "y"), "matmul"),
            "accel.matmul: an operand of a product has 5 dims, must have 2, 3 or 4");
}

// The transposes of heads that are parts of blocks run on the CPU, the product on the accelerator.
TEST_F(AccelReasons, HeadsThatAreNoBlocksAreTransposed) {
  const Atom q = heads(param({6, 16}, "q"), 2, {0, 2, 1, 3}), k = heads(param({6, 16}, "k"), 2, {0, 2, 3, 1});
  const Atom y = product(q, k, "y", true);
  for (const Placement& p : partition_main(y, *spec::load_config("default")))
    EXPECT_EQ(p.target, p.op == "matmul" || p.op == "requantize" ? "accel" : "") << p.op;
}

}  // namespace
}  // namespace tenon::compiler::accel
