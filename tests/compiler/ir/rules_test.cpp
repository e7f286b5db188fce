// Gradient rules beside central differences in f64.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <variant>

#include "compiler/ir/gradients.h"
#include "compiler/ir/gradients/rules.h"
#include "compiler/ir/infer.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/sizes.h"
#include "support/random.h"
#include "tests/compiler/ir/operators/cases.h"
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
  Built(Context& context, const std::vector<Type>& params,
        const std::function<Expected<Atom>(Builder&, const Atoms&)>& make)
      : context_(context) {
    Function function;
    Builder builder(context, module_, function);
    Atoms atoms;
    for (size_t i = 0; i < params.size(); ++i) atoms.push_back(builder.param(params[i], "p" + std::to_string(i)));
    const auto result = make(builder, atoms);
    if (!result) {
      problem_ = result.error();
      return;
    }
    builder.finish(*result);
    declare_dims(context, function);
    module_.globals.emplace(context.symbol("main"), std::move(function));
  }
  const std::optional<Diagnostic>& problem() const { return problem_; }
  // Whether the function has a value for these arguments.
  bool runs(const std::vector<Tensor>& args) const {
    return !problem_ && interpret(context_, module_, context_.symbol("main"), args);
  }
  std::vector<Tensor> run(const std::vector<Tensor>& args) const {
    if (problem_) {
      ADD_FAILURE() << problem_->str();
      return {};
    }
    auto results = interpret(context_, module_, context_.symbol("main"), args);
    EXPECT_TRUE(results) << results.error().str();
    return results ? *results : std::vector<Tensor>();
  }

 private:
  Context& context_;
  Module module_;
  std::optional<Diagnostic> problem_;
};

Dims dims_of(Context& context, const Shape& shape) {
  Dims dims;
  for (const int64_t size : shape) dims.push_back(context.dim(size));
  return dims;
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

// One application of an operator to parameters, from a call of the stored cases, with floats of 64 bits.
struct GradientCase {
  std::string name;
  const Operator* op = nullptr;
  Attrs attrs;
  std::map<std::string, std::variant<Dims, size_t>, std::less<>> computed;  // dims, or the parameter
  std::vector<size_t> args;                                                 // the parameter of each argument
  std::vector<Tensor> inputs;                                               // of the parameters

  Expected<Atom> apply(Builder& builder, const Atoms& params) const {
    Atoms atoms;
    for (const size_t param : args) atoms.push_back(params[param]);
    ComputedAttrs values;
    for (const auto& [key, value] : computed) {
      if (auto* param = std::get_if<size_t>(&value)) values.emplace(key, params[*param]);
      else values.emplace(key, std::get<Dims>(value));
    }
    return builder.apply(*op, atoms, attrs, {}, std::move(values));
  }
};

// Differences in f32 are too coarse for the operators on f32 alone.
bool takes_doubles(const Operator& op) {
  return std::ranges::none_of(op.inputs, [](const Input& input) {
    return input.dtypes.contains(DType::kF32) && !input.dtypes.contains(DType::kF64);
  });
}

bool real(const Tensor& tensor) { return tensor.dtype() == DType::kF64; }

bool has_real(Type type) {
  if (const TensorType* tensor = type.tensor()) return runtime::kReals.contains(tensor->dtype);
  return type.tuple() && std::ranges::any_of(type.tuple()->fields, has_real);
}

// Calls on random floats, for what the stored cases leave out.
struct MoreCase {
  const char* call;
  std::vector<Shape> inputs;
  std::vector<std::vector<int64_t>> operands = {};  // further inputs, vectors; one without a value is a scalar 0
};
const MoreCase kMoreCases[] = {
    {"stop_gradient(%a)", {{2, 3}}},
    {"cast(%a, dtype=\"f32\")", {{3, 4}}},
    {"minimum(%a, %b)", {{3, 4}, {4}}},
    {"add(%a, %b)", {{3, 1}, {2, 3, 4}}},
    {"multiply(%a, %b)", {{}, {3, 4}}},
    {"matmul(%a, %b)", {{2, 1, 3, 4}, {5, 4, 2}}},
    {"matmul(%a, %b)", {{2, 3, 4}, {4, 2}}},
    {"matmul(%a, %b)", {{1, 3, 4}, {2, 4, 5}}},
    {"einsum(%a, %b, equation=\"...ij,...jk->...ik\")", {{2, 3, 4}, {2, 4, 5}}},
    {"einsum(%a, equation=\"iji->j\")", {{3, 2, 3}}},
    {"einsum(%a, %b, equation=\"ij,kl->k\")", {{3, 2}, {4, 3}}},
    {"slice(%a, begin=[-3, 5], end=[-1, 9223372036854775807], step=[1, 1])", {{4, 7}}},
    {"slice(%a, begin=[3, 1], end=[-9223372036854775808, 100], step=[-2, 3])", {{5, 9}}},
    {"slice(%a, begin=%b, end=%c, step=%d)", {{5, 6}}, {{4, 1}, {0, 6}, {-2, 2}}},
    {"pad(%a, before=%b, after=%c)", {{2, 3}}, {{1, 0}, {2, 3}}},
    {"pad_reflect(%a, before=%b, after=%c)", {{2, 3}}, {{1, 0}, {0, 2}}},
    {"tile(%a, repeats=%b)", {{2, 3}}, {{2, 2}}},
    {"reshape(%a, shape=%b)", {{2, 3}}, {{3, 2}}},
    {"squeeze(%a, axes=%b)", {{2, 1}}, {{1}}},
    {"sum(%a, axes=%b)", {{2, 3, 4}}, {{2, 0}}},
    {"mean(%a, axes=%b)", {{2, 3, 4}}, {{1}}},
    {"max(%a, axes=%b, keep=1)", {{2, 3, 4}}, {{1}}},
    {"prod(%a, axes=%b)", {{2, 3, 4}}, {{1}}},
    {"cumsum(%a, axis=%b)", {{2, 3}}, {{}}},
    {"cumprod(%a, axis=%b)", {{2, 3}}, {{}}},
    {"triangle(%a, diagonal=%b)", {{3, 3}}, {{}}},
    {"top_k(%a, k=%b, axis=0)", {{3, 3}}, {{}}},
    {"broadcast_dynamic(%a, %b)", {{2, 1}}, {{3, 1, 4}}},
    {"rnn_ragged(%a, %b, %c, %d, %e, %f, direction=\"reverse\")",
     {{4, 3, 2}, {1, 5, 2}, {1, 5, 5}, {1, 10}, {1, 3, 5}},
     {{4, 1, 3}}},
    {"gru_ragged(%a, %b, %c, %d, %e, %f, direction=\"bidirectional\")",
     {{4, 3, 1}, {2, 6, 1}, {2, 6, 2}, {2, 12}, {2, 3, 2}},
     {{0, 4, 3}}},
    {"lstm_ragged(%a, %b, %c, %d, %e, %f, %g, clip=1.5)",
     {{4, 3, 1}, {1, 8, 1}, {1, 8, 2}, {1, 22}, {1, 3, 2}, {1, 3, 2}},
     {{2, 4, 1}}},
    {"roi_align(%a, %b, %c, size=[2, 3], sampling_ratio=2, mode=\"avg\", half_pixel=0)",
     {{3, 2, 5, 4}, {3, 4}},
     {{0, 2, 1}}},
    {"roi_align(%a, %b, %c, size=[1, 2], sampling_ratio=1, mode=\"max\")", {{3, 2, 5, 4}, {3, 4}}, {{0, 2, 1}}},
    {"det(%a)", {{2, 1, 1}}},
    {"prod(%a)", {{2, 3, 4}}},
    {"prod(%a, axes=[-2], keep=1)", {{2, 3, 4}}},
    {"cumprod(%a, axis=1, exclusive=1, reverse=1)", {{2, 4, 3}}},
    {"cumprod(%a, axis=-1, reverse=1)", {{2, 4}}},
    {"cumprod(%a, axis=0, exclusive=1)", {{5, 2}}},
};

std::map<std::string, OperatorCase> all_cases(Random& random) {
  std::map<std::string, OperatorCase> cases = operator_cases();
  for (size_t i = 0; i < std::size(kMoreCases); ++i) {
    OperatorCase more{kMoreCases[i].call, {}, {}, {}};
    for (const Shape& shape : kMoreCases[i].inputs) {
      Tensor input(DType::kF32, shape);
      for (float& value : input.data<float>()) value = static_cast<float>(random.between(-2000, 2000)) / 1000;
      more.inputs.push_back(std::move(input));
    }
    for (const auto& values : kMoreCases[i].operands) {
      const Shape shape = values.empty() ? Shape{} : Shape{static_cast<int64_t>(values.size())};
      more.inputs.push_back(Tensor::of<int64_t>(shape, values.empty() ? std::vector<int64_t>{0} : values));
    }
    cases.emplace("more" + std::to_string(i), std::move(more));
  }
  return cases;
}

// The cases that apply one operator to their inputs; inputs are moved away from kinks.
std::vector<GradientCase> gradient_cases(Context& context, Random& random) {
  std::vector<GradientCase> cases;
  for (const auto& [name, stored] : all_cases(random)) {
    if (stored.call.empty()) continue;
    const auto module = parse_operator_case(context, name, stored);
    if (!module) {
      ADD_FAILURE() << name << ": " << module.error().str();
      continue;
    }
    const Function& function = *module->function(context.symbol("main"));
    const Apply* apply = nullptr;
    for (const Binding& binding : function.body.bindings) {
      const auto* found = std::get_if<Apply>(&binding.value);
      if (found && apply) apply = nullptr;
      if (found) apply = found;
    }
    if (!apply) continue;
    GradientCase next{name, apply->op, apply->attrs, {}, {}, {}};
    bool params_only = true;
    const auto param_of = [&](const Atom& atom) {
      const auto* var = std::get_if<VarId>(&atom);
      const auto found = var ? std::ranges::find(function.params, *var) : function.params.end();
      if (found == function.params.end()) params_only = false;
      return static_cast<size_t>(found - function.params.begin());
    };
    for (const Atom& arg : apply->args) next.args.push_back(param_of(arg));
    for (const auto& [key, value] : apply->computed) {
      if (auto* dims = std::get_if<Dims>(&value)) next.computed.emplace(key, *dims);
      else next.computed.emplace(key, param_of(std::get<Atom>(value)));
    }
    if (!params_only || next.args.empty() || !takes_doubles(*next.op)) continue;
    if (next.op->is(ops::kCast) && next.attrs.find("dtype")->second == runtime::Attr(std::string("f32")))
      next.attrs.insert_or_assign("dtype", std::string("f64"));
    for (const Tensor& input : stored.inputs) {
      if (input.dtype() != DType::kF32) {
        next.inputs.push_back(input);
        continue;
      }
      Tensor wide(DType::kF64, input.shape());
      for (size_t i = 0; i < wide.data<double>().size(); ++i) {
        const double value = std::isfinite(input.data<float>()[i]) ? input.data<float>()[i] : 1;
        wide.data<double>()[i] = value + static_cast<double>(random.between(-1000, 1000)) * 9.7e-7;
      }
      next.inputs.push_back(std::move(wide));
    }
    cases.push_back(std::move(next));
  }
  return cases;
}

// The adjoints of the arguments, one after the other, from those of the floats of the result; zeros where a rule has
// none. Operators that the rule applies to floats are added to `used`.
Expected<Atom> differentiate(Builder& builder, const GradientCase& c, const Atoms& params, size_t num_inputs,
                             std::set<std::string>* used = nullptr) {
  const auto result = c.apply(builder, params);
  if (!result) return result;
  const size_t forward = builder.function().body.bindings.size();
  const auto type = builder.type_of(*result);
  size_t next = num_inputs;
  std::vector<std::optional<Atom>> cotangents;
  for (const Type field : type->tuple() ? type->tuple()->fields : std::vector<Type>{*type}) {
    cotangents.emplace_back();
    if (has_real(field)) cotangents.back() = params[next++];
  }
  const Apply apply = *builder.application(*result);
  std::vector<bool> wanted;
  for (const Atom& arg : apply.args) wanted.push_back(has_real(*builder.type_of(arg)));
  GradientBuilder rule(builder, apply, *result, cotangents, wanted);
  if (const Status status = apply.op->gradient(rule); !status) return std::unexpected(status.error());
  Atoms adjoints;
  for (size_t i = 0; i < apply.args.size(); ++i) {
    if (!wanted[i]) continue;
    adjoints.push_back(rule.adjoint(i) ? rule.adjoint(i)->atom() : gradients::zeros_like(rule.arg(i)).atom());
  }
  for (size_t i = forward; used && i < builder.function().body.bindings.size(); ++i) {
    const auto* made = std::get_if<Apply>(&builder.function().body.bindings[i].value);
    if (!made || !has_real(builder.function().type(builder.function().body.bindings[i].var))) continue;
    if (std::ranges::any_of(made->args, [&](const Atom& arg) { return has_real(*builder.type_of(arg)); }))
      used->insert(made->op->name);
  }
  return builder.tuple(adjoints);
}

// What rules require beyond their operators.
struct Limit {
  OperatorId op;
  std::string_view what;
  friend auto operator<=>(const Limit&, const Limit&) = default;
};
constexpr Limit kLimits[] = {
    {ops::kRnn, "the gradient of rnn requires a constant number of steps, found n"},
    {ops::kGru, "the gradient of gru requires a constant number of steps, found n"},
    {ops::kLstm, "the gradient of lstm requires a constant number of steps, found n"},
    {ops::kRnnRagged, "the gradient of rnn_ragged requires a constant number of steps, found n"},
    {ops::kGruRagged, "the gradient of gru_ragged requires a constant number of steps, found n"},
    {ops::kLstmRagged, "the gradient of lstm_ragged requires a constant number of steps, found n"},
    {ops::kRoiAlign, "the gradient of roi_align requires a sampling_ratio above 0"},
    {ops::kProd, "the gradient of prod requires axes that are constants"},
    {ops::kCumprod, "the gradient of cumprod requires an axis that is a constant"},
};

// The limit that a rule tells; a failure where it is none.
void expect_limit(const Operator& op, const Diagnostic& problem, std::set<Limit>& seen) {
  const auto* found =
      std::ranges::find_if(kLimits, [&](const Limit& limit) { return op.is(limit.op) && problem.what == limit.what; });
  if (found == std::end(kLimits)) ADD_FAILURE() << problem.str();
  else seen.insert(*found);
}

TEST(GradientRules, AgreeWithCentralDifferences) {
  Context context;
  std::set<Limit> limits;
  Random random(test_seed(1));
  std::set<std::string> tested, used;
  for (const GradientCase& c : gradient_cases(context, random)) {
    if (!c.op->gradient) continue;
    SCOPED_TRACE(c.name + ": " + c.op->name);
    std::vector<Type> params;
    for (const Tensor& input : c.inputs) params.push_back(context.type_of(input));
    const Built forward(context, params, [&](Builder& builder, const Atoms& atoms) { return c.apply(builder, atoms); });
    const std::vector<Tensor> results = forward.run(c.inputs);
    std::vector<Tensor> cotangents;
    for (const Tensor& result : results) {
      if (real(result)) cotangents.push_back(random_doubles(random, result.shape()));
    }
    if (cotangents.empty() || std::ranges::none_of(c.args, [&](size_t i) { return real(c.inputs[i]); })) continue;
    tested.insert(c.op->name);

    std::vector<Tensor> inputs = c.inputs;
    for (const Tensor& cotangent : cotangents) {
      params.push_back(context.type_of(cotangent));
      inputs.push_back(cotangent);
    }
    const Built backward(context, params, [&](Builder& builder, const Atoms& atoms) {
      return differentiate(builder, c, atoms, c.inputs.size(), &used);
    });
    if (backward.problem()) {
      expect_limit(*c.op, *backward.problem(), limits);
      continue;
    }
    const std::vector<Tensor> adjoints = backward.run(inputs);
    size_t next = 0;
    for (const size_t i : c.args) {
      if (!real(c.inputs[i])) continue;
      ASSERT_LT(next, adjoints.size());
      const Tensor& adjoint = adjoints[next++];
      ASSERT_EQ(adjoint.shape(), c.inputs[i].shape());
      const Tensor direction = random_doubles(random, adjoint.shape());
      const double found = dot(adjoint, direction);
      if (c.op->is(ops::kStopGradient)) {  // by its definition, not by its slope
        EXPECT_EQ(found, 0);
        continue;
      }
      // A kink near one step is not near all of them.
      bool agrees = false;
      double difference = 0;
      for (const double step : {1e-6, 1e-5, 1e-7}) {
        std::vector<Tensor> above = c.inputs, below = c.inputs;
        above[i] = moved(c.inputs[i], direction, step), below[i] = moved(c.inputs[i], direction, -step);
        const std::vector<Tensor> high = forward.run(above), low = forward.run(below);
        double sum = 0;
        size_t which = 0;
        for (size_t k = 0; k < results.size(); ++k) {
          if (!real(results[k])) continue;
          sum += dot(high[k], cotangents[which]) - dot(low[k], cotangents[which]);
          ++which;
        }
        difference = sum / (2 * step);
        agrees |= std::abs(found - difference) <= 2e-6 * (1 + std::abs(difference));
      }
      EXPECT_TRUE(agrees) << "argument " << i << ": " << found << " by the rule, " << difference << " by differences";
    }
  }
  for (const Operator* op : context.operators()) {
    EXPECT_TRUE(!op->gradient || !takes_doubles(*op) || tested.contains(op->name))
        << op->name << " has a rule and no case in make_cases.py";
  }
  for (const std::string& name : used)
    EXPECT_TRUE(context.find_operator(name)->gradient) << "a rule uses " << name << ", which has no rule itself";
}

// Wherever the operator accepts a variable in place of a constant size, the rule does, with the same adjoints.
TEST(GradientRules, AcceptSymbolicSizes) {
  Context context;
  Random random(test_seed(1));
  std::set<Limit> limits;
  size_t count = 0;
  for (const GradientCase& c : gradient_cases(context, random)) {
    if (!c.op->gradient) continue;
    std::set<int64_t> sizes;
    std::vector<Type> params;
    for (const Tensor& input : c.inputs) {
      params.push_back(context.type_of(input));
      for (const int64_t size : input.shape()) {
        if (size > 1) sizes.insert(size);
      }
    }
    const Built forward(context, params, [&](Builder& builder, const Atoms& atoms) { return c.apply(builder, atoms); });
    const std::vector<Tensor> results = forward.run(c.inputs);
    std::vector<Tensor> inputs = c.inputs;
    for (const Tensor& result : results) {
      if (!real(result)) continue;
      inputs.push_back(random_doubles(random, result.shape()));
      params.push_back(context.type_of(inputs.back()));
    }
    if (inputs.size() == c.inputs.size()) continue;
    const Built constant(context, params, [&](Builder& builder, const Atoms& atoms) {
      return differentiate(builder, c, atoms, c.inputs.size());
    });
    if (constant.problem()) {
      expect_limit(*c.op, *constant.problem(), limits);
      continue;
    }
    const std::vector<Tensor> expected = constant.run(inputs);
    for (const int64_t size : sizes) {
      SCOPED_TRACE(c.name + ": " + c.op->name + " with n = " + std::to_string(size));
      const Dim variable = context.dim(context.symbol("n"));
      std::vector<Type> open;
      for (size_t i = 0; i < c.inputs.size(); ++i)
        open.push_back(context.map_sizes(params[i], [&](Dim dim) { return dim.constant() == size ? variable : dim; }));
      // The cotangents have the types that the results then have.
      Module module;
      Function function;
      Builder builder(context, module, function);
      Atoms atoms;
      for (const Type type : open) atoms.push_back(builder.param(type, "p"));
      const auto result = c.apply(builder, atoms);
      const Built apply(context, open, [&](Builder& forward, const Atoms& params) { return c.apply(forward, params); });
      if (!result || !apply.runs(c.inputs)) continue;
      const Type type = *builder.type_of(*result);
      for (const Type field : type.tuple() ? type.tuple()->fields : std::vector<Type>{type}) {
        if (has_real(field)) open.push_back(field);
      }
      const Built symbolic(context, open, [&](Builder& rule, const Atoms& params) {
        return differentiate(rule, c, params, c.inputs.size());
      });
      if (symbolic.problem()) {
        expect_limit(*c.op, *symbolic.problem(), limits);
        continue;
      }
      const std::vector<Tensor> found = symbolic.run(inputs);
      EXPECT_EQ(found.size(), expected.size());
      if (found.size() != expected.size()) continue;
      for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].shape(), expected[i].shape());
        for (size_t k = 0; k < found[i].data<double>().size(); ++k) {
          const double want = expected[i].data<double>()[k];
          ASSERT_NEAR(found[i].data<double>()[k], want, 1e-11 * (1 + std::abs(want)));
        }
      }
      ++count;
    }
  }
  EXPECT_GT(count, 100u);
  for (const Limit& limit : kLimits) EXPECT_TRUE(limits.contains(limit)) << limit.what;
}

// An operator on floats whose result has floats has a rule, or a reason why it has none.
TEST(GradientRules, AreThereForEveryOperatorOnFloatsOrAReasonIs) {
  Context context;
  Random random(test_seed(1));
  std::set<const Operator*> seen, real_valued;
  for (const auto& [name, stored] : all_cases(random)) {
    if (stored.call.empty()) continue;
    const auto module = parse_operator_case(context, name, stored);
    ASSERT_TRUE(module) << module.error().str();
    const Function& function = *module->function(context.symbol("main"));
    for (const Binding& binding : function.body.bindings) {
      const auto* apply = std::get_if<Apply>(&binding.value);
      if (!apply) continue;
      seen.insert(apply->op);
      bool floats = false;
      for (const Atom& arg : apply->args) floats |= has_real(*infer_atom(context, *module, function, arg));
      if (floats && has_real(function.type(binding.var))) real_valued.insert(apply->op);
    }
  }
  for (const Operator* op : context.operators()) {
    const bool floats = std::ranges::any_of(
        op->inputs, [](const Input& input) { return (input.dtypes.bits & runtime::kReals.bits) != 0; });
    EXPECT_TRUE(!floats || seen.contains(op)) << op->name << " has no case";
    if (!real_valued.contains(op)) continue;
    EXPECT_TRUE(op->gradient || !op->gradient_note.empty())
        << op->name << ": add a row to compiler/ir/gradients/" << op->family << ".cpp";
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

}  // namespace
}  // namespace tenon::compiler
