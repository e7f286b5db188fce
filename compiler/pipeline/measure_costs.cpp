#include "compiler/pipeline/measure_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <vector>

#include "compiler/ir/text.h"
#include "compiler/pipeline/native_runner.h"
#include "support/clock.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr int kCalls = 15;  // of a probe, after one that warms the caches

// The median of the seconds of a run of @main with this text, on small random integers.
Expected<double> seconds_of(const std::string& text) {
  Context context;
  TENON_TRY_ASSIGN(module, parse(context, "#[version = \"1\"]\n" + text));
  const Symbol entry = context.symbol("main");
  TENON_TRY_ASSIGN(run, native_runner(context)(*module, entry));
  std::vector<runtime::Tensor> inputs;
  std::mt19937 random(1);
  const Function& main = *module->function(entry);
  for (const VarId param : main.params) {
    const TensorType& type = *main.type(param).tensor();
    runtime::Tensor& tensor = inputs.emplace_back(type.dtype, *type.shape());
    if (type.dtype == DType::kF32) {
      for (float& x : tensor.data<float>()) x = static_cast<float>(random() % 7);
    } else {
      for (std::byte& x : tensor.bytes()) x = std::byte(random() % 7);
    }
  }
  std::vector<double> times;
  for (int i = 0; i <= kCalls; ++i) {
    const Stopwatch watch;
    TENON_TRY((*run)(inputs));
    if (i > 0) times.push_back(watch.seconds());
  }
  std::ranges::nth_element(times, times.begin() + kCalls / 2);
  return times[kCalls / 2];
}

// A convolution of the middle of a ResNet.
std::string convolution(std::string_view dtype) {
  return fmt::format(
      "def @main(%x: Tensor[(1, 128, 28, 28), {}], %w: Tensor[(128, 128, 3, 3), {}]) {{ "
      "conv2d(%x, %w, padding=[1, 1, 1, 1]) }}\n",
      dtype, dtype);
}
constexpr double kConvolutionMacs = 128.0 * 28 * 28 * 128 * 9;

constexpr int64_t kElements = 8 << 20;  // more than the caches hold
constexpr int kChain = 32;

// Kernels that are not fused: each product needs all of the one before.
std::string chain(int kernels) {
  std::string text = "def @main(%x: Tensor[(4, 4), f32]) { ";
  for (int i = 0; i < kernels; ++i)
    text += fmt::format("let %v{} = matmul({}, %x); ", i, i == 0 ? "%x" : fmt::format("%v{}", i - 1));
  return text + fmt::format("%v{} }}\n", kernels - 1);
}

}  // namespace

Expected<Costs> measure_costs() {
  Costs costs{.source = "this machine", .devices = {}};
  TENON_TRY_ASSIGN(floats, seconds_of(convolution("f32")));
  TENON_TRY_ASSIGN(integers, seconds_of(convolution("i8")));
  TENON_TRY_ASSIGN(
      sum, seconds_of(fmt::format("def @main(%x: Tensor[({0},), f32], %y: Tensor[({0},), f32]) {{ add(%x, %y) }}\n",
                                  kElements)));
  TENON_TRY_ASSIGN(one, seconds_of(chain(1)));
  TENON_TRY_ASSIGN(many, seconds_of(chain(kChain + 1)));
  costs.gmacs_f32 = kConvolutionMacs / *floats * 1e-9;
  costs.gmacs_i8 = kConvolutionMacs / *integers * 1e-9;
  costs.gbytes = 3.0 * sizeof(float) * kElements / *sum * 1e-9;
  costs.call_ns = std::max(0.0, *many - *one) / kChain * 1e9;
  return costs;
}

}  // namespace tenon::compiler
