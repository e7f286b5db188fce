// One run of a session's entry function: its registers, frames, objects and arenas. It is kept for the next run.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/vm/arenas.h"
#include "runtime/vm/heap.h"
#include "runtime/vm/started_program.h"
#include "runtime/vm/state.h"

namespace tenon::runtime {

inline constexpr size_t kMaxCallRecords = size_t{1} << 20;  // of a profile; a loop would fill the memory with them

class Run {
 public:
  explicit Run(Session::State& session);

  // The results of the entry function. Nothing of the run is left in the heap.
  Expected<std::vector<Value>> run(std::span<const Value> inputs);
  // The same for tensors, in a vector whose memory is reused.
  Status run(std::span<const Tensor> inputs, std::vector<Tensor>& results);
  // What this run adds to the session's profile; indices of launches are its own.
  Profile& profile() { return profile_; }

 private:
  struct Frame {
    const Words* words = nullptr;
    size_t base = 0;                    // index of its first register
    const uint32_t* next = nullptr;     // the instruction after the call that it waits for
    const uint32_t* results = nullptr;  // in the caller's code: its registers for the results; nullptr: the entry
    uint32_t result_count = 0;
  };

  // Memory for results of kernels: their arena slots, or the session's pool.
  class ResultMemory final : public CallMemory {
   public:
    explicit ResultMemory(Run& run) : run_(run) {}
    Storage storage(size_t result, size_t bytes) override;
    Shape shape() override { return run_.heap_.shape(); }

    std::span<const ArenaSlot> slots;  // of the current call; empty: no result is in the arena

   private:
    Run& run_;
  };

  // A call of a kernel of the CPU that was checked, for calls with arguments of the same shapes: these need no check,
  // and their results have the same shapes.
  struct RecordedCall {
    struct Buffer {
      DType dtype = DType::kF32;
      Shape shape;
      size_t bytes = 0;
    };
    std::vector<Buffer> params, results;
    std::vector<int64_t> dims;
    bool is_recorded = false;
  };

  // Runs the entry on inputs that `import` turns into words.
  template <class Input>
  Status run_entry(std::span<const Input> inputs);
  // What the loop over the words does after an instruction: goes on, shows the instruction to the hook, or, for one
  // that enters no frame, ends.
  enum class After : uint8_t { kNext, kHook, kEnd };
  template <After after>
  Status loop(const uint32_t* from);
  // Functions that are compiled ahead of time.
  struct Machine : tn_machine {
    Run* run = nullptr;
    // The code's callbacks.
    static int32_t step_now(tn_machine* machine, uint32_t instruction);
    static int32_t spend_now(tn_machine* machine, uint32_t instruction, uint32_t count);
    static void release_now(tn_machine* machine, uint32_t reg);
    static uint32_t target_now(tn_machine* machine, uint32_t instruction);
  };
  // Runs the code of the current frame's function, if there is one, from the instruction at `next`; then `next` is an
  // instruction that enters or leaves a frame.
  Status run_compiled(const uint32_t*& next);
  Expected<uint32_t> target(const uint32_t* op);
  int32_t fail_in_code(Diagnostic problem);
  Status enter(const Words& callee, const uint32_t* results, uint32_t result_count);
  Status reserve(const Words& callee, size_t base);
  void clear(size_t base, size_t count);
  void leave_frame();
  Status refill();
  Status call(uint32_t function, const Word* closure, const uint32_t* args, uint32_t count, const uint32_t* results,
              uint32_t result_count);
  Status tail_call(uint32_t function, const Word* closure, const uint32_t* args, uint32_t count);
  Status finish(const uint32_t* values, uint32_t count);
  Status finish_tensors(const uint32_t* values, uint32_t count);

  Status other(uint32_t index);
  Status execute(const CallKernel& call);
  // tn_call.constants for these arguments.
  uint64_t constants_of(const Registers& args) const;
  // An error if the run was cancelled, or its time is over.
  Status check_stop() const;
  Status or_stopped(Status status) const;
  Expected<bool> grow_by_concat(const CallKernel& call);
  const BoundKernel& kernel_of() const;
  const std::string& layer() const;
  Status execute(const CallProgram& call);
  Status execute(const StartProgram& start);
  Status execute(const StartNative& start);
  Status execute(const CallNative& call);
  // Where the current call is recorded; nullptr where it cannot be.
  RecordedCall* recorded_call();
  void record(RecordedCall& recorded, const Signature& signature) const;
  // Executes the call if its arguments have the recorded shapes; else false.
  Expected<bool> replay(const CallNative& call, const RecordedCall& recorded, const NativeLibrary& library);
  Status execute(const BindSize& bind);
  Status execute(const ComputeSize& compute);
  Status execute(const CheckShape& check);
  Status execute(const CheckSize& check);
  template <class O>
  Status execute(const O&);

  Status compute(const Registers& from, const Registers& to, std::string_view name, std::string_view device,
                 auto&& call);
  Status load_args(const Registers& from);
  // Launches the program with args_ as inputs; `how`: it is waited for by a thread of its own, or by this one.
  Status start(uint32_t program, std::unique_lock<std::mutex> device, std::launch how);
  // The results of the launch that was started, and the values of the program's probes for the hook.
  Status finish_started();
  void abandon_started();
  Expected<Tensor> tensor(Register from);
  void release_args();
  Status sizes(std::span<const Register> registers);
  Status show(const Words& words, uint32_t index);
  Diagnostic located(const Words& words, uint32_t index, Diagnostic diagnostic) const;
  std::unexpected<Diagnostic> empty(Register from) const;
  std::unexpected<Diagnostic> wrong(Register from, std::string_view wanted) const;
  std::unexpected<Diagnostic> no_memory() const;

  const Word& at(Register r) const { return words_[frames_.back().base + r]; }
  void write(Register to, Word value);
  Expected<Word> import(const Value& value);
  Expected<Word> import(const Tensor& tensor);
  // `made`: the values of objects of this run that have been given before.
  using Given = std::unordered_map<const Object*, Value>;
  Value give(const Word& word, Given& made);
  void grow();

  Session::State& session_;
  const Executable& executable_;
  Heap heap_;
  Arenas arenas_;
  std::vector<Word> words_;  // the registers of all frames; behind the last frame all are empty
  size_t top_ = 0;           // the registers of live frames
  std::vector<Frame> frames_;
  std::vector<Storage> frame_arenas_;  // of the frames whose functions have one
  Machine machine_{};                  // its budget: instructions to the next check of the limits
  Diagnostic failure_;                 // of a callback of the code
  uint64_t left_ = 0;                  // instructions after the next check of the limits
  StopRequest stop_;
  uint64_t number_ = 0;            // of the run in its session, from 1 on
  const uint32_t* now_ = nullptr;  // the current instruction, where an error may occur
  bool located_ = false;           // the error names its instruction
  Profile profile_;
  uint64_t arena_live_ = 0;
  std::vector<Value> finished_;
  std::vector<Tensor>* finished_tensors_ = nullptr;  // where the results go instead, if they are tensors
  // Of the current call, members to save allocations, like the next ones. `results_` is for the hook.
  std::vector<Tensor> args_, made_, results_;
  std::vector<bool> own_;  // by result of the call: no other value shares its memory
  ResultMemory result_memory_{*this};
  std::optional<StartedProgram> started_;
  std::unique_ptr<cuda::StartedCall> started_on_gpu_;
  int64_t gpu_begin_ = 0;                            // when it was started
  int64_t gpu_ns_ = 0;                               // of the current call's kernels on a GPU
  std::optional<int64_t> call_begin_;                // when the current call began, if that was before its instruction
  std::vector<std::vector<RecordedCall>> recorded_;  // by function and instruction
  std::vector<Word> scratch_;
  std::vector<ProbeValue> probes_;
  std::vector<std::optional<int64_t>> sizes_;
};

}  // namespace tenon::runtime
