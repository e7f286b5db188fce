// User-defined loop functions, called from a model: native kernels, fused with their neighbours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/vm/session.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;
using testing::HasSubstr;

// The loop functions that the models call.
constexpr std::string_view kFunctions = R"(#[version = "1"]
loop @swish[n, m](%x: Tensor[(n, m), f32]) -> (%y: Tensor[(n, m), f32]) {
  for i in (n) { for j in (m) { stage s(i in (n) at (i), j in (m) at (j)) {
    %y[i, j] = %x[i, j] / (f32(1) + exp(neg(%x[i, j])));
  } } }
}
loop @scaled[i0, p](%x: Tensor[(i0, p), f32], %by: Tensor[(p,), f32]) -> (%y: Tensor[(i0, p), f32]) {
  alloc %t: Tensor[(i0, p), f32] {
    for i in (i0) { for j in (p) { stage t(i in (i0) at (i), j in (p) at (j)) { %t[i, j] = %x[i, j] * %by[j]; } } }
    for i in (i0) { for j in (p) { stage y(i in (i0) at (i), j in (p) at (j)) { %y[i, j] = %t[i, j] + %x[i, j]; } } }
  }
}
loop @transposed[n, m](%x: Tensor[(n, m), f32]) -> (%y: Tensor[(m, n), f32]) {
  for i in (m) { for j in (n) { stage s(i in (m) at (i), j in (n) at (j)) { %y[i, j] = %x[n - 1 - j, i]; } } }
}
loop @band[n, m](%a: Tensor[(n, 3), f32], %x: Tensor[(n, m), f32]) -> (%y: Tensor[(n, m), f32]) {
  for i in (n) { for j in (m) { for k in (3) { stage dot(i in (n) at (i), j in (m) at (j), reduce k in (3) at (k)) {
    init { %y[i, j] = f32(0); }
    %y[i, j] = %y[i, j] + select(index(0) < index(i + k) and index(i + k) <= index(n), %a[i, k] * %x[i + k - 1, j], f32(0));
  } } } }
}
loop @squares[n, m](%x: Tensor[(n, m), f32]) -> (%y: Tensor[(n,), f32]) {
  for i in (n) { stage zero(i in (n) at (i)) { %y[i] = f32(0); } }
  for i in (n) { for j in (m) { stage sum(i in (n) at (i), reduce j in (m) at (j)) {
    %y[i] = %y[i] + %x[i, j] * %x[i, j];
  } } }
}
loop @parts[n, m](%x: Tensor[(n, 2*m), f32]) -> (%low: Tensor[(n, m), f32], %high: Tensor[(n, m), f32]) {
  for i in (n) { for j in (m) { stage low(i in (n) at (i), j in (m) at (j)) { %low[i, j] = %x[i, j]; } } }
  for i in (n) { for j in (m) { stage high(i in (n) at (i), j in (m) at (j)) { %high[i, j] = %x[i, j + m]; } } }
}
loop @summed[n, m](%x: Tensor[(n, m), f32]) -> (%y: Tensor[(n, m), f32]) {
  for t in (n) { for j in (m) { stage s(scan t in (n) at (t), j in (m) at (j)) {
    %y[t, j] = %x[t, j] + select(index(0) < index(t), %y[t - 1, j], f32(0));
  } } }
}
loop @scheduled[n, m](%x: Tensor[(n, m), f32]) -> (%y: Tensor[(n, m), f32]) {
  for i in (n) parallel { for o in ((m + 7) // 8) { for v in (8) vector {
    stage s(i in (n) at (i), j in (m) at (8*o + v)) where (8*o + v) below (m) { %y[i, j] = abs(%x[i, j]); }
  } } }
}
loop @picked[n, m](%x: Tensor[(n, m), f32], %at: Tensor[(m,), i64]) -> (%y: Tensor[(m,), f32]) {
  for j in (m) { stage s(j in (m) at (j)) { %y[j] = (let p in (n) = %at[j]; %x[p, j]); } }
}
loop @headed[n in 5..9, m](%x: Tensor[(n, m), f32]) -> (%y: Tensor[(5, m), f32]) {
  for i in (5) { for j in (m) { stage s(i in (5) at (i), j in (m) at (j)) { %y[i, j] = %x[i, j]; } } }
}
loop @beyond[n, m](%x: Tensor[(n, m), f32]) -> (%y: Tensor[(n, m), f32]) {
  for i in (n) { for j in (m) { stage s(i in (n) at (i), j in (m) at (j)) { %y[i, j] = %x[i + 1, j]; } } }
}
loop @racing[n, m](%x: Tensor[(n, m), f32]) -> (%y: Tensor[(n,), f32]) {
  for i in (n) { stage zero(i in (n) at (i)) { %y[i] = f32(0); } }
  for i in (n) { for j in (m) parallel { stage sum(i in (n) at (i), reduce j in (m) at (j)) { %y[i] = %y[i] + %x[i, j]; } } }
}
const $w: Tensor[(6, 4), f32] = side;
)";

class UserDefined : public testing::Test {
 protected:
  // A model that exists until the test ends.
  Expected<Model> read(const std::string& body, const std::string& result) {
    // ctest runs the tests of this file as parallel processes, so file names contain the test name.
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    const std::string path = testing::TempDir() + name + "_loops.tn";
    runtime::NamedTensors side;
    Tensor w(DType::kF32, {6, 4});
    for (int i = 0; i < 24; ++i) w.data<float>()[i] = 0.25F * static_cast<float>(i % 7 - 3);
    side.emplace("w", std::move(w));
    const auto bytes = runtime::to_npz(side);
    std::ofstream(testing::TempDir() + name + "_loops.npz", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    std::string head(kFunctions);
    head.replace(head.find("\"1\"]"), 4, "\"1\", side = \"" + name + "_loops.npz\"]");
    std::ofstream(path) << head
                        << "def @main(%x: Tensor[(9, 6), f32], %a: Tensor[(9, 3), f32], %at: Tensor[(6,), i64]) -> "
                        << result << " {\n  " << body << "\n}\n";
    return load_model(path, {});
  }
  static std::vector<Tensor> inputs(int64_t at = 3) {
    Tensor x(DType::kF32, {9, 6}), a(DType::kF32, {9, 3}), which(DType::kI64, {6});
    for (int i = 0; i < 54; ++i) x.data<float>()[i] = std::sin(static_cast<float>(i));
    for (int i = 0; i < 27; ++i) a.data<float>()[i] = std::cos(static_cast<float>(i));
    for (int i = 0; i < 6; ++i) which.data<int64_t>()[i] = (at + i) % 12;
    return {x, a, which};
  }
};

struct Case {
  std::string name, body, result;
  size_t kernels;     // called by the executable
  std::string group;  // part of the name of the fused group; empty: the kernels are the functions themselves
};

TEST_F(UserDefined, ComputesAsTheInterpreterInOneKernelWithItsNeighbours) {
  const std::vector<Case> cases = {
      {"alone", "@swish(%x)", "Tensor[(9, 6), f32]", 1, ""},
      {"chain", "tanh(@swish(%x + 1.0f32))", "Tensor[(9, 6), f32]", 1, "fused_add_swish_tanh"},
      {"twice", "@swish(@swish(%x)) * @swish(%x)", "Tensor[(9, 6), f32]", 1, "fused_swish_swish_multiply"},
      {"tail", "@swish(matmul(%x, $w))", "Tensor[(9, 4), f32]", 1, "fused_dense_swish"},
      {"dims of other names", "@scaled(relu(%x), gather(%x, 2i64))", "Tensor[(9, 6), f32]", 1, "fused_relu"},
      {"moving", "@transposed(%x * 2.0f32) + 1.0f32", "Tensor[(6, 9), f32]", 1, "fused_multiply_transposed_add"},
      {"contraction", "relu(@band(%a, %x) + 1.0f32)", "Tensor[(9, 6), f32]", 1, "fused_band_add_relu"},
      {"contraction after contraction", "@swish(@band(%a, matmul(%x, $w)))", "Tensor[(9, 4), f32]", 2,
       "fused_band_swish"},
      {"reduction", "sqrt(@squares(@swish(%x)))", "Tensor[(9,), f32]", 1, "fused_swish_squares_sqrt"},
      {"two results", "let %p = @parts(%x); %p.0 - %p.1", "Tensor[(9, 3), f32]", 2, ""},
      {"steps", "relu(@summed(%x))", "Tensor[(9, 6), f32]", 2, ""},
      {"user-defined schedule", "@scheduled(@summed(%x))", "Tensor[(9, 6), f32]", 2, ""},
      {"user-defined schedule, fused", "sqrt(@scheduled(%x))", "Tensor[(9, 6), f32]", 1, "fused_scheduled_sqrt"},
      {"bounds", "relu(@headed(%x))", "Tensor[(5, 6), f32]", 2, ""},
      {"a function that may fail", "relu(@picked(%x, %at))", "Tensor[(6,), f32]", 2, ""},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    auto model = read(test.body, test.result);
    ASSERT_TRUE(model) << model.error().str();
    const auto compiled = compile(*model, {});
    ASSERT_TRUE(compiled) << compiled.error().str();
    const std::string text = print(*model->context, compiled->kernels).text;
    size_t calls = 0;
    for (const auto& instruction : compiled->executable.functions[0].code)
      calls += std::holds_alternative<runtime::CallNative>(instruction.operation);
    EXPECT_EQ(calls, test.kernels) << text;
    if (test.group.empty()) EXPECT_THAT(text, testing::Not(HasSubstr("def @fused")));
    else EXPECT_THAT(text, HasSubstr("@" + test.group));
    auto session = runtime::Session::create(compiled->executable, {});
    ASSERT_TRUE(session) << session.error().str();
    const auto found = session->run(inputs());
    ASSERT_TRUE(found) << found.error().str();
    const auto expected = interpret(*model->context, model->module, model->entry, inputs());
    ASSERT_TRUE(expected) << expected.error().str();
    ASSERT_EQ((*found)[0].shape(), (*expected)[0].shape());
    for (int64_t i = 0; i < (*expected)[0].size(); ++i)
      ASSERT_NEAR((*found)[0].data<float>()[i], (*expected)[0].data<float>()[i], 2e-5) << i << "\n" << text;
  }
}

TEST_F(UserDefined, ThePlacementOfEachCallIsExplained) {
  auto model = read("tanh(@swish(relu(@summed(%x))))", "Tensor[(9, 6), f32]");
  ASSERT_TRUE(model) << model.error().str();
  const auto compiled = compile(*model, {});
  ASSERT_TRUE(compiled) << compiled.error().str();
  const std::string text = explain(compiled->partitioned, compiled->placements);
  EXPECT_THAT(text, HasSubstr("@summed  cpu    native @summed (a loop function)"));
  EXPECT_THAT(text, HasSubstr("@swish   cpu    native @fused_relu_swish_tanh_0 (a loop function)"));
}

TEST_F(UserDefined, AFailureNamesTheFunction) {
  auto model = read("@picked(%x, %at)", "Tensor[(6,), f32]");
  ASSERT_TRUE(model) << model.error().str();
  const auto compiled = compile(*model, {});
  ASSERT_TRUE(compiled) << compiled.error().str();
  auto session = runtime::Session::create(compiled->executable, {});
  ASSERT_TRUE(session) << session.error().str();
  const auto found = session->run(inputs(5));
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().str(), testing::AllOf(HasSubstr("9"), HasSubstr("@picked")));
}

TEST_F(UserDefined, NativeCodeIsRefusedForUnprovenIndices) {
  auto beyond = read("@beyond(%x)", "Tensor[(9, 6), f32]");
  ASSERT_TRUE(beyond) << beyond.error().str();
  const auto refused = compile(*beyond, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("@beyond has no native kernel"));
  EXPECT_THAT(refused.error().str(), HasSubstr("%x[i + 1, j] is inside: its axis 0 has n elements"));
  EXPECT_THAT(refused.error().str(), HasSubstr("loops.tn:"));

  auto racing = read("@racing(%x)", "Tensor[(9,), f32]");
  ASSERT_TRUE(racing) << racing.error().str();
  EXPECT_THAT(compile(*racing, {}).error().str(),
              HasSubstr("the loop 'j' cannot be parallel: 'j' is a reduction axis of the stage 'sum'"));

  auto model = read("@swish(%x)", "Tensor[(9, 6), f32]");
  ASSERT_TRUE(model) << model.error().str();
  const auto off = compile(*model, {.accelerators = {}, .cpu = {.native = false}});
  ASSERT_FALSE(off);
  EXPECT_THAT(off.error().str(), HasSubstr("@swish is a loop function, and native kernels are off"));
}

}  // namespace
}  // namespace tenon::compiler
