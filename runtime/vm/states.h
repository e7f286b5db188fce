// The states of an executable (Executable::states) as a session keeps them, and the runs that update them.
//
// Semantics: a run that updates the states reads them as parameters, and their new values are results of it. A kernel
// computes the new value in the memory of the old one where its signature permits it, the register of the old value
// ends with the call, and no one else has a handle to the memory: the check is at run time, so that a state which a
// caller still looks at gets new memory instead. No state changes before the caller has accepted the first other result
// of the run (the loss of a step of training); after the first change, limits and cancellation no longer end the run,
// and where a kernel fails, the states are lost.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/executable/executable.h"
#include "support/function_ref.h"

namespace tenon::runtime {

// What a session keeps.
struct States {
  explicit States(const Executable& of_session);

  // Between which instructions of the entry the first result that is no state is in its register.
  struct FirstResult {
    uint32_t result = 0;
    Register in = 0;
    uint32_t made = 0, returned = 0;  // instructions of one basic block
  };

  // The last results become the states.
  void replace();
  // The states are no longer what they were, and not what they were to become: the error of the run says so.
  void lose(Diagnostic& failure);
  bool is_lost() const;
  // Hands the last other results out, and lets go of all tensors that are no states.
  void take_results(std::vector<Tensor>& to);

  const Executable& executable;
  std::vector<Tensor> inputs, results;  // of the entry; the states among the inputs, an empty tensor where one was lost
  std::vector<uint32_t> other_inputs, other_results;  // which are no states
  std::optional<FirstResult> first_result;  // none: there is none, or not in a block that ends with the return
};

// The update by a run.
struct StateUpdate {
  FunctionRef<bool(const Tensor&)> accept;  // is called once, with the first other result
  std::optional<bool> accepted = {};
  bool has_written = false;  // a state is no longer what it was before the run
};

// The results of a native call that may be in the memory of an argument whose register ends with the call, or is that
// of a result: at most one for each argument.
std::vector<InPlace> arguments_at_last_use(const Function& function, uint32_t instruction, const CallNative& call,
                                           const Signature& signature);

}  // namespace tenon::runtime
