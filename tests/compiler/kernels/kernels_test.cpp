// The loop functions of operators compute what the operators' stored cases say.
#include "compiler/kernels/kernels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/ir/operator.h"
#include "compiler/ir/text.h"
#include "compiler/kernels/lowerings.h"
#include "compiler/loop/evaluate.h"
#include "compiler/loop/text.h"
#include "tests/compiler/ir/operators/cases.h"

namespace tenon::compiler::kernels {
namespace {

// The call as a function of its inputs.
Expected<Module> parse_case(Context& context, const std::string& name, const OperatorCase& one) {
  std::string params, type;
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    params += fmt::format("{}%{}: {}", i ? ", " : "", static_cast<char>('a' + i),
                          context.str(context.type_of(one.inputs[i])));
  }
  for (const Tensor& result : one.results) type += (type.empty() ? "" : ", ") + context.str(context.type_of(result));
  if (one.results.size() > 1) type = "(" + type + ")";
  return parse(context, fmt::format("#[version = \"1\"]\ndef @main({}) -> {} {{ {} }}\n", params, type, one.call), {},
               name);
}

std::vector<Tensor> operands_of(const Kernel& kernel, const std::vector<Tensor>& arguments) {
  std::vector<Tensor> params;
  for (const Operand& operand : kernel.operands) {
    params.push_back(std::holds_alternative<Tensor>(operand) ? std::get<Tensor>(operand)
                                                             : arguments[std::get<size_t>(operand)]);
  }
  return params;
}

// For these no loop function is to be expected: their results' sizes depend on data, or their order does.
const std::set<std::string_view> kUnwritten{"acos",
                                            "arg_sort",
                                            "asin",
                                            "atan",
                                            "compress",
                                            "dynamic_quantize",
                                            "grid_sample",
                                            "gru",
                                            "lstm",
                                            "nonzero",
                                            "non_max_suppression",
                                            "random_bernoulli",
                                            "random_normal",
                                            "random_split",
                                            "random_uniform",
                                            "rnn",
                                            "roi_align",
                                            "scatter_elements",
                                            "scatter_nd",
                                            "sort",
                                            "top_k",
                                            "unique"};
// Of these some types or attributes have none.
const std::set<std::string_view> kPartial{"modulo", "power", "remainder"};

TEST(Kernels, EveryStoredCaseOfTheOperatorsIsComputed) {
  std::set<std::string> computed;
  for (const auto& [name, one] : operator_cases()) {
    const std::string op = one.call.substr(0, one.call.find('('));
    if (one.call.empty() || kUnwritten.contains(op)) continue;
    Context context;
    const auto module = parse_case(context, name, one);
    ASSERT_TRUE(module) << module.error().str();
    const auto kernel = make_kernel(context, *module, "kernel", *module->function(context.symbol("main")));
    if (!kernel && kPartial.contains(op)) continue;
    EXPECT_TRUE(kernel) << name << ": " << one.call << ": " << kernel.error().str();
    if (!kernel) continue;
    const auto results = loop::evaluate(context, kernel->function, operands_of(*kernel, one.inputs));
    EXPECT_TRUE(results) << name << ": " << one.call << ": " << results.error().str()
                         << loop::print(context, kernel->function);
    if (!results) continue;
    for (size_t i = 0; i < results->size(); ++i)
      expect_near((*results)[i], one.results[i], fmt::format("{}: {}", name, one.call));
    computed.insert(op);
  }
  EXPECT_GE(computed.size(), 150u);
}

TEST(Kernels, EachOperatorIsWrittenOrNamedHere) {
  Context context;
  for (const Operator* op : context.operators())
    EXPECT_NE(lowered(op->name), kUnwritten.contains(op->name)) << op->name;
}

}  // namespace
}  // namespace tenon::compiler::kernels
