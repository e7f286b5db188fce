// The arguments and results of the current call of a kernel or a program, as tensors: from registers and back to them,
// with the call's record. The vectors are kept from call to call, which saves allocations.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/native/signature.h"
#include "runtime/vm/run_state.h"
#include "support/function_ref.h"

namespace tenon::runtime {

class CallOperands {
 public:
  explicit CallOperands(RunState& run) : run_(run) {}

  // The tensor in a register of the last frame; a scalar becomes one.
  Expected<Tensor> tensor(Register from);
  // Adds the arguments in these registers, or in a word.
  Status load(const Registers& from);
  Status load(const Word& word);
  void release();
  // Executes a call that computes, with the arguments in these registers: `invoke` puts its results into `made`. They
  // are kept for the hook.
  Status compute(const Registers& from, const Registers& to, FunctionRef<Status()> invoke);
  // Executes a call on the arguments, with a record of its time.
  Status timed(const CallSite& site, std::string_view name, std::string_view device, FunctionRef<Status()> call);
  // Writes a tensor into a register; `own`: no other value shares its memory.
  Status store(Register to, Tensor tensor, bool own);
  void record(const CallSite& site, std::string_view name, int64_t begin_ns);

  // Memory for results of kernels: their arena slots, or the session's pool.
  class ResultMemory final : public CallMemory {
   public:
    explicit ResultMemory(CallOperands& operands) : operands_(operands) {}
    Storage storage(size_t result, size_t bytes) override;
    Shape shape() override { return operands_.run_.heap.shape(); }

    std::span<const ArenaSlot> slots;  // of the current call; empty: no result is in the arena

   private:
    CallOperands& operands_;
  };

  std::vector<Tensor> args, made;
  uint64_t constants = 0;       // tn_call.constants of the arguments
  std::vector<Tensor> results;  // for the hook
  std::vector<ProbeValue> probes;
  ResultMemory memory{*this};
  int64_t gpu_ns = 0;                    // of the current call's kernels on a GPU
  int32_t launch = -1;                   // of the current call in the profile; -1: it launched nothing
  std::optional<int64_t> call_begin_ns;  // when the current call began, if that was before its instruction

 private:
  Expected<Tensor> tensor(const Word& word);  // of a tensor or a scalar
  void add(const Word& word, Tensor value);

  RunState& run_;
  std::vector<bool> own_;  // by result of the call: no other value shares its memory
};

}  // namespace tenon::runtime
