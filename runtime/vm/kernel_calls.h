// Calls of kernels of the CPU: those of the reference and of libraries, and native code.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/vm/call_operands.h"
#include "runtime/vm/run_state.h"

namespace tenon::runtime {

class KernelCalls {
 public:
  KernelCalls(RunState& run, CallOperands& operands) : run_(run), operands_(operands) {}

  Status execute(const CallSite& site, const CallKernel& call);
  Status execute(const CallSite& site, const CallNative& call, const NativeLibrary& library);
  // The call alone, on the arguments that are loaded.
  Status invoke(const CallSite& site, const CallKernel& call);
  Status invoke(const CallSite& site, const CallNative& call, const NativeLibrary& library);

 private:
  // A native call that was checked, for calls with arguments of the same shapes: these need no check, and their results
  // have the same shapes.
  struct RecordedCall {
    struct Buffer {
      DType dtype = DType::kF32;
      Shape shape;
      size_t bytes = 0;
    };
    std::vector<Buffer> params, results;
    std::vector<InPlace> in_place;  // results that may be in the memory of an argument which ends with the call
    std::vector<int64_t> dims;
    int64_t leading = 0;  // the leading size of the first argument that is no scalar
    bool is_recorded = false;
  };
  // Calls of one instruction with arguments of different leading sizes, as batches have them; a new one replaces the
  // oldest one. A program without batches has one.
  struct RecordedCalls {
    static constexpr size_t kMost = 16;
    std::vector<RecordedCall> calls;
    size_t next = 0;
  };

  int64_t leading_size(const CallNative& call) const;
  // Where the call is recorded; nullptr where it cannot be.
  RecordedCall* recorded_call(const CallSite& site, const CallNative& call);
  void record(const CallSite& site, const CallNative& call, RecordedCall& recorded, const Signature& signature) const;
  // Whether kernels may write into the session's states now.
  bool may_write_states(const CallSite& site);
  // Executes the call if its arguments have the recorded shapes; else false.
  Expected<bool> replay(const CallSite& site, const CallNative& call, const RecordedCall& recorded,
                        const NativeLibrary& library);
  struct Buffers;
  bool collect_params(const CallNative& call, const RecordedCall& recorded, Buffers& buffers);
  bool collect_results(const CallNative& call, const RecordedCall& recorded, Buffers& buffers);
  // Finds the states in whose memory the call computes results, for `written_`.
  void find_states(const CallSite& site, const CallNative& call, const RecordedCall& recorded);

  RunState& run_;
  CallOperands& operands_;
  std::vector<std::vector<RecordedCalls>> recorded_;  // by function and instruction
  // Of a replayed call whose results may be in memory of states: the words of these, by result. An empty word: the
  // result has memory of its own.
  std::vector<Word> written_;
};

}  // namespace tenon::runtime
