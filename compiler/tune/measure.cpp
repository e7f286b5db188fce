#include "compiler/tune/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <random>

#include "compiler/backends/llvm/compile.h"
#include "compiler/kernels/kernels.h"
#include "compiler/kernels/schedule.h"
#include "runtime/native/native.h"
#include "support/clock.h"
#include "support/try.h"

namespace tenon::compiler::tune {
namespace {

using runtime::DType;
using runtime::Tensor;

constexpr double kRoundSeconds = 1e-3;  // of one kernel, at least

// Of a size that sums of thousands of them stay in range.
Tensor random_tensor(DType dtype, const runtime::Shape& shape, uint32_t seed) {
  Tensor tensor(dtype, shape);
  std::mt19937 random(seed);
  const auto fill = [&]<class T>(std::span<T> values) {
    for (T& x : values) {
      if constexpr (std::is_floating_point_v<T>) x = static_cast<T>(static_cast<int32_t>(random())) / T(2147483648.0);
      else x = static_cast<T>(random() % 7);
    }
  };
  switch (dtype) {
    case DType::kF32: fill(tensor.data<float>()); break;
    case DType::kF64: fill(tensor.data<double>()); break;
    default: {
      for (std::byte& byte : tensor.bytes()) byte = std::byte{0};
      const size_t width = tensor.bytes().size() / std::max<size_t>(static_cast<size_t>(tensor.size()), 1);
      for (size_t i = 0; width > 0 && i < tensor.bytes().size(); i += width)
        tensor.bytes()[i] = std::byte(random() % 7);
    }
  }
  return tensor;
}

}  // namespace

struct Bench::State {
  struct Batch {
    runtime::NativeCode code;
    std::optional<runtime::NativeLibrary> library;
  };
  struct One {
    const Batch* batch = nullptr;
    size_t kernel = 0;
    std::vector<Tensor> params, results;
    int calls = 1;  // a round
    std::vector<double> times;
  };

  Context& context;
  const Module& kernels;
  const Task& task;
  const std::string level;
  runtime::ThreadPool pool{1};
  std::vector<Tensor> args = {};  // of the group
  std::vector<std::unique_ptr<Batch>> batches = {};
  std::vector<One> all = {};
};

Bench::Bench(Context& context, const Module& kernels, const Task& task, std::string level)
    : state_(new State{context, kernels, task, std::move(level)}) {
  uint32_t seed = 0;
  for (const VarId param : task.group.params) {
    const TensorType* type = task.group.type(param).tensor();
    const auto shape = type ? type->shape() : std::nullopt;
    state_->args.push_back(shape ? random_tensor(type->dtype, *shape, ++seed) : Tensor());
  }
}
Bench::Bench(Bench&&) noexcept = default;
Bench::~Bench() = default;

Status Bench::add(const std::vector<kernels::Choice>& choices) {
  State& s = *state_;
  if (!std::ranges::all_of(s.args, [](const Tensor& arg) { return static_cast<bool>(arg); }))
    return error("a size is unknown", s.task.key, "bind it, as --shapes N=1", Fault::kUsage);
  auto batch = std::make_unique<State::Batch>();
  std::vector<loop::Function> functions;
  std::vector<State::One> fresh;
  for (const kernels::Choice& choice : choices) {
    TENON_TRY_ASSIGN(kernel, kernels::make_kernel(s.context, s.kernels, fmt::format("kernel{}", functions.size()),
                                                  s.task.group, [&](const std::string& key) {
                                                    return key == s.task.key ? choice : kernels::Choice();
                                                  }));
    functions.push_back(kernels::schedule(s.context, std::move(kernel->function)).function);
    State::One& one = fresh.emplace_back();
    one.batch = batch.get();
    one.kernel = functions.size() - 1;
    for (const kernels::Operand& operand : kernel->operands) {
      const auto* number = std::get_if<size_t>(&operand);
      one.params.push_back(number ? s.args[*number] : std::get<Tensor>(operand));
    }
  }
  std::vector<const loop::Function*> pointers;
  for (const loop::Function& function : functions) pointers.push_back(&function);
  TENON_TRY_ASSIGN(code, native::compile(s.context, pointers, {.triple = {}, .levels = {s.level}, .contract = true}));
  batch->code = std::move(*code);
  TENON_TRY_ASSIGN(library, runtime::NativeLibrary::load(batch->code));
  batch->library = std::move(*library);
  for (State::One& one : fresh) {
    TENON_TRY_ASSIGN(results, batch->library->call(one.kernel, one.params, s.pool));
    one.results = std::move(*results);
    const double begin = thread_cpu_seconds();
    TENON_TRY(batch->library->call_into(one.kernel, one.params, one.results, s.pool));
    one.calls = std::clamp(static_cast<int>(kRoundSeconds / (thread_cpu_seconds() - begin + 1e-9)), 1, 10000);
    if (!s.all.empty() || &one != &fresh.front()) {
      const auto& wanted = s.all.empty() ? fresh.front().results : s.all.front().results;
      if (one.results != wanted) {
        return error(fmt::format("'{}' computes something else", kernels::str(choices[one.kernel])), s.task.key, {},
                     Fault::kInternal);
      }
    }
  }
  for (State::One& one : fresh) s.all.push_back(std::move(one));
  s.batches.push_back(std::move(batch));
  return {};
}

Expected<std::vector<double>> Bench::measure(const std::vector<size_t>& numbers, int rounds) {
  State& s = *state_;
  for (int round = 0; round < rounds; ++round) {
    for (const size_t number : numbers) {
      State::One& one = s.all[number];
      const double begin = thread_cpu_seconds();
      for (int i = 0; i < one.calls; ++i)
        TENON_TRY(one.batch->library->call_into(one.kernel, one.params, one.results, s.pool));
      one.times.push_back((thread_cpu_seconds() - begin) / one.calls);
    }
  }
  std::vector<double> seconds;
  for (const size_t number : numbers) seconds.push_back(median(s.all[number].times));
  return seconds;
}

}  // namespace tenon::compiler::tune
