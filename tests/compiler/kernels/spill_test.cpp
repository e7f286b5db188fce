// The loops in which compiled contractions spend their time keep everything in registers: none loads from the stack
// frame, stores to it, or updates a sum in memory, on a level with 16 vector registers as on one with 32.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <ostream>

#include "compiler/backends/llvm/compile.h"
#include "compiler/ir/builder.h"
#include "compiler/kernels/kernels.h"
#include "compiler/kernels/schedule.h"
#include "tests/compiler/kernels/object_code.h"

namespace tenon::compiler::kernels {
namespace {

struct HotLoop {
  std::string name, op;
  runtime::DType dtype = runtime::DType::kF32;
  runtime::Shape x;
  std::vector<runtime::Shape> constants;
  Attrs attrs = {};
};

void PrintTo(const HotLoop& loop, std::ostream* to) { *to << loop.name; }

Tensor numbered(runtime::DType dtype, const runtime::Shape& shape) {
  Tensor tensor(dtype, shape);
  const auto fill = [](auto values) {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::remove_cvref_t<decltype(values[i])>>(i % 255) - 127;
  };
  if (dtype == runtime::DType::kF32) fill(tensor.data<float>());
  else fill(tensor.data<int32_t>());
  return tensor;
}

class Spills : public ::testing::TestWithParam<std::tuple<std::string, HotLoop>> {
 protected:
  // The hot loops of a problem's kernel, scheduled for one level and compiled for another one.
  std::vector<InnerLoop> hot_loops(const HotLoop& problem, const std::string& scheduled_for, const std::string& level) {
    Module module;
    Function function;
    compiler::Builder builder(context_, module, function);
    const bool bytes = problem.dtype == runtime::DType::kU8;
    Atom x = builder.param(context_.type_of(Tensor(problem.dtype, problem.x)), "x");
    if (bytes) x = *builder.apply("cast", {x}, {{"dtype", std::string("i32")}});
    Atoms args{x};
    for (const runtime::Shape& shape : problem.constants)
      args.push_back(builder.constant(numbered(bytes ? runtime::DType::kI32 : problem.dtype, shape)));
    const auto y = builder.apply(problem.op, args, problem.attrs);
    EXPECT_TRUE(y) << y.error().str();
    if (!y) return {};
    builder.finish(*y);
    const auto kernel = make_kernel(context_, module, "kernel", function, *find_machine(scheduled_for));
    EXPECT_TRUE(kernel) << kernel.error().str();
    if (!kernel) return {};
    const loop::Function scheduled = schedule(context_, kernel->function).function;
    const loop::Function* functions[] = {&scheduled};
    const auto code = native::compile(context_, functions,
                                      {.triple = "x86_64-unknown-linux-gnu", .levels = {level}, .contract = true});
    EXPECT_TRUE(code) << code.error().str();
    if (!code) return {};
    std::vector<InnerLoop> loops = inner_loops(code->object);
    // Of a register tile: at least four sums, and no function, whose argument is clamped.
    std::erase_if(loops, [](const InnerLoop& loop) {
      return loop.count({"vfmadd", "vpdpbusd", "vpmaddwd"}) < 4 || loop.count({"vmax", "vmin"}) > 0;
    });
    return loops;
  }

  Context context_;
};

TEST_P(Spills, NoneInHotLoops) {
  const auto& [level, problem] = GetParam();
  const std::vector<InnerLoop> loops = hot_loops(problem, level, level);
  EXPECT_FALSE(loops.empty());
  for (const InnerLoop& loop : loops) {
    const std::string text = fmt::format("{}", fmt::join(loop.instructions, "\n"));
    EXPECT_EQ(loop.frame_accesses(), std::vector<std::string>()) << text;
    EXPECT_EQ(loop.updates(), std::vector<std::string>()) << text;
  }
}

Attrs window(int64_t stride, int64_t padding, int64_t groups) {
  return {{"strides", std::vector<int64_t>{stride, stride}},
          {"padding", std::vector<int64_t>(4, padding)},
          {"groups", groups}};
}

const HotLoop kHotLoops[] = {
    {"Product", "matmul", runtime::DType::kF32, {100, 70}, {{70, 90}}},
    {"Row", "matmul", runtime::DType::kF32, {1, 70}, {{70, 90}}},
    {"ByteProduct", "matmul", runtime::DType::kU8, {100, 70}, {{70, 90}}},
    {"Pointwise", "conv2d", runtime::DType::kF32, {1, 64, 14, 14}, {{72, 64, 1, 1}}, window(1, 0, 1)},
    {"Convolution", "conv2d", runtime::DType::kF32, {1, 32, 28, 28}, {{40, 32, 3, 3}}, window(1, 1, 1)},
    {"SmallMap", "conv2d", runtime::DType::kF32, {1, 64, 7, 7}, {{64, 64, 3, 3}}, window(1, 1, 1)},
    {"Strided", "conv2d", runtime::DType::kF32, {1, 16, 30, 30}, {{32, 16, 3, 3}}, window(2, 1, 1)},
    {"ByteConvolution", "conv2d", runtime::DType::kU8, {1, 32, 28, 28}, {{40, 32, 3, 3}}, window(1, 1, 1)},
    {"Depthwise", "conv2d", runtime::DType::kF32, {1, 32, 28, 28}, {{32, 1, 3, 3}}, window(1, 1, 32)},
    {"WideDepthwise", "conv2d", runtime::DType::kF32, {1, 32, 28, 28}, {{32, 1, 5, 5}}, window(1, 2, 32)},
    {"StridedDepthwise", "conv2d", runtime::DType::kF32, {1, 32, 28, 28}, {{32, 1, 3, 3}}, window(2, 1, 32)},
    {"ByteDepthwise", "conv2d", runtime::DType::kU8, {1, 32, 28, 28}, {{32, 1, 3, 3}}, window(1, 1, 32)},
    {"Recurrent",
     "lstm",
     runtime::DType::kF32,
     {4, 1, 32},
     {{1, 512, 32}, {1, 512, 128}, {1, 1024}, {1, 1, 128}, {1, 1, 128}}},
};

// The tile of a machine with 32 registers does not fit into 16.
TEST_F(Spills, AreFound) {
  for (const auto& [level, spills] : {std::pair("x86-64-v4", false), {"x86-64-v3", true}}) {
    int found = 0;
    for (const InnerLoop& loop : hot_loops(kHotLoops[0], "x86-64-v4", level))
      found += static_cast<int>(loop.frame_accesses().size());
    EXPECT_EQ(found > 0, spills) << level;
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Spills,
                         ::testing::Combine(::testing::Values("x86-64-v3", "x86-64-v4", "x86-64-v4+vnni"),
                                            ::testing::ValuesIn(kHotLoops)),
                         [](const auto& info) {
                           std::string level = std::get<0>(info.param);
                           std::erase_if(level,
                                         [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
                           return level + std::get<1>(info.param).name;
                         });

}  // namespace
}  // namespace tenon::compiler::kernels
