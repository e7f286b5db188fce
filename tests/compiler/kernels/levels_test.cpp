// Contractions on all levels of this processor: results equal the reference kernels', those of bytes exactly, up to the
// extreme values of their types.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "compiler/backends/llvm/compile.h"
#include "compiler/ir/builder.h"
#include "compiler/ir/interpreter.h"
#include "compiler/kernels/kernels.h"
#include "compiler/kernels/schedule.h"
#include "compiler/loop/evaluate.h"
#include "compiler/loop/text.h"
#include "compiler/loop/tree.h"
#include "compiler/loop/verify.h"
#include "runtime/native/native.h"
#include "tests/compiler/ir/operators/cases.h"
#include "tests/random_tensor.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler::kernels {
namespace {

// Builds functions of some arguments, and compares their kernels with the reference kernels on all levels.
class Levels : public ::testing::Test {
 protected:
  void begin() { module_ = {}, function_ = {}, arguments_.clear(), builder_.emplace(context_, module_, function_); }
  int64_t pick(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random_); }

  // Random bytes, or the extreme values of the type only.
  Tensor bytes(runtime::Shape shape, DType dtype, bool corners) {
    const int64_t lo = dtype == DType::kU8 ? 0 : -128, hi = dtype == DType::kU8 ? 255 : 127;
    Tensor tensor(dtype, std::move(shape));
    runtime::with_dtype<runtime::kIntegers>(dtype, [&]<class T>(T) {
      for (T& x : tensor.data<T>()) x = static_cast<T>(!corners ? pick(lo, hi) : pick(0, 3) == 0 ? hi : lo);
    });
    return tensor;
  }
  Tensor floats(runtime::Shape shape) { return random_tensor(random_, DType::kF32, std::move(shape)); }
  Atom argument(const Tensor& value) {
    arguments_.push_back(value);
    return builder_->param(context_.type_of(value), fmt::format("a{}", arguments_.size()));
  }
  // An operand of an i32 product: a byte tensor minus a zero point, as an argument or a constant.
  Atom centered(const Tensor& value, int64_t zero, bool constant) {
    return centered(constant ? builder_->constant(value) : argument(value), zero);
  }
  Atom centered(const Atom& operand, int64_t zero) {
    const Atom converted = *builder_->apply("cast", {operand}, {{"dtype", std::string("i32")}});
    if (zero == 0) return converted;
    return *builder_->apply("subtract", {converted, builder_->constant<int32_t>({}, {static_cast<int32_t>(zero)})});
  }

  // The kernel of the function, whose tiles each level has for itself, gives the results of the reference kernels:
  // evaluated, and on every level.
  void check(const Atom& result, const std::string& case_name, bool evaluated = true, const std::string& name = {}) {
    builder_->finish(result);
    const Expected<std::vector<Tensor>> expected = [&] {
      Module program = clone(module_);
      program.globals.emplace(context_.symbol("main"), function_);
      return interpret(context_, program, context_.symbol("main"), arguments_);
    }();
    ASSERT_TRUE(expected) << case_name << expected.error().str();
    for (const std::string& level : levels_) {
      const auto kernel =
          make_kernel(context_, module_, name.empty() ? fmt::format("k{}", kernels_[level].functions.size()) : name,
                      function_, *find_machine(level), knobs_);
      ASSERT_TRUE(kernel) << level << case_name << kernel.error().str();
      EXPECT_EQ(kernel->refused, "") << level << case_name;
      loop::Function scheduled = schedule(context_, kernel->function).function;
      std::vector<Tensor> params;
      for (const Operand& operand : kernel->operands) {
        params.push_back(std::holds_alternative<Tensor>(operand) ? std::get<Tensor>(operand)
                                                                 : arguments_[std::get<size_t>(operand)]);
      }
      const std::string text = loop::print(context_, scheduled);
      if (evaluated && text != text_) {
        const auto found = loop::evaluate(context_, scheduled, params);
        ASSERT_TRUE(found) << level << case_name << found.error().str() << text;
        expect_near((*found)[0], (*expected)[0], level + case_name);
      }
      text_ = text;
      kernels_[level].functions.push_back(std::move(scheduled));
      kernels_[level].params.push_back(std::move(params));
    }
    expected_.push_back((*expected)[0]), cases_.push_back(case_name);
  }
  // Floats are equal bit for bit on all levels, too, without `contract`.
  void run_on_all_levels() {
    runtime::ThreadPool pool(2);
    std::vector<Tensor> first;
    for (const std::string& level : levels_) {
      const auto& [functions, params] = kernels_[level];
      std::vector<const loop::Function*> pointers;
      for (const loop::Function& function : functions) pointers.push_back(&function);
      const auto code = native::compile(context_, pointers, {.triple = {}, .levels = {level}});
      ASSERT_TRUE(code) << code.error().str();
      const auto library = runtime::NativeLibrary::load(*code, level);
      ASSERT_TRUE(library) << library.error().str();
      for (size_t i = 0; i < functions.size(); ++i) {
        const auto results = library->call(i, params[i], pool);
        ASSERT_TRUE(results) << cases_[i] << results.error().str();
        expect_near((*results)[0], expected_[i], level + ": " + cases_[i] + loop::print(context_, functions[i]));
        if (first.size() == i) first.push_back((*results)[0]);
        EXPECT_EQ(first[i], (*results)[0]) << level << ": " << cases_[i];
      }
    }
  }
  bool has(std::string_view operation) const { return text_.find(operation) != std::string::npos; }
  bool has_dots() const { return has("byte_dot") || has("int16_dot"); }

  Context context_;
  std::mt19937 random_{test_seed(11)};
  Module module_;
  Function function_;
  std::optional<compiler::Builder> builder_;
  std::vector<Tensor> arguments_;
  std::string text_;
  KnobLookup knobs_;
  struct LevelKernels {
    std::vector<loop::Function> functions;
    std::vector<std::vector<Tensor>> params;
  };
  // The levels of this processor, the best first.
  const std::vector<std::string> levels_ = [] {
    std::vector<std::string> levels;
    const auto supported = native::levels_of({}).value();
    std::ranges::copy_if(supported, std::back_inserter(levels), [](const std::string& level) {
      return std::ranges::find(runtime::host_levels(), level) != runtime::host_levels().end();
    });
    return levels;
  }();
  std::map<std::string, LevelKernels> kernels_;
  std::vector<Tensor> expected_;
  std::vector<std::string> cases_;
};

constexpr auto kLevelRounds = static_cast<int>(rounds(12));

TEST_F(Levels, ProductsOfBytesAreExact) {
  for (int round = 0; round < kLevelRounds; ++round) {
    begin();
    const int64_t m = pick(1, 20), n = pick(1, 70), k = pick(0, 1) == 0 ? pick(1, 9) : pick(10, 60);
    const bool corners = pick(0, 2) == 0, dense = pick(0, 2) == 0, plain = pick(0, 3) == 0;
    const int64_t batch = !dense && pick(0, 3) == 0 ? 2 : 0;
    const DType types[] = {pick(0, 1) && !plain ? DType::kU8 : DType::kI8,
                           pick(0, 3) == 0 && !plain ? DType::kU8 : DType::kI8};
    const int64_t zeros[] = {pick(0, 1) ? pick(-128, 255) : 0, pick(0, 2) == 0 ? pick(-128, 255) : 0};
    const bool constant = pick(0, 3) > 0;
    runtime::Shape x{m, k}, w = dense ? runtime::Shape{n, k} : runtime::Shape{k, n};
    if (batch) x.insert(x.begin(), batch), w.insert(w.begin(), pick(0, 1) ? batch : 1);
    const std::string case_name =
        fmt::format("{} {} of {} less {} by {} of {} less {}{}", dense ? "dense" : "matmul", runtime::to_string(x),
                    runtime::name(types[0]), zeros[0], runtime::to_string(w), runtime::name(types[1]), zeros[1],
                    constant ? ", constant" : "");
    const Tensor left = bytes(x, types[0], corners), right = bytes(w, types[1], corners);
    const Atom a = plain ? argument(left) : centered(left, zeros[0], false),
               b = plain ? (constant ? builder_->constant(right) : argument(right))
                         : centered(right, zeros[1], constant);
    auto value = builder_->apply(dense ? "dense" : "matmul", {a, b});
    ASSERT_TRUE(value) << case_name << value.error().str();
    if (pick(0, 1)) value = builder_->apply("relu", {*value});
    check(*value, case_name);
    EXPECT_TRUE(has_dots() || (n * k == 1)) << case_name << text_;
  }
  // The largest possible sums.
  for (const auto& [x, w] : {std::pair(-128, -128), {-128, 127}, {127, -128}, {255, -128}, {255, 127}}) {
    begin();
    const DType type = x == 255 ? DType::kU8 : DType::kI8;
    Tensor left(type, {3, 400}), right(DType::kI8, {400, 17});
    for (std::byte& byte : left.bytes()) byte = static_cast<std::byte>(x);
    for (std::byte& byte : right.bytes()) byte = static_cast<std::byte>(w);
    const auto value = builder_->apply("matmul", {centered(left, 0, false), centered(right, 0, true)});
    ASSERT_TRUE(value);
    check(*value, fmt::format("400 times {} * {}", x, w));
    EXPECT_TRUE(has_dots()) << text_;
  }
  // More rows than L2 holds: rows are the outer loop then.
  begin();
  const Tensor tall = bytes({2200, 480}, DType::kU8, false), narrow = bytes({480, 3}, DType::kI8, false);
  const auto value = builder_->apply("matmul", {centered(tall, 3, false), centered(narrow, 0, true)});
  ASSERT_TRUE(value);
  check(*value, "tall", false);
  run_on_all_levels();
}

TEST_F(Levels, ConvolutionsOfBytesAreExact) {
  for (int round = 0; round < kLevelRounds; ++round) {
    begin();
    const bool depthwise = pick(0, 3) == 0;
    const int64_t groups = depthwise         ? pick(2, 5)
                           : pick(0, 3) == 0 ? 2
                                             : 1,
                  in = groups * (depthwise ? 1 : pick(1, 9)), out = groups * (depthwise ? 1 : pick(1, 17)),
                  rank = pick(1, 2);
    const bool constant = pick(0, 3) > 0, corners = pick(0, 2) == 0;
    runtime::Shape x{pick(1, 2), in}, w{out, in / groups};
    std::vector<int64_t> strides, padding(static_cast<size_t>(2 * rank));
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t kernel = pick(1, 3);
      x.push_back(pick(kernel, 14)), w.push_back(kernel), strides.push_back(pick(1, 2));
      padding[static_cast<size_t>(d)] = pick(0, kernel - 1),
      padding[static_cast<size_t>(rank + d)] = pick(0, kernel - 1);
    }
    const DType type = pick(0, 1) ? DType::kU8 : DType::kI8;
    const int64_t zero = pick(0, 1)           ? 0
                         : type == DType::kU8 ? pick(0, 255)
                                              : pick(-128, 127),
                  pad = pick(0, 2) == 0 ? pick(-100, 100) : 0;
    const DType weights = pick(0, 2) ? DType::kI8 : DType::kU8;
    const int64_t weights_zero = weights == DType::kU8 || pick(0, 2) == 0 ? pick(0, 127) : 0;
    const std::string case_name = fmt::format(
        "conv {} of {} less {} by {} of {} less {}{}, groups {}, strides {}, padding {}, pad {}", runtime::to_string(x),
        runtime::name(type), zero, runtime::to_string(w), runtime::name(weights), weights_zero,
        constant ? ", constant" : "", groups, fmt::join(strides, ","), fmt::join(padding, ","), pad);
    const Atom a = centered(bytes(x, type, corners), zero, false),
               b = centered(bytes(w, weights, corners), weights_zero, constant);
    auto value = builder_->apply(fmt::format("conv{}d", rank), {a, b},
                                 {{"strides", strides}, {"padding", padding}, {"groups", groups}, {"pad_value", pad}});
    ASSERT_TRUE(value) << case_name << value.error().str();
    if (pick(0, 1)) value = builder_->apply("relu", {*value});
    check(*value, case_name);
    // On the last level depthwise convolutions are computed in floats, and convolutions whose pad is not a byte in 16
    // or 32 bits.
    const int64_t lowest = type == DType::kU8 ? 0 : -128, byte = pad + zero;
    const bool by_channel = in == groups && out == groups, pads_bytes = byte >= lowest && byte <= lowest + 255;
    EXPECT_FALSE(has("byte_dot") && (by_channel || !pads_bytes)) << case_name << text_;
    EXPECT_FALSE(has("int16_dot") && by_channel) << case_name << text_;
    EXPECT_TRUE(has_dots() || by_channel || !pads_bytes) << case_name << text_;
  }
  run_on_all_levels();
}

// Tiles with channels as lanes are transposed by a function of the library, beside a kernel of that name.
TEST_F(Levels, AKernelIsCalledTranspose) {
  begin();
  const auto transposed =
      builder_->apply("transpose", {argument(floats({40, 33}))}, {{"axes", std::vector<int64_t>{1, 0}}});
  ASSERT_TRUE(transposed) << transposed.error().str();
  check(*transposed, "transpose", true, "transpose");
  begin();
  const auto value =
      builder_->apply("conv2d", {argument(floats({1, 64, 7, 7})), builder_->constant(floats({64, 64, 3, 3}))},
                      {{"padding", std::vector<int64_t>{1, 1, 1, 1}}});
  ASSERT_TRUE(value) << value.error().str();
  check(*value, "convolution");
  run_on_all_levels();
}

// On processors with registers of 64 bytes, four kernel taps of a depthwise convolution are one dot product, whatever
// the stride, the zero point and the boundary; on others they are products of floats.
TEST_F(Levels, DepthwiseConvolutionsOfBytesAreExact) {
  for (int round = 0; round < 2 * kLevelRounds; ++round) {
    begin();
    const int64_t channels = pick(1, 5), rank = pick(0, 3) == 0 ? 1 : 2;
    runtime::Shape x{pick(1, 2), channels}, w{channels, 1};
    std::vector<int64_t> strides, padding(static_cast<size_t>(2 * rank));
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t kernel = pick(1, 7);
      x.push_back(std::max(kernel, pick(1, d + 1 == rank ? 40 : 12)));
      w.push_back(kernel), strides.push_back(pick(1, 5));
      padding[static_cast<size_t>(d)] = pick(0, kernel - 1),
      padding[static_cast<size_t>(rank + d)] = pick(0, kernel - 1);
    }
    const DType type = pick(0, 1) ? DType::kU8 : DType::kI8;
    const int64_t least = type == DType::kU8 ? 0 : -128, zero = pick(0, 2) ? pick(least, least + 255) : 0,
                  pad = pick(0, 2) ? 0 : std::clamp<int64_t>(pick(least, least + 255) - zero, -128, 127);
    const bool corners = pick(0, 2) == 0;
    const std::string case_name = fmt::format("depthwise {} of {} less {} by {}, strides {}, padding {}, pad {}",
                                              runtime::to_string(x), runtime::name(type), zero, runtime::to_string(w),
                                              fmt::join(strides, ","), fmt::join(padding, ","), pad);
    Tensor weights(DType::kI32, w);  // as passes fold the cast of constant bytes
    for (int32_t& weight : weights.data<int32_t>())
      weight = static_cast<int32_t>(corners ? 127 - 255 * pick(0, 1) : pick(-128, 127));
    // Bytes in memory, or bytes that the kernel computes.
    Atom elements = argument(bytes(x, type, corners));
    if (pick(0, 2) == 0) {
      const auto reversed = builder_->apply("reverse", {elements}, {{"axes", std::vector<int64_t>{1}}});
      ASSERT_TRUE(reversed) << case_name << reversed.error().str();
      elements = *reversed;
    }
    const Atom a = centered(elements, zero), b = builder_->constant(weights);
    auto value =
        builder_->apply(fmt::format("conv{}d", rank), {a, b},
                        {{"strides", strides}, {"padding", padding}, {"groups", channels}, {"pad_value", pad}});
    ASSERT_TRUE(value) << case_name << value.error().str();
    if (pick(0, 1)) value = builder_->apply("relu", {*value});
    check(*value, case_name);
    if (const auto best = kernels_.find("x86-64-v4+vnni"); best != kernels_.end()) {
      const std::string text = loop::print(context_, best->second.functions.back());
      const bool has_words = weights.size() > 1 && strides.back() <= 4;  // a single weight is a literal
      EXPECT_EQ(text.find("byte_dot(") != std::string::npos, has_words) << case_name << text;
    }
  }
  run_on_all_levels();
}

// Constant weights whose pairs cannot exceed 16 bits are multiplied by the instruction that saturates, all others by
// exact ones: at the bounds of this condition, times the largest byte. These widen them, if many rows read them.
TEST_F(Levels, WeightsThatFitSaturateNowhere) {
  const Machine& last = *find_machine(levels_.back());
  std::vector<std::tuple<int, int, bool>> bounds = {{64, 64, true},    {65, 64, false},   {-64, -64, true},
                                                    {-64, -65, false}, {127, -128, true}, {1, 127, true},
                                                    {2, 127, false},   {-128, 0, true},   {-128, -1, false}};
  bounds.resize(static_cast<size_t>(rounds(std::ssize(bounds))));
  for (const auto& [first, second, fits] : bounds) {
    for (const int64_t rows : {3, 40, 0}) {
      const bool dense = rows > 0;
      begin();
      Tensor x(DType::kI8, dense ? runtime::Shape{rows, 49} : runtime::Shape{1, 5, 7, 7}),
          w(DType::kI8, dense ? runtime::Shape{17, 49} : runtime::Shape{17, 5, 3, 3});
      std::ranges::fill(x.data<int8_t>(), int8_t{127});  // 255 as an unsigned byte
      const int64_t length = w.shape()[1], inner = dense ? 1 : 9;
      auto weights = w.data<int8_t>();
      for (size_t i = 0; i < weights.size(); ++i)
        weights[i] = static_cast<int8_t>(static_cast<int64_t>(i) / inner % length % 2 == 0 ? first : second);
      const auto value = builder_->apply(dense ? "dense" : "conv2d", {argument(x), builder_->constant(w)});
      ASSERT_TRUE(value) << value.error().str();
      check(*value, fmt::format("{} rows of {} and {}", rows, first, second));
      EXPECT_TRUE(has_dots()) << text_;
      EXPECT_EQ(has("byte_dot_saturating"), fits && last.byte_pairs && !last.dot) << text_;
      EXPECT_EQ(has("int16_dot"), !fits && rows != 3 && last.int16_pairs && !last.dot) << text_;
    }
  }
  run_on_all_levels();
}

// Products have a schedule for each level.
TEST_F(Levels, ProductsAreScheduledForEachLevel) {
  for (const std::string_view op : {"matmul", "dense"}) {
    for (const int64_t m : {1, 15}) {
      for (const bool constant : {false, true}) {
        begin();
        const Tensor weights = op == "dense" ? floats({37, 18}) : floats({18, 37});
        const Atom x = argument(floats({m, 18})), w = constant ? builder_->constant(weights) : argument(weights);
        const auto value = builder_->apply(std::string(op), {x, w});
        ASSERT_TRUE(value) << value.error().str();
        check(*builder_->apply("relu", {*value}), fmt::format("{} of {}, constant {}", op, m, constant));
        EXPECT_NE(text_.find("in registers"), std::string::npos) << text_;
      }
    }
  }
  run_on_all_levels();
}

// The elements of the largest buffer in registers.
int64_t accumulators(const loop::Function& function) {
  int64_t most = 0;
  loop::for_each_statement(function.body, [&](const loop::Stmt& stmt) {
    const auto* alloc = std::get_if<loop::Alloc>(&stmt.form);
    if (!alloc || alloc->scope != loop::Scope::kRegisters) return;
    int64_t elements = 1;
    for (const auto& axis : function.buffer(alloc->buffer).axes) elements *= *axis.extent.constant();
    most = std::max(most, elements);
  });
  return most;
}

// Tiles fit the registers of each level, beside the operands of a term: from 16 registers of 16 bytes up to AVX-512.
TEST_F(Levels, TilesFitTheRegisters) {
  for (const std::string_view lanes : {"pixels", "channels"}) {
    knobs_ = [=](const std::string&) { return parse_knob_settings(fmt::format("lanes={}", lanes)); };
    for (const int64_t m : {1, 15, 48}) {
      for (const int64_t stride : {1, 2}) {
        begin();
        const auto value = builder_->apply(
            "conv2d", {argument(floats({1, 2, 14, m + 3})), builder_->constant(floats({m, 2, 3, 3}))},
            {{"padding", std::vector<int64_t>{1, 1, 0, 1}}, {"strides", std::vector<int64_t>{stride, stride}}});
        ASSERT_TRUE(value) << value.error().str();
        check(*builder_->apply("relu", {*value}), fmt::format("conv2d of {}, {}, stride {}", m, lanes, stride), false);
      }
    }
  }
  for (const int64_t batch : {1, 7}) {
    begin();
    const std::vector<Atom> states{builder_->constant(floats({1, batch, 48})),
                                   builder_->constant(floats({1, batch, 48}))};
    const auto value = builder_->apply(
        "lstm", {argument(floats({5, batch, 6})), builder_->constant(floats({1, 192, 6})),
                 builder_->constant(floats({1, 192, 48})), builder_->constant(floats({1, 384})), states[0], states[1]});
    ASSERT_TRUE(value) << value.error().str();
    check(*builder_->apply("relu", {*builder_->project(*value, 0)}), fmt::format("lstm of {}", batch), false);
  }
  for (const std::string& level : levels_) {
    const Machine& machine = *find_machine(level);
    for (const loop::Function& function : kernels_[level].functions) {
      const int64_t tile = accumulators(function);
      EXPECT_GT(tile, 0) << level << loop::print(context_, function);
      EXPECT_LT(tile * 4, machine.registers * machine.vector_bytes) << level << loop::print(context_, function);
    }
  }
  run_on_all_levels();
}

}  // namespace
}  // namespace tenon::compiler::kernels
