// The result of each primitive, and the reasons for its refusals.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <tuple>

#include "compiler/loop/evaluate.h"
#include "compiler/loop/safety.h"
#include "compiler/loop/schedule/schedule.h"
#include "compiler/loop/text.h"
#include "compiler/loop/verify.h"
#include "tests/compiler/loop/must_parse.h"

namespace tenon::compiler::loop {
namespace {

using runtime::Tensor;

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

Tensor filled(runtime::DType dtype, runtime::Shape shape) {
  Tensor tensor(dtype, std::move(shape));
  auto fill = [](auto data) {
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::remove_cvref_t<decltype(data[i])>>(i * 37 % 29);
  };
  if (dtype == DType::kF32) fill(tensor.data<float>());
  else if (dtype == DType::kI32) fill(tensor.data<int32_t>());
  else if (dtype == DType::kU8) fill(tensor.data<uint8_t>());
  else fill(tensor.data<int8_t>());
  return tensor;
}

// The text of the function after the steps; its results must equal the program's for each of the parameters.
std::string scheduled(std::string_view program, const std::vector<std::string>& steps,
                      const std::vector<std::vector<Tensor>>& params) {
  TypeContext context;
  const Function before = must_parse(context, program);
  Schedule schedule(context, before);
  for (const std::string& step : steps) {
    const Status status = schedule.apply(step);
    EXPECT_TRUE(status) << status.error().str() << "\n" << print(context, schedule.function());
    if (!status) return {};
  }
  EXPECT_EQ(schedule.steps(), steps);
  const std::string text = print(context, schedule.function());
  const Function read = must_parse(context, text);
  EXPECT_TRUE(equal(read, schedule.function())) << text;
  for (const std::vector<Tensor>& inputs : params) {
    const auto expected = evaluate(context, before, inputs), results = evaluate(context, read, inputs);
    EXPECT_TRUE(expected) << expected.error().str();
    EXPECT_TRUE(results) << results.error().str() << "\n" << text;
    if (expected && results) {
      EXPECT_EQ(*results, *expected) << text;
    }
  }
  return text;
}

constexpr std::string_view kGemm =
    R"(loop @gemm[n](%a: Tensor[(n, 8), f32], %b: Tensor[(8, 64), f32]) -> (%c: Tensor[(n, 64), f32]) {
  for i in (n) { for j in (64) { for k in (8) {
    stage dot(i in (n) at (i), j in (64) at (j), reduce k in (8) at (k)) {
      init { %c[i, j] = f32(0); }
      %c[i, j] = %c[i, j] + %a[i, k] * %b[k, j];
    }
  } } }
}
)";

std::vector<std::vector<Tensor>> gemm_params() {
  std::vector<std::vector<Tensor>> params;
  for (int64_t n : {0, 1, 14, 30}) params.push_back({filled(DType::kF32, {n, 8}), filled(DType::kF32, {8, 64})});
  return params;
}

const std::vector<std::string> kRegisterBlocked = {
    "split(dot, i, 14)",
    "split(dot, j, 32)",
    "reorder(dot, i0, j0, k, i1, j1)",
    "cache_write(dot, j0, registers)",
    "mark(dot, i1, unroll)",
    "mark(dot, j1, vector)",
    "mark(dot_cache, dot_cache_0, unroll)",
    "mark(dot_cache, dot_cache_1, vector)",
    "split_init(dot, k)",
    "partition(dot, i0)",
    "mark(dot, i0, parallel)",
};

TEST(Primitives, AMatrixProductIsBlockedForRegisters) {
  const std::string text = scheduled(kGemm, kRegisterBlocked, gemm_params());
  // Whole tiles have no guard, and their accumulators are indexed by unrolled and vectorized loops only.
  EXPECT_NE(text.find(R"(  for i0 in (n // 14) parallel {
    for j0 in (2) {
      alloc %dot_cache: Tensor[(14, 32), f32] in registers {
        for i1 in (14) unroll {
          for j1 in (32) vector {
            stage dot_init(given j0_ in (2) at (j0), given i0_ in ((n + 13) // 14) at (i0), i in (n) at (14*i0 + i1), j in (64) at (32*j0 + j1)) {
              %dot_cache[i - 14*i0_, j - 32*j0_] = f32(0);
            }
          }
        }
        for k in (8) {
          for i1 in (14) unroll {
            for j1 in (32) vector {
              stage dot(given j0_ in (2) at (j0), given i0_ in ((n + 13) // 14) at (i0), i in (n) at (14*i0 + i1), j in (64) at (32*j0 + j1), reduce k in (8) at (k)) {
                %dot_cache[i - 14*i0_, j - 32*j0_] = %dot_cache[i - 14*i0_, j - 32*j0_] + %a[i, k] * %b[k, j];
              }
            }
          }
        }
        for dot_cache_0 in (14) unroll {
          for dot_cache_1 in (32) vector {
            stage dot_cache()"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("for i0_tail in ((n + 13) // 14 - n // 14) {"), std::string::npos) << text;
  TypeContext context;
  const Status scopes = verify_scopes(context, must_parse(context, text));
  EXPECT_TRUE(scopes) << scopes.error().str();
}

TEST(Primitives, CachesOfAnIterationHoldTheElementsThatItReads) {
  const std::string text = scheduled(kGemm,
                                     {"split(dot, i, 4)", "reorder(dot, i0, j, k, i1)", "cache_read(dot, a, i0, heap)",
                                      "cache_read(dot, b, j, stack)"},
                                     gemm_params());
  EXPECT_NE(text.find("alloc %a_dot: Tensor[(4, 8), f32] {"), std::string::npos) << text;
  EXPECT_NE(text.find("alloc %b_dot: Tensor[(8, 1), f32] in stack {"), std::string::npos) << text;
}

TEST(Primitives, PaddedPanelsNeedNoGuards) {
  const std::string text = scheduled(kGemm,
                                     {"split(dot, i, 4)", "reorder(dot, i0, j, k, i1)", "cache_read(dot, a, i0, heap)",
                                      "cache_write(dot, j, registers)", "pad(a_dot, c0, 4)", "pad(dot, i, 4)"},
                                     gemm_params());
  EXPECT_NE(text.find("%a_dot[c0 - 4*i0_, c1] = select(index(c0) < index(n), %a[c0, c1], f32(0));"), std::string::npos)
      << text;
  EXPECT_NE(text.find("reduce k in (8) at (k)) {\n"), std::string::npos) << text;  // no guard
}

constexpr std::string_view kSum =
    R"(loop @sum[n, m](%x: Tensor[(n, m), i32], %w: Tensor[(m,), i32]) -> (%s: Tensor[(n,), i32]) {
  for i in (n) { for k in (m) {
    stage sum(i in (n) at (i), reduce k in (m) at (k)) {
      init { %s[i] = i32(7); }
      %s[i] = %s[i] + %x[i, k] * %w[k];
    }
  } }
}
)";

std::vector<std::vector<Tensor>> sum_params() {
  std::vector<std::vector<Tensor>> params;
  for (int64_t m : {1, 6, 8, 13}) params.push_back({filled(DType::kI32, {3, m}), filled(DType::kI32, {m})});
  return params;
}

TEST(Primitives, RfactorComputesPartialResults) {
  const std::string text =
      scheduled(kSum, {"split(sum, k, 4)", "rfactor(sum, k0)", "mark(sum_rf, k0, parallel)"}, sum_params());
  EXPECT_NE(text.find("%sum_rf[k0_, i] = %sum_rf[k0_, i] + %x[i, 4*k0_ + k] * %w[4*k0_ + k];"), std::string::npos)
      << text;
  scheduled(kSum, {"split(sum, k, 4)", "reorder(sum, k0, i, k1)", "rfactor(sum, k0)", "compute_at(sum_rf, sum, sum_i)"},
            sum_params());
}

TEST(Primitives, APaddedReductionAddsZeros) {
  const std::string text = scheduled(
      kSum, {"cache_read(sum, x)", "cache_read(sum, w)", "pad(x_sum, c1, 4)", "pad(w_sum, c0_, 4)", "pad(sum, k, 4)"},
      sum_params());
  EXPECT_NE(text.find("%s[i] = %s[i] + %x_sum[i, k] * %w_sum[k];"), std::string::npos) << text;
  const std::string guarded = scheduled(kSum, {"pad(sum, k, 4)"}, sum_params());
  EXPECT_NE(guarded.find("%s[i] = select(index(k) < index(m), %s[i] + %x[i, k] * %w[k], %s[i]);"), std::string::npos)
      << guarded;
}

// Sums over a window in a private buffer, whose elements a copy stores.
std::string padded_sums(const std::string& term) {
  const std::string program =
      "loop @sums(%x: Tensor[(6,), i32], %w: Tensor[(3,), i32]) -> (%y: Tensor[(6,), i32]) { alloc %t: Tensor[(6,), "
      "i32] "
      "{ for i in (6) { for r in (3) { stage sum(i in (6) at (i), reduce r in (3) at (r)) { init { %t[i] = i32(0); } "
      "%t[i] = %t[i] + " +
      term + "; } } } for i in (6) { stage copy(i in (6) at (i)) { %y[i] = %t[i]; } } } }";
  return scheduled(program, {"pad(sum, i, 4)"},
                   {{filled(DType::kI32, {6}), Tensor::of<int32_t>({3}, std::vector<int32_t>{3, -2, 5})}});
}

// New sums read only what exists: by a condition that is there already, by that of the size, or by a new one; where a
// division by a zero instead of an element would fail, they are not computed.
TEST(Primitives, PaddedSumsReadExistingElements) {
  const std::pair<std::string, std::string> cases[] = {
      {"select(index(i + r) < index(6), %x[i + r], i32(1)) * %w[r]",
       "%t[i] + select(index(i + r) < index(6), %x[i + r], i32(1)) * %w[r]"},
      {"select(index(0) <= index(i - r), %x[i - r], i32(1)) * %w[r]",
       "%t[i] + select(index(0) <= index(i - r) and index(i) < index(6), %x[i - r], i32(1)) * %w[r]"},
      {"%x[i] * %w[r]", "%t[i] + select(index(i) < index(6), %x[i], i32(0)) * %w[r]"},
      {"%w[r] / (%x[i] * i32(2) + i32(1))",
       "select(index(i) < index(6), %t[i] + %w[r] / (%x[i] * i32(2) + i32(1)), i32(0))"}};
  for (const auto& [term, expected] : cases) {
    const std::string text = padded_sums(term);
    EXPECT_NE(text.find("%t[i] = " + expected + ";"), std::string::npos) << text;
  }
}

// A doubled input, and sums of three neighbours of it; then the input's squares.
constexpr std::string_view kWindowLoops =
    R"(loop @window[n](%x: Tensor[(n + 2,), i32]) -> (%y: Tensor[(n,), i32], %z: Tensor[(n,), i32]) {
  alloc %t: Tensor[(n + 2,), i32] {
    for i in (n + 2) { stage twice(i in (n + 2) at (i)) { %t[i] = %x[i] * i32(2); } }
    for i in (n) { for r in (3) { stage sum(i in (n) at (i), reduce r in (3) at (r)) {
      init { %y[i] = i32(0); }
      %y[i] = %y[i] + %t[i + r];
    } } }
  }
  for i in (n) { stage square(i in (n) at (i)) { %z[i] = %x[i] * %x[i]; } }
}
)";

std::vector<std::vector<Tensor>> window_params() {
  return {{filled(DType::kI32, {3})}, {filled(DType::kI32, {9})}, {filled(DType::kI32, {2})}};
}

TEST(Primitives, StoresABufferInALoopAndFoldsIt) {
  const std::string in_loop = scheduled(
      kWindowLoops,
      {"split(sum, i, 4)", "compute_at(twice, sum, i0)", "store_at(sum, t, i0, stack)", "mark(sum, i0, parallel)"},
      window_params());
  EXPECT_NE(in_loop.find("alloc %t: Tensor[(6,), i32] in stack {"), std::string::npos) << in_loop;
  const std::string folded =
      scheduled(kWindowLoops, {"compute_at(twice, sum, i)", "fold_storage(sum, t, i, 3)"}, window_params());
  EXPECT_NE(folded.find("alloc %t: Tensor[(3,), i32] {"), std::string::npos) << folded;
  EXPECT_NE(folded.find("stage twice(scan i in (n + 2) at (i + twice_i))"), std::string::npos) << folded;
}

TEST(Primitives, PipelineRunsAStageAhead) {
  const std::string text =
      scheduled(kWindowLoops,
                {"compute_at(twice, sum, i)", "store_at(sum, t, i, stack)", "pipeline(twice, i)", "partition(sum, i)"},
                window_params());
  EXPECT_NE(text.find("alloc %t: Tensor[(2, 3), i32] in stack {"), std::string::npos) << text;
}

TEST(Primitives, HfuseJoinsTwoLoops) {
  const std::string text = scheduled(
      kWindowLoops, {"inline(twice)", "hfuse(sum, i, square, i)", "mark(sum, i_i, parallel)"}, window_params());
  EXPECT_NE(text.find("for i_i in (2*n) parallel {\n    if (index(i_i) < index(n)) {"), std::string::npos) << text;
}

constexpr std::string_view kInt8 =
    R"(loop @int8[n](%a: Tensor[(n, 2, 4), u8], %b: Tensor[(2, 32, 4), i8]) -> (%c: Tensor[(n, 32), i32]) {
  for i in (n) { for k in (2) { for j in (32) { for q in (4) {
    stage dot(i in (n) at (i), j in (32) at (j), reduce k in (2) at (k), reduce q in (4) at (q)) {
      init { %c[i, j] = i32(0); }
      %c[i, j] = %c[i, j] + i32(%b[k, j, q]) * i32(%a[i, k, q]);
    }
  } } } }
}
)";

TEST(Primitives, TensorizeReplacesANestByAnInstruction) {
  const std::vector<std::vector<Tensor>> params = {{filled(DType::kU8, {3, 2, 4}), filled(DType::kI8, {2, 32, 4})}};
  const std::string text =
      scheduled(kInt8, {"split(dot, j, 16)", "split_init(dot, k)", "tensorize(dot, j1, vnni_dot_16)"}, params);
  EXPECT_NE(
      text.find("stage dot(i in (n) at (i), j in (2) at (j0), reduce k in (2) at (k), reduce q in (1) at (0)) {\n"
                "          intrinsic vnni_dot_16(%a[i, k, 4*q : 4], %b[k, 16*j : 16, 4*q : 4]) -> (%c[i, 16*j : 16]);"),
      std::string::npos)
      << text;
  scheduled(kInt8,
            {"split(dot, j, 4)", "split_init(dot, k)", "reorder(dot, k, j0, q, j1)", "tensorize(dot, q, vnni_dot_4)",
             "split(dot, i, 2)", "mark(dot, j0, unroll)"},
            params);
}

constexpr std::string_view kLinear =
    R"(loop @linear[n](%x: Tensor[(n, 5), i32], %w: Tensor[(24, 5), i32], %b: Tensor[(24,), i32]) -> (%y: Tensor[(n, 24), i32]) {
  alloc %d: Tensor[(n, 24), i32] {
    for i in (n) { for j in (24) { for k in (5) {
      stage dot(i in (n) at (i), j in (24) at (j), reduce k in (5) at (k)) {
        init { %d[i, j] = i32(0); }
        %d[i, j] = %d[i, j] + %x[i, k] * %w[j, k];
      }
    } } }
    for i in (n) { for j in (24) {
      stage y(i in (n) at (i), j in (24) at (j)) { %y[i, j] = max(%d[i, j] + %b[j], i32(0)); }
    } }
  }
}
)";

std::vector<std::vector<Tensor>> linear_params() {
  std::vector<std::vector<Tensor>> params;
  for (int64_t n : {0, 1, 3, 14, 21})
    params.push_back({filled(DType::kI32, {n, 5}), filled(DType::kI32, {24, 5}), filled(DType::kI32, {24})});
  return params;
}

TEST(Primitives, SplitCoversTailsByCopiesForSmallerBlocks) {
  const std::string text = scheduled(kLinear, {"split(y, i, 6, 4, 1)", "split(y_1, j, 16)"}, linear_params());
  for (const std::string_view loop : {"for i0 in (n // 6) {", "for i0 in ((2*(n // 6) + n) // 4 - 2*(n // 6)) {"})
    EXPECT_NE(text.find(loop), std::string::npos) << text;
  EXPECT_EQ(text.find("where"), text.rfind("where")) << text;  // a guard of j, none of i
}

TEST(Primitives, OverlappingBlocksComputeTheLastPointsAgain) {
  const std::string text =
      scheduled(kLinear, {"split(y, j, 16, overlap)", "mark(y, j1, vector)", "mark(y_1, j1, vector)"}, linear_params());
  EXPECT_EQ(text.find("where"), std::string::npos) << text;
  EXPECT_NE(text.find("at (16*j0 + j1 + 8)"), std::string::npos) << text;
  // Where the size divides the loop, no block is added.
  EXPECT_EQ(scheduled(kLinear, {"split(y, j, 8, overlap)"}, linear_params()).find("y_1"), std::string::npos);
}

// 21 rows are one whole block of 8, and the remaining 5, rounded up to 8, another one.
TEST(Primitives, RoundedBlocksCoverTailsByFewBlocks) {
  const std::string text = scheduled(kLinear, {"split(y, i, 8, 8, 4, round)"}, linear_params());
  for (const std::string_view loop : {"for i0 in (n // 8) {", "for i0 in ((n + 3) // 8 - n // 8) {"})
    EXPECT_NE(text.find(loop), std::string::npos) << text;
  EXPECT_NE(text.find("y_2"), std::string::npos) << text;
  // Whole blocks have no guard; nor has any where the last factor divides the loop.
  EXPECT_EQ(text.find("where"), text.find("where", text.find("y_1"))) << text;
  EXPECT_EQ(scheduled(kLinear, {"split(y, j, 16, 16, 8, round)"}, linear_params()).find("where"), std::string::npos);
}

constexpr std::string_view kPaddedSum =
    R"(loop @padded[n](%x: Tensor[(n, 9), i32]) -> (%y: Tensor[(n, 9), i32]) {
  for i in (n) { for j in (9) { for k in (3) {
    stage sum(i in (n) at (i), j in (9) at (j), reduce k in (3) at (k)) {
      init { %y[i, j] = i32(0); }
      %y[i, j] = %y[i, j] + select(index(0) <= index(j + k - 1) and index(j + k - 1) < index(9), %x[i, j + k - 1], i32(7));
    }
  } } }
}
)";

std::vector<std::vector<Tensor>> padded_params() { return {{filled(DType::kI32, {4, 9})}}; }

TEST(Primitives, PartitionDecidesComparisonsOfIndices) {
  const std::string text = scheduled(kPaddedSum, {"split(sum, j, 3)", "partition(sum, j0)"}, padded_params());
  EXPECT_NE(text.find("%y[i, j] = %y[i, j] + %x[i, j + k - 1];"), std::string::npos) << text;
  for (const std::string_view stage : {"stage sum_head", "stage sum(", "stage sum_tail"})
    EXPECT_NE(text.find(stage), std::string::npos) << text;
  // No range is inside: the first and the last block remain.
  const std::string edges = scheduled(kPaddedSum, {"split(sum, j, 6)", "partition(sum, j0)"}, padded_params());
  EXPECT_EQ(edges.find("stage sum("), std::string::npos) << edges;
}

// Row i of the left operand has i + 1 terms.
constexpr std::string_view kTriangle =
    R"(loop @trmm(%a: Tensor[(28, 28), i32], %b: Tensor[(28, 5), i32]) -> (%y: Tensor[(28, 5), i32]) {
  for i in (28) { for j in (5) { for k in (i + 1) {
    stage sum(i in (28) at (i), j in (5) at (j), reduce k in (i + 1) at (k)) {
      init { %y[i, j] = i32(0); }
      %y[i, j] = %y[i, j] + %a[i, k] * %b[k, j];
    } } } }
}
)";

// The number of tiles of terms is the same for all rows of a tile, so that loops over terms can be outside of rows, and
// conditions remain in the tiles on the diagonal alone.
TEST(Primitives, TilesOfATriangleHaveConditionsOnTheDiagonalAlone) {
  const std::vector<std::vector<Tensor>> params{{filled(DType::kI32, {28, 28}), filled(DType::kI32, {28, 5})}};
  const std::string text = scheduled(kTriangle,
                                     {"split(sum, i, 14)", "split_init(sum, i1)", "split(sum, k, 14)",
                                      "reorder(sum, k0, k1, i1, j)", "partition(sum, k0)"},
                                     params);
  EXPECT_HAS(text, "for k0 in (i0) {\n      for k1 in (14) {\n        for i1 in (14) {");
  EXPECT_HAS(text, "reduce k in (i + 1) at (14*k0 + k1)) {");  // no guard
  EXPECT_HAS(text, "where (14*i0 + 14*k0_tail + k1) below (14*i0 + i1 + 1)");
  // Tiles of other sizes have rows with other numbers of tiles of terms.
  const std::string other = scheduled(kTriangle, {"split(sum, i, 14)", "split(sum, k, 4)"}, params);
  EXPECT_HAS(other, "for k0 in ((2*i0 + i1) // 4 + 3*i0 + 1) {");
}

TEST(Primitives, SkewRunsAlongDiagonals) {
  const std::string text =
      scheduled(kPaddedSum, {"split_init(sum, j)", "skew(sum, j, k)", "mark(sum, j_k, unroll)", "mark(sum, k, unroll)"},
                padded_params());
  EXPECT_NE(text.find("for j_k in (11) unroll {"), std::string::npos) << text;
  EXPECT_NE(text.find("%y[i, j] = %y[i, j] + "), std::string::npos) << text;
  EXPECT_NE(text.find("where"), std::string::npos) << text;
}

TEST(Primitives, CloneGivesEachReaderItsOwnSums) {
  const std::string text = scheduled(kLinear,
                                     {"split(y, i, 6, 1)", "clone(dot, y)", "compute_at(dot_y, y, i0)",
                                      "compute_at(dot, y_1, i0)", "store_at(y_1, d, i0, registers)"},
                                     linear_params());
  EXPECT_NE(text.find("alloc %d: Tensor[(1, 24), i32] in registers {"), std::string::npos) << text;
  EXPECT_NE(text.find("%dot_y[i, j] = %dot_y[i, j] + %x[i, k] * %w[j, k];"), std::string::npos) << text;
}

// The combining stage and the reader of its results stay neighbours.
TEST(Primitives, RfactorLeavesReadersInOneBody) {
  const std::string text = scheduled(
      kLinear, {"split(dot, k, 2)", "rfactor(dot, k0)", "compute_at(dot, y, j)", "store_at(y, d, j, registers)"},
      linear_params());
  EXPECT_NE(text.find("alloc %dot_rf: Tensor[(3, n, 24), i32] {"), std::string::npos) << text;
  EXPECT_NE(text.find("alloc %d: Tensor[(1, 1), i32] in registers {"), std::string::npos) << text;
}

TEST(Primitives, AlignStorageChangesStridesAlone) {
  const std::string text = scheduled(
      kLinear, {"cache_read(dot, w)", "align_storage(w_dot, 1, 4)", "align_storage(w_dot, 0, 9)"}, linear_params());
  EXPECT_NE(text.find("alloc %w_dot: Tensor[(27, 8), i32] {"), std::string::npos) << text;
  EXPECT_NE(text.find("%w_dot[j, k]"), std::string::npos) << text;
}

TEST(Primitives, SwizzleChangesAddressesAlone) {
  const std::string text = scheduled(
      kLinear, {"cache_read(dot, w)", "layout(w_dot, j k -> j k)", "swizzle(w_dot, 1, 0, 4)"}, linear_params());
  EXPECT_NE(text.find("alloc %w_dot: Tensor[(24, 5), i32] swizzle(1, 0, 4) {"), std::string::npos) << text;
  EXPECT_NE(text.find("%w_dot[j, k]"), std::string::npos) << text;
  TypeContext context;
  const Function parsed = must_parse(context, text);
  EXPECT_EQ(print(context, parsed), text);
  Function other = parsed;
  for (Buffer& buffer : other.buffers) buffer.swizzles.clear();
  EXPECT_FALSE(equal(parsed, other));
}

TEST(Primitives, LayoutPacksPanels) {
  const std::string text = scheduled(
      kLinear, {"cache_read(dot, w)", "pad(w_dot, c0, 16)", "layout(w_dot, j k -> j/16 k j%16)"}, linear_params());
  EXPECT_NE(text.find("alloc %w_dot: Tensor[(2, 5, 16), i32] {"), std::string::npos) << text;
  EXPECT_NE(text.find("%w_dot[j // 16, k, j % 16]"), std::string::npos) << text;
  const std::string uneven = scheduled(kLinear, {"layout(d, i j -> i j/16 j%16)"}, linear_params());
  EXPECT_NE(uneven.find("alloc %d: Tensor[(n, 2, 16), i32] {"), std::string::npos) << uneven;
  scheduled(kLinear, {"cache_read(dot, w)", "layout(w_dot, j k -> k j/12 j%3 j/3%4)", "layout(d, i j -> j i)"},
            linear_params());
}

TEST(Primitives, PadMayAddAtLeastSomeElements) {
  const std::string text = scheduled(kLinear, {"cache_read(dot, w)", "pad(w_dot, c0, 8, 7)"}, linear_params());
  EXPECT_NE(text.find("alloc %w_dot: Tensor[(32, 5), i32] {"), std::string::npos) << text;
  // A block of 16 rows reads elements that exist, whatever the number of rows.
  const std::string rows =
      scheduled(kLinear, {"cache_read(dot, x)", "pad(x_dot, c0, 1, 15)", "pad(dot, i, 16)"}, linear_params());
  EXPECT_NE(rows.find("alloc %x_dot: Tensor[(n + 15, 5), i32] {"), std::string::npos) << rows;
  EXPECT_NE(rows.find("%d[i, j] = %d[i, j] + %x_dot[i, k] * %w[j, k];"), std::string::npos) << rows;
}

TEST(Primitives, LayoutJoinsAxes) {
  const std::string text = scheduled(kLinear, {"layout(d, i j -> i*j)"}, linear_params());
  EXPECT_NE(text.find("alloc %d: Tensor[(24*n,), i32] {"), std::string::npos) << text;
  EXPECT_NE(text.find("%d[24*i + j] = %d[24*i + j] + %x[i, k] * %w[j, k];"), std::string::npos) << text;
  scheduled(kLinear, {"cache_read(dot, w)", "layout(w_dot, j k -> k*j)"}, linear_params());
}

TEST(Primitives, FusedAxesAreOneAxisOfTheStageAndItsBuffer) {
  const std::string text =
      scheduled(kLinear, {"fuse_axes(dot, i, j)", "fuse(y, i, j)", "split(y, i_j__, 6)", "compute_at(dot, y, i_j__0)"},
                linear_params());
  EXPECT_NE(text.find("alloc %d: Tensor[(24*n,), i32] {"), std::string::npos) << text;
  EXPECT_NE(text.find("for dot_i_j_ in (6) {"), std::string::npos) << text;
  EXPECT_NE(text.find("%d[i_j_] = %d[i_j_] + %x[i_j_ // 24, k] * %w[i_j_ % 24, k];"), std::string::npos) << text;
}

constexpr std::string_view kPadded =
    R"(loop @padded[n](%x: Tensor[(n, 9), i32]) -> (%y: Tensor[(n + 3, 11), i32]) {
  alloc %p: Tensor[(n + 3, 11), i32] {
    for i in (n + 3) { for j in (11) {
      stage p(i in (n + 3) at (i), j in (11) at (j)) {
        %p[i, j] = select(index(0) <= index(i - 2) and index(i - 2) < index(n) and index(0) <= index(j - 1) and index(j - 1) < index(9), %x[i - 2, j - 1], i32(7));
      }
    } }
    for i in (n + 3) { for j in (11) {
      stage y(i in (n + 3) at (i), j in (11) at (j)) { %y[i, j] = %p[i, j]; }
    } }
  }
}
)";

TEST(Primitives, FillStoresPaddingFirst) {
  const std::string text =
      scheduled(kLinear, {"cache_read(dot, w)", "pad(w_dot, c0, 16)", "fill(w_dot)"}, linear_params());
  EXPECT_NE(
      text.find(
          "stage w_dot_fill(c0 in (32) at (w_dot_0), c1 in (5) at (w_dot_1)) {\n            %w_dot[c0, c1] = i32(0);"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("for w_dot_0 in (24) {"), std::string::npos) << text;
  EXPECT_NE(text.find("%w_dot[c0, c1] = %w[c0, c1];"), std::string::npos) << text;
  // Sevens around x, and zeros that another step adds after them.
  const std::string both =
      scheduled(kPadded, {"pad(p, j, 16)", "fill(p)"}, {{filled(DType::kI32, {0, 9})}, {filled(DType::kI32, {4, 9})}});
  EXPECT_NE(both.find("%p[i, j] = select(index(j) < index(11), i32(7), i32(0));"), std::string::npos) << both;
  EXPECT_NE(both.find("for i in (n) {"), std::string::npos) << both;
  EXPECT_NE(both.find("for j in (9) {"), std::string::npos) << both;
  EXPECT_NE(both.find("%p[i, j] = %x[i - 2, j - 1];"), std::string::npos) << both;
}

TEST(Primitives, AtLoadComputesAnOperandOnce) {
  TypeContext context;
  const Function before = must_parse(context, kLinear);
  Schedule schedule(context, before, {before.params[1]});
  for (const std::string_view step : {"cache_read(dot, w)", "pad(w_dot, c0, 16)", "layout(w_dot, j k -> j/16 k j%16)",
                                      "at_load(w_dot)", "pad(dot, j, 16)"}) {
    const Status status = schedule.apply(step);
    ASSERT_TRUE(status) << status.error().str();
  }
  ASSERT_EQ(schedule.loads().size(), 1u);
  const LoadStep& load = schedule.loads().front();
  EXPECT_EQ(load.inputs, std::vector{before.params[1]});
  EXPECT_EQ(load.operand, schedule.function().params.back());
  for (const std::vector<Tensor>& params : linear_params()) {
    const auto panels = evaluate(context, load.load, std::vector{params[1]});
    ASSERT_TRUE(panels) << panels.error().str();
    std::vector<Tensor> operands = params;
    operands.push_back(panels->front());
    const auto expected = evaluate(context, before, params), results = evaluate(context, schedule.function(), operands);
    ASSERT_TRUE(expected && results) << print(context, schedule.function());
    EXPECT_EQ(*results, *expected);
  }
}

struct Refusal {
  std::string_view program;
  std::vector<std::string> before;
  std::string step, message;
};

// The rows of each instance doubled, one more, and their sums.
constexpr std::string_view kRows =
    R"(loop @rows[n](%lengths: Tensor[(n,), i64], %x: Tensor[(b: n, lengths(b), 2), i32]) -> (%y: Tensor[(b: n, lengths(b), 2), i32], %z: Tensor[(n, 2), i32]) {
  alloc %t: Tensor[(r: n, lengths(r), 2), i32] {
    for b in (n) { for s in (lengths(b)) { for j in (2) {
      stage twice(b in (n) at (b), s in (lengths(b)) at (s), j in (2) at (j)) { %t[b, s, j] = %x[b, s, j] * i32(2); }
    } } }
    for b in (n) { for s in (lengths(b)) { for j in (2) {
      stage more(b in (n) at (b), s in (lengths(b)) at (s), j in (2) at (j)) { %y[b, s, j] = %t[b, s, j] + i32(1); }
    } } }
    for b in (n) { for j in (2) {
      stage zero(b in (n) at (b), j in (2) at (j)) { %z[b, j] = i32(0); }
    } }
    for b in (n) { for j in (2) { for s in (lengths(b)) {
      stage sum(b in (n) at (b), j in (2) at (j), reduce s in (lengths(b)) at (s)) { %z[b, j] = %z[b, j] + %t[b, s, j]; }
    } } }
  }
}
)";

// Batches with instances of no rows, and of no instances.
std::vector<std::vector<Tensor>> batches() {
  std::vector<std::vector<Tensor>> params;
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{3, 0, 9, 1}, {0, 0}, {}, {17}}) {
    const auto total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    params.push_back({Tensor::of<int64_t>({static_cast<int64_t>(lengths.size())}, lengths),
                      filled(runtime::DType::kI32, {total, 2})});
  }
  return params;
}

bool is_proved(std::string_view text) {
  TypeContext context;
  const auto unproven = unproven_obligations(context, must_parse(context, text));
  EXPECT_FALSE(unproven.program) << unproven.program->str() << "\n" << text;
  return !unproven.program;
}

TEST(Primitives, FusedRaggedLoopsVisitTheElementsOfAllRows) {
  const std::string text = scheduled(kRows,
                                     {"fuse(twice, b, s)", "split(twice, b_s, 4)", "partition(twice, b_s0)",
                                      "fuse(more, b, s)", "mark(more, b_s, parallel)", "mark(twice, b_s0, parallel)"},
                                     batches());
  EXPECT_HAS(text,
             "offsets offsets(row in (n), size (lengths(row)));\n  rows rows(row_ in (n), size (lengths(row_)));");
  EXPECT_HAS(text, "for b_s0 in (offsets(n) // 4) parallel {");  // whole blocks, without guards
  EXPECT_HAS(text,
             "b in (n) at (rows(4*b_s0 + b_s1)), s in (lengths(b)) at (4*b_s0 + b_s1 - offsets(rows(4*b_s0 + b_s1)))");
  EXPECT_HAS(text, "for b_s in (offsets(n)) parallel {");
  EXPECT_TRUE(is_proved(scheduled(kRows, {"fuse(twice, b, s)", "fuse(more, b, s)"}, batches())));
}

TEST(Primitives, FusedRaggedAxesAreRoundedUpOnceForAllRows) {
  const std::string text =
      scheduled(kRows, {"fuse_axes(twice, b, s)", "pad(twice, b_s_, 14)", "split(twice, b_s, 14)", "fuse(more, b, s)"},
                batches());
  EXPECT_HAS(text, "alloc %t: Tensor[(14*((offsets(n) + 13) // 14), 2), i32]");
  EXPECT_HAS(
      text,
      "%t[b_s_, j] = select(index(b_s_) < index(offsets(n)), %x[rows(b_s_), b_s_ - offsets(rows(b_s_)), j] * i32(2)");
  EXPECT_HAS(text, "%y[b, s, j] = %t[offsets(b) + s, j] + i32(1);");
  EXPECT_HAS(text, "%z[b, j] = %z[b, j] + %t[offsets(b) + s, j];");
}

TEST(Primitives, LoopsOverRowsArePaddedAsTheirStorage) {
  const std::string text = scheduled(
      kRows, {"align_storage(t, 1, 8)", "pad(twice, s, 4)", "split(twice, s, 4)", "pad(sum, s, 4)"}, batches());
  EXPECT_HAS(text, "alloc %t: Tensor[(r: n, 8*((lengths(r) + 7) // 8), 2), i32]");
  EXPECT_HAS(text, "s in (4*((lengths(b) + 3) // 4)) at (4*s0 + s1), j in (2) at (j)) {");  // no guard
  EXPECT_HAS(text, "reduce s in (4*((lengths(b) + 3) // 4)) at (s)) {");
}

TEST(Primitives, RemapVisitsLongRowsFirst) {
  const std::string text = scheduled(kRows, {"remap(more, b, descending)", "mark(more, b_at, parallel)"}, batches());
  EXPECT_HAS(text, "descending descending(row in (n), size (lengths(row)));");
  EXPECT_HAS(text, "for b_at in (n) parallel {\n      for s in (lengths(descending(b_at))) {");
}

TEST(Primitives, SplitAndHfuseWorkOnRows) {
  const std::string text = scheduled(
      kRows, {"split(twice, s, 4)", "partition(twice, s0)", "split(more, s, 8, 4, 1)", "hfuse(zero, b, sum, b)"},
      batches());
  EXPECT_HAS(text, "for s0 in (lengths(b) // 4) {");
  EXPECT_HAS(text, "for s0_ in (lengths(b) // 8) {");
}

TEST(Primitives, RefuseRaggedStepsWithTheReason) {
  const std::tuple<std::vector<std::string>, std::string_view, std::string_view> cases[] = {
      {{}, "pad(twice, s, 4)", "%t is not large enough for the padded axis, at (b, s, j)"},
      {{"align_storage(t, 1, 4)"}, "pad(twice, s, 8)", "%t is not large enough for the padded axis, at (b, s, j)"},
      {{}, "pad(more, s, 4)", "%y is not large enough for the padded axis, at (b, s, j)"},
      {{}, "align_storage(y, 1, 4)", "%y is a parameter or a result"},
      {{"align_storage(t, 1, 4)"}, "align_storage(t, 1, 2)", "is already a multiple of 2"},
      {{}, "fuse_axes(more, b, s)", "%y is a"},
      {{}, "fuse(twice, s, b)", "the loop 'b' is not the only statement in 's'"},
      {{}, "reorder(twice, s, b)", "the size of 's' depends on 'b', which must stay outside it"},
      {{}, "remap(twice, b, ascending)", "'ascending' is not an order of a loop"},
      {{}, "remap(twice, j, descending)", "all iterations of 'j' have equal work"},
      {{}, "remap(sum, s, descending)", "the iterations of 's' are not independent, so their order matters"},
      {{"remap(twice, b, descending)"},
       "fuse(twice, b_at, s)",
       "are not over the function's dims and parameters alone"},
      {{"split(twice, b, 1)"}, "fuse(twice, b1, s)", "are not over the function's dims and parameters alone"},
  };
  for (const auto& [before, step, message] : cases) {
    TypeContext context;
    Schedule schedule(context, must_parse(context, kRows));
    for (const std::string& earlier : before) {
      const Status status = schedule.apply(earlier);
      ASSERT_TRUE(status) << status.error().str();
    }
    const Status status = schedule.apply(step);
    ASSERT_FALSE(status) << step << print(context, schedule.function());
    EXPECT_HAS(status.error().str(), message) << step;
  }
}

TEST(Primitives, RefuseWithTheReason) {
  const std::vector<Refusal> cases = {
      {kGemm, {}, "split(dot, j, 16, overlap)", "points in the loop 'j' cannot be computed twice"},
      {kLinear, {}, "split(y, i, 4, overlap)", "overlapping blocks must be of one size, at most that of 'i'"},
      {kLinear, {}, "split(y, j, 16, 8, overlap)", "overlapping blocks must be of one size"},
      {kLinear, {}, "split(y, j, overlap)", "overlapping blocks must be of one size"},
      {kLinear, {}, "split(y, j, 8, round)", "rounded blocks must be of several sizes"},
      {kLinear, {}, "split(y, j, 8, 3, round)", "all of them multiples of the last one"},
      {kGemm, {}, "skew(dot, i, k)", "the loop 'k' is not the only statement in 'i'"},
      {kGemm, {"mark(dot, j, parallel)"}, "skew(dot, i, j)", "the loop 'j' is parallel"},
      {kGemm, {"split(dot, k, 4)"}, "skew(dot, k0, k1)", "are both loops of a reduction"},
      {kGemm, {}, "cache_write(dot, q, heap)", "is in no loop 'q'"},
      {kGemm, {}, "cache_write(dot, i, shelf)", "a buffer cannot be placed in 'shelf'"},
      {kGemm, {}, "cache_write(dot, i)", "'cache_write' requires a stage, optionally a loop"},
      {kGemm, {}, "cache_write(dot, i, heap, q)", "'cache_write' requires a stage, optionally a loop"},
      {kGemm,
       {"reorder(dot, k, i)"},
       "cache_write(dot, i, heap)",
       "'k' of the stage 'dot' continues from one iteration of 'i'"},
      {kGemm, {"split_init(dot, k)"}, "cache_write(dot, j, heap)", "accumulates into previous values of %c"},
      {kGemm, {"split_init(dot, i)"}, "cache_write(dot)", "accumulates into previous values of %c"},
      {kGemm, {"split(dot, i, 4)", "partition(dot, i0)"}, "cache_write(dot)", "the stage 'dot_tail' also writes %c"},
      {kGemm,
       {"cache_write(dot, i, heap)"},
       "store_at(dot, dot_cache, i, heap)",
       "%dot_cache is not allocated outside of the loop 'i'"},
      {kGemm, {}, "cache_read(dot, a, i, registers)", ""},
      {kGemm, {}, "cache_write(dot, i, stack)", ""},
      {kSum, {}, "cache_read(sum, x, i, stack)", "%x_sum cannot be placed on the stack: its size m is not a constant"},
      {kGemm, {}, "store_at(dot, q, i, heap)", "there is no buffer %q"},
      {kGemm, {}, "store_at(dot, c, i, heap)", "%c is not allocated outside of the loop 'i'"},
      {kWindowLoops, {}, "store_at(sum, t, i, heap)", "%t is used outside the loop 'i' too"},
      {kWindowLoops,
       {"compute_at(twice, sum, i)", "fold_storage(sum, t, i, 3)"},
       "store_at(sum, t, i, heap)",
       "'i' of the stage 'twice' continues from one iteration"},
      {kWindowLoops, {}, "cache_read(sum, t, r, heap)", ""},
      {kGemm, {}, "rfactor(dot, i)", "the loop 'i' does not belong to one axis of the reduction alone"},
      {kGemm, {"split_init(dot, k)"}, "rfactor(dot, k)", "the stage 'dot' has no init"},
      {kWindowLoops, {}, "rfactor(square, i)", "is not of the form x[...] = x[...] op y"},
      {kSum, {"split(sum, k, 8)", "split(sum, k1, 4)"}, "rfactor(sum, k10)", "an iteration of 'k10' may have no terms"},
      {kSum, {"cache_read(sum, x)"}, "rfactor(sum, q)", "is in no loop 'q'"},
      {kGemm, {}, "pad(dot, q, 4)", "the stage 'dot' has no axis 'q'"},
      {kGemm, {}, "pad(dot, j, 4)", "the size 64 of 'j' is already a multiple of 4"},
      {kGemm, {}, "pad(dot, i, 0)", "the multiple is 0, must be at least 1"},
      {kGemm,
       {},
       "pad(dot, i, 9223372036854775807)",
       "the multiple is 9223372036854775807, must be at most 2147483647"},
      {kGemm,
       {},
       "split(dot, i, 4611686018427387904)",
       "the factor is 4611686018427387904, must be at most 2147483647"},
      {kGemm, {}, "pad(dot, i, 4)", "%c is not large enough for the padded axis"},
      {kGemm, {"mark(dot, i, parallel)"}, "pad(dot, i, 4)", "the loop 'i' has a loop kind already"},
      {kGemm,
       {"cache_write(dot)", "fuse(dot, i, j)"},
       "pad(dot, i, 4)",
       "'i' has neither a loop of its own nor a guard"},
      {kWindowLoops,
       {"compute_at(twice, sum, i)", "fold_storage(sum, t, i, 3)"},
       "pad(twice, i, 4)",
       "'i' is neither a spatial axis nor a reduction"},
      {kSum, {"split(sum, k, 2)"}, "pad(sum, k, 8)", "the loops of 'k' do not cover"},
      {kSum,
       {"split(sum, k, 2)", "partition(sum, k0)"},
       "split_init(sum_tail, k0_tail)",
       "cannot prove that the stage 'sum_tail' begins the reduction 'k' at 0"},
      {kWindowLoops,
       {"cache_read(twice, x, i, stack)"},
       "inline(twice)",
       "the stage 'twice' reads %x_twice, which is allocated in a loop"},
      {kGemm, {}, "partition(dot, i)", "no guard inside 'i' holds for a whole range of its iterations"},
      {kGemm,
       {"split(dot, j, 3)", "mark(dot, j1, unroll)"},
       "partition(dot, j1)",
       "the loop 'j1' has a loop kind already"},
      {kWindowLoops,
       {},
       "hfuse(twice, i, square, i)",
       "the loop 'i' of 'square' does not directly follow 'i' of 'twice'"},
      {kWindowLoops, {"mark(sum, i, parallel)"}, "hfuse(twice, i, sum, i)", "a loop with a loop kind cannot be fused"},
      {kWindowLoops,
       {"hfuse(twice, i, sum, i)"},
       "mark(sum, i_i, parallel)",
       "an iteration may read elements of %t that another one writes"},
      {kWindowLoops, {"hfuse(twice, i, sum, i)"}, "split(sum, i_i, 4)", "an if inside depends on 'i_i'"},
      {kWindowLoops,
       {},
       "fold_storage(sum, t, i, 3)",
       "the stage 'twice' uses elements of %t that are not live in the loop 'i'"},
      {kWindowLoops,
       {"compute_at(twice, sum, i)"},
       "fold_storage(sum, t, i, 2)",
       "uses a window of at most 2 elements of %t"},
      {kWindowLoops, {}, "fold_storage(sum, y, i, 3)", "%y is not allocated outside of the loop 'i'"},
      {kWindowLoops,
       {"compute_at(twice, sum, i)", "fold_storage(sum, t, i, 3)"},
       "mark(sum, i, parallel)",
       "'i' is a scan axis of the stage 'twice'"},
      {kWindowLoops, {}, "pipeline(sum, i)", "the stage 'sum' is not the first of several statements in the loop 'i'"},
      {kWindowLoops, {"compute_at(twice, sum, i)", "fold_storage(sum, t, i, 3)"}, "pipeline(twice, i)", "%t is folded"},
      {kInt8, {}, "tensorize(dot, j, vnni_dot_16)", "the stage 'dot' has an init"},
      {kInt8, {"split_init(dot, k)"}, "tensorize(dot, j, vnni_dot)", "there is no instruction 'vnni_dot'"},
      {kInt8,
       {"split_init(dot, k)"},
       "tensorize(dot, j, vnni_dot_16)",
       "the loops have (32, 4) iterations, those of the instruction 'vnni_dot_16' (16, 4)"},
      {kInt8,
       {"split(dot, j, 4)", "split_init(dot, k)"},
       "tensorize(dot, j1, neon_sdot_4)",
       "the nest does not match the instruction 'neon_sdot_4': found %b[k, j, q] where it has %x[k]"},
      {kInt8,
       {"split(dot, j, 16)", "split_init(dot, k)"},
       "tensorize(dot, j1, vnni_dot_16, inexact)",
       "the instruction 'vnni_dot_16' is exact"},
      {kInt8,
       {"split(dot, j, 16)", "split_init(dot, k)"},
       "tensorize(dot, j1, vnni_dot_16, fast)",
       "'fast' is not an argument of tensorize"},
      {kInt8,
       {"split_init(dot, k)"},
       "tensorize(dot, j, mma_f16_16x8x16)",
       "the instruction 'mma_f16_16x8x16' adds in an unspecified order, with a relative error of up to "
       "3.814697265625e-06"},
      {kInt8,
       {"split_init(dot, k)"},
       "tensorize(dot, i, vnni_dot_16)",
       "the size of 'i' in the loop 'i' is not a constant"},
      {kInt8,
       {"split(dot, j, 12)", "split_init(dot, k)", "split(dot, j1, 4)"},
       "tensorize(dot, j11, vnni_dot_4)",
       "a guard of the stage mentions 'j11'"},
      {kInt8,
       {"split(dot, j, 16)", "split_init(dot, k)", "tensorize(dot, j1, vnni_dot_16)"},
       "mark(dot, j0, vector)",
       "the stage 'dot' is an instruction"},
      {kGemm,
       {"fuse(dot, j, k)", "split(dot, j_k, 3)"},
       "reorder(dot, j_k1, j_k0)",
       "'j_k1' cannot move out of 'j_k0': points of the reduction would come before its init"},
      {kLinear, {}, "split(y, i, 4, 5)", "the factor 5 follows 4, must not be larger"},
      {kLinear, {}, "clone(y, dot)", "%y is a result of the function"},
      {kLinear, {}, "clone(dot, dot)", "the stage 'dot' does not read the result of 'dot'"},
      {kLinear, {"split_init(dot, k)"}, "clone(dot, y)", "the stage 'dot_init' also writes %d"},
      {kLinear, {}, "layout(w, j k -> k j)", "%w is not allocated in the function"},
      {kLinear, {}, "layout(d, i j)", "a layout must be old axes and new ones"},
      {kLinear, {}, "layout(d, i i -> i)", "the axis 'i' is named twice"},
      {kLinear, {}, "layout(d, i -> i)", "%d has 2 axes, 1 are named"},
      {kLinear, {}, "layout(d, i j -> i k)", "'k' is not an old axis"},
      {kLinear, {}, "layout(d, i j -> i j/x)", "'j/x' requires an integer from 2 on after '/'"},
      {kLinear, {}, "layout(d, i j -> i j%4/2)", "'j%4/2' is not an axis, a quotient j/16 or a remainder"},
      {kLinear, {}, "layout(d, i j -> i j/4)", "the new axes do not determine the axis 'j' once"},
      {kLinear, {}, "layout(d, i j -> i j/4 j%8)", "the new axes do not determine the axis 'j' once"},
      {kLinear, {}, "layout(d, i j -> i/2 j i%2)", "2 does not divide the size n of %d"},
      {kLinear, {}, "layout(d, i j -> i*i j)", "the new axes do not determine the axis 'i' once"},
      {kLinear, {}, "layout(d, i j -> i*)", "'' is not an old axis"},
      {kLinear, {}, "fuse_axes(dot, i, z)", "the stage 'dot' has no axis 'z'"},
      {kLinear, {}, "fuse_axes(dot, j, k)", "'k' is not a spatial axis"},
      {kLinear, {}, "fuse_axes(dot, j, i)", "'j' and 'i' are not adjacent axes of %d, of its sizes"},
      {kLinear, {}, "fuse_axes(y, i, j)", "%y is a result of the function"},
      {kLinear, {"split(dot, j, 4)"}, "fuse_axes(dot, i, j)", "'j' has no loop of its own"},
      {kLinear, {"mark(dot, i, parallel)"}, "fuse_axes(dot, i, j)", "a loop with a loop kind cannot be fused"},
      {kLinear, {}, "fill(dot)", "the values of the stage 'dot' are not selected by comparisons of indices"},
      {kLinear, {}, "fill(y)", "the values of the stage 'y' are not selected by comparisons of indices"},
      {kPadded, {"split(p, j, 4)"}, "fill(p)", "the comparison 0 < j of the stage 'p' is not one of a loop's range"},
      {kPadded, {"mark(p, i, parallel)"}, "fill(p)", "is not one of a loop's range"},
      {kLinear, {}, "align_storage(y, 1, 5)", "%y is a parameter or a result"},
      {kLinear, {}, "align_storage(z, 1, 5)", "there is no buffer %z"},
      {kLinear, {}, "align_storage(d, 2, 5)", "%d has 2 axes, so none has the number 2"},
      {kLinear, {}, "align_storage(d, 0, 5)", "the size n of %d is not a constant"},
      {kLinear, {}, "align_storage(d, 1, 8)", "the size 24 of %d is already a multiple of 8"},
      {kLinear, {}, "align_storage(d, -1, 8)", "the number of the axis is -1, must be at least 0"},
      {kInt8,
       {"cache_write(dot)", "split(dot, j, 16)", "split_init(dot, k)", "tensorize(dot, j1, vnni_dot_16)"},
       "align_storage(dot_cache, 1, 48)",
       "%dot_cache is used by an if, a let, a library or an instruction"},
      {kLinear, {}, "swizzle(y, 1, 0, 2)", "%y is a parameter or a result"},
      {kLinear, {}, "swizzle(d, 1, 2, 2)", "%d has a swizzle that is not of an axis by another one and a divisor"},
      {kLinear, {}, "swizzle(d, 1, 1, 2)", "%d has a swizzle that is not of an axis by another one and a divisor"},
      {kLinear, {}, "swizzle(d, 0, 1, 2)", "%d has a swizzle of the axis 0, whose size is not a constant"},
      {kLinear, {}, "swizzle(d, 1, 0, 0)", "the divisor is 0, must be at least 1"},
      {kLinear, {"swizzle(d, 1, 0, 2)"}, "swizzle(d, 1, 0, 4)", "one of which another swizzle rotates"},
      {kLinear, {"swizzle(d, 1, 0, 2)"}, "layout(d, i j -> j i)", "%d has swizzled axes"},
      {kLinear, {}, "at_load(dot)", "the stage 'dot' reads %x, which is not a constant operand"},
      {kLinear, {}, "at_load(y)", "%y is a result of the function"},
      {kLinear, {"compute_at(dot, y, i)"}, "at_load(dot)", "the stage 'dot' is in a loop with other statements"},
      {kGemm, {"cache_write(dot)", "cache_read(dot, b, j, heap)"}, "inline(dot)", "is more than one assignment"},
  };
  for (const Refusal& refusal : cases) {
    TypeContext context;
    Schedule schedule(context, must_parse(context, refusal.program));
    for (const std::string& step : refusal.before) {
      const Status before = schedule.apply(step);
      EXPECT_TRUE(before) << before.error().str();
    }
    const std::string text = print(context, schedule.function());
    const Status status = schedule.apply(refusal.step);
    if (refusal.message.empty()) {
      EXPECT_TRUE(status) << refusal.step << status.error().str();
      continue;
    }
    EXPECT_FALSE(status) << refusal.step << "\n" << print(context, schedule.function());
    if (status) continue;
    EXPECT_NE(status.error().str().find(refusal.message), std::string::npos)
        << status.error().str() << "\nnot: " << refusal.message;
    EXPECT_EQ(print(context, schedule.function()), text);
  }
}

}  // namespace
}  // namespace tenon::compiler::loop
