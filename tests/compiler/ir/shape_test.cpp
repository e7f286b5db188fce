// Tests of sizes by the table shape_cases.txt: types, errors, checks at run time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/pass.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;
using testing::HasSubstr;

struct Expectation {
  std::string kind, text;
};
struct ShapeCase {
  std::string name, module;
  std::vector<Expectation> expected;
};
void PrintTo(const ShapeCase& c, std::ostream* out) { *out << c.name; }

std::vector<ShapeCase> read_cases() {
  std::ifstream file(std::string(TENON_SOURCE_DIR) + "/tests/compiler/ir/shape_cases.txt");
  std::vector<ShapeCase> cases;
  static constexpr std::string_view kKinds[] = {"type", "error", "strict", "casts", "run"};
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("case ")) {
      cases.push_back({line.substr(5), "#[version = \"1\"]\n", {}});
      continue;
    }
    const size_t colon = line.find(": ");
    const std::string kind = line.substr(0, colon);
    if (colon != std::string::npos && std::ranges::find(kKinds, kind) != std::end(kKinds)) {
      cases.back().expected.push_back({kind, line.substr(colon + 2)});
    } else {
      cases.back().module += line + "\n";
    }
  }
  return cases;
}

// Tensors of zeros with the shapes of a text as "(2, 3)" and "bool()".
std::vector<Tensor> tensors(std::string_view text) {
  std::vector<Tensor> result;
  while (true) {
    const size_t open = text.find('('), close = text.find(')');
    if (open == std::string_view::npos) return result;
    std::string dtype(text.substr(0, open));
    std::erase(dtype, ' ');
    runtime::Shape shape;
    std::istringstream sizes{std::string(text.substr(open + 1, close - open - 1))};
    for (std::string size; std::getline(sizes, size, ',');) shape.push_back(std::stoll(size));
    result.emplace_back(dtype.empty() ? runtime::DType::kF32 : *runtime::parse_dtype(dtype), shape);
    text.remove_prefix(close + 1);
  }
}

std::string shapes(const std::vector<Tensor>& tensors) {
  std::string text;
  for (const Tensor& tensor : tensors) text += (text.empty() ? "" : " ") + runtime::to_string(tensor.shape());
  return text;
}

class Shapes : public testing::TestWithParam<ShapeCase> {
 protected:
  std::string run(const Module& module, const std::vector<Tensor>& inputs) {
    auto result = interpret(context_, module, context_.symbol("main"), std::span<const Tensor>(inputs));
    return result ? shapes(*result) : result.error().what + "\n" + result.error().help;
  }
  Context context_;
};

TEST_P(Shapes, MatchTheTable) {
  const ShapeCase& c = GetParam();
  ASSERT_FALSE(c.expected.empty());
  auto module = parse(context_, c.module, {}, "m.tn");
  if (c.expected[0].kind == "error") {
    ASSERT_FALSE(module) << print(context_, *module).text;
    EXPECT_THAT(module.error().what, HasSubstr(c.expected[0].text));
    EXPECT_THAT(module.error().what, HasSubstr("^"));
    EXPECT_THAT(module.error().where, HasSubstr("m.tn:"));
    return;
  }
  ASSERT_TRUE(module) << module.error().str();
  ASSERT_TRUE(verify(context_, *module)) << verify(context_, *module).error().str();
  const Text text = print(context_, *module);
  auto again = parse(context_, text.text);
  ASSERT_TRUE(again) << again.error().str() << text.text;
  EXPECT_TRUE(equal(*module, *again)) << text.text << print(context_, *again).text;
  EXPECT_EQ(print(context_, *again).text, text.text);
  auto strict_again = parse(context_, text.text, {}, "printed.tn", {.strict_shapes = true});
  auto optimized = run_passes(context_, clone(*module), standard_passes(), {.verify = true});
  ASSERT_TRUE(optimized) << optimized.error().str();
  const bool strict = std::ranges::any_of(c.expected, [](const Expectation& e) { return e.kind == "strict"; });
  if (!strict) {
    EXPECT_TRUE(strict_again) << strict_again.error().str() << text.text;
  }
  for (const auto& [kind, wanted] : c.expected) {
    if (kind == "type") {
      const Type type = module->function(context_.symbol("main"))->result;
      // The table has the type in any notation, or in the printed form.
      const std::string same = "#[version = \"1\"]\ndef @f[n, m, k, h, w, c, _0, _1](%x: " + wanted + ") { %x }";
      auto read = parse(context_, same);
      const bool equal =
          read && wanted.find('?') == std::string::npos && type == read->function(context_.symbol("f"))->result;
      EXPECT_TRUE(equal || context_.str(type) == wanted) << context_.str(type) << " is not " << wanted << text.text;
    } else if (kind == "casts") {
      size_t casts = 0;
      for_each_function(*module, [&](Symbol, const Function& function) {
        for_each_binding(function.body,
                         [&](const Binding& binding) { casts += std::holds_alternative<Cast>(binding.value); });
      });
      EXPECT_EQ(std::to_string(casts), wanted) << text.text;
    } else if (kind == "strict") {
      auto refused = parse(context_, c.module, {}, "m.tn", {.strict_shapes = true});
      ASSERT_FALSE(refused);
      EXPECT_THAT(refused.error().what, HasSubstr(wanted));
    } else {
      ASSERT_EQ(kind, "run");
      const size_t arrow = wanted.find(" => ");
      const auto inputs = tensors(wanted.substr(0, arrow));
      const std::string answer = wanted.substr(arrow + 4);
      const auto expected =
          answer[0] == '(' ? testing::StrEq(answer) : testing::Matcher<std::string>(HasSubstr(answer));
      EXPECT_THAT(run(*module, inputs), expected);
      EXPECT_THAT(run(*optimized, inputs), expected) << print(context_, *optimized).text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Shapes, testing::ValuesIn(read_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(ShapeTable, HasManyCases) { EXPECT_GE(read_cases().size(), 60u); }

}  // namespace
}  // namespace tenon::compiler
