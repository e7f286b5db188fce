#include "runtime/vm/function_kernel.h"

#include <fmt/format.h>

#include <memory>
#include <new>
#include <utility>

#include "runtime/native/call.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

struct State {
  CpuKernel function;
  const CallKernel& call;
};

// The results, where the last inputs are the values of attributes that are computed.
Expected<std::vector<Tensor>> run_computed(const State& state, std::span<const Tensor> tensors) {
  size_t count = 0;
  for (const ComputedAttr& attr : state.call.computed) count += attr.count;
  const auto inputs = tensors.first(tensors.size() - count);
  auto values = tensors.subspan(inputs.size());
  Attrs attrs = state.call.attrs;
  for (const ComputedAttr& attr : state.call.computed) {
    auto value = computed_attr(attr.name, attr.kind, values.first(attr.count));
    if (!value) return error(fmt::format("{}: {}", state.call.kernel, value.error().what));
    attrs.insert_or_assign(attr.name, std::move(*value));
    values = values.subspan(attr.count);
  }
  return state.function(attrs, inputs);
}

int32_t run(tn_call* base) {
  auto& call = *static_cast<Call*>(base);
  const auto& state = *static_cast<const State*>(call.state);
  try {
    auto results = state.call.computed.empty() ? state.function(state.call.attrs, call.tensors)
                                               : run_computed(state, call.tensors);
    if (!results) return refuse(call, std::move(results.error()));
    if (results->size() == call.outputs) return *call.results = std::move(*results), 0;
    return refuse(call, {.what = fmt::format("kernel '{}' has {} results, the executable expects {}", state.call.kernel,
                                             results->size(), call.outputs),
                         .where = {},
                         .help = {}});
  } catch (const std::bad_alloc&) {
    return refuse(call, {.what = fmt::format("not enough memory for the results of kernel '{}'", state.call.kernel),
                         .where = {},
                         .help = {}});
  }
}

}  // namespace

OperatorKernel make_kernel(CpuKernel function, const CallKernel& call) {
  return {run, std::make_shared<State>(State{std::move(function), call})};
}

}  // namespace tenon::runtime
