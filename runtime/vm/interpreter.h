// The loop over an executable's words: data and control here, kernels, programs and sizes by classes of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/executable/compiled_code.h"
#include "runtime/vm/call_operands.h"
#include "runtime/vm/kernel_calls.h"
#include "runtime/vm/launches.h"
#include "runtime/vm/pending_calls.h"
#include "runtime/vm/rematerializer.h"
#include "runtime/vm/run_state.h"
#include "runtime/vm/sizes.h"

namespace tenon::runtime {

class Interpreter {
 public:
  explicit Interpreter(RunState& run);

  // Executes the entry, whose frame is the last one, up to its return.
  Status execute();
  // The registers that the entry returns, whose frame is still there.
  std::span<const Register> returned() const { return returned_; }
  // The error of execute() with the instruction where it occurred.
  Diagnostic located(Diagnostic diagnostic) const;
  // Ends what was started, before the frames are abandoned.
  void abandon() { launches_.abandon(); }

  // Many instances in one run (instances.h).
  struct Limits {
    uint64_t budget = 1, left = 0;  // see machine_, left_
  };
  Limits limits() const;  // of an instance that begins
  using AddRoots = std::function<void(std::vector<std::span<const Word>>&)>;
  // Where calls of units are put off, and what keeps references beside the registers of the current stack; nullptr:
  // nowhere, as in execute().
  void put_off(PendingCalls* calls, AddRoots roots);
  // Executes the current stack, which is an instance's, until it needs a result that is pending (true), or up to the
  // return of the entry (false).
  Expected<bool> go_on(uint32_t instance, Limits& limits);
  // Executes a function on an empty stack; takes the arguments over. Its result belongs to the caller.
  Expected<Word> call(const Words& function, std::span<const Word> args);
  Expected<Tensor> tensor(Register from) { return operands_.tensor(from); }

 private:
  // What follows an instruction: the next one, after the hook where there is one; or, for an instruction that enters no
  // frame, compiled code; or the next one of an instance, whose calls of units are put off.
  enum class After : uint8_t { kNext, kHook, kCode, kLazy };
  // Where the loop is: a local variable of it.
  struct Cursor {
    const uint32_t* next;  // the instruction
    Word* base;            // the registers of the frame
    const uint32_t* code;  // the words of its function
  };
  template <After after>
  Status loop(const uint32_t* from);
  // Executes the instruction at `op`. False after fail(), and after the return of the entry.
  template <After after>
  bool step(const uint32_t* op, Cursor& at);
  // Goes on in the last frame, which was entered or returned to.
  template <After after>
  bool resume(Cursor& at);
  // The status of a loop whose last step was false.
  Status end();

  // Executes an instruction of type O, of Form::kWords, and sets `at.next`.
  template <class O>
  bool execute(const uint32_t* op, Cursor& at);
  // Executes an instruction of Form::kExecutable.
  bool execute_in_executable(const uint32_t* op);
  Status execute(const Operation& operation, const CallSite& site);

  // Before an instruction of an instance: it may be executed; or it was, as a call that is put off; or the loop stops,
  // as its operands are pending or an error occurred.
  enum class Prepared : uint8_t { kExecute, kDone, kStop };
  Prepared prepare(const uint32_t* op, Cursor& at);
  Prepared put_off(const uint32_t* op, Cursor& at);
  // Puts the value of a pending result into the register; false: it is not there yet, or there was an error.
  bool settle(Word& slot);
  // Empties references that nothing reads any more.
  [[gnu::cold]] void collect();

  void set(Word& slot, Word value);
  // A word that an object of the heap has, into a register; the operand that the object was in is given up.
  void share(const uint32_t* op, Word word, Cursor& at);
  // An object with these fields; nullptr after fail().
  Object* make_object(Tag tag, uint32_t id, std::span<const uint32_t> fields, Cursor& at);
  // The function of a closure that is called with `count` arguments; nullptr after fail().
  const Words* callee(const Word& closure, uint32_t operand, uint32_t count);
  bool append(const uint32_t* op);
  // Executes the call at the site on the arguments that are loaded, for the rematerializer.
  Status invoke(const CallSite& site);
  bool replace_frame(const Words& callee, const Word* closure, std::span<const uint32_t> args);

  // The word where a branch or a switch goes on.
  Expected<uint32_t> target(const uint32_t* op);
  // The limits of a run, checked after each slice of instructions.
  Status refill();
  Status show(const Words& words, uint32_t index);
  Diagnostic at_instruction(const Words& words, uint32_t index, Diagnostic diagnostic) const;
  // Keeps the error; returns false.
  [[gnu::cold]] bool fail(std::unexpected<Diagnostic> problem);
  bool succeeded(Status&& status) {
    if (status) [[likely]]
      return true;
    return fail(std::unexpected(std::move(status.error())));
  }

  // Functions that are compiled ahead of time.
  struct Machine : tn_machine {
    Interpreter* interpreter = nullptr;
    // The code's callbacks.
    static int32_t step_now(tn_machine* machine, uint32_t instruction);
    static int32_t spend_now(tn_machine* machine, uint32_t instruction, uint32_t count);
    static void release_now(tn_machine* machine, uint32_t reg);
    static uint32_t target_now(tn_machine* machine, uint32_t instruction);
  };
  // Runs the code of the last frame's function from the instruction at `next`; returns an instruction that enters or
  // leaves a frame, or nullptr after an error.
  const uint32_t* run_compiled(const uint32_t* next);

  RunState& run_;
  CallOperands operands_{run_};
  KernelCalls kernels_{run_, operands_};
  Launches launches_{run_, operands_};
  Sizes sizes_{run_.frames};
  std::optional<Rematerializer> rematerializer_;
  Machine machine_{};              // its budget: instructions to the next check of the limits
  uint64_t left_ = 0;              // instructions after the next check of the limits
  const uint32_t* now_ = nullptr;  // the current instruction, where an error may occur
  bool located_ = false;           // the error names its instruction
  std::optional<Diagnostic> failure_;
  std::span<const Register> returned_;
  PendingCalls* calls_ = nullptr;
  AddRoots roots_;
  uint32_t instance_ = 0;  // whose stack it is
  bool waits_ = false;
};

}  // namespace tenon::runtime
