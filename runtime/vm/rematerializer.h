// Keeps the tensors of a run within SessionOptions::budget: enters each call that computes tensors into the core of
// Dynamic Tensor Rematerialization (runtime/remat/core.h), takes the memory of the tensors that the core evicts, and
// executes their calls again when something reads them.
//
// Semantics: a TensorObject of the run has its shape always, and its memory while its tensor is defined in the core.
// Scalars are in words, and constants of the executable are not the run's: a call keeps both as words. Inputs are never
// evicted. A call that is executed again is the same kernel on the same bytes, so results do not depend on the budget.
// A result that shares its memory with an operand gets memory of its own.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "runtime/remat/core.h"
#include "runtime/vm/buffer_pool.h"
#include "runtime/vm/call_operands.h"
#include "runtime/vm/run_state.h"

namespace tenon::runtime {

class Rematerializer final : public TensorOwner, private remat::Host {
 public:
  // `invoke` executes the call at a site: arguments, memory and results are those of `operands`.
  Rematerializer(RunState& run, CallOperands& operands, std::function<Status(const CallSite&)> invoke);

  void begin();
  // After the last tensor of the run is released.
  void end();
  // An input, whose memory is the caller's.
  Status add_input(TensorObject& tensor);
  // Executes a call that computes, and writes its results into registers of the last frame.
  Status call(const CallSite& site, std::span<const Register> from, std::span<const Register> to);
  // Memory for a result of the call in execution; no memory beyond the budget.
  Storage result_memory(size_t result, size_t bytes);
  // Gives a tensor its memory until the next call.
  Status define(TensorObject& tensor);
  // Gives all tensors of a value their memory until the run ends.
  Status pin(const Word& value);

 private:
  struct Operand {
    std::optional<remat::TensorId> tensor;
    Word word;  // of a scalar or a constant
  };
  struct Call {
    const Words* words = nullptr;
    uint32_t instruction = 0;
    std::vector<Operand> operands;
  };
  struct Held {
    Tensor tensor;                   // while it is resident
    TensorObject* object = nullptr;  // while the program has it
  };
  // The times of an instruction's first calls with operands and results of so many bytes. Their median is what a call
  // costs from then on.
  struct Cost {
    int64_t bytes = 0;
    uint32_t count = 0;
    std::array<int64_t, 3> times{};
  };

  template <class T>
  using ByInstruction = std::vector<std::vector<T>>;  // by function and instruction
  template <class T>
  T& of_instruction(ByInstruction<T>& all, const CallSite& site) const;

  void released(TensorObject& tensor) override;
  Status compute(remat::OperatorId op, bool again) override;
  void free(remat::StorageId storage) override;
  int64_t free_other() override;

  Held& held(remat::TensorId tensor);
  Status load(const Call& call);
  Status invoke(const CallSite& site);
  // Divides what the caller's memory leaves of the budget: tensors get what is not for kernels, and kernels what the
  // pool does not hold.
  void share_budget();
  Status hold(remat::TensorId tensor, Tensor made, bool again);
  int64_t cost(const Call& call, std::span<const remat::TensorId> results, int64_t ns);

  RunState& run_;
  CallOperands& operands_;
  const std::function<Status(const CallSite&)> invoke_;
  BufferPool pool_;
  // Bytes of inputs, less those of results of earlier runs, which are the pool's: they may be among the inputs.
  int64_t of_caller_ = 0;
  int64_t for_tensors_ = -1;                // the limit of the pool
  std::optional<remat::Core> core_;         // of the run
  std::vector<Call> calls_;                 // by operator
  std::vector<Held> held_;                  // by storage
  ByInstruction<std::vector<Cost>> costs_;  // from run to run, as the next
  ByInstruction<int64_t> kernel_bytes_;     // of kernels' own memory, where a call had to begin again
  Call next_;                               // a call that the core does not have yet
  std::vector<remat::TensorId> args_, made_;
  std::vector<remat::NewResult> results_;
  std::span<const remat::TensorId> asking_;  // the results of the call in execution
  std::optional<Diagnostic> refusal_;        // why result_memory() had none
};

}  // namespace tenon::runtime
