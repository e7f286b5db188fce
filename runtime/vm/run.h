// One run of a session's entry function: its registers, frames, objects and arenas. It is kept for the next run.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "runtime/vm/instances.h"
#include "runtime/vm/interpreter.h"
#include "runtime/vm/run_state.h"
#include "support/function_ref.h"

namespace tenon::runtime {

class Run {
 public:
  explicit Run(Session::State& session) : state_(session) {}

  // The results of the entry function. Nothing of the run is left in the heap. `cancel` is the run's own, beside that
  // of the session, and may be null.
  Expected<std::vector<Value>> run(std::span<const Value> inputs, const std::atomic<bool>* cancel);
  // The same for tensors, in a vector whose memory is reused.
  Status run(std::span<const Tensor> inputs, std::vector<Tensor>& results);
  // The same for a run that may replace the session's states, which are among the inputs: whether it is to do so, by
  // `accept`. After an error, has_written_states() says whether they are lost.
  Expected<bool> update(std::span<const Tensor> inputs, std::vector<Tensor>& results,
                        FunctionRef<bool(const Tensor&)> accept);
  bool has_written_states() const { return state_.has_written_states(); }
  void end_update() { state_.update.reset(); }
  // A run of many instances. The session's limit of time is that of the run.
  std::vector<Expected<std::vector<Value>>> run_many(std::span<const std::vector<Value>* const> inputs);
  // A run of the source's instances, at most `most` at a time, until there is none. Limits are those of an instance.
  void serve(InstanceSource& source, size_t most);
  // What this run adds to the session's profile; indices of launches are its own.
  Profile& profile() { return state_.profile; }

 private:
  void begin();
  void end();
  void run_instances(InstanceSource& source, size_t most);
  // Executes the entry on inputs that import_word() turns into words. `begin` is called when the inputs have been read,
  // `finish` where the entry returns.
  template <class Input>
  Status execute(std::span<const Input> inputs, FunctionRef<void()> begin, FunctionRef<Status()> finish);
  template <class Input>
  Status enter(std::span<const Input> inputs);
  // Gives the values that the entry returns their memory.
  Status pin(std::span<const Register> returned);
  Status finish(std::vector<Value>& results);
  Status finish(std::vector<Tensor>& results);

  RunState state_;
  Interpreter interpreter_{state_};
  std::optional<Instances> instances_;  // with the stacks of the last ones
};

}  // namespace tenon::runtime
