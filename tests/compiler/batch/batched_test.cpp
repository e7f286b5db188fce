// Batched functions: each row of the result of a batch is the result of its instance, bit for bit, in the interpreter
// and with native kernels.
#include "compiler/batch/batched.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "compiler/fuzz/batches.h"
#include "compiler/fuzz/generator.h"
#include "compiler/fuzz/inputs.h"
#include "compiler/ir/batching.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/values.h"
#include "compiler/passes/pass.h"
#include "runtime/vm/session.h"
#include "support/random.h"
#include "support/try.h"
#include "tests/compiler/ir/operators/cases.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler::batch {
namespace {

using runtime::Shape;
using runtime::Tensor;
using testing::HasSubstr;

// A function, its batched form, and how both are run.
class Pair {
 public:
  Pair(Context& context, Module module, std::string_view name) : context_(context), module_(std::move(module)) {
    one_ = context.symbol(name);
  }

  // The reason why there is no batched form.
  std::optional<Diagnostic> make(const std::vector<bool>& own) {
    own_ = own;
    auto function = batched(context_, module_, *module_.function(one_), own);
    if (!function) return function.error();
    many_ = context_.symbol("batched");
    module_.globals.insert_or_assign(many_, std::move(function->function));
    own_results_ = std::move(function->own);
    const Status verified = verify(context_, module_);
    EXPECT_TRUE(verified) << verified.error().str() << print(context_, module_).text;
    // The batched function has a text like any other.
    const Text text = print(context_, module_);
    const auto again = parse(context_, text.text, text.side);
    EXPECT_TRUE(again) << again.error().str();
    return std::nullopt;
  }

  // The inputs of each instance; those that are not own are the first instance's.
  void expect_equal(const std::vector<std::vector<RunValue>>& instances, bool native) {
    std::vector<RunValue> results;
    std::vector<std::vector<RunValue>> by_input(own_.size());
    for (const std::vector<RunValue>& instance : instances) {
      std::vector<RunValue> inputs;
      for (size_t i = 0; i < own_.size(); ++i) {
        inputs.push_back(own_[i] ? instance[i] : instances[0][i]);
        by_input[i].push_back(inputs.back());
      }
      auto result = run(one_, inputs, native);
      if (!result) return;  // the function has no value for these arguments
      results.push_back(std::move(*result));
    }
    std::vector<RunValue> inputs;
    for (size_t i = 0; i < own_.size(); ++i) inputs.push_back(own_[i] ? fuzz::stacked(by_input[i]) : by_input[i][0]);
    const auto all = run(many_, inputs, native);
    ASSERT_TRUE(all) << all.error().str() << print(context_, module_).text;
    for (const RunValue& result : results) {
      // Results of different shapes, as of data-dependent sizes, have no batch.
      ASSERT_EQ(describe(context_, result), describe(context_, results[0]));
    }
    const RunValue expected = fuzz::stacked(results, own_results_);
    EXPECT_TRUE(fuzz::equal_bits(*all, expected)) << (native ? "native" : "interpreted") << "\n"
                                                  << print(context_, module_).text << str(context_, *all) << "\n"
                                                  << str(context_, expected);
    ++compared;
  }

  int64_t compared = 0;

 private:
  Expected<RunValue> run(Symbol name, const std::vector<RunValue>& inputs, bool native) {
    if (!native) return interpret(context_, module_, name, inputs);
    auto& compiled = compiled_[name];
    if (!compiled) TENON_TRY(compile(name, compiled));
    std::vector<runtime::Value> values;
    for (const RunValue& input : inputs) {
      TENON_TRY_ASSIGN(value, to_session(context_, module_, compiled->executable, input));
      values.push_back(std::move(*value));
    }
    TENON_TRY_ASSIGN(made, compiled->session->run_values(values));
    std::vector<RunValue> fields;
    for (const runtime::Value& value : *made) fields.push_back(from_session(context_, compiled->executable, value));
    return module_.function(name)->result.tuple() ? RunValue::tuple(std::move(fields)) : fields.at(0);
  }

  struct Compiled {
    runtime::Executable executable;
    std::optional<runtime::Session> session;
  };
  Status compile(Symbol name, std::unique_ptr<Compiled>& compiled) const {
    Module module = clone(module_);
    const Symbol main = context_.symbol("main");  // passes drop what it does not use
    module.globals = {};
    module.globals.emplace(main, *module_.function(name));
    TENON_TRY_ASSIGN(standard, run_passes(context_, std::move(module), standard_passes()));
    TENON_TRY_ASSIGN(kernels, run_passes(context_, std::move(*standard), kernel_passes()));
    TENON_TRY_ASSIGN(executable, lower(context_, *kernels, main, {}, {.name = "test", .facts = {}}));
    auto made = std::make_unique<Compiled>();
    made->executable = std::move(*executable);
    TENON_TRY_ASSIGN(session, runtime::Session::create(made->executable, {}));
    made->session = std::move(*session);
    compiled = std::move(made);
    return {};
  }

  Context& context_;
  Module module_;
  Symbol one_{}, many_{};
  std::vector<bool> own_, own_results_;
  std::map<Symbol, std::unique_ptr<Compiled>> compiled_;
};

// The tensor with its floats in another order, which is legal wherever the tensor itself is.
Tensor reordered(const Tensor& tensor, size_t by) {
  Tensor other = tensor.clone();
  runtime::with_dtype<runtime::kAnyDType>(tensor.dtype(), [&]<class T>(T) {
    const auto from = tensor.data<T>();
    const auto to = other.data<T>();
    if (!runtime::is_real<T> || from.empty()) return;
    for (size_t i = 0; i < from.size(); ++i) to[i] = from[(i + by) % from.size()];
  });
  return other;
}

std::vector<bool> random_mask(Random& random, size_t count, bool all) {
  std::vector<bool> own;
  for (size_t i = 0; i < count; ++i) own.push_back(all || random.chance(60));
  if (std::ranges::find(own, true) == own.end())
    own[static_cast<size_t>(random.between(0, static_cast<int64_t>(count) - 1))] = true;
  return own;
}

TEST(Batched, EachRowIsTheResultOfItsInstanceForEveryOperator) {
  Context context;
  Random random(test_seed(1));
  std::set<std::string> seen;
  std::map<std::string, int64_t> reasons;
  int64_t natives = 0, compared = 0;
  const std::map<std::string, OperatorCase> cases = operator_cases();
  for (const auto& [name, stored] : cases) {
    if (stored.call.empty() || stored.inputs.empty()) continue;
    for (int round = 0; round < 4; ++round) {
      auto module = parse_operator_case(context, name, stored);
      ASSERT_TRUE(module) << module.error().str();
      std::set<std::string> operators;
      for (const Binding& binding : module->function(context.symbol("main"))->body.bindings) {
        if (const auto* apply = std::get_if<Apply>(&binding.value)) operators.insert(apply->op->name);
      }
      Pair pair(context, std::move(*module), "main");
      // All arguments, the first one, and random ones.
      std::vector<bool> own = random_mask(random, stored.inputs.size(), round == 0);
      if (round == 1) std::fill(own.begin() + 1, own.end(), false), own[0] = true;
      const auto reason = pair.make(own);
      if (reason) {
        ++reasons[reason->what];
        continue;
      }
      seen.merge(operators);
      std::vector<std::vector<RunValue>> instances;
      for (size_t i = 0; i < 3; ++i) {
        std::vector<RunValue>& inputs = instances.emplace_back();
        for (const Tensor& input : stored.inputs) inputs.emplace_back(reordered(input, i));
      }
      SCOPED_TRACE(name + ": " + stored.call);
      pair.expect_equal(instances, false);
      if (random.chance(kSanitized ? 2 : 10)) {
        pair.expect_equal(instances, true);
        ++natives;
      }
      compared += pair.compared;
    }
  }
  EXPECT_GT(compared, 800);
  EXPECT_GT(natives, kSanitized ? 0 : 20);
  // Every operator with a rule was batched, and the reasons of the others are known.
  for (const Operator* op : context.operators()) {
    if (op->batching) {
      EXPECT_TRUE(seen.contains(op->name)) << op->name;
    }
  }
  for (const auto& [what, count] : reasons) {
    EXPECT_TRUE(what.find("has no batching rule") != std::string::npos ||
                what.find("is not batched where") != std::string::npos ||
                what.find("neither an operator's result nor a tuple") != std::string::npos)
        << what;
  }
}

// The rows [begin, end) of the tensor's first axis.
Tensor rows_of(const Tensor& tensor, int64_t begin, int64_t end) {
  Shape shape = tensor.shape();
  const size_t row = tensor.bytes().size() / static_cast<size_t>(shape[0]);
  shape[0] = end - begin;
  Tensor rows = Tensor::for_overwrite(tensor.dtype(), shape);
  std::ranges::copy(tensor.bytes().subspan(static_cast<size_t>(begin) * row, static_cast<size_t>(end - begin) * row),
                    rows.bytes().begin());
  return rows;
}

// A case's call as a function whose own inputs have sizes that are not known along the first `axes` axes.
std::optional<Module> with_unknown_rows(Context& context, const OperatorCase& stored, const std::vector<bool>& own,
                                        size_t axes) {
  std::vector<std::string> params, dims;
  for (size_t i = 0; i < axes; ++i) dims.push_back(fmt::format("r{}", i));
  std::optional<Shape> rows;
  for (size_t i = 0; i < stored.inputs.size(); ++i) {
    const Tensor& input = stored.inputs[i];
    std::vector<std::string> sizes;
    for (const int64_t size : input.shape()) sizes.push_back(std::to_string(size));
    if (own[i]) {
      if (sizes.size() < axes) return std::nullopt;
      const Shape first(input.shape().begin(), input.shape().begin() + static_cast<ptrdiff_t>(axes));
      if (std::ranges::find(first, 0) != first.end() || (rows && *rows != first)) return std::nullopt;
      rows = first;
      std::ranges::copy(dims, sizes.begin());
    }
    params.push_back(fmt::format("%{}: Tensor[({}{}), {}]", static_cast<char>('a' + i), fmt::join(sizes, ", "),
                                 sizes.size() == 1 ? "," : "", name(input.dtype())));
  }
  auto module = parse(context, fmt::format("#[version = \"1\"]\ndef @main[{}]({}) {{ {} }}\n", fmt::join(dims, ", "),
                                           fmt::join(params, ", "), stored.call));
  if (!module) return std::nullopt;
  return std::move(*module);
}

// Where the tables say that rows are independent, those of several calls are one call.
TEST(Batched, IndependentRowsOfSeveralCallsAreOneCallForEveryOperator) {
  Context context;
  Random random(test_seed(5));
  std::set<std::string> seen;
  int64_t compared = 0;
  // And calls of operators whose stored cases mix rows.
  std::map<std::string, OperatorCase> cases = operator_cases();
  Tensor x(DType::kF32, {4, 3, 5}), indices(DType::kI64, {4, 3}), mask(DType::kBool, {4, 3, 5});
  for (float& value : x.data<float>()) value = static_cast<float>(random.between(-2000, 2000)) / 1000;
  for (int64_t& value : indices.data<int64_t>()) value = random.between(0, 3);
  for (bool& value : mask.data<bool>()) value = random.chance(50);
  for (const char* call : {"arg_min(%a, axis=2)", "expand_dims(%a, axes=[3])", "flatten(%a, axis=1)",
                           "reverse(%a, axes=[2])", "transpose(%a, axes=[0, 2, 1])"})
    cases[call] = {call, "", {x}, {}};
  cases["gather"] = {"gather(%a, %b)", "", {x, indices}, {}};
  cases["select"] = {"select(%a, %b, %c)", "", {mask, x, x}, {}};
  for (const auto& [name, stored] : cases) {
    if (stored.call.empty() || stored.inputs.empty()) continue;
    for (int round = 0; round < 10; ++round) {
      const size_t wanted = round % 2 == 0 ? 1 : 2;
      std::vector<bool> own = random_mask(random, stored.inputs.size(), round < 2);
      if (round == 2 || round == 3) std::fill(own.begin() + 1, own.end(), false), own[0] = true;
      if (round == 4 || round == 5) std::fill(own.begin(), own.end() - 1, false), own.back() = true;
      auto module = with_unknown_rows(context, stored, own, wanted);
      if (!module) continue;
      const Symbol main = context.symbol("main");
      Function& function = *module->function(main);
      const auto* apply =
          function.body.bindings.size() == 1 ? std::get_if<Apply>(&function.body.bindings[0].value) : nullptr;
      if (!apply || apply->args != Atoms(function.params.begin(), function.params.end())) continue;
      std::vector<Type> types;
      for (const VarId param : function.params) types.push_back(function.type(param));
      const int64_t axes = independent_rows(*apply, types, own, function.result, static_cast<int64_t>(wanted));
      if (axes == 0) continue;
      SCOPED_TRACE(fmt::format("{}: {} along {} axes", name, stored.call, axes));
      function.joined_axes = static_cast<uint32_t>(axes);
      const Status verified = verify(context, *module);
      ASSERT_TRUE(verified) << verified.error().str();
      const auto first_own = std::ranges::find(own, true) - own.begin();
      const int64_t rows = stored.inputs[static_cast<size_t>(first_own)].shape()[0];
      const int64_t cut = random.between(0, rows);
      std::vector<RunValue> results;
      std::vector<std::vector<RunValue>> by_input(own.size());
      bool has_value = true;
      for (const auto& [begin, end] : {std::pair(int64_t{0}, cut), std::pair(cut, rows), std::pair(int64_t{0}, rows)}) {
        std::vector<RunValue> inputs;
        for (size_t i = 0; i < own.size(); ++i) {
          inputs.emplace_back(own[i] ? rows_of(stored.inputs[i], begin, end) : stored.inputs[i]);
          by_input[i].push_back(inputs.back());
        }
        auto result = interpret(context, *module, main, inputs);
        has_value &= result.has_value();
        if (result) results.push_back(std::move(*result));
      }
      if (!has_value) continue;  // as the maximum of no elements
      std::vector<RunValue> inputs;
      for (size_t i = 0; i < own.size(); ++i)
        inputs.push_back(own[i] ? fuzz::joined_rows(by_input[i], static_cast<size_t>(axes)) : by_input[i][0]);
      const auto all = interpret(context, *module, main, inputs);
      ASSERT_TRUE(all) << all.error().str();
      const RunValue expected = fuzz::joined_rows(results, static_cast<size_t>(axes));
      EXPECT_TRUE(fuzz::equal_bits(*all, expected)) << str(context, *all) << "\n" << str(context, expected);
      seen.insert(apply->op->name);
      ++compared;
    }
  }
  std::string missing;
  for (const Operator* op : context.operators()) {
    if (op->rows && !seen.contains(op->name)) missing += op->name + " ";
  }
  EXPECT_EQ(missing, "");
  EXPECT_GT(compared, 100);
}

constexpr char kCells[] = R"(#[version = "1"]
def @tree(%l: (Tensor[(1, 33), f32], Tensor[(1, 33), f32]), %r: (Tensor[(1, 33), f32], Tensor[(1, 33), f32]),
          %left: Tensor[(33, 165), f32], %right: Tensor[(33, 165), f32], %bias: Tensor[(165,), f32]) {
  let %sum = matmul(%l.1, %left) + matmul(%r.1, %right) + %bias;
  let %gates = split(%sum, sizes=[33, 33, 33, 33, 33], axis=1);
  let %new = sigmoid(%gates.0) * tanh(%gates.4);
  let %memory = %new + sigmoid(%gates.1) * %l.0 + sigmoid(%gates.2) * %r.0;
  (%memory, sigmoid(%gates.3) * tanh(%memory))
}
def @leaf(%table: Tensor[(20, 33), f32], %word: Tensor[(1,), i64], %w: Tensor[(33, 99), f32]) {
  let %gates = split(matmul(gather(%table, %word), %w), sizes=[33, 33, 33], axis=1);
  let %memory = sigmoid(%gates.0) * tanh(%gates.2);
  (%memory, sigmoid(%gates.1) * tanh(%memory), shape_of(%memory))
}
def @attention[n](%x: Tensor[(n, 24), f32], %q: Tensor[(24, 24), f32], %k: Tensor[(24, 24), f32], %scale: Tensor[(24,), f32]) {
  let %query = dense(%x, %q);
  let %weights = softmax(matmul(%query, transpose(dense(%x, %k), axes=[1, 0])) * 0.2f32, axis=1);
  rms_norm(%x + matmul(%weights, %x), %scale)
}
def @scalar(%x: Tensor[(), f32]) { sigmoid(tanh(%x) * exp(%x)) }
def @image(%x: Tensor[(2, 3, 9, 9), f32], %w: Tensor[(5, 3, 3, 3), f32], %b: Tensor[(5,), f32]) {
  max_pool2d(relu(bias_add(conv2d(%x, %w, padding=[1, 1, 1, 1]), %b)), kernel=[2, 2], strides=[2, 2])
}
)";

// Cells of recurrent models, with weights that all instances share, at sizes that no vector divides.
TEST(Batched, CellsHaveTheBitsOfTheirInstances) {
  struct Cell {
    const char* name;
    std::vector<bool> own;
    int64_t n = 1;
  };
  const Cell cells[] = {{"tree", {true, true, false, false, false}},
                        {"tree", {true, false, false, false, true}},
                        {"leaf", {false, true, false}},
                        {"attention", {true, false, false, false}, 7},
                        {"attention", {true, false, false, false}, 1},
                        {"scalar", {true}},
                        {"image", {true, false, false}}};
  for (const Cell& cell : cells) {
    for (const size_t batch : {1, 2, 7, 64}) {
      SCOPED_TRACE(std::string(cell.name) + " " + std::to_string(batch));
      Context context;
      const auto parsed = parse(context, kCells);
      ASSERT_TRUE(parsed) << parsed.error().str();
      const Module& module = *parsed;
      const Function& function = *module.function(context.symbol(cell.name));
      Random random(test_seed(2));
      const auto input = [&](auto&& self, Type type) -> RunValue {
        if (const TupleType* tuple = type.tuple()) {
          std::vector<RunValue> fields;
          for (const Type field : tuple->fields) fields.push_back(self(self, field));
          return RunValue::tuple(std::move(fields));
        }
        Shape shape;
        for (const Dim dim : type.tensor()->dims) shape.push_back(dim.constant().value_or(cell.n));
        Tensor tensor(type.tensor()->dtype, shape);
        if (tensor.dtype() == DType::kF32) {
          for (float& x : tensor.data<float>()) x = static_cast<float>(random.between(-2000, 2000)) / 1000;
        } else {
          for (int64_t& x : tensor.data<int64_t>()) x = random.between(0, 19);
        }
        return tensor;
      };
      std::vector<std::vector<RunValue>> instances(batch);
      for (auto& inputs : instances) {
        for (const VarId param : function.params) inputs.push_back(input(input, function.type(param)));
      }
      Pair pair(context, clone(module), cell.name);
      const auto reason = pair.make(cell.own);
      ASSERT_FALSE(reason) << reason->str();
      if (batch <= 2) pair.expect_equal(instances, false);
      pair.expect_equal(instances, true);
      EXPECT_GE(pair.compared, 1);
    }
  }
}

// Functions of one element, at shapes whose kernels are vectorized otherwise than those of the batch, or not at all.
TEST(Batched, FunctionsOfOneElementHaveTheBitsOfTheirInstances) {
  Random random(test_seed(4));
  for (const char* dtype : {"f32", "f64"}) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{3, 1}, Shape{1, 5}, Shape{17}}) {
      Context context;
      std::string results;
      for (const Operator* op : context.operators()) {
        const bool unary =
            op->inputs.size() == 1 && op->pattern == OpPattern::kElementwise && op->batching &&
            op->inputs[0].dtypes.contains(DType::kF32) &&
            std::ranges::all_of(op->attributes, [](const AttrSpec& attr) { return attr.default_value.has_value(); });
        if (unary && op->interpreted.empty()) results += (results.empty() ? "" : ", ") + op->name + "(%x)";
      }
      const auto module = parse(context, fmt::format("#[version = \"1\"]\ndef @main(%x: Tensor[{}, {}]) {{ ({}) }}\n",
                                                     runtime::to_string(shape), dtype, results));
      ASSERT_TRUE(module) << module.error().str();
      std::vector<std::vector<RunValue>> instances;
      for (int i = 0; i < 7; ++i) {
        Tensor x(*runtime::parse_dtype(dtype), shape);
        runtime::with_dtype<runtime::kReals>(x.dtype(), [&]<class T>(T) {
          for (T& value : x.data<T>()) value = static_cast<T>(static_cast<double>(random.between(-5000, 5000)) / 1000);
        });
        instances.push_back({x});
      }
      Pair pair(context, clone(*module), "main");
      ASSERT_FALSE(pair.make({true}));
      SCOPED_TRACE(runtime::to_string(shape) + " " + dtype);
      pair.expect_equal(instances, true);
      EXPECT_EQ(pair.compared, 1);
    }
  }
}

TEST(Batched, RandomGraphsHaveTheBitsOfTheirInstances) {
  int64_t compared = 0;
  for (int64_t i = 0; i < rounds(300); ++i) {
    const uint64_t seed = test_seed(3) + static_cast<uint64_t>(i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Context context;
    Module module = fuzz::random_module(context, seed, {.size = 8, .control = false});
    const Function main = *module.function(context.symbol("main"));
    if (main.params.empty()) continue;
    Random random(seed);
    const auto inputs = fuzz::random_inputs(context, module, main, random);
    if (!inputs) continue;
    // The same sizes for each instance; elements in another order.
    const auto other = [&](auto&& self, const RunValue& value, size_t by) -> RunValue {
      if (value.tensor()) return reordered(value.tensor(), by);
      std::vector<RunValue> fields;
      for (const RunValue& field : value.fields()) fields.push_back(self(self, field, by));
      return RunValue::tuple(std::move(fields));
    };
    std::vector<std::vector<RunValue>> instances;
    for (size_t k = 0; k < 3; ++k) {
      auto& instance = instances.emplace_back();
      for (const RunValue& input : *inputs) instance.push_back(other(other, input, k));
    }
    // The passes before batches fold what depends on constants alone, with the interpreter's kernels, whose rounding
    // native ones do not have.
    const bool native = i % 10 == 0;
    if (native) {
      auto folded = run_passes(context, std::move(module), standard_passes());
      ASSERT_TRUE(folded) << folded.error().str();
      module = std::move(*folded);
    }
    Pair pair(context, std::move(module), "main");
    if (pair.make(random_mask(random, main.params.size(), false))) continue;
    pair.expect_equal(instances, false);
    if (native) pair.expect_equal(instances, true);
    compared += pair.compared;
  }
  EXPECT_GT(compared, rounds(300) / 3);
}

TEST(Batched, AFunctionWithoutABatchedFormSaysWhy) {
  struct Case {
    const char *function, *what, *where;
  };
  const Case cases[] = {
      {"def @main(%x: Tensor[(4,), f32]) { unique(%x) }", "unique has no batching rule", "m.tn:2:"},
      {"def @main(%x: Tensor[(3, 4), f32], %s: Tensor[(4,), f32]) { rms_norm(%x, %s) }",
       "rms_norm is not batched where each instance has its own scale", "m.tn:2:"},

      {"def @main(%x: Tensor[(), f32]) { if (%x < 1f32) { %x } else { %x } }",
       "neither an operator's result nor a tuple has no batched form", "m.tn:2:"},
      {"def @main(%x: Tensor[(4,), f32], %i: Tensor[(1,), i64]) { sum(%x, axes=%i) }",
       "sum is not batched where each instance has its own axes", "m.tn:2:"},
      {"def @main[A](%x: A) { %x }", "a function with type variables has no batched form", ""},
  };
  for (const Case& c : cases) {
    Context context;
    auto module = parse(context, std::string("#[version = \"1\"]\n") + c.function, {}, "m.tn");
    ASSERT_TRUE(module) << module.error().str();
    const Function& main = *module->function(context.symbol("main"));
    const auto function = batched(context, *module, main, std::vector<bool>(main.params.size(), true));
    ASSERT_FALSE(function) << c.function;
    EXPECT_THAT(function.error().what, HasSubstr(c.what));
    EXPECT_THAT(function.error().where, HasSubstr(c.where));
  }
}

}  // namespace
}  // namespace tenon::compiler::batch
