#include "compiler/lower/gpu_region.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

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

namespace {

using runtime::Size;
using Op = runtime::SizeStep::Op;

// The sizes of a region's kernel, composed of those of its steps: each step has dims of its own, which its operands'
// sizes determine.
class RegionSizes {
 public:
  // `operands`: the first buffers, which are parameters of the region.
  RegionSizes(std::vector<runtime::SignatureBuffer>& buffers, size_t operands)
      : buffers_(buffers), operands_(operands), known_(buffers.size(), false) {}

  // Begins a step: its dims, and the sizes of its parameters and results, which are buffers `at` of the region.
  void enter(const runtime::Signature& step, const std::vector<uint32_t>& at) {
    programs_.clear();
    for (const runtime::SignatureDim& dim : step.dims) programs_.push_back(program(dim, at[dim.param]));
    size_t i = 0;
    for (const auto* described : {&step.params, &step.results}) {
      for (const runtime::SignatureBuffer& buffer : *described) {
        if (!known_[at[i]]) buffers_[at[i]] = composed(buffer);
        known_[at[i++]] = true;
      }
    }
  }
  // A size over the dims of the step as one over those of the region.
  Size composed(const Size& size) const {
    Size made;
    for (const runtime::SizeStep& step : size) {
      if (step.op == Op::kDim)
        std::ranges::copy(programs_[static_cast<size_t>(step.operand)], std::back_inserter(made));
      else made.push_back(step);
    }
    return made;
  }
  runtime::SignatureBuffer composed(runtime::SignatureBuffer buffer) const {
    for (Size& axis : buffer.axes) axis = composed(axis);
    return buffer;
  }
  std::vector<runtime::SignatureDim> dims() && { return std::move(dims_); }

 private:
  // The value of a step's dim. Steps are made from one function, where equal names are equal sizes; a dim of a new name
  // is the size of a parameter of the region, or of what a step before computed.
  Size program(const runtime::SignatureDim& dim, uint32_t buffer) {
    const auto found = std::ranges::find(dims_, dim.name, &runtime::SignatureDim::name);
    if (found != dims_.end()) return {{Op::kDim, found - dims_.begin()}};
    if (buffer < operands_) {
      dims_.push_back({dim.name, buffer, dim.axis, dim.factor, composed(dim.offset)});
      return {{Op::kDim, static_cast<int64_t>(dims_.size()) - 1}};
    }
    Size made = buffers_[buffer].axes[dim.axis];  // (size - offset) / factor
    std::ranges::copy(composed(dim.offset), std::back_inserter(made));
    for (const runtime::SizeStep& step : {runtime::SizeStep{Op::kConstant, -1},
                                          {Op::kMultiply, 0},
                                          {Op::kAdd, 0},
                                          {Op::kConstant, dim.factor},
                                          {Op::kFloorDivide, 0}})
      made.push_back(step);
    return made;
  }

  std::vector<runtime::SignatureBuffer>& buffers_;
  size_t operands_;
  std::vector<bool> known_;                  // by buffer
  std::vector<Size> programs_;               // of the current step's dims
  std::vector<runtime::SignatureDim> dims_;  // of the region
};

}  // namespace

runtime::NativeKernel GpuRegion::kernel(const std::vector<runtime::NativeKernel>& of_steps) const {
  std::vector<runtime::SignatureBuffer> buffers(buffers_);
  RegionSizes sizes(buffers, operands_.size());
  runtime::NativeKernel kernel{name_, {}};
  for (const Step& step : steps_) {
    const runtime::NativeKernel& made = of_steps[step.kernel];
    std::vector<uint32_t> at = step.buffers;
    sizes.enter(made.signature, at);
    for (const runtime::SizeCheck& check : made.signature.checks)
      kernel.signature.checks.push_back({sizes.composed(check.size), check.message});
    for (const runtime::SignatureBuffer& temporary : made.temporaries) {
      at.push_back(static_cast<uint32_t>(buffers.size()));
      buffers.push_back(sizes.composed(temporary));
    }
    for (runtime::GpuLaunch launch : made.launches) {
      for (uint32_t& buffer : launch.buffers) buffer = at[buffer];
      for (Size& size : launch.sizes) size = sizes.composed(size);
      for (Size& blocks : launch.grid) blocks = sizes.composed(blocks);
      kernel.launches.push_back(std::move(launch));
    }
  }
  const auto results = buffers.begin() + static_cast<std::ptrdiff_t>(operands_.size()),
             temporaries = results + static_cast<std::ptrdiff_t>(results_);
  kernel.signature.dims = std::move(sizes).dims();
  kernel.signature.params.assign(buffers.begin(), results);
  kernel.signature.results.assign(results, temporaries);
  kernel.temporaries.assign(temporaries, buffers.end());
  return kernel;
}

}  // namespace tenon::compiler
