#include "compiler/lower/gpu_region.h"

#include <algorithm>
#include <map>

namespace tenon::compiler {

GpuRegion::GpuRegion(std::string_view name, size_t params, const BoundKernels& kernels) : name_(name) {
  const auto add = [&](const std::variant<size_t, runtime::Tensor>& operand) {
    const auto* value = std::get_if<size_t>(&operand);
    if ((!value || *value < params) && std::ranges::find(operands_, operand) == operands_.end())
      operands_.push_back(operand);
  };
  for (const BoundStep& step : kernels.steps) std::ranges::for_each(step.operands, add);
  std::map<size_t, uint32_t> computed;  // buffers of the values that steps compute: results first
  for (const size_t value : kernels.results)
    if (value >= params) computed.emplace(value, static_cast<uint32_t>(operands_.size() + computed.size()));
  results_ = computed.size();
  size_t next = params;  // value
  for (const BoundStep& step : kernels.steps) {
    Step& made = steps_.emplace_back();
    for (const auto& operand : step.operands) {
      const auto* value = std::get_if<size_t>(&operand);
      if (value && *value >= params) made.buffers.push_back(computed.at(*value));
      else made.buffers.push_back(static_cast<uint32_t>(std::ranges::find(operands_, operand) - operands_.begin()));
    }
    for (size_t i = 0; i < step.function.results.size(); ++i, ++next) {
      computed.emplace(next, static_cast<uint32_t>(operands_.size() + computed.size()));
      made.buffers.push_back(computed.at(next));
    }
  }
  buffers_ = operands_.size() + computed.size();
}

runtime::NativeKernel GpuRegion::kernel(const std::vector<runtime::NativeKernel>& of_steps) const {
  std::vector<runtime::SignatureBuffer> buffers(buffers_);
  runtime::NativeKernel kernel{name_, {}};
  for (const Step& step : steps_) {
    const runtime::NativeKernel& made = of_steps[step.kernel];
    std::vector<uint32_t> at = step.buffers;
    size_t i = 0;
    for (const auto* described : {&made.signature.params, &made.signature.results})
      for (const runtime::SignatureBuffer& buffer : *described) buffers[at[i++]] = buffer;
    for (const runtime::SignatureBuffer& temporary : made.temporaries) {
      at.push_back(static_cast<uint32_t>(buffers.size()));
      buffers.push_back(temporary);
    }
    for (runtime::GpuLaunch launch : made.launches) {
      for (uint32_t& buffer : launch.buffers) buffer = at[buffer];
      kernel.launches.push_back(std::move(launch));
    }
  }
  const auto results = buffers.begin() + static_cast<std::ptrdiff_t>(operands_.size()),
             temporaries = results + static_cast<std::ptrdiff_t>(results_);
  kernel.signature.params.assign(buffers.begin(), results);
  kernel.signature.results.assign(results, temporaries);
  kernel.temporaries.assign(temporaries, buffers.end());
  return kernel;
}

}  // namespace tenon::compiler
