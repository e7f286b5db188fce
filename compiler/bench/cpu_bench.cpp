#include "compiler/bench/cpu_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "compiler/backends/llvm/compile.h"
#include "compiler/bench/peer.h"
#include "compiler/ir/builder.h"
#include "compiler/kernels/kernels.h"
#include "compiler/kernels/schedule.h"
#include "runtime/dtype.h"
#include "support/clock.h"
#include "support/try.h"

namespace tenon::compiler::bench {
namespace {

using runtime::Tensor;

Tensor random_tensor(runtime::Shape shape, DType dtype, uint32_t seed) {
  Tensor tensor(dtype, std::move(shape));
  std::mt19937 random(seed);
  const auto fill = [&]<class T>(T, int lo, int hi) {
    const auto span = static_cast<uint32_t>(hi - lo + 1);
    for (T& x : tensor.data<T>()) x = static_cast<T>(static_cast<int>(random() % span) + lo);
  };
  if (dtype == DType::kU8) fill(uint8_t{}, 0, 255);
  if (dtype == DType::kI32) fill(int32_t{}, -128, 127);
  if (dtype == DType::kF32) {
    fill(float{}, -8, 8);
    for (float& x : tensor.data<float>()) x /= 8;
  }
  return tensor;
}

std::vector<float> floats(const Tensor& tensor) {
  std::vector<float> values;
  runtime::with_dtype<runtime::kNumericTypes>(tensor.dtype(), [&]<class T>(T) {
    for (const T x : tensor.data<T>()) values.push_back(static_cast<float>(x));
  });
  return values;
}

struct Measurement {
  Tensor x, w;
  std::vector<Tensor> params, results;
  runtime::NativeCode code;
  std::optional<runtime::NativeLibrary> library;
  std::optional<Peer> peer;
  int calls = 1;  // calls in a round of some milliseconds
  std::vector<double> times, peer_times;
  Figures figures;
};

// The kernel of a problem and its scheduled function.
struct ScheduledKernel {
  kernels::KernelFunction kernel;
  loop::Function function;
  double seconds = 0;
};

Expected<ScheduledKernel> schedule_problem(Context& context, const Problem& p, const Tensor& x_value, const Tensor& w,
                                           const Machine& machine) {
  Module module;
  Function function;
  Builder b(context, module, function);
  Atom x = b.param(context.type_of(x_value), "x");
  const double begin = cpu_seconds();
  const std::vector<int64_t> strides{p.stride, p.stride}, padding(4, p.padding());
  if (p.int8) {  // the form of quantized models
    TENON_TRY_ASSIGN(integers, b.apply(ops::kCast, {x}, {{"dtype", std::string("i32")}}));
    x = *integers;
  }
  TENON_TRY_ASSIGN(y, p.product() ? b.apply(ops::kMatmul, {x, b.constant(w)})
                                  : b.apply(ops::kConv2d, {x, b.constant(w)},
                                            {{"strides", strides}, {"padding", padding}, {"groups", p.groups}}));
  b.finish(*y);
  TENON_TRY_ASSIGN(kernel, kernels::make_kernel(context, module, "kernel", function, machine));
  loop::Function scheduled = kernels::schedule(context, kernel->function).function;
  return ScheduledKernel{std::move(*kernel), std::move(scheduled), cpu_seconds() - begin};
}

Expected<const Machine*> machine_of(const std::string& level) {
  const Machine* machine = find_machine(level);
  if (machine) return machine;
  return error(fmt::format("there is no level '{}'", level), {},
               fmt::format("the levels of this processor are {}", fmt::join(runtime::host_levels(), ", ")),
               Fault::kUsage);
}

Tensor input(const Problem& p) {
  return random_tensor(p.product() ? runtime::Shape{p.m, p.k} : runtime::Shape{1, p.channels, p.size, p.size},
                       p.int8 ? DType::kU8 : DType::kF32, 1);
}
Tensor weights(const Problem& p) {
  Tensor w = random_tensor(
      p.product() ? runtime::Shape{p.k, p.n} : runtime::Shape{p.outputs, p.channels / p.groups, p.kernel, p.kernel},
      p.int8 ? DType::kI32 : DType::kF32, 2);
  if (p.int8) {
    for (int32_t& x : w.data<int32_t>()) x >>= 8 - p.weight_bits;
  }
  return w;
}

Expected<double> compile_seconds(Context& context, const loop::Function& function, const std::string& level,
                                 runtime::NativeCode* result = nullptr) {
  const auto used = [] { return cpu_seconds() + child_cpu_seconds(); };  // the linker may be a separate process
  const double begin = used();
  const loop::Function* functions[] = {&function};
  TENON_TRY_ASSIGN(code, native::compile(context, functions, {.triple = {}, .levels = {level}, .contract = true}));
  const double seconds = used() - begin;
  if (result) *result = std::move(*code);
  return seconds;
}

Status prepare(Context& context, const Problem& p, const std::string& level, Measurement& ours,
               runtime::ThreadPool& pool) {
  ours.figures.problem = p;
  ours.x = input(p), ours.w = weights(p);
  const std::string name = level.empty() ? std::string(runtime::host_levels().front()) : level;
  TENON_TRY_ASSIGN(machine, machine_of(name));
  TENON_TRY_ASSIGN(scheduled, schedule_problem(context, p, ours.x, ours.w, **machine));
  TENON_TRY_ASSIGN(seconds, compile_seconds(context, scheduled->function, name, &ours.code));
  ours.figures.compile_seconds = scheduled->seconds + *seconds;
  TENON_TRY_ASSIGN(library, runtime::NativeLibrary::load(ours.code));
  ours.library = std::move(*library);
  for (const kernels::Operand& operand : scheduled->kernel.operands)
    ours.params.push_back(std::holds_alternative<Tensor>(operand) ? std::get<Tensor>(operand) : ours.x);
  TENON_TRY_ASSIGN(results, ours.library->call(size_t{0}, ours.params, pool));
  ours.results = std::move(*results);
  ours.peer = make_peer(p, floats(ours.x), floats(ours.w));
  if (ours.peer) {
    ours.peer->run();
    const std::vector<float> theirs = ours.peer->result(), ours_results = floats(ours.results[0]);
    float largest = 0, difference = 0;
    for (size_t i = 0; i < theirs.size(); ++i) {
      largest = std::max(largest, std::abs(theirs[i]));
      difference = std::max(difference, std::abs(theirs[i] - ours_results[i]));
    }
    ours.figures.error = difference / largest;
  }
  const double start = cpu_seconds();
  TENON_TRY(ours.library->call_into(0, ours.params, ours.results, pool));
  ours.calls = std::clamp(static_cast<int>(4e-3 / (cpu_seconds() - start + 1e-9)), 1, 1000);
  return {};
}

}  // namespace

double Problem::flops() const {
  if (product()) return 2.0 * static_cast<double>(m * n * k);
  const int64_t terms = channels / groups * kernel * kernel;
  return 2.0 * static_cast<double>(outputs * out() * out() * terms);
}

std::vector<Problem> problems() {
  std::vector<Problem> problems;
  for (const auto& [m, n, k] : {std::tuple{256, 256, 256},
                                {512, 512, 512},
                                {1024, 1024, 1024},
                                {64, 3136, 64},
                                {64, 3136, 576},
                                {3136, 64, 576}})
    problems.push_back({.name = fmt::format("{}x{}x{}", m, n, k), .group = "products", .m = m, .n = n, .k = k});
  const auto add = [&](std::string_view group, int64_t in, int64_t out, int64_t size, int64_t kernel, int64_t stride,
                       int64_t groups) {
    problems.push_back({.name = fmt::format("{}{}x{} {} -> {} at {}{}", groups > 1 ? "depthwise " : "", kernel, kernel,
                                            in, out, size, stride > 1 ? fmt::format(" / {}", stride) : ""),
                        .group = std::string(group),
                        .channels = in,
                        .outputs = out,
                        .size = size,
                        .kernel = kernel,
                        .stride = stride,
                        .groups = groups});
  };
  add("ResNet-18", 3, 64, 224, 7, 2, 1);
  add("ResNet-18", 64, 64, 56, 3, 1, 1);
  for (const int64_t c : {64, 128, 256}) {
    const int64_t size = 56 * 64 / c;
    add("ResNet-18", c, 2 * c, size, 3, 2, 1);
    add("ResNet-18", c, 2 * c, size, 1, 2, 1);
    add("ResNet-18", 2 * c, 2 * c, size / 2, 3, 1, 1);
  }
  const size_t num_with_int8 = problems.size();
  // A stem, inverted residual blocks (1x1, depthwise, 1x1) and a head; each distinct convolution once.
  struct Block {
    int64_t expansion, outputs, count, stride, kernel;
  };
  const auto add_blocks = [&](std::string_view group, const std::vector<Block>& blocks) {
    std::set<std::array<int64_t, 6>> seen;
    const auto add_new = [&](int64_t in, int64_t out, int64_t size, int64_t kernel, int64_t stride, int64_t groups) {
      if (seen.insert({in, out, size, kernel, stride, groups}).second)
        add(group, in, out, size, kernel, stride, groups);
    };
    add_new(3, 32, 224, 3, 2, 1);
    int64_t channels = 32, size = 112;
    for (const Block& block : blocks) {
      for (int64_t i = 0; i < block.count; ++i) {
        const int64_t expanded = channels * block.expansion, stride = i == 0 ? block.stride : 1;
        if (expanded != channels) add_new(channels, expanded, size, 1, 1, 1);
        add_new(expanded, expanded, size, block.kernel, stride, expanded);
        size /= stride;
        add_new(expanded, block.outputs, size, 1, 1, 1);
        channels = block.outputs;
      }
    }
    add_new(channels, 1280, size, 1, 1, 1);
  };
  add_blocks("MobileNetV2", {{1, 16, 1, 1, 3},
                             {6, 24, 2, 2, 3},
                             {6, 32, 3, 2, 3},
                             {6, 64, 4, 2, 3},
                             {6, 96, 3, 1, 3},
                             {6, 160, 3, 2, 3},
                             {6, 320, 1, 1, 3}});
  add_blocks("EfficientNet-Lite0", {{1, 16, 1, 1, 3},
                                    {6, 24, 2, 2, 3},
                                    {6, 40, 2, 2, 5},
                                    {6, 80, 3, 2, 3},
                                    {6, 112, 3, 1, 5},
                                    {6, 192, 4, 2, 5},
                                    {6, 320, 1, 1, 3}});
  for (size_t i = 0; i < num_with_int8; ++i) {
    problems.push_back(problems[i]);
    problems.back().int8 = true;
    problems.back().group += " int8", problems.back().name += " int8";
  }
  return problems;
}

Expected<std::vector<CompileFigures>> measure_compilation(const std::vector<Problem>& problems, int rounds) {
  Context context;
  TENON_TRY_ASSIGN(levels, native::levels_of({}));
  std::vector<CompileFigures> result;
  for (const Problem& p : problems) {
    CompileFigures figures{p, 0, {}};
    for (const std::string& level : *levels) {
      // Only int8 code depends on whether the level has dot products.
      if (!p.int8 && level.find('+') != std::string::npos) continue;
      TENON_TRY_ASSIGN(machine, machine_of(level));
      TENON_TRY_ASSIGN(scheduled, schedule_problem(context, p, input(p), weights(p), **machine));
      figures.loops += scheduled->seconds;
      std::vector<double> seconds;
      for (int round = 0; round < rounds; ++round) {
        TENON_TRY_ASSIGN(elapsed, compile_seconds(context, scheduled->function, level));
        seconds.push_back(*elapsed);
      }
      figures.levels.emplace_back(level, median(seconds));
    }
    result.push_back(std::move(figures));
  }
  return result;
}

Expected<std::vector<Figures>> measure(const std::vector<Problem>& problems, int rounds, const std::string& level) {
  Context context;
  runtime::ThreadPool pool(1);
  std::vector<Measurement> measurements(problems.size());
  for (size_t i = 0; i < problems.size(); ++i) {
    if (auto status = prepare(context, problems[i], level, measurements[i], pool); !status) {
      status.error().where = problems[i].name;
      return std::unexpected(std::move(status.error()));
    }
  }
  for (int round = 0; round < rounds; ++round) {
    for (Measurement& m : measurements) {
      double begin = cpu_seconds();
      for (int i = 0; i < m.calls; ++i) TENON_TRY(m.library->call_into(0, m.params, m.results, pool));
      m.times.push_back((cpu_seconds() - begin) / m.calls);
      if (!m.peer) continue;
      begin = cpu_seconds();
      for (int i = 0; i < m.calls; ++i) m.peer->run();
      m.peer_times.push_back((cpu_seconds() - begin) / m.calls);
    }
  }
  std::vector<Figures> figures;
  for (Measurement& m : measurements) {
    m.figures.ours = median(m.times);
    if (m.peer) m.figures.peer = median(m.peer_times);
    figures.push_back(m.figures);
  }
  return figures;
}

}  // namespace tenon::compiler::bench
