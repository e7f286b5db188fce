// Loop functions built by loop::Builder.
#include "compiler/loop/builder.h"

#include <gtest/gtest.h>

#include "compiler/loop/evaluate.h"
#include "compiler/loop/expr.h"
#include "compiler/loop/text.h"

namespace tenon::compiler::loop {
namespace {

using runtime::Tensor;

std::vector<int32_t> values(const Tensor& tensor) {
  const auto data = tensor.data<int32_t>();
  return {data.begin(), data.end()};
}

TEST(Builder, MakesStagesInLoops) {
  TypeContext context;
  Builder b(context, "dense");
  const Dim n = b.dim("n"), two = context.dim(2);
  const BufferId x = b.param("x", {n, two}, DType::kI32), w = b.param("w", {two, two}, DType::kI32);
  const BufferId y = b.result("y", {n, two}, DType::kI32), top = b.result("top", {n}, DType::kI32);
  const BufferId dot = b.reduce(
      "dot", {{"i", n}, {"j", two}}, {{"k", two}}, DType::kI32, BinaryOp::kAdd,
      [&](const Dims& point) {
        return binary(BinaryOp::kMultiply, b.load(x, {point[0], point[2]}), b.load(w, {point[2], point[1]}));
      },
      [&](const Dims&) { return literal(DType::kI32, 1); });
  const BufferId half = b.compute("half", {{"i", n}, {"j", two}}, [&](const Dims& point) {
    return binary(BinaryOp::kDivide, b.load(dot, point), literal(DType::kI32, 2));
  });
  b.compute(y, [&](const Dims& point) { return binary(BinaryOp::kMax, b.load(half, point), literal(DType::kI32, 0)); });
  b.reduce(top, {{"", two}}, BinaryOp::kMax, [&](const Dims& point) { return b.load(half, point); });
  const auto function = b.build();
  ASSERT_TRUE(function) << function.error().str();
  EXPECT_EQ(
      print(context, *function),
      R"(loop @dense[n](%x: Tensor[(n, 2), i32], %w: Tensor[(2, 2), i32]) -> (%y: Tensor[(n, 2), i32], %top: Tensor[(n,), i32]) {
  alloc %dot: Tensor[(n, 2), i32] {
    alloc %half: Tensor[(n, 2), i32] {
      for i in (n) {
        for j in (2) {
          for k in (2) {
            stage dot(i in (n) at (i), j in (2) at (j), reduce k in (2) at (k)) {
              init {
                %dot[i, j] = i32(1);
              }
              %dot[i, j] = %dot[i, j] + %x[i, k] * %w[k, j];
            }
          }
        }
      }
      for i in (n) {
        for j in (2) {
          stage half(i in (n) at (i), j in (2) at (j)) {
            %half[i, j] = %dot[i, j] / i32(2);
          }
        }
      }
      for i0 in (n) {
        for i1 in (2) {
          stage y(i0 in (n) at (i0), i1 in (2) at (i1)) {
            %y[i0, i1] = max(%half[i0, i1], i32(0));
          }
        }
      }
      for i0 in (n) {
        for r0 in (2) {
          stage top(i0 in (n) at (i0), reduce r0 in (2) at (r0)) {
            init {
              %top[i0] = i32(-2147483648);
            }
            %top[i0] = max(%top[i0], %half[i0, r0]);
          }
        }
      }
    }
  }
}
)");
  const auto results = evaluate(context, *function,
                                std::vector{Tensor::of<int32_t>({1, 2}, std::vector{3, -9}),
                                            Tensor::of<int32_t>({2, 2}, std::vector{1, 2, 3, -4})});
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ(values((*results)[0]), (std::vector{0, 21}));
  EXPECT_EQ(values((*results)[1]), (std::vector{21}));
}

// Two states: f[t + 1] = f[t] + g[t], g[t + 1] = f[t] + a buffer of the step.
TEST(Builder, ScansSeveralStates) {
  TypeContext context;
  Builder b(context, "fibonacci");
  const Dim steps = b.dim("t"), one = context.dim(1);  // a name that the scan's index must not use
  const BufferId x = b.param("x", {steps}, DType::kI32);
  const BufferId f = b.result("f", {context.add(steps, one)}, DType::kI32);
  const BufferId g = b.result("g", {context.add(steps, one)}, DType::kI32);
  for (BufferId state : {f, g})
    b.stage(state == f ? "f0" : "g0", {}, {}, [&](const Dims&) {
      return Builder::Assignment{state, {context.dim(0)}, literal(DType::kI32, state == f ? 1 : 0), nullptr};
    });
  b.scan({"t", steps}, {f, g}, [&](Dim t) {
    const BufferId added = b.compute("added", {{"p", one}}, [&](const Dims&) { return b.load(x, {t}); });
    auto step = [&](std::string_view name, BufferId state, Expr value) {
      b.stage(name, {}, {}, [&](const Dims&) {
        return Builder::Assignment{state, {context.add(t, one)}, value, nullptr};
      });
    };
    step("f", f, binary(BinaryOp::kAdd, b.load(f, {t}), b.load(g, {t})));
    step("g", g, binary(BinaryOp::kAdd, b.load(f, {t}), b.load(added, {context.dim(0)})));
  });
  const auto function = b.build();
  ASSERT_TRUE(function) << function.error().str();
  const auto again = parse(context, print(context, *function), "again.tn");
  ASSERT_TRUE(again) << again.error().str() << print(context, *function);
  EXPECT_TRUE(equal(*function, *again));
  const auto results = evaluate(context, *function, std::vector{Tensor::of<int32_t>({4}, std::vector{0, 0, 10, 0})});
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ(values((*results)[0]), (std::vector{1, 1, 2, 3, 15}));
  EXPECT_EQ(values((*results)[1]), (std::vector{0, 1, 1, 12, 3}));
}

TEST(Builder, RaggedExtentsAndLibraries) {
  TypeContext context;
  Builder b(context, "rows");
  const Dim n = b.dim("n");
  const BufferId lengths = b.param("lengths", {n}, DType::kI64);
  const Dim length = context.apply(context.symbol("lengths"), {b.index("b")});
  const BufferId x = b.param("x", {{"b", n}, {"s", length}}, DType::kI32);
  const BufferId sums = b.result("sums", {n}, DType::kI32);
  const BufferId twice = b.compute("twice", {{"b", n}, {"s", length}}, [&](const Dims& point) {
    return binary(BinaryOp::kAdd, b.load(x, point), b.load(x, point));
  });
  b.stage("sums", {{"b", n}}, {{"s", length}}, [&](const Dims& point) {
    return Builder::Assignment{sums,
                               {point[0]},
                               binary(BinaryOp::kAdd, b.load(sums, {point[0]}), b.load(twice, point)),
                               literal(DType::kI32, 0)};
  });
  const BufferId copy = b.result("copy", {n}, DType::kI64);
  b.call("copy", {lengths}, {copy});
  const auto function = b.build();
  ASSERT_TRUE(function) << function.error().str();
  EvaluateOptions options;
  options.libraries["copy"] = [](std::span<const Tensor> in, std::span<Tensor> out) -> Status {
    std::ranges::copy(in[0].data<int64_t>(), out[0].data<int64_t>().begin());
    return {};
  };
  const auto results = evaluate(
      context, *function,
      std::vector{Tensor::of<int64_t>({2}, std::vector<int64_t>{2, 1}), Tensor::of<int32_t>({3}, std::vector{1, 2, 3})},
      options);
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ(values((*results)[0]), (std::vector{6, 6}));
  EXPECT_EQ((*results)[1].data<int64_t>()[0], 2);
}

TEST(Builder, VerifiesTheFunction) {
  TypeContext context;
  Builder b(context, "f");
  const BufferId x = b.param("x", {context.dim(2)}, DType::kI32);
  b.compute(x, [&](const Dims&) { return literal(DType::kI32, 0); });
  const auto function = b.build();
  ASSERT_FALSE(function);
  EXPECT_NE(function.error().str().find("the parameter %x is written"), std::string::npos);
}

}  // namespace
}  // namespace tenon::compiler::loop
