// A region on a GPU: one kernel of the executable, whose launches are those of the region's steps.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/partition/target.h"
#include "runtime/native/native.h"

namespace tenon::compiler {

class GpuRegion {
 public:
  // `params`: of the region; some may be read by no step.
  GpuRegion(std::string_view name, size_t params, const BoundKernels& kernels);

  // The operands of the kernel: parameters of the region by index, and constants.
  const std::vector<std::variant<size_t, runtime::Tensor>>& operands() const { return operands_; }
  // The index of the next step's kernel.
  void add_kernel(uint32_t kernel) { steps_[next_++].kernel = kernel; }
  // The kernel of the region, from those of all steps. Its results are the values that the region returns and computes,
  // each once; all other values are temporaries.
  runtime::NativeKernel kernel(const std::vector<runtime::NativeKernel>& of_steps) const;

 private:
  struct Step {
    uint32_t kernel = 0;
    std::vector<uint32_t> buffers;  // of the kernel's parameters and results
  };

  std::string name_;
  std::vector<std::variant<size_t, runtime::Tensor>> operands_;
  std::vector<Step> steps_;
  size_t next_ = 0, results_ = 0, buffers_ = 0;  // buffers_: without the temporaries of steps
};

}  // namespace tenon::compiler
