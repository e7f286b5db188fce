// Runs of many instances in one: each is a stack of its own, which goes on until it needs the result of a call that was
// put off (pending_calls.h). When all of them wait or have ended, the calls are executed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/vm/interpreter.h"
#include "runtime/vm/pending_calls.h"
#include "runtime/vm/run_state.h"

namespace tenon::runtime {

class Instances {
 public:
  Instances(RunState& run, Interpreter& interpreter);

  // The results of the entry for each of the instances, or the error of its own. An instance's result and its error
  // are those that it has alone.
  std::vector<Expected<std::vector<Value>>> run(std::span<const std::vector<Value>* const> inputs, BatchPolicy policy);
  BatchCounts take_counts() { return calls_.take_counts(); }  // of the last run

 private:
  struct Instance {
    enum class State : uint8_t { kReady, kWaits, kEnded };
    State state = State::kReady;
    Stack stack;
    Interpreter::Limits limits;
    std::vector<Word> results;
    std::optional<Diagnostic> error;
  };

  Status begin(Instance& instance, const std::vector<Value>& inputs);
  // Runs the instance until it waits or ends.
  void go_on(uint32_t index);
  void end(Instance& instance);
  // Executes the calls that were put off. False: all instances ended with an error.
  bool flush(BatchPolicy policy);
  void fail_all(const Diagnostic& diagnostic);
  Expected<std::vector<Value>> results_of(Instance& instance);

  RunState& run_;
  Interpreter& interpreter_;
  PendingCalls calls_;
  std::vector<Instance> instances_;
  std::vector<Stack> idle_;  // empty ones, whose memory is kept
};

}  // namespace tenon::runtime
