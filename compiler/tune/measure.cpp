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

constexpr double kRoundSeconds = 1e-3;  // minimum of a round of one kernel

// Random values so small that sums of thousands of them stay in range.
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
  struct CandidateKernel {
    const Batch* batch = nullptr;
    size_t kernel = 0;
    std::vector<Tensor> params, results;
    int calls = 1;  // calls in a round
    std::vector<double> times;
  };

  Context& context;
  const Module& kernels;
  const Task& task;
  const Machine& machine;
  runtime::ThreadPool pool{1};
  std::vector<Tensor> args = {};  // arguments of the group
  std::vector<std::unique_ptr<Batch>> batches = {};
  std::vector<CandidateKernel> candidates = {};
};

Bench::Bench(Context& context, const Module& kernels, const Task& task, const Machine& machine)
    : state_(new State{context, kernels, task, machine}) {
  uint32_t seed = 0;
  for (const VarId param : task.group.params) {
    const TensorType* type = task.group.type(param).tensor();
    const auto shape = type ? type->shape() : std::nullopt;
    state_->args.push_back(shape ? random_tensor(type->dtype, *shape, ++seed) : Tensor());
  }
}
Bench::Bench(Bench&&) noexcept = default;
Bench::~Bench() = default;

Status Bench::add(const std::vector<kernels::KnobSettings>& settings_list) {
  State& s = *state_;
  if (!std::ranges::all_of(s.args, [](const Tensor& arg) { return static_cast<bool>(arg); }))
    return error("a size is not constant", s.task.key, "bind it, for example with --shapes N=1", Fault::kUsage);
  auto batch = std::make_unique<State::Batch>();
  std::vector<loop::Function> functions;
  std::vector<State::CandidateKernel> added;
  for (const kernels::KnobSettings& settings : settings_list) {
    TENON_TRY_ASSIGN(kernel, kernels::make_kernel(s.context, s.kernels, fmt::format("kernel{}", functions.size()),
                                                  s.task.group, s.machine, [&](const std::string& key) {
                                                    return key == s.task.key ? settings : kernels::KnobSettings();
                                                  }));
    functions.push_back(kernels::schedule(s.context, std::move(kernel->function)).function);
    State::CandidateKernel& candidate = added.emplace_back();
    candidate.batch = batch.get();
    candidate.kernel = functions.size() - 1;
    for (const kernels::Operand& operand : kernel->operands) {
      const auto* index = std::get_if<size_t>(&operand);
      candidate.params.push_back(index ? s.args[*index] : std::get<Tensor>(operand));
    }
  }
  std::vector<const loop::Function*> pointers;
  for (const loop::Function& function : functions) pointers.push_back(&function);
  TENON_TRY_ASSIGN(code, native::compile(s.context, pointers,
                                         {.triple = {}, .levels = {std::string(s.machine.name)}, .contract = true}));
  batch->code = std::move(*code);
  TENON_TRY_ASSIGN(library, runtime::NativeLibrary::load(batch->code));
  batch->library = std::move(*library);
  for (State::CandidateKernel& candidate : added) {
    TENON_TRY_ASSIGN(results, batch->library->call(candidate.kernel, candidate.params, s.pool));
    candidate.results = std::move(*results);
    const double begin = thread_cpu_seconds();
    TENON_TRY(batch->library->call_into(candidate.kernel, candidate.params, candidate.results, s.pool));
    candidate.calls = std::clamp(static_cast<int>(kRoundSeconds / (thread_cpu_seconds() - begin + 1e-9)), 1, 10000);
    if (!s.candidates.empty() || &candidate != &added.front()) {
      const auto& expected = s.candidates.empty() ? added.front().results : s.candidates.front().results;
      if (candidate.results != expected) {
        return error(fmt::format("the results of '{}' differ from those of the default",
                                 kernels::str(settings_list[candidate.kernel])),
                     s.task.key, {}, Fault::kInternal);
      }
    }
  }
  for (State::CandidateKernel& candidate : added) s.candidates.push_back(std::move(candidate));
  s.batches.push_back(std::move(batch));
  return {};
}

Expected<std::vector<double>> Bench::measure(const std::vector<size_t>& indices, int rounds) {
  State& s = *state_;
  for (int round = 0; round < rounds; ++round) {
    for (const size_t index : indices) {
      State::CandidateKernel& candidate = s.candidates[index];
      const double begin = thread_cpu_seconds();
      for (int i = 0; i < candidate.calls; ++i)
        TENON_TRY(candidate.batch->library->call_into(candidate.kernel, candidate.params, candidate.results, s.pool));
      candidate.times.push_back((thread_cpu_seconds() - begin) / candidate.calls);
    }
  }
  std::vector<double> seconds;
  for (const size_t index : indices) seconds.push_back(median(s.candidates[index].times));
  return seconds;
}

}  // namespace tenon::compiler::tune
