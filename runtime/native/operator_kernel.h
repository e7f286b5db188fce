// A kernel of an operator, prepared for one call in a program: a function of the interface in kernel.h and the state
// that it has made of the call's attributes. Reference kernels and those of libraries are called alike.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/attrs.h"
#include "runtime/native/kernel.h"
#include "runtime/native/signature.h"
#include "runtime/native/stop_request.h"
#include "runtime/native/thread_pool.h"

namespace tenon::runtime {

// The attribute in the form of the interface, which lives as long as the name and the attribute.
tn_attribute describe_attribute(const std::string& name, const Attr& attr);

// What a call of an operator's kernel has besides its inputs.
struct OperatorCall {
  size_t outputs = 0;
  uint64_t constants = 0;      // tn_call.constants
  ThreadPool* pool = nullptr;  // may be nullptr for kernels of the runtime, which use no threads
  const StopRequest* stop = nullptr;
};

class OperatorKernel {
 public:
  OperatorKernel() = default;
  // A kernel of this process, which finds `state` in its tn_call.
  OperatorKernel(tn_kernel kernel, std::shared_ptr<void> state);

  // The library's kernel of that name, for a call with these attributes. `library` is never closed. Errors: there is no
  // such kernel, or it refuses the attributes.
  static Expected<OperatorKernel> open(const tn_library& library, std::string_view library_name, std::string_view name,
                                       const Attrs& attrs);

  explicit operator bool() const { return kernel_ != nullptr; }

  // Replaces `results` by what the kernel makes of the inputs, in memory that `memory` has for them; a result that the
  // kernel has not made is an error. May be called by several threads at once, each with results and memory of its own.
  Status call(std::span<const Tensor> inputs, const OperatorCall& how, std::vector<Tensor>& results,
              CallMemory& memory) const;

 private:
  tn_kernel kernel_ = nullptr;
  std::shared_ptr<void> state_;
  const tn_library* library_ = nullptr;  // nullptr: the kernel is one of this process
};

}  // namespace tenon::runtime
