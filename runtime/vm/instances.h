// Runs of many instances in one: each is a stack of its own, which goes on until it needs the result of a call that was
// put off (pending_calls.h). When all of them wait or have ended, the calls are executed; then the results of those
// that ended leave, and others join. (Continuous batching: Yu et al., "Orca: a distributed serving system for
// transformer-based generative models", section 3.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/vm/interpreter.h"
#include "runtime/vm/pending_calls.h"
#include "runtime/vm/run_state.h"

namespace tenon::runtime {

// Where instances come from, and where their results go. It is called between two flushes, by the thread of the run.
class InstanceSource {
 public:
  struct Next {
    uint64_t id = 0;
    const std::vector<Value>* inputs = nullptr;  // valid until the next call of the source
    StopRequest stop = {};                       // of this instance, beside that of the run
  };
  virtual ~InstanceSource() = default;
  // The next instance that begins; nothing where there is none now.
  virtual std::optional<Next> next() = 0;
  // The results of the entry for an instance, or the error of its own: those that it has alone.
  virtual void finish(uint64_t id, Expected<std::vector<Value>> result) = 0;
};

class Instances {
 public:
  Instances(RunState& run, Interpreter& interpreter);

  // Runs the instances of the source, at most `most` of them at a time, until all that began have ended and there is no
  // next one. How many there were.
  uint64_t run(InstanceSource& source, size_t most, BatchPolicy policy);
  BatchCounts take_counts() { return calls_.take_counts(); }  // of the last run

 private:
  struct Instance {
    enum class State : uint8_t { kReady, kWaits, kEnded, kFree };
    State state = State::kReady;
    uint64_t id = 0;  // of the source
    StopRequest stop;
    Stack stack;
    Interpreter::Limits limits;
    std::vector<Word> results;
    std::optional<Diagnostic> error;
  };

  Status begin(Instance& instance, const std::vector<Value>& inputs);
  // Begins instances of the source, as long as there are fewer than `most`.
  void admit(InstanceSource& source, size_t most);
  // Runs the instance until it waits or ends.
  void go_on(uint32_t index);
  void end(Instance& instance);
  // Executes the calls that were put off.
  void flush(BatchPolicy policy);
  void fail_all(const Diagnostic& diagnostic);
  // Gives the source the results of the instances that have ended; whether there were any.
  bool deliver(InstanceSource& source);
  Expected<std::vector<Value>> results_of(Instance& instance);

  RunState& run_;
  Interpreter& interpreter_;
  PendingCalls calls_;
  std::vector<Instance> instances_;
  std::vector<uint32_t> free_;  // indices of instances of the state kFree
  size_t live_ = 0;             // instances of other states
  uint64_t begun_ = 0;
  std::vector<Stack> idle_;  // empty ones, whose memory is kept
};

}  // namespace tenon::runtime
