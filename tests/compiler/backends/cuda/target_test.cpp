// The target "cuda", emulated: models beside the accelerator and the CPU, with the CPU's results.
#include "compiler/backends/cuda/target.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/text.h"
#include "compiler/loop/text.h"
#include "compiler/lower/lower.h"
#include "compiler/partition/partition.h"
#include "compiler/pipeline/kernel_check.h"
#include "compiler/pipeline/pipeline.h"
#include "driver/accelerator.h"
#include "tests/compiler/backends/cuda/models.h"
#include "tests/compiler/backends/cuda/transformer.h"
#include "tests/compiler/loop/must_parse.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

size_t count(const std::vector<Placement>& placements, const std::string& target) {
  return static_cast<size_t>(std::ranges::count(placements, target, &Placement::target));
}

TEST(CudaTarget, ResNet8InFloatHasTheResultsOfTheCpu) {
  auto model = load_model(kResNet8 + ".onnx", {{"N", 1}});
  ASSERT_TRUE(model) << model.error().str();
  const auto cpu = compile(*model, {.accelerators = {}, .cpu = this_processor()});
  const auto gpu = compile(*model, {.accelerators = {}, .targets = {"cuda:emulated"}, .cpu = this_processor()});
  ASSERT_TRUE(cpu) << cpu.error().str();
  ASSERT_TRUE(gpu) << gpu.error().str();
  EXPECT_GE(count(gpu->placements, "cuda"), 9u) << explain(gpu->partitioned, gpu->placements);
  for (const Placement& placement : gpu->placements) {
    if (placement.op == "conv2d" || placement.op == "relu") {
      EXPECT_EQ(placement.target, "cuda") << placement.reason;
    }
  }
  for (const Tensor& image : images("x", 3)) {
    const auto wanted = run(cpu->executable, {image}), found = run(gpu->executable, {image});
    ASSERT_TRUE(wanted) << wanted.error().str();
    ASSERT_TRUE(found) << found.error().str();
    expect_close((*found)[0], (*wanted)[0]);
  }
}

TEST(CudaTarget, TakesWhatTheAcceleratorLeaves) {
  auto model = load_model(kResNet8 + ".onnx", {{"N", 1}});
  ASSERT_TRUE(model) << model.error().str();
  Samples calibration;
  for (Tensor& sample : images("calib", 16)) calibration.push_back({std::move(sample)});
  auto accelerator = driver::open("behavioral:default");
  ASSERT_TRUE(accelerator) << accelerator.error().str();
  CompileOptions options{.accelerators = {{(*accelerator)->info().config}}, .calibration = &calibration};
  options.cpu = this_processor();
  const auto without = compile(*model, options);
  options.targets = {"cuda:emulated"};
  const auto with = compile(*model, options);
  ASSERT_TRUE(without) << without.error().str();
  ASSERT_TRUE(with) << with.error().str();
  EXPECT_EQ(count(with->placements, "accel"), count(without->placements, "accel"));
  EXPECT_EQ(count(without->placements, "cuda"), 0u);
  EXPECT_GE(count(with->placements, "cuda"), 2u) << explain(with->partitioned, with->placements);
  for (const Tensor& image : images("x", 3)) {
    const auto wanted = run(without->executable, {image}, {.accelerators = {accelerator->get()}});
    const auto found = run(with->executable, {image}, {.accelerators = {accelerator->get()}});
    ASSERT_TRUE(wanted) << wanted.error().str();
    ASSERT_TRUE(found) << found.error().str();
    EXPECT_EQ((*found)[0], (*wanted)[0]) << "integers, and one scale";
  }
}

// The results of a function of @main's parameters, with random operands, on both.
class CudaFunctions : public testing::Test {
 protected:
  std::vector<Placement> partition_of(const std::string& params, const std::string& type, const std::string& body) {
    return partition_text("#[version = \"1\"]\n" + constants + "def @main" + params + " -> " + type + " {\n" + body +
                          "\n}\n");
  }
  std::vector<Placement> partition_text(const std::string& text) {
    auto parsed = parse(context, text, {}, "m");
    EXPECT_TRUE(parsed) << parsed.error().str();
    if (!parsed) return {};
    plain = clone(*parsed);
    module = std::move(*parsed);
    auto placements = partition(context, module, main, targets);
    EXPECT_TRUE(placements) << placements.error().str();
    return placements ? *placements : std::vector<Placement>();
  }

  // Lowers @main for the targets: `gpu`, and its kernels' functions.
  bool lower_for_gpu() {
    functions.clear();
    auto lowered = lower(context, module, main, targets,
                         {.name = "m", .facts = {}, .cpu = this_processor(), .gpu_functions = &functions});
    EXPECT_TRUE(lowered) << lowered.error().str();
    if (!lowered) return false;
    gpu = std::move(*lowered);
    return true;
  }
  // `gpu` has the results of @main on the CPU, and the evaluator finds no fault in its kernels.
  void expect_results(const std::vector<Tensor>& inputs) {
    const auto cpu = lower(context, plain, main, {}, {.name = "m", .facts = {}, .cpu = this_processor()});
    ASSERT_TRUE(cpu) << cpu.error().str();
    KernelCheck kernels(context, gpu, functions);
    const auto wanted = run(*cpu, inputs), found = run(gpu, inputs, {.hook = std::ref(kernels)});
    ASSERT_TRUE(wanted) << wanted.error().str();
    ASSERT_TRUE(found) << found.error().str();
    EXPECT_EQ(kernels.kernels(), functions.size());
    ASSERT_EQ(found->size(), wanted->size());
    for (size_t i = 0; i < wanted->size(); ++i) expect_close((*found)[i], (*wanted)[i]);
  }

  Context context;
  Module plain, module;
  const Symbol main = context.symbol("main");
  std::vector<Target> targets{cuda::make_emulated_target()};
  std::string constants = {};  // of the module
  std::vector<loop::Function> functions;
  runtime::Executable gpu;
};

TEST_F(CudaFunctions, ATransformerHasTheResultsOfTheCpu) {
  const Transformer model = TransformerMaker(test_seed(21)).make(3);
  const auto placements = partition_text(model.text);
  for (const Placement& placement : placements)
    EXPECT_EQ(placement.target, "cuda") << placement.op << ": " << placement.reason;
  const LowerOptions options{.name = "encoder", .facts = {}, .cpu = this_processor()};
  const auto cpu = lower(context, plain, main, {}, options), gpu = lower(context, module, main, targets, options);
  ASSERT_TRUE(cpu) << cpu.error().str();
  ASSERT_TRUE(gpu) << gpu.error().str();
  const auto wanted = run(*cpu, model.inputs), found = run(*gpu, model.inputs);
  ASSERT_TRUE(wanted) << wanted.error().str();
  ASSERT_TRUE(found) << found.error().str();
  expect_close((*found)[0], (*wanted)[0]);
}

// Native code checks no index and no race; the hook does, by the evaluator.
TEST_F(CudaFunctions, KernelsAreCheckedByTheEvaluator) {
  const Transformer model = TransformerMaker(test_seed(23)).make(1);
  partition_text(model.text);
  std::vector<loop::Function> functions;
  const auto executable = lower(context, module, main, targets,
                                {.name = "m", .facts = {}, .cpu = this_processor(), .gpu_functions = &functions});
  ASSERT_TRUE(executable) << executable.error().str();
  ASSERT_GE(functions.size(), 8u);
  KernelCheck check(context, *executable, functions);
  const auto found = run(*executable, model.inputs, {.hook = std::ref(check)});
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_EQ(check.kernels(), functions.size());
}

TEST_F(CudaFunctions, PlantedRacesAndIndicesAreFound) {
  partition_of("(%x: Tensor[(3, 4), i32])", "Tensor[(3, 4), i32]", "  relu(%x)");
  std::vector<loop::Function> functions;
  const auto executable = lower(context, module, main, targets,
                                {.name = "m", .facts = {}, .cpu = this_processor(), .gpu_functions = &functions});
  ASSERT_TRUE(executable) << executable.error().str();
  ASSERT_EQ(functions.size(), 1u);
  const std::vector<Tensor> input{Tensor(DType::kI32, {3, 4})};
  const auto message = [&](const std::string& phases) {
    const std::vector<loop::Function> planted{loop::must_parse(
        context,
        fmt::format("loop @{}(%x: Tensor[(3, 4), i32]) -> (%y: Tensor[(3, 4), i32]) {{\n  for b in (3) block_x "
                    "{{\n{}  }}\n}}\n",
                    context.name(functions[0].name), phases))};
    KernelCheck check(context, *executable, planted);
    const auto found = run(*executable, input, {.hook = std::ref(check)});
    return found ? std::string("no error") : found.error().str();
  };
  const std::string copy =
      "    for t in (4) thread_x { stage copy(i in (3) at (b), j in (4) at (t)) { %y[i, j] = %x[i, j]; } }\n";
  const std::string reverse =
      "    for t in (4) thread_x { stage last(i in (3) at (b), j in (4) at (t)) { %y[i, 3 - j] = %x[i, j]; } }\n";
  const std::string beyond =
      "    for t in (4) thread_x { stage next(i in (3) at (b), j in (4) at (t)) { %y[i, j] = %x[i, j + 1]; } }\n";
  const std::string other =
      "    for t in (4) thread_x { stage one(i in (3) at (b), j in (4) at (t)) { %y[i, j] = %x[i, j] + i32(1); } }\n";
  EXPECT_EQ(message(copy), "no error");
  EXPECT_EQ(message(copy + "    barrier;\n" + reverse), "no error");
  EXPECT_NE(message(copy + reverse).find("race: thread"), std::string::npos) << message(copy + reverse);
  EXPECT_NE(message(beyond).find("is outside"), std::string::npos) << message(beyond);
  EXPECT_NE(message(other).find("result 0 of the kernel differs from the evaluator's"), std::string::npos)
      << message(other);
}

TEST_F(CudaFunctions, SaysWhatItDoesNotTake) {
  const auto dynamic =
      partition_of("[n](%x: Tensor[(2 * n * n, 4), f32])", "Tensor[(2 * n * n, 4), f32]", "  relu(%x)");
  ASSERT_EQ(dynamic.size(), 1u);
  EXPECT_EQ(dynamic[0].target, "");
  EXPECT_NE(dynamic[0].reason.find("cuda.relu: no parameter's size determines 'n'"), std::string::npos)
      << dynamic[0].reason;
  const auto view = partition_of("(%x: Tensor[(3, 4), f32])", "Tensor[(4, 3), f32]", "  reshape(%x, shape=[4, 3])");
  ASSERT_EQ(view.size(), 1u);
  EXPECT_EQ(view[0].target, "");
  EXPECT_NE(view[0].reason.find("cuda.reshape: its operand is not a result of cuda"), std::string::npos)
      << view[0].reason;
  const auto shared = partition_of("(%x: Tensor[(3, 4), f32])", "Tensor[(4, 3), f32]",
                                   "  let %r = relu(%x);\n  add(reshape(reshape(%r, shape=[12]), shape=[4, 3]), "
                                   "transpose(%r, axes=[1, 0]))");
  ASSERT_EQ(shared.size(), 5u);
  for (const Placement& placement : shared) EXPECT_EQ(placement.target, "cuda") << placement.reason;
  const auto scalar = partition_of("(%y: Tensor[(), f32])", "Tensor[(), f32]", "  relu(%y)");
  ASSERT_EQ(scalar.size(), 1u);
  EXPECT_NE(scalar[0].reason.find("cuda.relu: a scalar stays on the host"), std::string::npos) << scalar[0].reason;
}

// What a region makes, the next one reads in the same memory, also where they are in different blocks.
TEST_F(CudaFunctions, AValueBetweenTwoRegionsIsNotCopied) {
  for (const Placement& placement :
       partition_of("(%x: Tensor[(8, 64), f32], %b: Tensor[(), bool])", "Tensor[(8, 64), f32]",
                    "  let %a = softmax(relu(%x));\n  if (%b) { softmax(tanh(%a)) } else { relu(%a) }"))
    EXPECT_EQ(placement.target, "cuda") << placement.op << ": " << placement.reason;
  ASSERT_TRUE(lower_for_gpu());
  const Tensor x(DType::kF32, {8, 64});
  for (const bool then : {true, false}) {
    const std::vector<Tensor> inputs{x, Tensor::of<bool>({}, std::span(&then, 1))};
    std::set<const std::byte*> known{x.bytes().data()};
    for (const Tensor& constant : gpu.constants) known.insert(constant.bytes().data());
    size_t kernels = 0, copies = 0;
    const auto count = [&](const runtime::Step& step) -> Status {
      const bool is_kernel = std::holds_alternative<runtime::CallNative>(step.instruction->operation);
      kernels += is_kernel;
      for (const Tensor& arg : step.args) copies += !known.contains(arg.bytes().data());
      copies += !is_kernel && !step.results.empty();
      for (const Tensor& result : step.results) known.insert(result.bytes().data());
      return {};
    };
    const auto found = run(gpu, inputs, {.hook = count});
    ASSERT_TRUE(found) << found.error().str();
    EXPECT_GE(kernels, 3u);
    EXPECT_EQ(copies, 0u);
    EXPECT_TRUE(known.contains((*found)[0].bytes().data()));
  }
}

// Sizes that the operands determine are arguments of the kernels.
TEST_F(CudaFunctions, UnknownSizesHaveTheResultsOfTheCpu) {
  const auto placements =
      partition_of("[n, m](%x: Tensor[(n, 5), f32], %y: Tensor[(5, 2 * m + 1), f32], %g: Tensor[(2 * m + 1), f32])",
                   "Tensor[(n, 2 * m + 1), f32]",
                   "  let %p = softmax(matmul(%x, %y));\n  add(%p, layer_norm(relu(%p), %g, %g, axis=-1))");
  for (const Placement& placement : placements)
    EXPECT_EQ(placement.target, "cuda") << placement.op << ": " << placement.reason;
  const LowerOptions options{.name = "unknown", .facts = {}, .cpu = this_processor()};
  const auto cpu = lower(context, plain, main, {}, options), gpu = lower(context, module, main, targets, options);
  ASSERT_TRUE(cpu) << cpu.error().str();
  ASSERT_TRUE(gpu) << gpu.error().str();
  for (const auto& [n, columns] : {std::pair<int64_t, int64_t>(1, 1), {3, 7}, {64, 33}, {257, 129}}) {
    std::vector<Tensor> inputs{Tensor(DType::kF32, {n, 5}), Tensor(DType::kF32, {5, columns}),
                               Tensor(DType::kF32, {columns})};
    for (Tensor& input : inputs)
      for (size_t i = 0; i < input.data<float>().size(); ++i)
        input.data<float>()[i] = static_cast<float>(i * 7 % 11) / 4 - 1;
    const auto wanted = run(*cpu, inputs), found = run(*gpu, inputs);
    ASSERT_TRUE(wanted) << wanted.error().str();
    ASSERT_TRUE(found) << found.error().str();
    expect_close((*found)[0], (*wanted)[0]);
  }
}

struct ProductCase {
  std::vector<runtime::Shape> shapes;
  DType dtype{};
  std::string type, body;
};

class CudaProducts : public CudaFunctions {
 protected:
  // The loops have these parts but not the last one, no race, and the CPU's results.
  void check(const ProductCase& c, std::initializer_list<const char*> parts, const std::string& without = "") {
    std::string params;
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < c.shapes.size(); ++i) {
      Tensor& input = inputs.emplace_back(c.dtype, c.shapes[i]);
      params +=
          fmt::format("{}%{}: {}", i ? ", " : "(", static_cast<char>('a' + i), context.str(context.type_of(input)));
      for (int64_t k = 0; k < input.size(); ++k) {
        const float value = static_cast<float>(k * 7 % 23) / 8 - 1;  // exact in all floats
        const auto at = static_cast<size_t>(k);
        if (c.dtype == DType::kF32) input.data<float>()[at] = value;
        else if (c.dtype == DType::kF16) input.data<runtime::Half>()[at] = runtime::Half(value);
        else if (c.dtype == DType::kBF16) input.data<runtime::BFloat16>()[at] = runtime::BFloat16(value);
        else input.bytes()[static_cast<size_t>(k)] = static_cast<std::byte>(k * 71 % 256);
      }
    }
    partition_of(params + ")", c.type, "  " + c.body);
    ASSERT_TRUE(lower_for_gpu());
    ASSERT_EQ(functions.size(), 1u) << c.body;
    const std::string text = loop::print(context, functions[0]);
    for (const char* const part : parts)
      EXPECT_NE(text.find(part), std::string::npos) << part << " in " << c.body << text;
    if (!without.empty()) {
      EXPECT_EQ(text.find(without), std::string::npos) << without << " in " << c.body << text;
    }
    expect_results(inputs);
  }
};

// Products that fill blocks of threads have tiles in registers and panels in shared memory, whatever their operands.
TEST_F(CudaProducts, HaveTheirTemplate) {
  const ProductCase cases[] = {
      {{{40, 24}, {70, 24}}, DType::kF32, "Tensor[(40, 70), f32]", "dense(%a, %b)"},
      {{{40, 24}, {24, 70}}, DType::kF32, "Tensor[(40, 70), f32]", "gelu(matmul(%a, %b))"},
      {{{2, 3, 33, 20}, {3, 20, 50}}, DType::kF32, "Tensor[(2, 3, 33, 50), f32]", "matmul(%a, %b)"},
      {{{2, 33, 20}, {20, 50}}, DType::kF32, "Tensor[(2, 33, 50), f32]", "relu(matmul(%a, %b))"},
      {{{20, 640}, {30, 640}}, DType::kF32, "Tensor[(20, 30), f32]", "relu(dense(%a, %b))"},
      {{{2, 33, 20}, {2, 17, 20}},
       DType::kF32,
       "Tensor[(2, 33, 17), f32]",
       "einsum(%a, %b, equation=\"bik,bjk->bij\")"},
      {{{20, 33}, {20, 17}}, DType::kF32, "Tensor[(33, 17), f32]", "einsum(%a, %b, equation=\"ki,kj->ij\")"},
      {{{2, 3, 9, 7}, {20, 3, 3, 3}},
       DType::kF32,
       "Tensor[(2, 20, 9, 7), f32]",
       "relu(conv2d(%a, %b, padding=[1, 1, 1, 1]))"},
      {{{1, 32, 9, 7}, {40, 16, 1, 1}},
       DType::kF32,
       "Tensor[(1, 40, 5, 4), f32]",
       "conv2d(%a, %b, strides=[2, 2], groups=2)"},
      {{{1, 4, 60}, {16, 4, 5}},
       DType::kF32,
       "Tensor[(1, 16, 58), f32]",
       "conv1d(%a, %b, padding=[3, 3], dilation=[2])"},
      // With channels innermost pixels are rows.
      {{{2, 9, 7, 6}, {40, 3, 3, 2}},
       DType::kF32,
       "Tensor[(2, 40, 5, 8), f32]",
       "relu(conv2d(transpose(%a, axes=[0, 3, 1, 2]), %b, padding=[1, 1, 1, 1], strides=[2, 1], groups=2))"},
  };
  for (const ProductCase& c : cases) check(c, {"in shared", "in registers", "thread_y", "barrier"});
}

// What is computed from a product alone, and operands that are moved for it alone, are part of its kernel. At batch 1
// an operand with a size of 1 is read like one that is broadcast.
TEST_F(CudaProducts, TakeTheirEpiloguesAndTheViewsOfTheirOperands) {
  const ProductCase cases[] = {
      {{{40, 24}, {24, 70}, {70}},
       DType::kF32,
       "Tensor[(40, 70), f32]",
       "let %p = matmul(%a, %b) + %c;\n  let %e = erf(%p / 1.5f32);\n  %p * (%e + 1f32) * 0.5f32"},
      {{{2, 20, 24}, {2, 33, 24}},
       DType::kF32,
       "Tensor[(2, 3, 20, 33), f32]",
       "let %q = transpose(reshape(%a, shape=[2, 20, 3, 8]), axes=[0, 2, 1, 3]);\n"
       "  let %k = transpose(reshape(%b, shape=[2, 33, 3, 8]), axes=[0, 2, 3, 1]);\n  matmul(%q, %k)"},
      {{{2, 3, 20, 8}, {24, 70}, {2, 20, 70}},
       DType::kF32,
       "Tensor[(2, 20, 70), f32]",
       "let %t = reshape(transpose(%a, axes=[0, 2, 1, 3]), shape=[2, 20, 24]);\n  matmul(%t, %b) + %c"},
      {{{1, 3, 9, 7}, {20, 3, 3, 3}, {1, 20, 9, 7}},
       DType::kF32,
       "Tensor[(1, 20, 9, 7), f32]",
       "relu(conv2d(%a, %b, padding=[1, 1, 1, 1]) + %c)"},
  };
  for (const ProductCase& c : cases) check(c, {"in shared", "in registers", "thread_y", "barrier"}, "alloc %conv:");
}

// A value that another kernel reads too ends its kernel.
TEST_F(CudaFunctions, StepsHaveOneResult) {
  partition_of("(%a: Tensor[(40, 24), f32], %b: Tensor[(24, 70), f32])",
               "(Tensor[(40, 70), f32], Tensor[(40, 70), f32])",
               "  let %p = matmul(%a, %b);\n  let %r = relu(%p);\n  (%p, softmax(%r + %p))");
  std::vector<loop::Function> functions;
  const auto gpu = lower(context, module, main, targets,
                         {.name = "m", .facts = {}, .cpu = this_processor(), .gpu_functions = &functions});
  ASSERT_TRUE(gpu) << gpu.error().str();
  EXPECT_EQ(functions.size(), 3u);  // the product, relu and the addition, softmax
}

// Other sums have a register of each thread, and their epilogue is of the same launch.
TEST_F(CudaProducts, WithoutBlocksAddUpInRegisters) {
  const ProductCase cases[] = {
      {{{2, 20, 9, 7}, {20, 1, 3, 3}},
       DType::kF32,
       "Tensor[(2, 20, 5, 4), f32]",
       "relu(conv2d(%a, %b, groups=20, strides=[2, 2], padding=[1, 1, 1, 1]))"},
      {{{1, 30}, {70, 30}}, DType::kF32, "Tensor[(1, 70), f32]", "relu(dense(%a, %b))"},
      {{{30, 40}, {1, 40}}, DType::kF32, "Tensor[(40,), f32]", "sum(%a, axes=[0])"},
  };
  for (const ProductCase& c : cases) check(c, {"block_x", "thread_x", "in stack"});
}

// Those of bytes are the tensor cores', with zero points or without.
TEST_F(CudaProducts, OfBytesHaveTheInstructionOfWarps) {
  const std::string a = "cast(%a, dtype=\"i32\")", b = "cast(%b, dtype=\"i32\")";
  const ProductCase cases[] = {
      {{{40, 24}, {24, 70}}, DType::kI8, "Tensor[(40, 70), i32]", "matmul(" + a + ", " + b + ")"},
      {{{20, 70}, {33, 70}}, DType::kU8, "Tensor[(20, 33), i32]", "dense(subtract(" + a + ", 3i32), " + b + ")"},
      {{{1, 3, 9, 9}, {16, 3, 3, 3}},
       DType::kI8,
       "Tensor[(1, 16, 9, 9), i32]",
       "conv2d(" + a + ", " + b + ", padding=[1, 1, 1, 1], pad_value=-5)"},
  };
  for (const ProductCase& c : cases) {
    const char* const instruction = c.dtype == DType::kI8 ? "mma_s8_16x8x32" : "mma_u8_16x8x32";
    check(c, {"in shared", "in registers", "thread_z", instruction, "barrier"});
  }
}

// Images with zero points and paddings, and constant weights: bytes are padded with zeros, and sums are corrected by
// what their windows have outside of the image.
TEST_F(CudaProducts, OfImagesWithZeroPointsToo) {
  struct Case {
    DType dtype{};
    runtime::Shape x, w;
    std::string result, attributes;
    int zero = 0;
    std::string instruction;
  };
  const Case cases[] = {
      {DType::kI8, {1, 3, 7, 9}, {16, 3, 3, 3}, "1, 16, 7, 9", "padding=[1, 1, 1, 1]", -7, "mma_s8_16x8x32"},
      {DType::kU8,
       {2, 4, 6, 5},
       {16, 4, 2, 3},
       "2, 16, 7, 6",
       "padding=[1, 2, 1, 1], pad_value=3",
       131,
       "mma_s8_u8_16x8x32"},
      {DType::kI8, {1, 8, 40}, {32, 4, 5}, "1, 32, 21", "padding=[3, 2], strides=[2], groups=2", 0, "mma_s8_16x8x32"},
      // All windows leave the image.
      {DType::kU8,
       {1, 2, 4, 4},
       {16, 2, 5, 5},
       "1, 16, 4, 4",
       "padding=[8, 8, 8, 8], strides=[2, 2], dilation=[3, 3]",
       128,
       "mma_s8_u8_16x8x32"},
  };
  for (const Case& c : cases) {
    Tensor x(c.dtype, c.x), w(DType::kI32, c.w);
    std::string values;
    for (int64_t k = 0; k < x.size(); ++k) x.bytes()[static_cast<size_t>(k)] = static_cast<std::byte>(k * 71 % 256);
    for (int64_t k = 0; k < w.size(); ++k) values += fmt::format("{}{}", k ? ", " : "", k * 37 % 255 - 127);
    partition_text(
        fmt::format("#[version = \"1\"]\nconst $w: {} = [{}];\n"
                    "def @main(%x: {}) -> Tensor[({}), i32] {{\n"
                    "  conv{}d(cast(%x, dtype=\"i32\") - {}i32, $w, {})\n}}\n",
                    context.str(context.type_of(w)), values, context.str(context.type_of(x)), c.result, c.x.size() - 2,
                    c.zero, c.attributes));
    ASSERT_TRUE(lower_for_gpu());
    ASSERT_EQ(functions.size(), 1u) << c.attributes;
    const std::string text = loop::print(context, functions[0]);
    EXPECT_NE(text.find("@" + c.instruction + "("), std::string::npos) << c.instruction << " in " << text;
    expect_results({x});
  }
}

// Those of f16 and bf16 too, and of f32 by tf32, where the user allows it. The terms of these cases and their sums are
// exact in f32, so that their order does not matter.
TEST_F(CudaProducts, OfShortFloatsAreInexactWhereTheUserAllowsIt) {
  const std::string f16 = "mma_f16_16x8x16", bf16 = "mma_bf16_16x8x16", tf32 = "mma_tf32_16x8x8";
  const std::pair<ProductCase, std::string> cases[] = {
      {{{{40, 24}, {24, 70}}, DType::kF16, "Tensor[(40, 70), f16]", "relu(matmul(%a, %b))"}, f16},
      {{{{20, 70}, {33, 70}}, DType::kBF16, "Tensor[(20, 33), bf16]", "dense(%a, %b)"}, bf16},
      {{{{2, 3, 9, 9}, {16, 3, 3, 3}},
        DType::kF16,
        "Tensor[(2, 16, 9, 9), f16]",
        "conv2d(%a, %b, padding=[1, 1, 1, 1])"},
       f16},
      {{{{2, 33, 20}, {2, 17, 20}},
        DType::kBF16,
        "Tensor[(2, 33, 17), bf16]",
        "einsum(%a, %b, equation=\"bik,bjk->bij\")"},
       bf16},
      {{{{40, 24}, {70, 24}}, DType::kF32, "Tensor[(40, 70), f32]", "dense(%a, %b)"}, tf32},
  };
  for (const auto& [c, instruction] : cases) {
    targets = {cuda::make_emulated_target()};
    check(c, {"in shared", "in registers", "thread_y", "barrier"});
    targets = {cuda::make_emulated_target({.inexact = {.f16 = true, .bf16 = true, .tf32 = true}})};
    check(c, {"in shared", "in registers", "thread_z", instruction.c_str(), "inexact;", "barrier"});
  }
}

// Layouts of the values between the kernels of a region.
class CudaLayouts : public CudaFunctions {
 protected:
  // The types of the kernels' results; equal kernels are one.
  std::vector<std::string> stored_by(const std::string& params, const std::string& type, const std::string& body) {
    partition_of(params, type, body);
    if (!lower_for_gpu()) return {};
    std::vector<std::string> types;
    for (const loop::Function& function : functions) {
      for (const loop::BufferId result : function.results) {
        Dims sizes;
        for (const loop::BufferAxis& axis : function.buffer(result).axes) sizes.push_back(axis.extent);
        types.push_back(context.str(context.tensor(sizes, function.buffer(result).dtype)));
      }
    }
    return types;
  }

  void check(const std::string& params, const std::string& type, const std::string& body,
             const std::vector<runtime::Shape>& shapes, const std::vector<std::string>& stored, DType dtype) {
    ASSERT_EQ(stored_by(params, type, body), stored) << body;
    std::vector<Tensor> inputs;
    for (const runtime::Shape& shape : shapes) {
      Tensor& input = inputs.emplace_back(dtype, shape);
      for (int64_t k = 0; k < input.size(); ++k) {
        const float value = static_cast<float>(k * 7 % 23) / 64 - 0.125f;
        const auto at = static_cast<size_t>(k);
        if (dtype == DType::kF32) input.data<float>()[at] = value;
        else if (dtype == DType::kF16) input.data<runtime::Half>()[at] = runtime::Half(value);
        else input.bytes()[at] = static_cast<std::byte>(k * 71 % 7 - 3);
      }
    }
    expect_results(inputs);
  }

  static std::string tensor(const std::string& dims, const std::string& dtype) {
    return "Tensor[(" + dims + "), " + dtype + "]";
  }
  void use_tensor_cores() { targets = {cuda::make_emulated_target({.inexact = {.f16 = true, .tf32 = true}})}; }
};

// Convolutions, poolings and elementwise operators between convolutions of tensor cores pass on channels innermost; a
// region reads and returns what it has in the layout of its caller.
TEST_F(CudaLayouts, ConvolutionsOfTensorCoresPassOnChannelsInnermost) {
  for (const std::string dtype : {"f32", "f16"}) {
    const std::string params = fmt::format(
        "(%x: Tensor[(2, 3, 8, 10), {0}], %a: Tensor[(16, 3, 3, 3), {0}], %b: Tensor[(16, 16, 3, 3), {0}], "
        "%d: Tensor[(16, 1, 3, 3), {0}], %e: Tensor[(32, 8, 1, 1), {0}], %c: Tensor[(1, 16, 1, 1), {0}])",
        dtype);
    const std::string body =
        "  let %s = relu(conv2d(%x, %a, padding=[1, 1, 1, 1]));\n"
        "  let %p = max_pool2d(%s, kernel=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]);\n"
        "  let %q = relu(conv2d(%p, %b, padding=[1, 1, 1, 1]) + %c);\n"
        "  let %r = relu(conv2d(%q, %b, padding=[2, 2, 2, 2], dilation=[2, 2]) + %p);\n"
        "  let %w = relu(conv2d(%r, %d, padding=[1, 1, 1, 1], groups=16));\n"
        "  conv2d(%w, %e, strides=[1, 1], groups=2)";
    const std::vector<runtime::Shape> shapes{{2, 3, 8, 10}, {16, 3, 3, 3}, {16, 16, 3, 3},
                                             {16, 1, 3, 3}, {32, 8, 1, 1}, {1, 16, 1, 1}};
    const DType type = dtype == "f32" ? DType::kF32 : DType::kF16;
    const auto stored = [&](bool channels_last) {
      const std::string large = tensor(channels_last ? "2, 8, 10, 16" : "2, 16, 8, 10", dtype),
                        small = tensor(channels_last ? "2, 4, 5, 16" : "2, 16, 4, 5", dtype);
      return std::vector{large, small, small, small, small, tensor("2, 32, 4, 5", dtype)};
    };
    const std::string result = tensor("2, 32, 4, 5", dtype);
    targets = {cuda::make_emulated_target()};
    EXPECT_EQ(stored_by(params, result, body), stored(false));
    use_tensor_cores();
    check(params, result, body, shapes, stored(true), type);
  }
}

// Products of bytes are exact, so that no user has to allow them. Rows of images are convolved likewise.
TEST_F(CudaLayouts, BytesAndRowsToo) {
  check("(%x: Tensor[(1, 16, 40), i8], %a: Tensor[(16, 16, 3), i8], %b: Tensor[(32, 16, 5), i8])",
        tensor("1, 32, 40", "i32"),
        "  let %p = conv1d(cast(%x, dtype=\"i32\"), cast(%a, dtype=\"i32\"), padding=[1, 1]);\n"
        "  let %q = cast(minimum(maximum(%p, -100i32), 100i32), dtype=\"i8\");\n"
        "  conv1d(cast(%q, dtype=\"i32\"), cast(%b, dtype=\"i32\"), padding=[2, 2])",
        {{1, 16, 40}, {16, 16, 3}, {32, 16, 5}}, {tensor("1, 40, 16", "i8"), tensor("1, 32, 40", "i32")}, DType::kI8);
}

// Between quantized convolutions with zero points.
TEST_F(CudaLayouts, ZeroPointsToo) {
  std::string values;
  for (int64_t k = 0; k < 32 * 16 * 9; ++k) values += fmt::format("{}{}", k ? ", " : "", k * 37 % 255 - 127);
  constants = fmt::format("const $w: Tensor[(32, 16, 3, 3), i32] = [{}];\n", values);
  check("(%x: Tensor[(1, 4, 9, 7), u8], %a: Tensor[(16, 4, 1, 1), u8])", tensor("1, 32, 9, 7", "i32"),
        "  let %p = conv2d(cast(%x, dtype=\"i32\"), cast(%a, dtype=\"i32\"));\n"
        "  let %q = cast(minimum(%p, 255i32), dtype=\"u8\");\n"
        "  conv2d(cast(%q, dtype=\"i32\") - 117i32, $w, padding=[1, 1, 1, 1])",
        {{1, 4, 9, 7}, {16, 4, 1, 1}}, {tensor("1, 9, 7, 16", "u8"), tensor("1, 32, 9, 7", "i32")}, DType::kU8);
}

// Readers that want another layout, channels that are no whole words, results of the region.
TEST_F(CudaLayouts, OtherReadersKeepTheLayout) {
  use_tensor_cores();
  const std::string params =
      "(%x: Tensor[(1, 16, 8, 8), f32], %a: Tensor[(16, 16, 1, 1), f32], %b: Tensor[(16, 18, 3, 3), f32], "
      "%c: Tensor[(18, 16, 1, 1), f32])";
  const std::vector<runtime::Shape> shapes{{1, 16, 8, 8}, {16, 16, 1, 1}, {16, 18, 3, 3}, {18, 16, 1, 1}};
  const std::string image = tensor("1, 16, 8, 8", "f32"), odd = tensor("1, 18, 8, 8", "f32");
  // Both convolutions have one kernel, whose result has the layout for both.
  check(params, "(" + image + ", " + image + ")", "  let %p = conv2d(%x, %a);\n  (%p, conv2d(%p, %a))", shapes, {image},
        DType::kF32);
  check(params, image, "  let %p = softmax(conv2d(%x, %a));\n  conv2d(%p, %a)", shapes, {image, image}, DType::kF32);
  check(params, image, "  let %p = conv2d(%x, %c);\n  conv2d(%p, %b, padding=[1, 1, 1, 1])", shapes, {odd, image},
        DType::kF32);
}

TEST_F(CudaFunctions, RequiresNativeKernels) {
  partition_of("(%x: Tensor[(3, 4), f32])", "Tensor[(3, 4), f32]", "  relu(%x)");
  LowerOptions options{.name = "relu", .facts = {}};
  options.cpu.native = false;
  const auto found = lower(context, module, main, targets, options);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().str().find("target cuda requires native kernels, which are off"), std::string::npos)
      << found.error().str();
}

}  // namespace
}  // namespace tenon::compiler
