// Gradient rules beside central differences in f64, and batched operators beside the operator of each instance.
#include <gtest/gtest.h>

#include <functional>

#include "compiler/ir/batching.h"
#include "compiler/ir/gradients.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/sizes.h"
#include "support/random.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::Shape;
using runtime::Tensor;

Tensor random_doubles(Random& random, const Shape& shape) {
  Tensor tensor(DType::kF64, shape);
  for (double& value : tensor.data<double>()) value = static_cast<double>(random.between(-2000, 2000)) / 1000;
  return tensor;
}

// A function of one module, built by `make` from its parameters, and run by the interpreter.
class Built {
 public:
  Built(Context& context, const std::vector<Dims>& params,
        const std::function<Expected<Atom>(Builder&, const Atoms&)>& make)
      : context_(context) {
    Function function;
    Builder builder(context, module_, function);
    Atoms atoms;
    for (size_t i = 0; i < params.size(); ++i)
      atoms.push_back(builder.param(context.tensor(params[i], DType::kF64), "p" + std::to_string(i)));
    const auto result = make(builder, atoms);
    if (!result) {
      ADD_FAILURE() << result.error().str();
      return;
    }
    builder.finish(*result);
    declare_dims(context, function);
    module_.globals.emplace(context.symbol("main"), std::move(function));
    built_ = true;
  }
  std::vector<Tensor> run(const std::vector<Tensor>& args) const {
    if (!built_) return {};
    auto results = interpret(context_, module_, context_.symbol("main"), args);
    EXPECT_TRUE(results) << results.error().str();
    return results ? *results : std::vector<Tensor>();
  }

 private:
  Context& context_;
  Module module_;
  bool built_ = false;
};

Dims dims_of(Context& context, const Shape& shape) {
  Dims dims;
  for (const int64_t size : shape) dims.push_back(context.dim(size));
  return dims;
}

struct RuleCase {
  std::string name;
  OperatorId op;
  std::vector<Shape> args;
};

// Shapes of arguments, of which an operator has those that its type rule accepts.
const std::vector<std::vector<Shape>> kShapes{{{3, 4}},         {{2, 3, 4, 4}},      {{3, 4}, {3, 4}},
                                              {{3, 4}, {4}},    {{3, 1}, {2, 3, 4}}, {{}, {3, 4}},
                                              {{3, 4}, {5, 4}}, {{3, 4}, {4, 5}},    {{2, 3, 4}, {2, 4, 5}}};

// Cases of each operator with the rule.
template <class Rule>
std::vector<RuleCase> rule_cases(Context& context, Rule Operator::*rule) {
  std::vector<RuleCase> cases;
  for (const Operator* op : context.operators()) {
    if (!(op->*rule)) continue;
    const size_t before = cases.size();
    for (size_t i = 0; i < kShapes.size(); ++i) {
      if (kShapes[i].size() != op->inputs.size()) continue;
      Module module;
      Function function;
      Builder builder(context, module, function);
      Atoms atoms;
      for (const Shape& shape : kShapes[i])
        atoms.push_back(builder.param(context.tensor(dims_of(context, shape), DType::kF64), "x"));
      if (builder.apply(op->id, atoms)) cases.push_back({op->name + " " + std::to_string(i), op->id, kShapes[i]});
    }
    EXPECT_GT(cases.size(), before) << op->name << " has no case: add shapes that its type rule accepts";
  }
  return cases;
}

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (size_t i = 0; i < a.data<double>().size(); ++i) sum += a.data<double>()[i] * b.data<double>()[i];
  return sum;
}

Tensor moved(const Tensor& x, const Tensor& direction, double step) {
  Tensor sum(DType::kF64, x.shape());
  for (size_t i = 0; i < sum.data<double>().size(); ++i)
    sum.data<double>()[i] = x.data<double>()[i] + step * direction.data<double>()[i];
  return sum;
}

TEST(GradientRules, AgreeWithCentralDifferences) {
  Context context;
  Random random(test_seed(1));
  for (const RuleCase& c : rule_cases(context, &Operator::gradient)) {
    SCOPED_TRACE(c.name);
    std::vector<Dims> params;
    std::vector<Tensor> args;
    for (const Shape& shape : c.args) {
      params.push_back(dims_of(context, shape));
      args.push_back(random_doubles(random, shape));
    }
    const Built forward(context, params,
                        [&](Builder& builder, const Atoms& atoms) { return builder.apply(c.op, atoms); });
    const std::vector<Tensor> results = forward.run(args);
    ASSERT_EQ(results.size(), 1u);
    const Tensor cotangent = random_doubles(random, results[0].shape());

    std::vector<Dims> with_cotangent = params;
    with_cotangent.push_back(dims_of(context, cotangent.shape()));
    const Built backward(context, with_cotangent, [&](Builder& builder, const Atoms& atoms) -> Expected<Atom> {
      const Atoms operands(atoms.begin(), atoms.end() - 1);
      const auto result = builder.apply(c.op, operands);
      if (!result) return result;
      const Apply apply = *builder.application(*result);
      GradientBuilder gradient(builder, apply, *result, {atoms.back()}, std::vector<bool>(operands.size(), true));
      if (const Status status = apply.op->gradient(gradient); !status) return std::unexpected(status.error());
      Atoms adjoints;
      for (size_t i = 0; i < operands.size(); ++i) adjoints.push_back(gradient.adjoint(i)->atom());
      return builder.tuple(adjoints);
    });
    std::vector<Tensor> inputs = args;
    inputs.push_back(cotangent);
    const std::vector<Tensor> adjoints = backward.run(inputs);
    ASSERT_EQ(adjoints.size(), args.size());
    for (size_t i = 0; i < args.size(); ++i) {
      ASSERT_EQ(adjoints[i].shape(), args[i].shape());
      const Tensor direction = random_doubles(random, args[i].shape());
      constexpr double kStep = 1e-6;
      std::vector<Tensor> above = args, below = args;
      above[i] = moved(args[i], direction, kStep), below[i] = moved(args[i], direction, -kStep);
      const double difference =
          (dot(forward.run(above)[0], cotangent) - dot(forward.run(below)[0], cotangent)) / (2 * kStep);
      EXPECT_NEAR(dot(adjoints[i], direction), difference, 1e-6 * (1 + std::abs(difference))) << "argument " << i;
    }
  }
}

TEST(GradientRules, ComputeOnlyTheAdjointsThatAreWanted) {
  Context context;
  Module module;
  Function function;
  Builder builder(context, module, function);
  const Type type = context.tensor(dims_of(context, {3}), DType::kF64);
  const Atoms args{builder.param(type, "a"), builder.param(type, "b")};
  const Atom dy = builder.param(type, "dy");
  const auto result = builder.apply(ops::kMultiply, args);
  ASSERT_TRUE(result);
  const Apply apply = *builder.application(*result);
  GradientBuilder gradient(builder, apply, *result, {dy}, {false, true});
  ASSERT_TRUE(apply.op->gradient(gradient));
  EXPECT_FALSE(gradient.adjoint(0));
  EXPECT_TRUE(gradient.adjoint(1));
}

// Three instances, each argument shared or own, by the bits of `own`.
TEST(BatchingRules, EachRowIsTheResultOfItsInstance) {
  constexpr int64_t kBatch = 3;
  Context context;
  Random random(test_seed(1));
  for (const RuleCase& c : rule_cases(context, &Operator::batching)) {
    for (size_t mask = 1; mask < size_t{1} << c.args.size(); ++mask) {
      SCOPED_TRACE(c.name + ", own " + std::to_string(mask));
      std::vector<bool> own;
      std::vector<Dims> params, batched_params;
      std::vector<Tensor> batched;
      const Dim batch = context.dim(context.symbol("b"));
      for (size_t i = 0; i < c.args.size(); ++i) {
        own.push_back(mask >> i & 1);
        Shape shape = c.args[i];
        params.push_back(dims_of(context, shape));
        batched_params.push_back(params.back());
        if (own[i]) {
          shape.insert(shape.begin(), kBatch);
          batched_params.back().insert(batched_params.back().begin(), batch);
        }
        batched.push_back(random_doubles(random, shape));
      }
      const Built one(context, params,
                      [&](Builder& builder, const Atoms& atoms) { return builder.apply(c.op, atoms); });
      const Built all(context, batched_params, [&](Builder& builder, const Atoms& atoms) -> Expected<Atom> {
        Attrs attrs;
        const Apply apply{&context.op(c.op), attrs, atoms};
        BatchBuilder rule(builder, apply, atoms, own, batch);
        if (const Status status = apply.op->batching(rule); !status) return std::unexpected(status.error());
        return rule.result().atom();
      });
      const std::vector<Tensor> results = all.run(batched);
      ASSERT_EQ(results.size(), 1u);
      for (int64_t b = 0; b < kBatch; ++b) {
        std::vector<Tensor> args;
        for (size_t i = 0; i < c.args.size(); ++i) {
          Tensor part = Tensor(DType::kF64, c.args[i]);
          const auto from = batched[i].data<double>();
          const size_t size = part.data<double>().size(), offset = own[i] ? static_cast<size_t>(b) * size : 0;
          std::copy_n(from.begin() + static_cast<ptrdiff_t>(offset), size, part.data<double>().begin());
          args.push_back(std::move(part));
        }
        const std::vector<Tensor> alone = one.run(args);
        ASSERT_EQ(alone.size(), 1u);
        const auto row = alone[0].data<double>();
        const auto in_batch = results[0].data<double>().subspan(static_cast<size_t>(b) * row.size(), row.size());
        EXPECT_TRUE(std::ranges::equal(row, in_batch)) << "instance " << b;
      }
    }
  }
}

}  // namespace
}  // namespace tenon::compiler
