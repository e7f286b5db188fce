// The template of products for GPUs: bound to blocks and threads, with the results of the plain loops.
#include "compiler/schedules/thread_product.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/loop/bindings.h"
#include "compiler/loop/evaluate.h"
#include "compiler/loop/rearrange.h"
#include "compiler/loop/text.h"
#include "compiler/loop/tree.h"
#include "tests/compiler/loop/must_parse.h"

namespace tenon::compiler::schedules {
namespace {

using loop::must_parse;
using runtime::Tensor;

constexpr std::string_view kDenseLayer =
    R"(loop @dense[n](%x: Tensor[(n, 17), f32], %w: Tensor[(20, 17), f32]) -> (%y: Tensor[(n, 20), f32]) {
  alloc %d: Tensor[(n, 20), f32] {
    for i in (n) { for j in (20) { for k in (17) {
      stage dot(i in (n) at (i), j in (20) at (j), reduce k in (17) at (k)) {
        init { %d[i, j] = f32(0); }
        %d[i, j] = %d[i, j] + %x[i, k] * %w[j, k];
      }
    } } }
    for i in (n) { for j in (20) {
      stage y(i in (n) at (i), j in (20) at (j)) { %y[i, j] = max(%d[i, j], f32(0)); }
    } }
  }
}
)";

// Two batch axes, of which the right operand has one; two terms.
constexpr std::string_view kBatches =
    R"(loop @batches(%x: Tensor[(2, 2, 2, 18, 3), f32], %w: Tensor[(2, 2, 3, 33), f32]) -> (%y: Tensor[(2, 2, 18, 33), f32]) {
  alloc %d: Tensor[(2, 2, 18, 33), f32] {
    for a in (2) { for b in (2) { for i in (18) { for j in (33) { for k in (2) { for l in (3) {
      stage dot(a in (2) at (a), b in (2) at (b), i in (18) at (i), j in (33) at (j), reduce k in (2) at (k), reduce l in (3) at (l)) {
        init { %d[a, b, i, j] = f32(0); }
        %d[a, b, i, j] = %d[a, b, i, j] + %x[a, b, k, i, l] * %w[b, k, l, j];
      }
    } } } } } }
    for a in (2) { for b in (2) { for i in (18) { for j in (33) {
      stage y(a in (2) at (a), b in (2) at (b), i in (18) at (i), j in (33) at (j)) { %y[a, b, i, j] = %d[a, b, i, j]; }
    } } } }
  }
}
)";

Tensor small_integers(runtime::Shape shape) {
  Tensor tensor(runtime::DType::kF32, std::move(shape));
  auto data = tensor.data<float>();
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(static_cast<int>(i * 37 % 29) - 14);
  return tensor;
}

size_t first(std::string_view, const std::vector<Option>&) { return 0; }
size_t last(std::string_view, const std::vector<Option>& options) { return options.size() - 1; }
size_t fastest(std::string_view, const std::vector<Option>& options) {
  return static_cast<size_t>(std::ranges::min_element(options, {}, &Option::cost) - options.begin());
}

// The template's function; `constants`: parameters that are constant.
loop::Schedule bound_product(TypeContext& context, const loop::Function& algorithm, std::set<size_t> constants,
                             const ChooseOption& choose, const Machine::Inexact& inexact = {}) {
  std::set<loop::BufferId> buffers;
  for (const size_t constant : constants) buffers.insert(algorithm.params[constant]);
  loop::Schedule schedule(context, algorithm, buffers);
  const ProductStages product{.sums = context.symbol("dot"), .results = context.symbol("y")};
  Machine machine = *find_machine("sm_80");
  machine.inexact = inexact;
  const Status status = schedule_product(context, schedule, product, machine, choose);
  EXPECT_TRUE(status) << status.error().str() << loop::print(context, schedule.function());
  return schedule;
}

// The evaluator also finds races between the threads of a phase.
void expect_equal(TypeContext& context, const loop::Function& algorithm, const loop::Schedule& schedule,
                  std::vector<Tensor> params, std::array<int64_t, 3> threads = {16, 16, 1}, size_t launch_count = 1) {
  const auto expected = loop::evaluate(context, algorithm, params);
  for (const loop::LoadStep& load : schedule.loads()) {
    std::vector<Tensor> inputs;
    for (const loop::BufferId input : load.inputs) {
      const auto at = std::ranges::find(algorithm.params, input) - algorithm.params.begin();
      inputs.push_back(params[static_cast<size_t>(at)]);
    }
    const auto packed = loop::rearranged(context, load.load, inputs);
    ASSERT_TRUE(packed) << packed.error().str();
    params.push_back(*packed);
  }
  const loop::Function bound = loop::with_barriers(context, schedule.function());
  const auto launches = loop::launches_of(context, bound);
  ASSERT_TRUE(launches) << launches.error().str() << loop::print(context, bound);
  EXPECT_EQ(launches->size(), launch_count);
  EXPECT_EQ(launches->front().threads, threads);
  const auto results = loop::evaluate(context, bound, params);
  ASSERT_TRUE(expected && results) << results.error().str() << loop::print(context, bound);
  EXPECT_EQ(*results, *expected) << loop::print(context, bound);
}

TEST(ThreadProduct, RowsOfAnyNumberAndConstantWeights) {
  for (const auto& choose : {first, last, fastest}) {
    TypeContext context;
    const loop::Function algorithm = must_parse(context, kDenseLayer);
    const loop::Schedule schedule = bound_product(context, algorithm, {1}, choose);
    EXPECT_EQ(schedule.loads().size(), 1u);
    for (const int64_t n : {0, 1, 33})
      expect_equal(context, algorithm, schedule, {small_integers({n, 17}), small_integers({20, 17})});
  }
}

// ldmatrix reads a word of 16 bytes of each of 8 rows or columns of a tile: they are in all 32 banks.
TEST(ThreadProduct, WordsOfAMatrixAreInAllBanks) {
  for (const int64_t terms : {40, 16}) {  // panels of two tiles, and of one
    TypeContext context;
    const loop::Function algorithm = must_parse(
        context, fmt::format("loop @f(%x: Tensor[(64, {0}), f16], %w: Tensor[(64, {0}), f16]) -> (%y: Tensor[(64, 64), "
                             "f32]) {{ alloc %d: Tensor[(64, 64), f32] {{ for i in (64) {{ for j in (64) {{ for k in "
                             "({0}) {{ stage dot(i in (64) at (i), j in (64) at (j), reduce k in ({0}) at (k)) {{ "
                             "init {{ %d[i, j] = f32(0); }} %d[i, j] = %d[i, j] + f32(%x[i, k]) * f32(%w[j, k]); }} }} "
                             "}} }} for i in (64) {{ for j in (64) {{ stage y(i in (64) at (i), j in (64) at (j)) {{ "
                             "%y[i, j] = %d[i, j]; }} }} }} }} }}",
                             terms));
    const loop::Schedule schedule = bound_product(context, algorithm, {}, fastest, {.f16 = true});
    size_t panels = 0;
    for (const loop::Buffer& buffer : schedule.function().buffers) {
      if (buffer.swizzles.empty()) continue;
      ++panels;
      const bool of_rows = context.name(buffer.name).starts_with("x");
      const size_t rank = buffer.rank();
      // The axes at the end: the number of the lane (of rows: a digit of 8; of columns: digits of 4 and 2), the tile of
      // the terms, its word, and the term.
      for (const int64_t tile : {int64_t{0}, *buffer.axes[rank - 3].extent.constant() - 1}) {
        for (const int64_t word : {0, 1}) {
          std::set<int64_t> banks;
          for (int64_t lane = 0; lane < 8; ++lane) {
            std::vector<int64_t> at(rank, 0);
            if (of_rows) at[rank - 4] = lane;
            else at[rank - 5] = lane / 2, at[rank - 4] = lane % 2;
            at[rank - 3] = tile, at[rank - 2] = word;
            std::vector<int64_t> stored = at;
            for (const auto& [axis, by, divisor] : buffer.swizzles)
              stored[axis] = (at[axis] + at[by] / divisor) % *buffer.axes[axis].extent.constant();
            int64_t offset = 0;
            for (size_t axis = 0; axis < rank; ++axis)
              offset = offset * *buffer.axes[axis].extent.constant() + stored[axis];
            banks.insert(2 * offset / 16 % 8);
          }
          EXPECT_EQ(banks.size(), 8u) << loop::print(context, schedule.function());
        }
      }
    }
    EXPECT_EQ(panels, 2u);
  }
}

TEST(ThreadProduct, BatchesWithSeveralTerms) {
  for (const auto& choose : {first, last}) {
    TypeContext context;
    const loop::Function algorithm = must_parse(context, kBatches);
    const loop::Schedule schedule = bound_product(context, algorithm, {}, choose);
    expect_equal(context, algorithm, schedule, {small_integers({2, 2, 2, 18, 3}), small_integers({2, 2, 3, 33})});
  }
}

constexpr std::string_view kBytes =
    R"(loop @bytes[n](%x: Tensor[(n, 40), i8], %w: Tensor[(20, 40), i8]) -> (%y: Tensor[(n, 20), i32]) {
  alloc %d: Tensor[(n, 20), i32] {
    for i in (n) { for j in (20) { for k in (40) {
      stage dot(i in (n) at (i), j in (20) at (j), reduce k in (40) at (k)) {
        init { %d[i, j] = i32(0); }
        %d[i, j] = %d[i, j] + i32(%x[i, k]) * i32(%w[j, k]);
      }
    } } }
    for i in (n) { for j in (20) {
      stage y(i in (n) at (i), j in (20) at (j)) { %y[i, j] = max(%d[i, j], i32(0)); }
    } }
  }
}
)";

Tensor bytes(runtime::Shape shape) {
  Tensor tensor(runtime::DType::kI8, std::move(shape));
  auto data = tensor.data<int8_t>();
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<int8_t>(i * 37 % 256);
  return tensor;
}

TEST(ThreadProduct, BytesAreMultipliedByWarps) {
  for (const std::set<size_t>& constants : {std::set<size_t>{}, {1}}) {
    for (const auto& choose : {first, fastest}) {
      TypeContext context;
      const loop::Function algorithm = must_parse(context, kBytes);
      const loop::Schedule schedule = bound_product(context, algorithm, constants, choose);
      EXPECT_TRUE(schedule.function().intrinsic(context.symbol("mma_s8_16x8x32")));
      for (const int64_t n : {1, 33})
        expect_equal(context, algorithm, schedule, {bytes({n, 40}), bytes({20, 40})}, {4, 8, 4});
    }
  }
}

// A product of floats of a type, whose right operand has columns inside, or terms.
std::string float_product(std::string_view type, bool columns_inside) {
  const std::string factor = type == "f32" ? "" : "f32";
  return fmt::format(
      R"(loop @floats[n](%x: Tensor[(n, 40), {0}], %w: Tensor[({1}), {0}]) -> (%y: Tensor[(n, 24), {0}]) {{
  alloc %d: Tensor[(n, 24), f32] {{
    for i in (n) {{ for j in (24) {{ for k in (40) {{
      stage dot(i in (n) at (i), j in (24) at (j), reduce k in (40) at (k)) {{
        init {{ %d[i, j] = f32(0); }}
        %d[i, j] = %d[i, j] + {3}(%x[i, k]) * {3}(%w[{2}]);
      }}
    }} }} }}
    for i in (n) {{ for j in (24) {{
      stage y(i in (n) at (i), j in (24) at (j)) {{ %y[i, j] = {4}(max(%d[i, j], f32(0))); }}
    }} }}
  }}
}}
)",
      type, columns_inside ? "40, 24" : "24, 40", columns_inside ? "k, j" : "j, k", factor, factor.empty() ? "" : type);
}

Tensor floats(runtime::DType dtype, runtime::Shape shape) {
  Tensor tensor(dtype, std::move(shape));
  runtime::with_dtype<runtime::kReals>(dtype, [&]<class T>(T) {
    auto data = tensor.data<T>();
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<T>(static_cast<float>(i * 37 % 101) / 16 - 3);
  });
  return tensor;
}

// The evaluator executes the declaration, whose order is that of the plain loops: so results are equal.
TEST(ThreadProduct, FloatsAreMultipliedByWarpsWhereTheUserAllowsIt) {
  struct Case {
    std::string_view instruction;
    runtime::DType dtype;
    Machine::Inexact inexact;
    bool columns_inside;
    std::set<size_t> constants;
    ChooseOption choose;
  };
  const Case cases[] = {{"mma_f16_16x8x16", runtime::DType::kF16, {.f16 = true}, false, {}, first},
                        {"mma_f16_16x8x16", runtime::DType::kF16, {.f16 = true}, true, {1}, last},
                        {"mma_bf16_16x8x16", runtime::DType::kBF16, {.bf16 = true}, false, {1}, fastest},
                        {"mma_tf32_16x8x8", runtime::DType::kF32, {.tf32 = true}, true, {}, fastest}};
  for (const Case& c : cases) {
    TypeContext context;
    const loop::Function algorithm = must_parse(context, float_product(runtime::name(c.dtype), c.columns_inside));
    const loop::Schedule schedule = bound_product(context, algorithm, c.constants, c.choose, c.inexact);
    const Symbol name = context.symbol(c.instruction);
    ASSERT_TRUE(schedule.function().intrinsic(name)) << c.instruction;
    EXPECT_GT(schedule.function().intrinsic(name)->inexact, 0);
    const std::string text = loop::print(context, schedule.function());
    EXPECT_NE(text.find("async"), std::string::npos) << "panels are copied ahead" << text;
    EXPECT_NE(text.find("swizzle("), std::string::npos) << "lanes are in few banks" << text;
    EXPECT_TRUE(equal(must_parse(context, text), schedule.function())) << text;
    expect_equal(context, algorithm, schedule,
                 {floats(c.dtype, {33, 40}),
                  floats(c.dtype, c.columns_inside ? runtime::Shape{40, 24} : runtime::Shape{24, 40})},
                 {4, 8, 4});
    EXPECT_FALSE(bound_product(context, algorithm, c.constants, c.choose).function().intrinsic(name));
  }
}

loop::Function dense(TypeContext& context, int64_t rows, const std::string& term) {
  return must_parse(
      context, fmt::format("loop @dense(%x: Tensor[({0}, 20), f32], %w: Tensor[(20, 20), f32]) -> "
                           "(%y: Tensor[({0}, 20), f32]) {{ alloc %d: Tensor[({0}, 20), f32] {{ "
                           "for i in ({0}) {{ for j in (20) {{ for k in (20) {{ "
                           "stage dot(i in ({0}) at (i), j in (20) at (j), reduce k in (20) at (k)) {{ "
                           "init {{ %d[i, j] = f32(0); }} %d[i, j] = %d[i, j] + %x[i, {1}] * %w[j, k]; }} }} }} }} "
                           "for i in ({0}) {{ for j in (20) {{ stage y(i in ({0}) at (i), j in (20) at (j)) {{ "
                           "%y[i, j] = %d[i, j]; }} }} }} }} }}",
                           rows, term));
}

// A product of few rows and columns and many terms: the parts' sums are one launch, the results another one.
TEST(ThreadProduct, ManyTermsHaveParts) {
  constexpr std::string_view kManyTerms =
      "loop @long(%x: Tensor[(16, 640), f32], %w: Tensor[(20, 640), f32]) -> (%y: Tensor[(16, 20), f32]) {\n"
      "  alloc %d: Tensor[(16, 20), f32] {\n"
      "    for i in (16) { for j in (20) { for k in (640) {\n"
      "      stage dot(i in (16) at (i), j in (20) at (j), reduce k in (640) at (k)) {\n"
      "        init { %d[i, j] = f32(0); } %d[i, j] = %d[i, j] + %x[i, k] * %w[j, k]; } } } }\n"
      "    for i in (16) { for j in (20) { stage y(i in (16) at (i), j in (20) at (j)) {\n"
      "      %y[i, j] = max(%d[i, j], f32(0)); } } } } }\n";
  for (const bool is_constant : {false, true}) {
    TypeContext context;
    const loop::Function algorithm = must_parse(context, kManyTerms);
    const auto choose = [](std::string_view knob, const std::vector<Option>& options) {
      if (knob != "parts") return size_t{0};
      EXPECT_EQ(options.size(), 4u) << "1, 2, 5, 10";
      return size_t{2};
    };
    const loop::Schedule schedule =
        bound_product(context, algorithm, is_constant ? std::set<size_t>{1} : std::set<size_t>{}, choose);
    EXPECT_EQ(schedule.steps()[0], "split(dot, k, 128)");
    EXPECT_EQ(schedule.steps()[1], "rfactor(dot, k0)");
    expect_equal(context, algorithm, schedule, {small_integers({16, 640}), small_integers({20, 640})}, {16, 16, 1}, 2);
  }
}

// Threads of neighbouring columns read neighbouring weights.
TEST(ThreadProduct, ConstantsOfFewRowsAreTransposed) {
  TypeContext context;
  const loop::Function algorithm = dense(context, 3, "k");
  const loop::Schedule schedule = bound_product(context, algorithm, {1}, fastest);
  EXPECT_EQ(schedule.steps(),
            (std::vector<std::string>{"cache_read(dot, w)", "layout(w_dot, a0 a1 -> a1 a0)", "at_load(w_dot)"}));
  const std::vector<Tensor> params{small_integers({3, 20}), small_integers({20, 20})};
  std::vector<Tensor> with_loads = params;
  with_loads.push_back(loop::rearranged(context, schedule.loads()[0].load, std::vector{params[1]}).value());
  EXPECT_EQ(loop::evaluate(context, schedule.function(), with_loads).value(),
            loop::evaluate(context, algorithm, params).value());
}

TEST(ThreadProduct, SmallProductsKeepTheirLoopsAndRefusedStepsHaveReasons) {
  const auto scheduled = [](TypeContext& context, loop::Schedule& schedule) {
    const ProductStages product{.sums = context.symbol("dot"), .results = context.symbol("y")};
    return schedule_product(context, schedule, product, *find_machine("sm_90"), fastest);
  };
  TypeContext context;
  loop::Schedule small(context, dense(context, 15, "k"));
  EXPECT_TRUE(scheduled(context, small));
  EXPECT_TRUE(small.steps().empty());
  loop::Schedule folded(context, dense(context, 16, "k // 2"));
  const Status status = scheduled(context, folded);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, "%x is not indexed by a row or column and a term");
}

}  // namespace
}  // namespace tenon::compiler::schedules
