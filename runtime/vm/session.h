// A session runs one executable any number of times: it has the devices, keeps each accelerator program's instructions
// and constants on its device, and records a profile.
//
// run(), run_many() and submit() may be called from several threads: each call has registers, objects and arenas of its
// own, and launches of an accelerator wait for each other; so do runs under a budget. Requests are run by one thread
// that the session has. All other functions are for one thread at a time. A session is usable after an error: the next
// run begins anew. The machine's calls do not use the C++ stack, so recursion is limited by `max_stack` alone.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "driver/accelerator.h"
#include "runtime/batch/order.h"
#include "runtime/executable/executable.h"
#include "runtime/executable/value.h"
#include "runtime/npy.h"
#include "runtime/profile/profile.h"
#include "runtime/reference/kernels.h"
#include "runtime/remat/policy.h"
#include "runtime/vm/ticket.h"
#include "support/function_ref.h"

namespace tenon::runtime {

struct ProbeValue {
  const Probe* probe = nullptr;
  Tensor value;
};

// The argument of a hook, after each instruction of a model: enough to compare layer by layer. The tensors are valid
// until the hook returns: a frame's arena is overwritten later, so a hook clones the tensors that it keeps.
struct Step {
  const Function* function = nullptr;
  uint32_t index = 0;  // into function->code
  const Instruction* instruction = nullptr;
  std::span<const Tensor> args, results;  // of kernels and programs; empty for other instructions
  std::span<const ProbeValue> probes;     // a program's intermediate tensors, if it keeps them
};
using Hook = std::function<Status(const Step&)>;  // an error of the hook ends the run

// Finds kernels of the CPU by name; nullptr: unknown. The default is reference::find.
using CpuKernel = std::function<Expected<std::vector<Tensor>>(const Attrs& attrs, std::span<const Tensor> args)>;
using KernelLookup = std::function<CpuKernel(std::string_view name)>;

struct SessionOptions {
  // One for each configuration that the executable has programs for; they outlive the session.
  std::vector<driver::Accelerator*> accelerators = {};
  std::chrono::nanoseconds launch_limit = std::chrono::minutes(10);  // of each wait for the accelerator
  bool profile = true;        // of all runs; false: a session for any number of runs, whose records would fill memory
  bool timeline = false;      // record the intervals of each program's first launch, if the device is simulated
  KernelLookup kernels = {};  // empty: runtime/reference
  bool native = true;    // native code runs with all rights of this process; false: refuse executables with native code
  unsigned threads = 0;  // of native kernels; 0: the pool of the process, which all its sessions share
  std::string native_level = {};  // of the processor; empty: the best that it supports
  bool compiled = true;  // run functions that are compiled ahead of time, where `native` allows it and no hook watches
  int gpu = 0;           // of executables with code for GPUs
  std::string gpu_driver = {};   // its library; empty: $TENON_CUDA_DRIVER, or libcuda.so.1
  uint64_t max_stack = 1 << 25;  // registers of all live frames, plus one a frame: the limit of recursion
  uint64_t max_steps = 0;        // instructions of a run; 0: no limit
  uint64_t max_bytes = 0;        // of the objects and tensors of a run, without arenas; 0: no limit
  // Bytes of the tensors of a run, of its inputs and results too, and of the memory that native kernels use beside
  // them; constants of the executable are not counted. Tensors that do not fit are given up, and computed again when
  // they are read, which changes no bit of a result. 0: no budget.
  uint64_t budget = 0;
  remat::Policy remat_policy = remat::Policy::kEq;  // which tensors are given up
  std::chrono::nanoseconds max_time{};              // of a run; 0: no limit. A kernel ends at its next parallel task
  const std::atomic<bool>* cancel = nullptr;        // true: runs end with an error; outlives the session
  Hook hook = {};
  // Called before each call of a native kernel, with its dims (Signature::dims), by the thread of the run. A function
  // that is compiled ahead of time calls its kernels itself, and is not observed.
  std::function<void(const NativeKernel& kernel, std::span<const int64_t> dims)> observe_native = {};
  BatchPolicy batch_policy = BatchPolicy::kHeight;  // of run_many() and submit()
  size_t max_batch = 64;                            // requests that run together
  // Of the oldest request, where none runs, until there are max_batch of them; longer waits make larger batches.
  std::chrono::nanoseconds max_wait{};
  size_t max_queue = 1024;  // requests that have not begun
};

class Session {
 public:
  struct State;  // internal to this folder

  // Checks the devices against the executable and uploads its programs. The executable outlives the session.
  static Expected<Session> create(const Executable& executable, SessionOptions options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Runs the entry function; inputs in the order of its parameters. The inputs must not hold functions or references.
  Expected<std::vector<Value>> run_values(std::span<const Value> inputs);
  // A run for each of the instances, which have inputs of their own. An instance that fails has its own error, and the
  // results of the others are those that they have alone, to the bit. Where the executable has units, and no hook,
  // budget or limit of bytes watches single runs, instances run together and their calls of units in batches; limits
  // of steps and of the stack are those of an instance.
  std::vector<Expected<std::vector<Value>>> run_many(std::span<const std::vector<Value>> instances);
  // A request: a run that begins when its turn comes, and whose answer the ticket has. Where run_many() would run
  // instances together, so do requests, and one that comes later joins those that run. An error where the inputs do not
  // fit, or `max_queue` requests wait. Limits of time and steps are those of the request from its beginning on; that of
  // time is checked between calls of batches. Requests that have no answer when the session ends get an error.
  Expected<Ticket> submit(std::vector<Value> inputs, Ticket::OnAnswer on_answer = {});
  // The same as run_values() for tensors; a result that is not a tensor is an error.
  Expected<std::vector<Tensor>> run(std::span<const Tensor> inputs);
  // The same with `results` as the results, whose former tensors are released first; they may be among the inputs. A
  // caller that keeps the vector allocates no memory in calls after the first, where neither the executable's kernels
  // nor a profile do.
  Status run_into(std::span<const Tensor> inputs, std::vector<Tensor>& results);
  // The states of the executable, which the session keeps from run to run: a run that updates them reads them as
  // parameters, and replaces them by their new values, in the same memory where kernels can compute in place. One
  // thread at a time. `inputs` are those of the other parameters, `results` becomes the other results, as in
  // run_into(). The states are replaced if `accept` returns true for the first of these results, which it is called
  // with once; without other results they always are. After an error they are as before, or they are lost, as the error
  // then says: when a state has been replaced, only a kernel that fails ends the run, and no limit.
  Status update(std::span<const Tensor> inputs, std::vector<Tensor>& results, FunctionRef<bool(const Tensor&)> accept);
  // The value of state `index` of Executable::states. It shares the memory: as long as the caller has a handle, the
  // next value gets other memory. An empty tensor where the states are lost.
  const Tensor& state(size_t index) const;
  // An error where the value is not of the parameter's type.
  Status set_state(size_t index, Tensor value);
  // Inputs and results by name; the error for a missing, unknown or wrongly shaped input lists the model's inputs.
  Expected<NamedTensors> run(const NamedTensors& inputs);

  // Of all calls of run_many() since creation or the last clear_profile().
  const BatchCounts& batches() const;
  // Of the last run that came to its end, with a profile or without.
  const MemoryRecord& memory() const;
  const Profile& profile() const;  // of all runs since creation or the last clear_profile(), unless options forbid it
  void clear_profile();

 private:
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tenon::runtime
