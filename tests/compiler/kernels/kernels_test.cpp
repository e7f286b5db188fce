// The loop functions of operators compute the results of the operators' stored cases.
#include "compiler/kernels/kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "compiler/backends/llvm/compile.h"
#include "compiler/ir/builder.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/operator.h"
#include "compiler/ir/text.h"
#include "compiler/kernels/lowerings.h"
#include "compiler/kernels/schedule.h"
#include "compiler/loop/evaluate.h"
#include "compiler/loop/text.h"
#include "compiler/loop/work.h"
#include "runtime/native/native.h"
#include "support/try.h"
#include "tests/compiler/ir/operators/cases.h"
#include "tests/random_tensor.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler::kernels {
namespace {

const Machine& kMachine = machines_of("x86_64").front();

// The call of a stored case as a function of its inputs.
Expected<Module> parse_case(Context& context, const std::string& name, const OperatorCase& stored) {
  std::string params, type;
  for (size_t i = 0; i < stored.inputs.size(); ++i) {
    params += fmt::format("{}%{}: {}", i ? ", " : "", static_cast<char>('a' + i),
                          context.str(context.type_of(stored.inputs[i])));
  }
  for (const Tensor& result : stored.results) type += (type.empty() ? "" : ", ") + context.str(context.type_of(result));
  if (stored.results.size() > 1) type = "(" + type + ")";
  return parse(context, fmt::format("#[version = \"1\"]\ndef @main({}) -> {} {{ {} }}\n", params, type, stored.call),
               {}, name);
}

std::vector<Tensor> operands_of(const KernelFunction& kernel, const std::vector<Tensor>& arguments) {
  std::vector<Tensor> params;
  for (const Operand& operand : kernel.operands) {
    params.push_back(std::holds_alternative<Tensor>(operand) ? std::get<Tensor>(operand)
                                                             : arguments[std::get<size_t>(operand)]);
  }
  return params;
}

// Operators without a loop function for some arguments: volumes, and a number of terms that depends on data.
const std::set<std::string_view> kPartiallySupported{"grid_sample", "roi_align"};

// Native kernels of one library, each with its operands and its expected results.
class Library {
 public:
  explicit Library(Context& context) : context_(context) {}

  void add(loop::Function function, std::vector<Tensor> params, std::vector<Tensor> results, std::string where) {
    function.name = context_.symbol(fmt::format("k{}", entries_.size()));
    entries_.push_back({std::move(function), std::move(params), std::move(results), std::move(where)});
  }

  void run() { run(std::string(runtime::host_levels().front())); }
  void run_on_all_levels() {
    const auto supported = native::levels_of({});
    ASSERT_TRUE(supported) << supported.error().str();
    for (const std::string& level : *supported) {
      if (std::ranges::find(runtime::host_levels(), level) != runtime::host_levels().end()) run(level);
    }
  }

  void run(const std::string& level) {
    SCOPED_TRACE(level);
    std::vector<const loop::Function*> functions;
    for (const Entry& entry : entries_) functions.push_back(&entry.function);
    native::Options options;
    options.levels = {level};
    const auto code = native::compile(context_, functions, options);
    ASSERT_TRUE(code) << code.error().str();
    const auto library = runtime::NativeLibrary::load(*code);
    ASSERT_TRUE(library) << library.error().str();
    runtime::ThreadPool pool(2);
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Entry& entry = entries_[i];
      const auto results = library->call(i, entry.params, pool);
      EXPECT_TRUE(results) << entry.where << ": " << results.error().str();
      for (size_t r = 0; results && r < results->size(); ++r)
        expect_near((*results)[r], entry.results[r], "native: " + entry.where + loop::print(context_, entry.function));
    }
  }

 private:
  struct Entry {
    loop::Function function;
    std::vector<Tensor> params, results;
    std::string where;
  };
  Context& context_;
  std::vector<Entry> entries_;
};

// A module whose @main has these parameters, with sizes that may be n.
Expected<Module> parse_call(Context& context, std::string_view params, std::string_view call) {
  const bool sized = params.find("n)") != params.npos || params.find("n,") != params.npos;
  return parse(context, fmt::format("#[version = \"1\"]\ndef @main{}({}) {{ {} }}\n", sized ? "[n]" : "", params, call),
               {}, "m.tn");
}

constexpr std::array<int64_t, 1> kZero = {0};

// Compares the kernel with the reference kernels: evaluated for all sizes and, for the last one, in the library.
void compare(Context& context, Library& library, std::string_view params, std::string_view call,
             FunctionRef<Tensor(std::string_view name, DType dtype, const runtime::Shape& shape)> argument,
             std::span<const int64_t> sizes = kZero, bool evaluated = true) {
  const std::string text(call);
  const auto module = parse_call(context, params, call);
  ASSERT_TRUE(module) << text << module.error().str();
  const Function& function = *module->function(context.symbol("main"));
  const auto kernel = make_kernel(context, *module, "kernel", function, kMachine);
  ASSERT_TRUE(kernel) << text << kernel.error().str();
  EXPECT_EQ(kernel->refused, "") << text << loop::print(context, kernel->function);
  const Scheduled scheduled = schedule(context, kernel->function);
  for (const int64_t n : sizes) {
    std::vector<Tensor> arguments;
    for (const VarId param : function.params) {
      const Type type =
          context.substitute(function.type(param), std::map<Symbol, Dim>{{context.symbol("n"), context.dim(n)}});
      arguments.push_back(
          argument(context.name(function.info(param).name), type.tensor()->dtype, *type.tensor()->shape()));
    }
    const auto expected = interpret(context, *module, context.symbol("main"), arguments);
    ASSERT_TRUE(expected) << text << expected.error().str();
    const auto operands = operands_of(*kernel, arguments);
    if (evaluated) {
      const auto found = loop::evaluate(context, scheduled.function, operands);
      ASSERT_TRUE(found) << text << found.error().str() << loop::print(context, scheduled.function);
      for (size_t i = 0; i < expected->size(); ++i)
        expect_near((*found)[i], (*expected)[i], fmt::format("{} with n = {}", text, n));
    }
    if (n == sizes.back()) library.add(scheduled.function, operands, *expected, text);
  }
}

// Compares the kernel of a complete function with the reference kernels, evaluated and in the library.
void compare(Context& context, Library& library, const Module& module, const Function& function,
             const std::vector<Tensor>& arguments, const std::string& case_name) {
  Module program = clone(module);
  program.globals.emplace(context.symbol("main"), function);
  const auto expected = interpret(context, program, context.symbol("main"), arguments);
  ASSERT_TRUE(expected) << case_name << expected.error().str();
  const auto kernel = make_kernel(context, module, "kernel", function, kMachine);
  ASSERT_TRUE(kernel) << case_name << ": " << kernel.error().str();
  EXPECT_EQ(kernel->refused, "") << case_name << loop::print(context, kernel->function);
  const auto params = operands_of(*kernel, arguments);
  const Scheduled scheduled = schedule(context, kernel->function);
  const auto found = loop::evaluate(context, scheduled.function, params);
  ASSERT_TRUE(found) << case_name << ": " << found.error().str() << loop::print(context, scheduled.function);
  for (size_t i = 0; i < expected->size(); ++i) expect_near((*found)[i], (*expected)[i], case_name);
  library.add(scheduled.function, params, *expected, case_name);
}

// Lengths of sequences are made before the kernel, whose tables are of them: an input is i64 in place of a cast to it.
OperatorCase with_i64_lengths(OperatorCase stored) {
  const size_t at = stored.call.find("cast(%"), end = stored.call.find(", dtype=\"i64\")", at);
  if (stored.call.find("_ragged(") == std::string::npos || end == std::string::npos) return stored;
  const std::string input = stored.call.substr(at + 5, end - at - 5);
  stored.call.replace(at, stored.call.find(')', at) + 1 - at, input);
  Tensor& lengths = stored.inputs[static_cast<size_t>(input[1] - 'a')];
  Tensor wide(DType::kI64, lengths.shape());
  std::ranges::copy(lengths.data<int32_t>(), wide.data<int64_t>().begin());
  lengths = std::move(wide);
  return stored;
}

TEST(Kernels, EveryStoredCaseOfTheOperatorsIsComputed) {
  Context context;
  Library library(context);
  std::set<std::string> computed;
  size_t steps = 0;
  for (const auto& [name, as_stored] : operator_cases()) {
    const auto stored = with_i64_lengths(as_stored);
    const std::string op = stored.call.substr(0, stored.call.find('('));
    if (stored.call.empty() || !lowered(context.find_operator(op)->id)) continue;
    const auto module = parse_case(context, name, stored);
    ASSERT_TRUE(module) << module.error().str();
    const auto kernel = make_kernel(context, *module, "kernel", *module->function(context.symbol("main")), kMachine);
    const bool narrow = !kernel && kernel.error().what.ends_with("has no native code");  // floats of 8 bits, ints of 4
    if (!kernel && (kPartiallySupported.contains(op) || (narrow && op == "cast"))) continue;
    EXPECT_TRUE(kernel) << name << ": " << stored.call << ": " << kernel.error().str();
    if (!kernel) continue;
    EXPECT_EQ(kernel->refused, "") << name << loop::print(context, kernel->function);
    const Scheduled scheduled = schedule(context, kernel->function);
    steps += scheduled.steps.size();
    for (const loop::Function& function : {kernel->function, scheduled.function}) {
      const auto results = loop::evaluate(context, function, operands_of(*kernel, stored.inputs));
      EXPECT_TRUE(results) << name << ": " << stored.call << ": " << results.error().str()
                           << loop::print(context, function);
      for (size_t i = 0; results && i < results->size(); ++i)
        expect_near((*results)[i], stored.results[i], fmt::format("{}: {}", name, stored.call));
    }
    library.add(scheduled.function, operands_of(*kernel, stored.inputs), stored.results, stored.call);
    computed.insert(op);
  }
  EXPECT_GE(computed.size(), 150u);
  EXPECT_GE(steps, computed.size());
  library.run();
}

// Convolutions, pooling and products of random sizes with random epilogues, against the reference kernels.
using Ints = std::vector<int64_t>;
constexpr auto kRounds = static_cast<int>(rounds(24));
constexpr std::array<int64_t, 3> kSizes = {36, 3, 17};  // the last in native code

TEST(Kernels, RandomContractionsWithEpiloguesAreComputed) {
  const unsigned seed = 7;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  const auto pick = [&](int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
  const auto tensor = [&](runtime::Shape shape, DType dtype) { return random_tensor(random, dtype, std::move(shape)); };
  Context context;
  Library library(context);
  for (int round = 0; round < kRounds; ++round) {
    Module module;
    Function function;
    compiler::Builder b(context, module, function);
    const DType dtype = pick(0, 3) == 0 ? DType::kI8 : DType::kF32;
    std::vector<Tensor> arguments;
    const auto argument = [&](const Tensor& value) {
      arguments.push_back(value);
      return b.param(context.type_of(value), fmt::format("a{}", arguments.size()));
    };
    const auto weight = [&](const Tensor& value) { return pick(0, 2) == 0 ? argument(value) : b.constant(value); };
    Expected<Atom> value = error("none");
    std::string case_name;
    if (pick(0, 2) > 0) {
      const int64_t groups = pick(0, 3) == 0 ? pick(2, 3) : 1, in = groups * (pick(0, 2) == 0 ? 1 : pick(1, 5)),
                    out = groups * (in == groups && pick(0, 1) ? 1 : pick(1, 20));
      const int64_t rank = pick(0, 3) == 0 ? 1 : 2;
      runtime::Shape x{pick(1, 2), in}, w{out, in / groups};
      std::vector<int64_t> strides, dilation, padding;
      for (int64_t d = 0; d < rank; ++d) {
        const int64_t kernel = pick(1, 3), dilated = pick(0, 4) == 0 ? 2 : 1;
        x.push_back(pick((kernel - 1) * dilated + 1, d + 1 == rank && pick(0, 2) == 0 ? 60 : 20)), w.push_back(kernel);
        strides.push_back(pick(0, 1) == 0 ? pick(2, 3) : 1), dilation.push_back(dilated);
      }
      const bool pool = pick(0, 4) == 0 && dtype == DType::kF32;
      for (int64_t d = 0; d < 2 * rank; ++d) {
        const int64_t wide = !pool && pick(0, 7) == 0 ? pick(8, 30) : 0;
        padding.push_back(pick(0, 1) * pick(0, w[static_cast<size_t>(2 + d % rank)] - 1) + wide);
      }
      case_name = fmt::format("conv{}d x {} w {} strides {} padding {} dilation {} groups {}", rank,
                              runtime::to_string(x), runtime::to_string(w), fmt::join(strides, ","),
                              fmt::join(padding, ","), fmt::join(dilation, ","), groups);
      const Atom left = argument(tensor(x, dtype));
      if (pool) {
        case_name.insert(0, "max_pool of ");
        value = b.apply(fmt::format("max_pool{}d", rank), {left},
                        {{"kernel", std::vector<int64_t>(w.begin() + 2, w.end())},
                         {"strides", strides},
                         {"padding", padding},
                         {"dilation", dilation}});
      } else {
        value = b.apply(fmt::format("conv{}d", rank), {left, weight(tensor(w, dtype))},
                        {{"strides", strides}, {"padding", padding}, {"dilation", dilation}, {"groups", groups}});
      }
    } else {
      const int64_t m = pick(1, 70), n = pick(1, 70), k = pick(1, 20);
      case_name = fmt::format("product {} {} {}", m, n, k);
      const Atom left = argument(tensor({m, k}, dtype));
      value = pick(0, 1) == 0 ? b.apply("dense", {left, weight(tensor({n, k}, dtype))})
                              : b.apply("matmul", {left, weight(tensor({k, n}, dtype))});
    }
    ASSERT_TRUE(value) << case_name << value.error().str();
    const runtime::Shape shape = *b.tensor_type(*value)->shape();
    const DType sum = b.tensor_type(*value)->dtype;
    for (int tail = 0; tail < pick(0, 3); ++tail) {
      const int64_t kind = pick(0, 3);
      if (kind == 0) value = b.apply("bias_add", {*value, b.constant(tensor({shape[1]}, sum))});
      if (kind == 1) value = b.apply("relu", {*value});
      if (kind == 2) value = b.apply("add", {*value, argument(tensor(shape, sum))});
      if (kind == 3) value = b.apply("multiply", {*value, *value});
      ASSERT_TRUE(value) << case_name << value.error().str();
    }
    b.finish(*value);
    compare(context, library, module, function, arguments, case_name);
  }
  library.run_on_all_levels();
}

// Sliding windows over one channel: maps copied completely, several at a time, and in bands of rows; strides with
// several phases; kernel taps in loops; and inputs read in place.
TEST(Kernels, SlidingWindowsOverMapsOfAllSizesAreComputed) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"%x: Tensor[(1, 2, 48, 40), f32], %w: Tensor[(2, 1, 3, 3), f32]",
       "relu(conv2d(%x, %w, padding=[1, 1, 1, 1], groups=2))"},
      {"%x: Tensor[(1, 1, 37, 61), f32], %w: Tensor[(1, 1, 5, 5), f32]", "conv2d(%x, %w, padding=[2, 1, 2, 3])"},
      {"%x: Tensor[(1, 1, 45, 70), f32], %w: Tensor[(1, 1, 3, 3), f32]",
       "conv2d(%x, %w, padding=[1, 1, 1, 1], strides=[2, 2])"},
      {"%x: Tensor[(1, 1, 60, 100), i8], %w: Tensor[(1, 1, 3, 2), i8]",
       "conv2d(%x, %w, padding=[2, 0, 0, 1], strides=[3, 2])"},
      {"%x: Tensor[(1, 6, 15, 15), f32], %w: Tensor[(6, 1, 5, 5), f32]",
       "conv2d(%x, %w, padding=[2, 2, 2, 2], strides=[2, 2], groups=6)"},
      {"%x: Tensor[(1, 6, 14, 13), i8], %w: Tensor[(6, 1, 3, 3), i8]",
       "conv2d(%x, %w, padding=[1, 1, 1, 1], strides=[2, 2], groups=6)"},
      {"%x: Tensor[(2, 4, 7, 7), f64], %w: Tensor[(4, 1, 5, 5), f64]",
       "conv2d(%x, %w, padding=[2, 2, 2, 2], groups=4)"},
      {"%x: Tensor[(1, 3, 13, 20), f32], %w: Tensor[(3, 1, 9, 3), f32]",
       "conv2d(%x, %w, padding=[4, 9, 4, 0], dilation=[1, 2], strides=[1, 3], groups=3)"},
      {"%x: Tensor[(2, 2, 150), f32], %w: Tensor[(2, 1, 5), f32]", "conv1d(%x, %w, padding=[2, 2], groups=2)"},
      {"%x: Tensor[(1, 2, 150), f32], %w: Tensor[(2, 1, 12), f32]",
       "conv1d(%x, %w, padding=[5, 7], strides=[2], groups=2)"},
      {"%x: Tensor[(1, 2, 40, 45), f32], %w: Tensor[(1,), f32]",
       "add(max_pool2d(%x, kernel=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1]), %w)"},
      // Strides with so many phases that compiling each of them would take too long.
      {"%x: Tensor[(1, 2, 8, 2000), f32], %w: Tensor[(2, 1, 4, 4), f32]",
       "conv2d(%x, %w, dilation=[1, 2], strides=[1, 1000], groups=2)"},
      {"%x: Tensor[(1, 2, 8, 2000), f32], %w: Tensor[(3, 2, 4, 4), f32]",
       "conv2d(%x, %w, dilation=[1, 2], strides=[1, 1000])"},
      {"%x: Tensor[(1, 1, 1, 1), f32], %w: Tensor[(1, 1, 1, 1), f32]",
       "conv2d_transpose(%x, %w, strides=[65536, 65536])"},
      // A register whose lanes are all out of range, in rows that may be out of range.
      {"%x: Tensor[(2, 3, 20, 1), f64], %w: Tensor[(1,), f64]",
       "add(max_pool2d(%x, kernel=[3, 5], strides=[2, 3], dilation=[2, 1], padding=[1, 4, 0, 1], ceil=1), %w)"},
      {"%x: Tensor[(1, 2, 60, 3), f32], %w: Tensor[(2, 1, 3, 11), f32]",
       "conv2d(%x, %w, padding=[1, 9, 1, 9], groups=2)"},
      {"%x: Tensor[(1, 3, 18, 26), f32], %w: Tensor[(1,), f32]",
       "add(max_pool2d(%x, kernel=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]), %w)"},
      {"%x: Tensor[(1, 2, 17, 23), f32], %w: Tensor[(1,), f32]",
       "add(avg_pool2d(%x, kernel=[3, 5], strides=[1, 2], padding=[1, 2, 1, 1], count_include_pad=1), %w)"},
      {"%x: Tensor[(1, 2, 12, 12), f32], %w: Tensor[(1,), f32]",
       "add(lp_pool2d(%x, kernel=[3, 3], strides=[1, 1], padding=[1, 1, 1, 1], p=2), %w)"},
      {"%x: Tensor[(2, 6, 7, 7), f32], %w: Tensor[(6, 1, 1), f32]", "relu(add(global_avg_pool(%x), %w))"},
      {"%x: Tensor[(1, 3, 5, 9), f32], %w: Tensor[(1,), f32]", "add(global_max_pool(%x), %w)"},
      {"%x: Tensor[(1, 4, 3, 4, 5), f64], %w: Tensor[(1,), f64]", "add(global_lp_pool(%x, p=2), %w)"},
      {"%x: Tensor[(1, 5, 8, 8), i8], %w: Tensor[(1,), i32]", "add(global_sum_pool(%x), %w)"},
      {"%x: Tensor[(1, 8, 6, 11), f32], %w: Tensor[(1,), f32]", "add(adaptive_avg_pool(%x, size=[1, 1]), %w)"}};
  Context context;
  Library library(context);
  std::mt19937 random(test_seed(5));
  const auto data = [&](std::string_view, DType dtype, const runtime::Shape& shape) {
    return random_tensor(random, dtype, shape);
  };
  for (const auto& [params, call] : kCases) compare(context, library, params, call, data);
  if (kSanitized) library.run();
  else library.run_on_all_levels();
}

// Recurrent layers with constant weights of random sizes: one sequence and several, states that are multiples of a
// vector and others.
TEST(Kernels, RandomRecurrentLayersAreComputed) {
  const unsigned seed = 11;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  const auto pick = [&](int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
  Context context;
  Library library(context);
  for (int round = 0; round < kRounds / 2; ++round) {
    const DType dtype = pick(0, 3) == 0 ? DType::kF64 : DType::kF32;
    const auto tensor = [&](runtime::Shape shape) { return random_tensor(random, dtype, std::move(shape), 16); };
    const std::string op = std::array{"rnn", "gru", "lstm"}[static_cast<size_t>(pick(0, 2))],
                      direction = std::array{"forward", "reverse", "bidirectional"}[static_cast<size_t>(pick(0, 2))];
    const int64_t gates = op == "rnn"   ? 1
                          : op == "gru" ? 3
                                        : 4,
                  directions = direction == "bidirectional" ? 2 : 1, steps = pick(1, 5),
                  batch = pick(0, 1)   ? 1
                          : pick(0, 2) ? pick(2, 5)
                                       : pick(15, 40),
                  inputs = pick(1, 9), hidden = pick(0, 1) ? 16 * pick(1, 2) : pick(1, 20);
    Module module;
    Function function;
    compiler::Builder b(context, module, function);
    std::vector<Tensor> arguments{tensor({steps, batch, inputs})};
    Atoms args{b.param(context.type_of(arguments[0]), "x")};
    for (const runtime::Shape& shape :
         {runtime::Shape{directions, gates * hidden, inputs}, {directions, gates * hidden, hidden}})
      args.push_back(b.constant(tensor(shape)));
    const bool peepholes = op == "lstm" && pick(0, 1), ragged = pick(0, 1);
    args.push_back(b.constant(tensor({directions, 2 * gates * hidden + (peepholes ? 3 * hidden : 0)})));
    for (int64_t state = 0; state < (op == "lstm" ? 2 : 1); ++state)
      args.push_back(b.constant(tensor({directions, batch, hidden})));
    Attrs attrs{{"direction", direction}};
    if (op == "gru") attrs.emplace("reset_after", pick(0, 1));
    if (op == "lstm") attrs.emplace("input_forget", pick(0, 1));
    if (pick(0, 1)) attrs.emplace("clip", 0.5);
    if (ragged) {
      Tensor lengths(DType::kI64, {batch});
      for (int64_t& length : lengths.data<int64_t>()) length = pick(0, steps);
      args.push_back(b.constant(std::move(lengths)));
    }
    const std::string case_name = fmt::format("{} {} of {} steps, {} sequences, {} inputs, {} states", op, direction,
                                              steps, batch, inputs, hidden);
    const auto value = b.apply(ragged ? op + "_ragged" : op, args, attrs);
    ASSERT_TRUE(value) << case_name << value.error().str();
    b.finish(*value);
    compare(context, library, module, function, arguments, case_name);
  }
  library.run();
}

// A ragged layer of two directions, which takes x, weights, states and the lengths.
Expected<Module> ragged_layer(Context& context, std::string_view op, int64_t steps, int64_t sequences, int64_t inputs,
                              int64_t hidden) {
  const int64_t rows = (op == "rnn" ? 1 : op == "gru" ? 3 : 4) * hidden;
  const std::string state = fmt::format("%h: Tensor[(2, {}, {}), f32]", sequences, hidden);
  return parse(context,
               fmt::format("#[version = \"1\"]\ndef @main(%x: Tensor[({0}, {1}, {2}), f32], %w: Tensor[(2, {3}, {2}), "
                           "f32], %r: Tensor[(2, {3}, {4}), f32], %b: Tensor[(2, {5}), f32], {6}, %lengths: "
                           "Tensor[({1},), i64]) {{ {7}_ragged(%x, %w, %r, %b, %h{8}, %lengths, "
                           "direction=\"bidirectional\") }}\n",
                           steps, sequences, inputs, rows, hidden, 2 * rows, state, op, op == "lstm" ? ", %h" : ""),
               {}, "m.tn");
}
Expected<KernelFunction> kernel_of(Context& context, const Module& module) {
  return make_kernel(context, module, "kernel", *module.function(context.symbol("main")), kMachine);
}

// The terms of all sums, before the layer is scheduled and afterwards, are those of the steps that the sequences have.
TEST(Kernels, RaggedLayersComputeNoStepAfterASequencesEnd) {
  constexpr int64_t kSteps = 12, kSequences = 37, kInputs = 5, kHidden = 32;
  const unsigned seed = test_seed(17);
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  Context context;
  for (const auto& [op, gates] : {std::pair("rnn", 1), std::pair("gru", 3), std::pair("lstm", 4)}) {
    SCOPED_TRACE(op);
    const auto module = ragged_layer(context, op, kSteps, kSequences, kInputs, kHidden);
    ASSERT_TRUE(module) << module.error().str();
    const auto kernel = kernel_of(context, *module);
    ASSERT_TRUE(kernel) << kernel.error().str();
    EXPECT_EQ(kernel->refused, "");
    std::vector<Tensor> params;
    int64_t steps = 0;
    for (const loop::BufferId param : kernel->function.params) {
      const loop::Buffer& buffer = kernel->function.buffer(param);
      runtime::Shape shape;
      for (const loop::BufferAxis& axis : buffer.axes) shape.push_back(*axis.extent.constant());
      params.emplace_back(buffer.dtype, std::move(shape));
      if (context.name(buffer.name) != "lengths") continue;
      for (int64_t& length : params.back().data<int64_t>()) {
        length = std::uniform_int_distribution<int64_t>(0, kSteps)(random);
        steps += length;
      }
    }
    const int64_t expected = 2 * steps * gates * kHidden * (kInputs + kHidden);
    for (const loop::Function& function : {kernel->algorithm, schedule(context, kernel->function).function}) {
      const auto work = loop::work_of(context, function, params);
      ASSERT_TRUE(work) << work.error().str();
      EXPECT_EQ(work->terms, expected) << loop::print(context, function);
    }
  }
}

TEST(Kernels, LengthsOfSequencesAreChecked) {
  Context context;
  const auto module = ragged_layer(context, "gru", 4, 3, 2, 8);
  ASSERT_TRUE(module) << module.error().str();
  const auto kernel = kernel_of(context, *module);
  ASSERT_TRUE(kernel) << kernel.error().str();
  const loop::Function scheduled = schedule(context, kernel->function).function;
  const loop::Function* const functions[] = {&scheduled};
  const auto code = native::compile(context, functions, {.levels = {std::string(runtime::host_levels().front())}});
  ASSERT_TRUE(code) << code.error().str();
  const auto library = runtime::NativeLibrary::load(*code);
  ASSERT_TRUE(library) << library.error().str();
  runtime::ThreadPool pool(1);
  const auto message = [&](std::vector<int64_t> lengths) {
    std::vector<Tensor> params;
    for (const loop::BufferId param : kernel->function.params) {
      const loop::Buffer& buffer = kernel->function.buffer(param);
      runtime::Shape shape;
      for (const loop::BufferAxis& axis : buffer.axes) shape.push_back(*axis.extent.constant());
      params.emplace_back(buffer.dtype, std::move(shape));
      if (context.name(buffer.name) == "lengths") std::ranges::copy(lengths, params.back().data<int64_t>().begin());
    }
    const auto interpreted = interpret(context, *module, context.symbol("main"), params);
    const auto results = library->call(0, params, pool);
    return (results ? "" : results.error().str()) + (interpreted ? "" : interpreted.error().str());
  };
  EXPECT_EQ(message({4, 0, 2}), "");
  EXPECT_NE(message({4, 5, 2}).find("lengths[1] is 5, must be 0 to 4"), std::string::npos) << message({4, 5, 2});
  EXPECT_NE(message({-1, 5, 2}).find("lengths[0] is -1, must be 0 to 4"), std::string::npos) << message({-1, 5, 2});
  EXPECT_NE(message({4, 5, 2}).find("row 1 would have 5 elements, 4 at most, lengths[1] is 5"), std::string::npos)
      << message({4, 5, 2});
  EXPECT_NE(message({4, 0, -2}).find("lengths[2] is -2: a size is 0 or more"), std::string::npos)
      << message({4, 0, -2});
}

// Strides larger than the kernel, dilations with and without a common factor, paddings larger than the kernel.
TEST(Kernels, RandomTransposedConvolutionsAreComputed) {
  const unsigned seed = 5;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  const auto pick = [&](int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
  Context context;
  Library library(context);
  for (int round = 0; round < kRounds;) {
    const DType dtype = pick(0, 5) == 0 ? DType::kF64 : DType::kF32;
    const int64_t groups = pick(0, 3) == 0 ? pick(2, 3) : 1, in = groups * pick(1, 4),
                  out = pick(0, 2) ? pick(1, 9) : 16;
    const auto rank = static_cast<size_t>(std::array{2, 2, 2, 1, 1, 3}[static_cast<size_t>(pick(0, 5))]);
    runtime::Shape x{pick(1, 2), in}, w{in, out};
    Ints strides, dilation, output_padding, padding(2 * rank);
    bool all_positive = true;
    int64_t points = 1;
    for (size_t d = 0; d < rank; ++d) {
      x.push_back(pick(1, rank == 3 ? 3 : pick(0, 2) == 0 ? 20 : 7)), w.push_back(pick(1, 4));
      strides.push_back(pick(1, 2) == 1 ? 2 : pick(1, 5)), dilation.push_back(pick(0, 4) == 0 ? pick(2, 4) : 1);
      output_padding.push_back(pick(0, 2) == 0 ? pick(0, 2) : 0);
      padding[d] = pick(0, 3), padding[rank + d] = pick(0, 3);
      const int64_t size = (x.back() - 1) * strides[d] + (w.back() - 1) * dilation[d] + 1 + output_padding[d] -
                           padding[d] - padding[rank + d];
      all_positive &= size > 0, points *= size * w.back();
    }
    if (!all_positive || points * in * out > 60000) continue;
    ++round;
    Module module;
    Function function;
    compiler::Builder b(context, module, function);
    std::vector<Tensor> arguments{random_tensor(random, dtype, x)};
    Atoms args{b.param(context.type_of(arguments[0]), "x")};
    const Tensor weights = random_tensor(random, dtype, w);
    if (pick(0, 1) == 1) {
      args.push_back(b.constant(weights));
    } else {
      arguments.push_back(weights);
      args.push_back(b.param(context.type_of(weights), "w"));
    }
    const std::string case_name =
        fmt::format("conv{}d_transpose x {} w {} strides {} padding {} dilation {} more {} groups {}", rank,
                    runtime::to_string(x), runtime::to_string(w), fmt::join(strides, ","), fmt::join(padding, ","),
                    fmt::join(dilation, ","), fmt::join(output_padding, ","), groups);
    auto value = b.apply(fmt::format("conv{}d_transpose", rank), args,
                         {{"strides", strides},
                          {"padding", padding},
                          {"dilation", dilation},
                          {"output_padding", output_padding},
                          {"groups", groups}});
    ASSERT_TRUE(value) << case_name << value.error().str();
    if (pick(0, 1) == 1)
      value = b.apply("bias_add", {*value, b.constant(random_tensor(random, dtype, {groups * out}))});
    if (pick(0, 1) == 1) value = b.apply("multiply", {*value, *value});
    b.finish(*value);
    compare(context, library, module, function, arguments, case_name);
  }
  library.run_on_all_levels();
}

// Letters in any order and in all roles: of both operands, of one, of the result, reduced, and diagonals.
TEST(Kernels, RandomEquationsOfEinsumAreComputed) {
  const unsigned seed = 3;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  const auto pick = [&](int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
  Context context;
  Library library(context);
  for (int round = 0; round < kRounds; ++round) {
    const DType dtype =
        std::array{DType::kF32, DType::kF32, DType::kF64, DType::kI32, DType::kI64}[static_cast<size_t>(pick(0, 4))];
    const size_t count = pick(0, 5) == 0 ? 3 : 2;
    std::vector<std::string> terms(count);
    std::string output;
    std::map<char, int64_t> sizes;
    int64_t points = 1;
    const auto letter = [&](bool in_result, auto... operands) {
      const char axis = static_cast<char>('a' + sizes.size());
      sizes[axis] = points < 2000 && pick(0, 2) == 0 ? pick(8, 20) : pick(1, points < 5000 ? 4 : 2);
      points *= sizes[axis];
      (terms[static_cast<size_t>(operands)].push_back(axis), ...);
      if (in_result) output += axis;
    };
    for (int64_t n = pick(0, 1); n > 0; --n) letter(true, 0, 1);
    for (int64_t n = pick(round % 4 == 0 ? 0 : 1, 2); n > 0; --n) letter(true, 0);
    for (int64_t n = pick(round % 4 == 1 ? 0 : 1, 2); n > 0; --n) letter(true, 1);
    for (int64_t n = pick(round % 4 == 2 ? 0 : 1, 2); n > 0; --n) letter(false, 0, 1);
    if (pick(0, 5) == 0) letter(false, pick(0, 1));
    if (count == 3) letter(pick(0, 1) == 1, 1, 2), letter(pick(0, 1) == 1, 2);
    if (pick(0, 1) == 1) {
      for (std::string* axes : {&terms[0], &terms[1], &output}) std::ranges::shuffle(*axes, random);
    }
    if (pick(0, 5) == 0) terms[0] += terms[0].substr(0, 1);
    Module module;
    Function function;
    compiler::Builder b(context, module, function);
    std::vector<Tensor> arguments;
    Atoms args;
    for (const std::string& term : terms) {
      runtime::Shape shape;
      for (const char axis : term) shape.push_back(sizes.at(axis));
      const Tensor value = random_tensor(random, dtype, shape, 16);
      if (pick(0, 2) == 0 && !args.empty()) {
        args.push_back(b.constant(value));
      } else {
        arguments.push_back(value);
        args.push_back(b.param(context.type_of(value), fmt::format("a{}", arguments.size())));
      }
    }
    const std::string case_name =
        fmt::format("einsum {}->{} of {}", fmt::join(terms, ","), output, fmt::join(sizes, " "));
    auto value = b.apply("einsum", args, {{"equation", fmt::format("{}->{}", fmt::join(terms, ","), output)}});
    ASSERT_TRUE(value) << case_name << value.error().str();
    if (pick(0, 1) == 1) value = b.apply("relu", {*value});
    b.finish(*value);
    compare(context, library, module, function, arguments, case_name);
  }
  library.run();
}

// One function for all values of a symbolic dim.
TEST(Kernels, SizesMayBeVariables) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"%x: Tensor[(n, 24), f32], %w: Tensor[(24, 40), f32]", "relu(matmul(%x, %w))"},
      {"%x: Tensor[(n, 24), f32], %w: Tensor[(40, 24), f32]", "dense(%x, %w)"},
      {"%x: Tensor[(3, 4), f32], %w: Tensor[(4, n), f32]", "matmul(%x, %w)"},
      {"%x: Tensor[(n, 7), f32], %w: Tensor[(n, 7), f32]", "relu(dense(%x, %w))"},
      {"%x: Tensor[(2, 5, n), f32], %w: Tensor[(2, n, n), f32]", "matmul(%x, %w)"},
      {"%x: Tensor[(5, 23), f32], %w: Tensor[(23, n), f32]",
       R"(cast(matmul(cast(%x, dtype="i8"), cast(%w, dtype="i8")), dtype="f32"))"},
      {"%x: Tensor[(1, 2, n, 5), f32], %w: Tensor[(2, 3, 3, 3), f32]",
       "conv2d_transpose(%x, %w, strides=[2, 2], padding=[1, 1, 1, 1], output_padding=[1, 1])"},
      {"%x: Tensor[(1, 2, 3, n), f32], %w: Tensor[(2, 3, 2, 4), f32]",
       "relu(conv2d_transpose(%x, %w, strides=[1, 3], padding=[0, 0, 0, 1], dilation=[1, 2]))"},
      {"%x: Tensor[(2, 2, n), f32], %w: Tensor[(2, 3, 2), f32]", "conv1d_transpose(%x, %w, strides=[2])"},
      // The rows are three adjacent dims, which are merged into one axis.
      {"%x: Tensor[(n, 3, 2, 5), f32], %w: Tensor[(5, 4), f32]", R"(einsum(%x, %w, equation="abcd,de->abce"))"},
      {"%x: Tensor[(2, n, 3, 5), f32], %w: Tensor[(2, 7, 3, 5), f32]", R"(einsum(%x, %w, equation="bqhd,bkhd->bhqk"))"},
      {"%x: Tensor[(2, n, 5), f32], %w: Tensor[(2, n, 4), f32]", R"(einsum(%x, %w, equation="xij,xik->xjk"))"},
      {"%x: Tensor[(n, 23), f32], %w: Tensor[(23, 20), f32]",
       R"(cast(matmul(cast(%x, dtype="i8"), cast(%w, dtype="i8")), dtype="f32"))"},
      {"%x: Tensor[(n, 3, 8, 9), f32], %w: Tensor[(5, 3, 3, 3), f32]", "relu(conv2d(%x, %w, padding=[1, 1, 1, 1]))"},
      {"%x: Tensor[(2, 3, n, 9), f32], %w: Tensor[(5, 3, 3, 3), f32]", "conv2d(%x, %w, padding=[1, 1, 1, 1])"},
      {"%x: Tensor[(2, 4, n, n), f32], %w: Tensor[(6, 2, 2, 3), f32]",
       "relu(conv2d(%x, %w, padding=[0, 1, 1, 2], strides=[1, 2], dilation=[2, 1], groups=2))"},
      {"%x: Tensor[(n, 2, 3, 4, 5), f32], %w: Tensor[(3, 2, 2, 1, 3), f32]",
       "conv3d(%x, %w, padding=[0, 1, 2, 0, 1, 1])"},
      {"%x: Tensor[(3, n), f32], %w: Tensor[(3, n), f32]", "add(softmax(%x), %w)"},
      {"%x: Tensor[(n, 70), f32], %w: Tensor[(70,), f32]", "layer_norm(%x, %w, %w)"},
      {"%x: Tensor[(2, 3, n, 8), f32], %w: Tensor[(n,), f32]",
       "max_pool2d(%x, kernel=[3, 2], strides=[1, 2], padding=[1, 0, 1, 0])"},
      {"%x: Tensor[(n, 6, 5, 7), f32], %w: Tensor[(6, 1, 1), f32]", "multiply(global_avg_pool(%x), %w)"},
      {"%x: Tensor[(4, n), f32], %w: Tensor[(n, 6), f32]", "concat(transpose(%x, axes=[1, 0]), %w, axis=1)"},
      {"%x: Tensor[(n, 2, 3), f32], %w: Tensor[(1, 20, 3), f32], %r: Tensor[(1, 20, 5), f32], %b: Tensor[(1, 40), "
       "f32], "
       "%h: Tensor[(1, 2, 5), f32]",
       "lstm(%x, %w, %r, %b, %h, %h).0"},
      {"%x: Tensor[(3, n, 4), f32], %w: Tensor[(1, 15, 4), f32], %r: Tensor[(1, 15, 5), f32], %b: Tensor[(1, 30), "
       "f32], "
       "%h: Tensor[(1, n, 5), f32]",
       "gru(%x, %w, %r, %b, %h).1"}};
  Context context;
  Library library(context);
  const auto filled = [](std::string_view, DType, const runtime::Shape& shape) {
    Tensor tensor(DType::kF32, shape);
    for (size_t i = 0; float& x : tensor.data<float>()) x = static_cast<float>(i++ * 37 % 19) / 8 - 1;
    return tensor;
  };
  for (const auto& [params, call] : kCases)
    compare(context, library, params, call, filled, std::span(kSizes).last(kSanitized ? 2 : 3));
  library.run();
}

// Operators that read or write at computed indices, and integer operators that stored cases cover in one type only:
// random data with repeated indices and NaNs, for two sizes n.
TEST(Kernels, ComputedIndicesAndTypesAreAsInTheReference) {
  struct Case {
    std::string_view params, call;
    int64_t size = 8;  // %i has indices in -size .. size - 1, other integers are of the same magnitude
  };
  const Case kCases[] = {
      {"%x: Tensor[(n, 3), f32], %i: Tensor[(9, 3), i64], %u: Tensor[(9, 3), f32]",
       R"(scatter_elements(%x, %i, %u, reduction="add"))", 4},
      {"%x: Tensor[(4, n), i8], %i: Tensor[(3, 9), i32], %u: Tensor[(3, 9), i8]",
       R"(scatter_elements(%x, %i, %u, axis=1, reduction="mul"))", 4},
      {"%x: Tensor[(2, 4, 3), f64], %i: Tensor[(2, n, 3), i64], %u: Tensor[(2, n, 3), f64]",
       "scatter_elements(%x, %i, %u, axis=1)", 4},
      {"%x: Tensor[(n,), u8], %i: Tensor[(40,), i64], %u: Tensor[(40,), u8]",
       R"(scatter_elements(%x, %i, %u, reduction="max"))", 3},
      {"%x: Tensor[(4, 3, n), f32], %i: Tensor[(2, 6, 2), i64], %u: Tensor[(2, 6, n), f32]", "scatter_nd(%x, %i, %u)",
       3},
      {"%x: Tensor[(4, n), i64], %i: Tensor[(n, 1), i32], %u: Tensor[(n, n), i64]",
       R"(scatter_nd(%x, %i, %u, reduction="min"))", 4},
      {"%x: Tensor[(4, n), f32], %i: Tensor[(30, 2), i64], %u: Tensor[(30,), f32]",
       R"(scatter_nd(%x, %i, %u, reduction="add"))", 3},
      {"%x: Tensor[(3, 37, 2), f32], %y: Tensor[(n,), f32]", "sort(%x, axis=1)"},
      {"%x: Tensor[(3, 37), i8], %y: Tensor[(n,), f32]", "arg_sort(%x, descending=1)"},
      {"%x: Tensor[(n, 70), f64], %y: Tensor[(n,), f32]", "top_k(%x, k=5)"},
      {"%x: Tensor[(n, 33, 2), u16], %y: Tensor[(n,), f32]", "top_k(%x, k=33, axis=1, largest=0)"},
      {"%x: Tensor[(n, 3), i32], %y: Tensor[(3,), i32]", "power(%x, abs(%y))"},
      {"%x: Tensor[(n, 3), u8], %y: Tensor[(3,), u8]", "power(%x, %y)"},
      {"%x: Tensor[(n, 3), i64], %y: Tensor[(3,), i64]", "modulo(%x, add(%y, 9i64))"},
      {"%x: Tensor[(n, 3), u8], %y: Tensor[(3,), u8]", "modulo(%x, bitwise_or(%y, 255u8))"},
      {"%x: Tensor[(n, 3), u16], %y: Tensor[(3,), u16]", "remainder(%x, bitwise_or(%y, 65535u16))"},
      {"%x: Tensor[(n, 3), i8], %y: Tensor[(3,), i8]", "remainder(subtract(%x, 120i8), bitwise_or(%y, -1i8))"},
      {"%x: Tensor[(n, 30), f32], %y: Tensor[(30,), f32]", "modulo(%x, add(%y, 0.3f32))"},
      {"%x: Tensor[(n, 3), f64], %y: Tensor[(3,), f64]", "remainder(%x, add(%y, 0.3f64))"},
      {"%x: Tensor[(n, 40), f32], %y: Tensor[(n,), f32]", "add(asin(divide(%x, 2.0f32)), atan(%x))"},
      {"%x: Tensor[(n, 40), f64], %y: Tensor[(n,), f32]", "subtract(acos(divide(%x, 2.0f64)), atan(%x))"},
      {"%x: Tensor[(n, 40), f32], %y: Tensor[(n,), f32]", "dynamic_quantize(maximum(%x, -9.0f32))"},
      {"%x: Tensor[(), f32], %y: Tensor[(n,), f32]", "dynamic_quantize(add(%x, 1.0f32))"},
      // Each operator reads its rounded argument six times: without sharing, it would be computed 7776 times.
      {"%x: Tensor[(n, 40), f32], %y: Tensor[(n,), f32]",
       "dequantize(quantize(dequantize(quantize(dequantize(quantize(dequantize(quantize(dequantize(quantize(%x, "
       "scale=[0.3]), scale=[0.4]), scale=[0.4]), scale=[0.5]), scale=[0.5]), scale=[0.6]), scale=[0.6]), "
       "scale=[0.7]), scale=[0.7]), scale=[0.8])"},
      {"%x: Tensor[(2, 3, n, 5), f32], %y: Tensor[(2, 4, 7, 2), f32]", "grid_sample(%x, %y)"},
      {"%x: Tensor[(2, 3, 6, n), f32], %y: Tensor[(2, 4, 7, 2), f32]",
       R"(grid_sample(%x, %y, mode="cubic", padding="reflection"))"},
      {"%x: Tensor[(n, 1, 6, 5), f64], %y: Tensor[(n, 4, 7, 2), f64]",
       R"(grid_sample(%x, %y, mode="cubic", padding="border", align_corners=1))"},
      {"%x: Tensor[(1, 2, 6, 5), f32], %y: Tensor[(1, n, 7, 2), f32]",
       R"(grid_sample(%x, %y, mode="nearest", padding="reflection", align_corners=1))"},
      {"%x: Tensor[(3, 2, n, 6), f32], %r: Tensor[(5, 4), f32], %y: Tensor[(5,), i64]",
       "roi_align(%x, %r, minimum(abs(%y), 2i64), size=[2, 3], sampling_ratio=2, spatial_scale=2.5)"},
      {"%x: Tensor[(3, 2, 6, n), f64], %r: Tensor[(5, 4), f64], %y: Tensor[(5,), i32]",
       R"(roi_align(%x, %r, minimum(abs(%y), 2i32), size=[3, 2], sampling_ratio=3, mode="max", half_pixel=0))"},
      {"%k: Tensor[(2,), i32], %y: Tensor[(n,), f32]", R"(random_uniform(%k, shape=[3, 35], a=-1.0, b=2.0))"},
      {"%k: Tensor[(2,), i32], %y: Tensor[(n,), f32]", R"(random_uniform(%k, shape=[7], dtype="f64"))"},
      {"%k: Tensor[(2,), i32], %y: Tensor[(n,), f32]", R"(random_normal(%k, shape=[5, 7], dtype="f64", a=3.0))"},
      {"%k: Tensor[(2,), i32], %y: Tensor[(n,), f32]", R"(random_bernoulli(%k, shape=[40], probability=0.3))"},
      {"%k: Tensor[(2,), i32], %y: Tensor[(n,), f32]", "random_split(%k, count=9)"}};
  constexpr std::array<int64_t, 2> kTwo = {4, 17};
  std::mt19937 random(test_seed(5));
  const auto pick = [&](int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
  Context context;
  Library library(context);
  for (const Case& test_case : kCases) {
    const auto random_argument = [&](std::string_view name, DType dtype, const runtime::Shape& shape) {
      const bool is_index = name == "i", finite = test_case.call.starts_with("dynamic_quantize");
      Tensor value(dtype, shape);
      runtime::with_dtype<runtime::kNumericTypes>(dtype, [&]<class T>(T) {
        for (T& x : value.data<T>()) {
          if constexpr (std::is_floating_point_v<T>)
            x = !finite && pick(0, 30) == 0 ? T(NAN) : static_cast<T>(pick(-16, 16)) / T(8);
          else x = static_cast<T>(pick(std::is_signed_v<T> ? -test_case.size : 0, test_case.size - (is_index ? 1 : 0)));
        }
      });
      return value;
    };
    compare(context, library, test_case.params, test_case.call, random_argument, kTwo);
  }
  library.run();
}

// At the boundaries of the domains, and where intermediate results would overflow.
TEST(Kernels, FunctionsAreAsInTheReferenceWhereTheirArgumentsAreLargeOrSmall) {
  const std::vector<double> values{0,    1e-20, 1e-4, 0.99999, 1,   1.00001, 1.5,    30,      79.9,     80.1, 87.9,
                                   88.6, 89,    100,  709.2,   710, 1e10,    2.9e38, 1.7e308, HUGE_VAL, NAN};
  Context context;
  Library library(context);
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    Tensor x(dtype, {2 * static_cast<int64_t>(values.size())});
    runtime::with_dtype<runtime::kReals>(dtype, [&]<class T>(T) {
      for (size_t i = 0; T & element : x.data<T>())
        element = static_cast<T>((i % 2 == 0 ? 1 : -1) * values[i / 2]), ++i;
    });
    compare(context, library, fmt::format("%x: {}", context.str(context.type_of(x))),
            "(asinh(%x), acosh(%x), atanh(%x), sinh(%x), cosh(%x), expm1(%x), log1p(%x), softplus(%x))",
            [&](std::string_view, DType, const runtime::Shape&) { return x; });
  }
  library.run();
}

// The merge sort is stable, and NaNs are equal and greater than all other values. Each element is compared with 64
// others: this is evaluated for one short line only.
TEST(Kernels, LinesOfAnyLengthAreSorted) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"%x: Tensor[(257,), f32]", "(sort(%x), arg_sort(%x))"},
      {"%x: Tensor[(2, 640, 2), f64]", "(sort(%x, axis=1, descending=1), arg_sort(%x, axis=1, descending=1))"},
      {"%x: Tensor[(1300,), i8]", "arg_sort(%x, axis=0)"},
      {"%x: Tensor[(2, 700), f32]", "top_k(%x, k=5)"},
      {"%x: Tensor[(3, 600), u8]", "top_k(%x, k=300, largest=0)"},
      {"%x: Tensor[(0, 600), i64]", "top_k(%x, k=3)"},
      {"%x: Tensor[(n, 2), f32]", "(sort(%x, axis=0, descending=1), arg_sort(%x, axis=0, descending=1))"},
      {"%x: Tensor[(n,), f32]", "arg_sort(%x)"},
      {"%x: Tensor[(2, n), i32]", "sort(%x, axis=1)"}};
  constexpr std::array<int64_t, 2> kLengths = {0, 71}, kLong = {64, 2000};
  std::mt19937 random(test_seed(9));
  Context context;
  Library library(context);
  for (const auto& [params, call] : kCases) {
    const bool is_short = call == "arg_sort(%x)";
    const auto argument = [&](std::string_view, DType dtype, const runtime::Shape& shape) {
      Tensor x = random_tensor(random, dtype, shape);
      if (dtype == DType::kF32) {
        for (size_t i = 0; float& element : x.data<float>()) {
          if (++i % 9 == 0) element = NAN;
          if (element == 0 && i % 2 == 0) element = -0.0F;
        }
      }
      return x;
    };
    compare(context, library, params, call, argument, is_short ? kLengths : kLong, is_short);
  }
  library.run_on_all_levels();
}

// A slice far out of range gives the same result as one just out of range, though its index overflows 64 bits.
TEST(Kernels, SlicesMayBeFarOutOfRange) {
  const std::string lowest = fmt::format("{}", INT64_MIN), highest = fmt::format("{}", INT64_MAX);
  Context context;
  Library library(context);
  const auto counted = [](std::string_view, DType dtype, const runtime::Shape& shape) {
    Tensor value(dtype, shape);
    std::iota(value.data<float>().begin(), value.data<float>().end(), 1.0F);
    return value;
  };
  constexpr std::array<int64_t, 1> kThree = {3};
  for (const std::string_view size : {"3", "n"}) {
    for (const auto& [begin, end, step] : {std::tuple(lowest, highest, highest),
                                           {"2", lowest, lowest},
                                           {highest, highest, "1"},
                                           {highest, lowest, lowest},
                                           {"1", highest, highest},
                                           {"-2", lowest, "-2"}}) {
      compare(context, library, fmt::format("%x: Tensor[({}, 4), f32]", size),
              fmt::format("slice(%x, begin=[{}, 0], end=[{}, 4], step=[{}, 1])", begin, end, step), counted, kThree);
    }
  }
  library.run();
}

// Empty tensors, whose sizes of 0 must not divide an index.
TEST(Kernels, SizesMayBeZero) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"%x: Tensor[(3, 0), f32], %y: Tensor[(), f32]", "tile(%x, repeats=[2, 3])"},
      {"%x: Tensor[(3, 0), f32], %y: Tensor[(), f32]", "pad_wrap(%x, before=[1, 0], after=[0, 0])"},
      {"%x: Tensor[(2, 3), f32], %i: Tensor[(4, 0, 1), i64], %u: Tensor[(4, 0, 3), f32]", "scatter_nd(%x, %i, %u)"},
      {"%x: Tensor[(2, 3), f32], %i: Tensor[(4, n, 1), i64], %u: Tensor[(4, n, 3), f32]", "scatter_nd(%x, %i, %u)"},
      {"%x: Tensor[(1, 4, 5, 5), f32], %y: Tensor[(4, 0, 3, 3), f32]", "conv2d_transpose(%x, %y)"},
      {"%x: Tensor[(3, 0), f32], %y: Tensor[(0, 5), f32]", "matmul(%x, %y)"},
      {"%x: Tensor[(3, n), f32], %y: Tensor[(n, 5), f32]", "matmul(%x, %y)"},
      {"%x: Tensor[(3, 0), f32], %y: Tensor[(), f32]", "sum(multiply(%x, %y), axes=[1])"}};
  Context context;
  Library library(context);
  const auto filled = [](std::string_view, DType dtype, const runtime::Shape& shape) {
    Tensor value(dtype, shape);
    runtime::with_dtype<runtime::kNumericTypes>(dtype, [&]<class T>(T) { std::ranges::fill(value.data<T>(), T(1)); });
    return value;
  };
  for (const auto& [params, call] : kCases) compare(context, library, params, call, filled);
  library.run();
}

// Invalid arguments are errors, as in the reference kernels.
TEST(Kernels, IndicesOutOfRangeAndValuesThatAreNotFiniteAreErrors) {
  const std::tuple<std::string_view, std::string_view, std::string_view> kCases[] = {
      {"%x: Tensor[(4,), f32], %i: Tensor[(1,), i64], %u: Tensor[(1,), f32]", "scatter_elements(%x, %i, %u)",
       "the index 4 is not in 0 .. 3"},
      {"%x: Tensor[(2,), i32], %i: Tensor[(1,), i64], %u: Tensor[(1,), f32]", "power(%x, negate(%x))",
       "the index -4 is not in"},
      {"%x: Tensor[(4,), f32], %i: Tensor[(1,), i64], %u: Tensor[(1,), f32]", "dynamic_quantize(divide(%x, 0.0f32))",
       "does not fit into u8"},
      {"%x: Tensor[(n,), f32], %i: Tensor[(1,), i64]", "arg_max(%x, axis=0)", "is not in"},
      {"%x: Tensor[(2, n), f32], %i: Tensor[(1,), i64]", "arg_min(%x, axis=1, select_last=1)", "is not in"}};
  Context context;
  for (const auto& [params, call, message] : kCases) {
    const auto module = parse_call(context, params, call);
    ASSERT_TRUE(module) << call << module.error().str();
    const Function& function = *module->function(context.symbol("main"));
    const auto kernel = make_kernel(context, *module, "kernel", function, kMachine);
    ASSERT_TRUE(kernel) << call << kernel.error().str();
    std::vector<Tensor> arguments;
    for (const VarId param : function.params) {
      const Type type =
          context.substitute(function.type(param), std::map<Symbol, Dim>{{context.symbol("n"), context.dim(0)}});
      Tensor value(type.tensor()->dtype, *type.tensor()->shape());
      runtime::with_dtype<runtime::kNumericTypes>(value.dtype(),
                                                  [&]<class T>(T) { std::ranges::fill(value.data<T>(), T(4)); });
      arguments.push_back(value);
    }
    const auto found = loop::evaluate(context, kernel->function, operands_of(*kernel, arguments));
    ASSERT_FALSE(found) << call;
    EXPECT_NE(found.error().str().find(message), std::string::npos) << call << ": " << found.error().str();
    EXPECT_FALSE(interpret(context, *module, context.symbol("main"), arguments)) << call;
  }
}

// The cell of an LSTM, whose state is read by the other results: each of its functions is computed once.
TEST(Kernels, AResultWithSlowFunctionsIsLoadedByTheOtherResults) {
  Context context;
  Library library(context);
  std::mt19937 random(test_seed(10));
  constexpr std::string_view kCell = R"(
    let %c = sigmoid(%f) * %before + sigmoid(%i) * tanh(%g);
    let %h = sigmoid(%o) * tanh(%c);
    (%c, %h, expand_dims(%h, axes=[0]))
  )";
  std::string params;
  for (const char* name : {"i", "o", "f", "g", "before"})
    params += fmt::format("{}%{}: Tensor[(1, 40), f32]", params.empty() ? "" : ", ", name);
  const auto module = parse_call(context, params, kCell);
  ASSERT_TRUE(module) << module.error().str();
  const auto kernel = make_kernel(context, *module, "k", *module->function(context.symbol("main")), kMachine);
  ASSERT_TRUE(kernel) << kernel.error().str();
  const std::string text = loop::print(context, kernel->function);
  std::map<std::string_view, size_t> calls;
  for (const std::string_view function : {"exp(", "tanh("})
    for (size_t at = text.find(function); at != text.npos; at = text.find(function, at + 1)) ++calls[function];
  EXPECT_EQ(calls, (std::map<std::string_view, size_t>{{"exp(", 3}, {"tanh(", 2}})) << text;
  compare(context, library, params, kCell, [&](std::string_view, DType dtype, const runtime::Shape& shape) {
    return random_tensor(random, dtype, shape);
  });
  library.run_on_all_levels();
}

// Of every operator with floats: infinities, NaN, zeros of both signs, the smallest numbers. Not the largest, whose
// sums are infinite in one order and not in another.
TEST(Kernels, SpecialValuesGiveTheResultsOfTheReferenceKernels) {
  Context context;
  Library library(context);
  std::mt19937 random{test_seed(11)};
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::array kValues{kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), -0.0f, 0.0f,
                               1e-40f,    -1e-45f};
  std::set<std::string> computed;
  for (const auto& [name, as_stored] : operator_cases()) {
    const auto stored = with_i64_lengths(as_stored);
    const std::string op = stored.call.substr(0, stored.call.find('('));
    if (stored.call.empty() || !lowered(context.find_operator(op)->id)) continue;
    for (const size_t rare : {4, 40}) {  // one element in so many is special
      std::vector<Tensor> inputs;
      bool special = false;
      for (const Tensor& input : stored.inputs) {
        inputs.push_back(input.clone());
        // The weights of transposed convolutions are multiplied by the zeros between elements too.
        const bool beside_zeros = op.ends_with("_transpose") && inputs.size() == 2;
        if (input.dtype() != DType::kF32 || beside_zeros) continue;
        for (float& x : inputs.back().data<float>()) {
          if (random() % rare != 0) continue;
          x = kValues[random() % kValues.size()];
          special = true;
        }
      }
      const auto module = parse_case(context, name, stored);
      ASSERT_TRUE(module) << module.error().str();
      const auto kernel = make_kernel(context, *module, "kernel", *module->function(context.symbol("main")), kMachine);
      const auto expected = interpret(context, *module, context.symbol("main"), inputs);
      if (!special || !kernel || !expected) continue;
      library.add(schedule(context, kernel->function).function, operands_of(*kernel, inputs), *expected,
                  fmt::format("{}: {}", name, stored.call));
      computed.insert(op);
    }
  }
  EXPECT_GT(computed.size(), 100u);
  library.run();
}

TEST(Kernels, EachOperatorHasALoweringOrAReasonWhyItHasNone) {
  Context context;
  for (const Operator* op : context.operators()) EXPECT_EQ(lowered(op->id), op->interpreted.empty()) << op->name;
}

}  // namespace
}  // namespace tenon::compiler::kernels
