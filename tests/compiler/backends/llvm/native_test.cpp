// Native code of loop functions: what it computes, and what it refuses.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/loop/evaluate.h"
#include "tests/compiler/backends/llvm/native.h"

namespace tenon::compiler::native {
namespace {

using runtime::Tensor;

TEST(Native, Matmul) {
  Context context;
  const loop::Function function = must_parse(context, R"(
loop @matmul[n](%a: Tensor[(n, 3), f32], %b: Tensor[(3, 2), f32]) -> (%c: Tensor[(n, 2), f32]) {
  for i in (n) parallel {
    for j in (2) {
      for k in (3) {
        stage dot(i in (n) at (i), j in (2) at (j), reduce k in (3) at (k)) {
          init { %c[i, j] = f32(0); }
          %c[i, j] = %c[i, j] + %a[i, k] * %b[k, j];
        }
      }
    }
  }
})");
  const std::vector params{Tensor::of<float>({1, 3}, std::vector<float>{1, 10, 100}),
                           Tensor::of<float>({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6})};
  const auto results = compile_and_run(context, function, params);
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ(*results, *evaluate(context, function, params));
}

}  // namespace
}  // namespace tenon::compiler::native
