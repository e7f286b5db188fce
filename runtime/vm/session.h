// A session runs one executable again and again: it holds the devices, keeps each accelerator program's instructions
// and constants on its device, and feeds a profile.
//
// Not thread-safe. An error leaves the session usable: the next run begins afresh. The machine's calls do not use the
// C++ stack, so recursion is limited by `max_stack` alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "driver/accelerator.h"
#include "runtime/executable/executable.h"
#include "runtime/npy.h"
#include "runtime/profile/profile.h"

namespace tenon::runtime {

struct TapValue {
  const Tap* tap = nullptr;
  Tensor value;
};

// What a hook sees after each instruction of a model: enough to compare layer by layer. The tensors are as they are
// until the hook returns: what lies in a frame's arena is written over later, so who keeps one clones it.
struct Step {
  const Function* function = nullptr;
  uint32_t index = 0;  // into function->code
  const Instruction* instruction = nullptr;
  std::span<const Tensor> args, results;  // of kernels and programs; empty for the rest
  std::span<const TapValue> taps;         // a program's intermediate tensors, where it keeps them
};
using Hook = std::function<Status(const Step&)>;  // an error ends the run with it

// A kernel of the CPU, and where kernels come from by name; as in runtime/reference, which is the default.
using Kernel = Expected<std::vector<Tensor>> (*)(const Attrs& attrs, std::span<const Tensor> inputs);
using KernelLookup = std::function<Kernel(std::string_view name)>;  // nullptr: unknown

struct SessionOptions {
  driver::Accelerator* accelerator = nullptr;  // may be null where the executable has no program; outlives the session
  std::chrono::nanoseconds launch_limit = std::chrono::minutes(10);  // of each wait for the accelerator
  bool timeline = false;      // record the intervals of each program's first launch, where the device is simulated
  KernelLookup kernels = {};  // empty: runtime/reference
  bool native =
      true;  // native code runs with all rights of this process; false: an executable that has some is refused
  unsigned threads = 0;           // of native kernels; 0: those of the process, which all its sessions share
  std::string native_level = {};  // of the processor; empty: the best that it has
  uint64_t max_stack = 1 << 22;   // registers of all live frames, one more for each: the limit of recursion
  uint64_t max_steps = 0;         // instructions of a run; 0: no limit
  Hook hook = {};
};

class Session {
 public:
  // Checks the device against the executable and uploads its programs. The executable outlives the session.
  static Expected<Session> create(const Executable& executable, SessionOptions options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Runs the entry function; inputs in the order of its parameters.
  Expected<std::vector<Tensor>> run(std::span<const Tensor> inputs);
  // The same by name; a missing, unknown or wrongly shaped input is an error that lists what the model takes.
  Expected<NamedTensors> run(const NamedTensors& inputs);

  const Profile& profile() const;  // of all runs since creation or the last clear_profile()
  void clear_profile();

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tenon::runtime
