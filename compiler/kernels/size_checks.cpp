#include "compiler/kernels/size_checks.h"

#include <fmt/format.h>

#include "compiler/kernels/windows.h"

namespace tenon::compiler::kernels {
namespace {

class SizeChecks {
 public:
  SizeChecks(const Operator& op, const OperatorCall& call) : op_(op), call_(call), context_(call.context()) {}

  void run() {
    using enum OperatorId;
    switch (op_.id) {
      case kArgMax:
      case kArgMin: not_empty(x()[call_.axis("axis", x().size())], "the axis has no element"); break;
      case kAvgPool1d:
      case kAvgPool2d:
      case kAvgPool3d:
      case kLpPool1d:
      case kLpPool2d:
      case kLpPool3d:
      case kMaxPool1d:
      case kMaxPool2d:
      case kMaxPool3d: {
        Dims kernel;
        for (const int64_t size : call_.integers("kernel")) kernel.push_back(context_.dim(size));
        windows_fit(std::move(kernel), "the window is larger than the padded input");
        break;
      }
      case kConv1d:
      case kConv2d:
      case kConv3d: windows_fit(kernel_sizes(), "the kernel is larger than the padded input"); break;
      case kConv1dTranspose:
      case kConv2dTranspose:
      case kConv3dTranspose:
        for (size_t d = 2; d < call_.dims().size(); ++d)
          not_empty(call_.dims()[d], "the result is empty after padding is removed");
        break;
      case kAdaptiveAvgPool:
      case kAdaptiveMaxPool: maps_not_empty("the map is empty"); break;
      case kGridSample: maps_not_empty("the maps are empty or too large"); break;
      case kRoiAlign: maps_not_empty("the maps are empty, or the scale is not finite"); break;
      case kPadEdge:
      case kPadReflect:
      case kPadWrap: {
        const auto &before = call_.integers("before"), &after = call_.integers("after");
        for (size_t d = 0; d < x().size(); ++d)
          if (before[d] + after[d] > 0) not_empty(x()[d], "an axis without elements cannot be padded");
        break;
      }
      default: break;  // the type rule has all conditions, or the kernel reports the others
    }
  }

 private:
  const Dims& x() const { return call_.arg(0).dims; }
  Dims kernel_sizes() const { return Dims(call_.arg(1).dims.begin() + 2, call_.arg(1).dims.end()); }
  void require(Dim size, std::string_view message) {
    call_.emit.require(size, fmt::format("{}: {}", op_.name, message));
  }
  void not_empty(Dim size, std::string_view message) { require(context_.subtract(size, context_.dim(1)), message); }
  void maps_not_empty(std::string_view message) {
    for (size_t d = 2; d < x().size(); ++d) not_empty(x()[d], message);
  }
  void windows_fit(Dims kernel, std::string_view message) {
    const Windows windows = read_windows(call_, std::move(kernel));
    for (size_t d = 0; d < windows.rank(); ++d) {
      const Dim last = context_.subtract(windows.kernel[d], context_.dim(1));
      const Dim footprint = context_.add(windows.input_index(context_, d, context_.dim(0), last), context_.dim(1));
      const Dim padded = context_.add(windows.in[d], context_.dim(windows.before[d] + windows.after[d]));
      require(context_.subtract(padded, footprint), message);
    }
  }

  const Operator& op_;
  const OperatorCall& call_;
  Context& context_;
};

}  // namespace

void require_sizes(const Operator& op, const OperatorCall& call) { SizeChecks(op, call).run(); }

}  // namespace tenon::compiler::kernels
