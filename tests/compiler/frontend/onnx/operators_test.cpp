// Models of one node against the results of ONNX Runtime: the cases of tests/compiler/ir/operators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/frontend/onnx.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/verifier.h"
#include "tests/compiler/ir/operators/cases.h"

namespace tenon::compiler {
namespace {

TEST(ImportedOperators, GiveTheResultsOfOnnxRuntime) {
  Context context;
  int count = 0;
  for (const auto& [name, one] : operator_cases()) {
    if (one.model.empty()) continue;
    ++count;
    auto module = import_onnx(context, std::as_bytes(std::span(one.model)), {.file = name, .shapes = {}});
    EXPECT_TRUE(module) << name << ": " << module.error().str();
    if (!module) continue;
    EXPECT_TRUE(verify(context, *module)) << name;
    auto results = interpret(context, *module, context.symbol("main"), one.inputs);
    EXPECT_TRUE(results) << name << ": " << results.error().str();
    if (!results) continue;
    ASSERT_EQ(results->size(), one.results.size()) << name;
    for (size_t i = 0; i < results->size(); ++i) expect_near((*results)[i], one.results[i], name);
  }
  EXPECT_GT(count, 240);
}

}  // namespace
}  // namespace tenon::compiler
