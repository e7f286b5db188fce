// Tests of every operator of the registry on cases whose results ONNX Runtime or NumPy computed (make_cases.py).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "compiler/ir/infer.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "tests/compiler/ir/operators/cases.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

void expect_results(Context& context, const std::string& name, const OperatorCase& test_case) {
  auto module = parse_operator_case(context, name, test_case);
  ASSERT_TRUE(module) << module.error().str();
  ASSERT_TRUE(verify(context, *module)) << name << ": " << verify(context, *module).error().str();
  auto results = interpret(context, *module, context.symbol("main"), test_case.inputs);
  ASSERT_TRUE(results) << name << ": " << results.error().str();
  ASSERT_EQ(results->size(), test_case.results.size()) << name;
  for (size_t i = 0; i < results->size(); ++i) {
    expect_near((*results)[i], test_case.results[i], fmt::format("{}, result {}: {}", name, i, test_case.call));
  }
}

// visit(name of the case, apply, types of its arguments, its type) for each operator in the calls.
template <class F>
void for_each_apply(Context& context, F&& visit) {
  for (const auto& [name, test_case] : operator_cases()) {
    if (test_case.call.empty()) continue;
    auto module = parse_operator_case(context, name, test_case);
    ASSERT_TRUE(module) << module.error().str();
    const Function& function = *module->function(context.symbol("main"));
    for (const Binding& binding : function.body.bindings) {
      const auto* apply = std::get_if<Apply>(&binding.value);
      if (!apply) continue;
      std::vector<Type> types;
      for (const Atom& arg : apply->args) types.push_back(*infer_atom(context, *module, function, arg));
      visit(name, *apply, types, function.type(binding.var));
    }
  }
}

Tensor converted(const Tensor& tensor, DType dtype) {
  const auto cast = runtime::reference::find("cast");
  return cast({{"dtype", std::string(runtime::name(dtype))},
               {"saturate", int64_t{1}},
               {"rounding", std::string("nearest")}},
              std::array{tensor})
      ->at(0);
}

TEST(OperatorCases, MatchTheStoredResults) {
  Context context;
  for (const auto& [name, test_case] : operator_cases()) {
    if (!test_case.call.empty()) expect_results(context, name, test_case);
  }
}

TEST(OperatorCases, MatchTheStoredResultsInF64) {
  Context context;
  int count = 0;
  for (auto [name, test_case] : operator_cases()) {
    const Operator* op = context.find_operator(test_case.call.substr(0, test_case.call.find('(')));
    bool wider = false, takes = op && !op->inputs.empty();
    for (const Input& input : op ? op->inputs : std::vector<Input>()) {
      takes &= !input.dtypes.contains(DType::kF32) || input.dtypes.contains(DType::kF64);
    }
    auto widen = [&](Tensor& tensor) {
      if (tensor.dtype() != DType::kF32) return;
      Tensor wide(DType::kF64, tensor.shape());
      std::ranges::copy(tensor.data<float>(), wide.data<double>().begin());
      tensor = wide;
      wider = true;
    };
    for (Tensor& input : test_case.inputs) widen(input);
    if (!takes || !wider || test_case.call.find("dtype=") != std::string::npos || op->is(ops::kOneHot)) continue;
    for (Tensor& result : test_case.results) widen(result);
    expect_results(context, name, test_case);
    ++count;
  }
  EXPECT_GT(count, 150);
}

// Each case on inputs of f16 and bf16 has the results of f32 on the same values, rounded.
TEST(OperatorCases, RoundTheResultsOfF32ForShortFloats) {
  Context context;
  int count = 0;
  for (const auto& [name, test_case] : operator_cases()) {
    const Operator* op = context.find_operator(test_case.call.substr(0, test_case.call.find('(')));
    // An operator on another's result would get it rounded.
    const bool single = std::ranges::count(test_case.call, '(') == 1;
    if (!op || op->inputs.empty() || !single || test_case.call.find("dtype=") != std::string::npos) continue;
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      OperatorCase narrow = test_case, wide = test_case;
      bool changed = false, takes = true;
      for (size_t i = 0; i < narrow.inputs.size(); ++i) {
        if (narrow.inputs[i].dtype() != DType::kF32) continue;
        takes &= op->inputs[std::min(i, op->inputs.size() - 1)].dtypes.contains(dtype);
        narrow.inputs[i] = converted(narrow.inputs[i], dtype);
        wide.inputs[i] = converted(narrow.inputs[i], DType::kF32);
        changed = true;
      }
      for (Tensor& result : narrow.results) {
        if (result.dtype() == DType::kF32) result = Tensor(dtype, result.shape());
      }
      if (!changed || !takes) continue;
      auto narrow_module = parse_operator_case(context, name, narrow), wide_module = parse_operator_case(context, name, wide);
      ASSERT_TRUE(narrow_module) << name << ": " << narrow_module.error().str();
      ASSERT_TRUE(wide_module) << name << ": " << wide_module.error().str();
      auto found = interpret(context, *narrow_module, context.symbol("main"), narrow.inputs);
      auto expected = interpret(context, *wide_module, context.symbol("main"), wide.inputs);
      ASSERT_EQ(found.has_value(), expected.has_value()) << name;
      for (size_t i = 0; found && i < found->size(); ++i) {
        const Tensor& want = (*expected)[i];
        EXPECT_EQ((*found)[i], want.dtype() == DType::kF32 ? converted(want, dtype) : want) << name;
      }
      ++count;
    }
  }
  EXPECT_GT(count, 200);
}

bool has_text_test(const Operator& op) {
  return std::filesystem::exists(fmt::format("{}/tests/text/operators/{}.tn", TENON_SOURCE_DIR, op.name));
}

TEST(OperatorCases, CoverEveryOperator) {
  Context context;
  std::set<std::string> used;
  for_each_apply(context, [&](const auto&, const Apply& apply, const auto&, Type) { used.insert(apply.op->name); });
  for (const Operator* op : context.operators()) {
    EXPECT_TRUE(used.contains(op->name) || has_text_test(*op))
        << op->name << ": add tests/text/operators/" << op->name << ".tn, or a case to make_cases.py";
  }
  EXPECT_GE(used.size(), 120u);
}

// Wherever the rule accepts a variable in place of a constant size, the result has the same type.
TEST(OperatorCases, HaveTheSameTypesWithSymbolicSizes) {
  Context context;
  std::set<std::string> used, symbolic;
  for_each_apply(context, [&](const std::string& name, const Apply& apply, const std::vector<Type>& types, Type type) {
    used.insert(apply.op->name);
    std::set<int64_t> sizes;
    for (Type arg : types) {
      for (Dim dim : arg.tensor()->dims) {
        if (dim.constant().value_or(0) > 1) sizes.insert(*dim.constant());
      }
    }
    for (int64_t size : sizes) {
      const Symbol variable = context.symbol("n");
      std::vector<Type> open;
      for (Type arg : types) {
        Dims dims = arg.tensor()->dims;
        for (Dim& dim : dims) dim = dim.constant() == size ? context.dim(variable) : dim;
        open.push_back(context.tensor(std::move(dims), arg.tensor()->dtype));
      }
      auto found = infer_apply(context, *apply.op, apply.attrs, open, DimProver(context));
      if (!found) continue;
      symbolic.insert(apply.op->name);
      EXPECT_EQ(context.str(context.substitute(*found, {{variable, context.dim(size)}})), context.str(type))
          << name << ": " << context.str(*found) << " with n = " << size;
    }
  });
  std::string fixed;
  for (const Operator* op : context.operators()) {
    if (used.contains(op->name) && !op->inputs.empty() && !symbolic.contains(op->name)) fixed += op->name + " ";
  }
  // The sizes of keys are fixed, and the rank of broadcast_dynamic's result depends on the size of its shape.
  EXPECT_EQ(fixed, "broadcast_dynamic random_bernoulli random_normal random_split random_uniform ");
}

// For any value of an attribute, a kernel returns a result or an error, and a result has the type of the rule.
TEST(OperatorCases, HandleAnyAttribute) {
  Context context;
  const std::vector<runtime::Attr> values{int64_t{-2},
                                          int64_t{-1},
                                          int64_t{0},
                                          int64_t{1},
                                          int64_t{2},
                                          int64_t{3},
                                          INT64_MAX,
                                          INT64_MIN,
                                          0.0,
                                          -1.0,
                                          0.5,
                                          1e30,
                                          HUGE_VAL,
                                          std::string(),
                                          std::string("linear"),
                                          std::string("reverse"),
                                          std::string("i8"),
                                          std::string("ij,jk"),
                                          std::string("...->"),
                                          std::vector<int64_t>{},
                                          std::vector<int64_t>{0},
                                          std::vector<int64_t>{-1},
                                          std::vector<int64_t>{1, 1},
                                          std::vector<int64_t>{2, 1, 0},
                                          std::vector<int64_t>{0, 1, 2, 3},
                                          std::vector<int64_t>{INT64_MAX, INT64_MIN},
                                          std::vector<double>{},
                                          std::vector<double>{0.5, 2.0, 1.0},
                                          std::vector<double>{-1.0, HUGE_VAL}};
  const auto cases = operator_cases();
  int worked = 0;
  for_each_apply(context, [&](const std::string& name, const Apply& apply, const std::vector<Type>& types, Type) {
    std::vector<Tensor> inputs = cases.at(name).inputs;
    if (inputs.size() != types.size()) return;
    for (const AttrSpec& spec : apply.op->attributes) {
      for (const runtime::Attr& value : values) {
        runtime::Attrs attrs = apply.attrs;
        attrs[spec.name] = value;
        auto result = apply.op->reference(attrs, inputs);
        const bool right_kind = value.index() == static_cast<size_t>(spec.kind);
        auto type = right_kind ? infer_apply(context, *apply.op, attrs, types, DimProver(context))
                               : Expected<Type>(error("kind"));
        if (!result || !type) continue;
        ++worked;
        const TupleType* tuple = type->tuple();
        for (size_t i = 0; i < result->size(); ++i) {
          const TensorType& want = *(tuple ? tuple->fields[i] : *type).tensor();
          const TensorType& have = *context.type_of((*result)[i]).tensor();
          EXPECT_EQ(have.dtype, want.dtype) << name << " " << spec.name;
          ASSERT_EQ(have.dims.size(), want.dims.size()) << name << " " << spec.name;
          for (size_t d = 0; d < have.dims.size(); ++d) {
            if (!want.dims[d].constant()) continue;
            EXPECT_EQ(have.dims[d], want.dims[d]) << name << " " << spec.name;
          }
        }
      }
    }
  });
  EXPECT_GT(worked, 1000);
}

}  // namespace
}  // namespace tenon::compiler
