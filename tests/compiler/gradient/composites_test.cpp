// Derivatives of operators beside those of the same functions of simpler operators, by the programs of composites.tn.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/gradient/differentiate.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "support/file.h"
#include "support/random.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

Tensor random_doubles(Random& random, const runtime::Shape& shape) {
  Tensor tensor(DType::kF64, shape);
  for (double& value : tensor.data<double>()) value = static_cast<double>(random.between(-2000, 2000)) / 1000;
  return tensor;
}

// The sum of @NAME times dy and its gradient, and the same of a weighted sum of this gradient.
std::string derivatives(const Context& context, const Function& function, const std::string& name) {
  std::vector<std::string> params, args, indices, directions, weights, products, fields{"%g.0"};
  for (size_t i = 0; i < function.params.size(); ++i) {
    const std::string type = context.str(function.type(function.params[i]));
    params.push_back(fmt::format("%p{}: {}", i, type));
    args.push_back(fmt::format("%p{}", i));
    indices.push_back(std::to_string(i));
    directions.push_back(fmt::format("%v{}: {}", i, type));
    weights.push_back(fmt::format("%v{}", i));
    products.push_back(fmt::format("sum(%g.{} * %v{})", i + 1, i));
    fields.push_back(fmt::format("%g.1.{}", i));
  }
  params.push_back("%dy: " + context.str(function.result));
  const auto list = [](const std::vector<std::string>& items) { return fmt::format("{}", fmt::join(items, ", ")); };
  const std::string call = list(args) + ", %dy", flat = list(fields), wrt = list(indices);
  return fmt::format(
      "def @{0}_value({1}) -> Tensor[(), f64] {{ sum(@{0}({2}) * %dy) }}\n"
      "def @{0}_gradient({1}) {{ let %g = gradient(@{0}_value, wrt=[{3}])({4}); ({5}) }}\n"
      "def @{0}_along({1}, {6}) -> Tensor[(), f64] {{ let %g = @{0}_gradient({4}); {7} }}\n"
      "def @{0}_second({1}, {6}) {{ let %g = gradient(@{0}_along, wrt=[{3}])({4}, {8}); ({5}) }}\n",
      name, list(params), list(args), wrt, call, flat, list(directions), fmt::format("{}", fmt::join(products, " + ")),
      list(weights));
}

TEST(Composites, HaveTheDerivativesOfTheirFormulas) {
  Context context;
  const auto text = read_text(std::string(TENON_SOURCE_DIR) + "/tests/compiler/gradient/composites.tn");
  ASSERT_TRUE(text) << text.error().str();
  const auto plain = parse(context, *text, {}, "composites.tn");
  ASSERT_TRUE(plain) << plain.error().str();
  std::string more;
  std::vector<std::pair<std::string, const Function*>> composites;
  for_each_function(*plain, [&](Symbol symbol, const Function& function) {
    const std::string name(context.name(symbol));
    if (!name.ends_with("_formula")) return;
    composites.emplace_back(name.substr(0, name.size() - 8), &function);
    for (const std::string& each : {composites.back().first, name}) more += derivatives(context, function, each);
  });
  EXPECT_GT(composites.size(), 35u);
  const auto module = parse(context, *text + more, {}, "composites.tn");
  ASSERT_TRUE(module) << module.error().str();
  const auto expanded = differentiate(context, *module);
  ASSERT_TRUE(expanded) << expanded.error().str();

  Random random(test_seed(1));
  for (const auto& [name, function] : composites) {
    std::vector<Tensor> args, directions;
    for (const VarId param : function->params)
      args.push_back(random_doubles(random, *function->type(param).tensor()->shape()));
    for (const VarId param : function->params)
      directions.push_back(random_doubles(random, *function->type(param).tensor()->shape()));
    args.push_back(random_doubles(random, *function->result.tensor()->shape()));
    for (const char* derivative : {"_gradient", "_second"}) {
      if (std::string_view(derivative) == "_second") args.insert(args.end(), directions.begin(), directions.end());
      const auto run = [&](const std::string& which) {
        return interpret(context, *expanded, context.symbol(which + derivative), args);
      };
      const auto found = run(name);
      const auto expected = run(name + "_formula");
      ASSERT_TRUE(found) << name << derivative << ": " << found.error().str();
      ASSERT_TRUE(expected) << name << derivative << ": " << expected.error().str();
      ASSERT_EQ(found->size(), 1 + function->params.size());
      for (size_t i = 0; i < found->size(); ++i) {
        ASSERT_EQ((*found)[i].shape(), (*expected)[i].shape()) << name;
        for (size_t k = 0; k < (*found)[i].data<double>().size(); ++k) {
          const double value = (*found)[i].data<double>()[k], want = (*expected)[i].data<double>()[k];
          EXPECT_NEAR(value, want, 1e-10 * (1 + std::abs(want))) << name << derivative << ", result " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::compiler
