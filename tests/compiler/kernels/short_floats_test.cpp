// Kernels of f16 and bf16: computed in f32, each operator's result rounded once, as the reference kernels do.
#include "compiler/kernels/short_floats.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "compiler/backends/llvm/compile.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/kernels/kernels.h"
#include "compiler/kernels/schedule.h"
#include "compiler/loop/evaluate.h"
#include "compiler/loop/text.h"
#include "runtime/native/native.h"

namespace tenon::compiler::kernels {
namespace {

Tensor counted(DType dtype, const runtime::Shape& shape, int64_t seed) {
  Tensor tensor(dtype, shape);
  runtime::with_dtype<runtime::kShortFloats>(dtype, [&]<class T>(T) {
    auto data = tensor.data<T>();
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = T(static_cast<float>((static_cast<int64_t>(i) * 37 + seed) % 101) / 23 - 2);
  });
  return tensor;
}

// Elementary functions and orders of sums may move a result by a unit in the last place.
void expect_close(const Tensor& found, const Tensor& expected, const std::string& where) {
  ASSERT_EQ(found.dtype(), expected.dtype()) << where;
  ASSERT_EQ(found.shape(), expected.shape()) << where;
  if (!runtime::kShortFloats.contains(found.dtype())) {
    EXPECT_EQ(found, expected) << where;
    return;
  }
  runtime::with_dtype<runtime::kShortFloats>(found.dtype(), [&]<class T>(T) {
    const float unit = found.dtype() == DType::kF16 ? 0x1p-10f : 0x1p-7f;
    for (size_t i = 0; i < found.data<T>().size(); ++i) {
      const auto x = static_cast<float>(found.data<T>()[i]), y = static_cast<float>(expected.data<T>()[i]);
      ASSERT_LE(std::abs(x - y), unit * std::abs(y)) << where << ", element " << i << ": " << x << ", expected " << y;
    }
  });
}

struct Case {
  std::vector<runtime::Shape> shapes;
  std::string type, call;
};

TEST(ShortFloats, KernelsComputeTheReferenceResults) {
  const Case cases[] = {
      {{{5, 7}, {7, 9}}, "Tensor[(5, 9), {}]", "relu(matmul(%a, %b))"},
      {{{17, 20}, {18, 20}, {18}}, "Tensor[(17, 18), {}]", "gelu(add(dense(%a, %b), %c))"},
      {{{1, 3, 6, 5}, {16, 3, 3, 3}}, "Tensor[(1, 16, 6, 5), {}]", "conv2d(%a, %b, padding=[1, 1, 1, 1])"},
      {{{3, 4, 5}, {4, 5, 6}}, "Tensor[(3, 6), {}]", "einsum(%a, %b, equation=\"ijk,jkl->il\")"},
      {{{3, 40}}, "Tensor[(3, 40), {}]", "softmax(%a)"},
      {{{3, 40}, {3, 40}}, "Tensor[(3, 40), {}]", "multiply(add(%a, %b), tanh(%b))"},
      {{{3, 4}}, "Tensor[(4, 3), {}]", "transpose(%a, axes=[1, 0])"},
      {{{3, 4}}, "Tensor[(3, 4), i32]", "cast(%a, dtype=\"i32\")"},
      {{{3, 4}}, "Tensor[(3, 4), bool]", "less(%a, relu(%a))"},
      {{{2, 30}}, "Tensor[(2,), {}]", "sum(%a, axes=[1])"},
  };
  const Machine* const host = find_machine(runtime::host_levels().front());
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const Case& c : cases) {
      Context context;
      std::string params;
      std::vector<Tensor> arguments;
      for (size_t i = 0; i < c.shapes.size(); ++i) {
        arguments.push_back(counted(dtype, c.shapes[i], static_cast<int64_t>(i) * 11));
        params += fmt::format("{}%{}: {}", i ? ", " : "", static_cast<char>('a' + i),
                              context.str(context.type_of(arguments.back())));
      }
      const std::string text = fmt::format("#[version = \"1\"]\ndef @main({}) -> {} {{ {} }}\n", params,
                                           fmt::format(fmt::runtime(c.type), runtime::name(dtype)), c.call);
      const auto module = parse(context, text, {}, "m.tn");
      ASSERT_TRUE(module) << text << module.error().str();
      const Symbol main = context.symbol("main");
      const auto expected = interpret(context, *module, main, arguments);
      ASSERT_TRUE(expected) << text << expected.error().str();
      for (const Machine* machine : {host, find_machine("sm_80")}) {
        const auto kernel = make_kernel(context, *module, "kernel", *module->function(main), *machine);
        ASSERT_TRUE(kernel) << text << kernel.error().str();
        EXPECT_EQ(kernel->refused, "") << text;
        std::vector<Tensor> operands;
        for (const Operand& operand : kernel->operands)
          operands.push_back(std::holds_alternative<Tensor>(operand) ? std::get<Tensor>(operand)
                                                                     : arguments[std::get<size_t>(operand)]);
        const loop::Function function =
            machine == host ? schedule(context, kernel->function).function : kernel->algorithm;
        const auto found = loop::evaluate(context, function, operands);
        ASSERT_TRUE(found) << text << found.error().str() << loop::print(context, function);
        expect_close((*found)[0], (*expected)[0], "evaluated: " + text);
        if (machine != host) continue;
        const loop::Function* const functions[] = {&function};
        native::Options options;
        options.levels = {std::string(host->name)};
        const auto code = native::compile(context, functions, options);
        ASSERT_TRUE(code) << code.error().str();
        const auto library = runtime::NativeLibrary::load(*code);
        ASSERT_TRUE(library) << library.error().str();
        runtime::ThreadPool pool(1);
        const auto computed = library->call(size_t{0}, operands, pool);
        ASSERT_TRUE(computed) << text << computed.error().str();
        expect_close((*computed)[0], (*expected)[0], "native: " + text);
      }
    }
  }
}

// A conversion from f64 would round twice on its way through f32.
TEST(ShortFloats, ConversionsThatRoundTwiceHaveNoKernel) {
  for (const auto& [from, accepted] :
       {std::pair("f32", true), {"i8", true}, {"bf16", true}, {"f64", false}, {"i32", false}}) {
    Context context;
    const auto module = parse(
        context,
        fmt::format(
            "#[version = \"1\"]\ndef @main(%a: Tensor[(3,), {}]) -> Tensor[(3,), f16] {{ cast(%a, dtype=\"f16\") }}\n",
            from),
        {}, "m.tn");
    ASSERT_TRUE(module) << module.error().str();
    const auto kernel =
        make_kernel(context, *module, "kernel", *module->function(context.symbol("main")), *find_machine("x86-64-v3"));
    EXPECT_EQ(kernel.has_value(), accepted) << from;
    if (!kernel) {
      EXPECT_NE(kernel.error().what.find("cast to f16 has no native code"), std::string::npos) << kernel.error().what;
    }
  }
}

}  // namespace
}  // namespace tenon::compiler::kernels
