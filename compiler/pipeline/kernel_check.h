// The kernels of an emulated GPU, which are compiled without checks, executed by the evaluator of loop functions too.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/loop/loop.h"
#include "runtime/vm/session.h"

namespace tenon::compiler {

class KernelCheck {
 public:
  // `functions`: bound to a GPU, by the names of their native kernels. All arguments outlive the check.
  KernelCheck(const TypeContext& context, const runtime::Executable& executable,
              std::span<const loop::Function> functions)
      : context_(context), executable_(executable), functions_(functions) {}

  // For SessionOptions::hook: evaluates the function of a native kernel at its first call, on the same arguments and
  // with the threads in a random order. Errors, with the kernel: a race between threads, an index out of bounds, an
  // element that is read before it is written, a result of integers that differs.
  Status operator()(const runtime::Step& step);

  size_t kernels() const { return checked_.size(); }  // evaluated so far

 private:
  const TypeContext& context_;
  const runtime::Executable& executable_;
  std::span<const loop::Function> functions_;
  std::vector<std::string> checked_;
};

}  // namespace tenon::compiler
