#include "compiler/kernels/size_checks.h"

#include <fmt/format.h>

#include "compiler/ir/operator.h"
#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {
namespace {

void require(const OperatorCall& call, Dim size, std::string_view message) {
  call.emit.require(size, fmt::format("{}: {}", call.op.name, message));
}

void require_elements(const OperatorCall& call, Dim size, std::string_view message) {
  require(call, call.context().subtract(size, call.dim(1)), message);
}

void require_fit(const OperatorCall& call, Dims kernel, std::string_view message) {
  Context& context = call.context();
  const Windows windows = read_windows(call, std::move(kernel));
  for (size_t d = 0; d < windows.rank(); ++d) {
    const Dim last = context.subtract(windows.kernel[d], context.dim(1));
    const Dim footprint = context.add(windows.input_index(context, d, context.dim(0), last), context.dim(1));
    const Dim padded = context.add(windows.in[d], context.dim(windows.before[d] + windows.after[d]));
    require(call, context.subtract(padded, footprint), message);
  }
}

}  // namespace

void require_axis(const OperatorCall& call) {
  const Dims& x = call.arg(0).dims;
  require_elements(call, x[call.axis("axis", x.size())], "the axis has no element");
}

void require_window(const OperatorCall& call) {
  Dims kernel;
  for (const int64_t size : call.integers("kernel")) kernel.push_back(call.dim(size));
  require_fit(call, std::move(kernel), "the window is larger than the padded input");
}

void require_kernel(const OperatorCall& call) {
  const Dims& weights = call.arg(1).dims;
  require_fit(call, Dims(weights.begin() + 2, weights.end()), "the kernel is larger than the padded input");
}

void require_result(const OperatorCall& call) {
  for (size_t d = 2; d < call.dims().size(); ++d)
    require_elements(call, call.dims()[d], "the result is empty after padding is removed");
}

void require_maps(const OperatorCall& call, std::string_view message) {
  for (size_t d = 2; d < call.arg(0).dims.size(); ++d) require_elements(call, call.arg(0).dims[d], message);
}

void require_padded_axes(const OperatorCall& call) {
  const auto &before = call.integers("before"), &after = call.integers("after");
  for (size_t d = 0; d < before.size(); ++d) {
    if (before[d] + after[d] > 0)
      require_elements(call, call.arg(0).dims[d], "an axis without elements cannot be padded");
  }
}

}  // namespace tenon::compiler::kernels
