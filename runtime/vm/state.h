// The state that a session keeps from run to run: session.cpp creates it, a Run (run.h) executes with it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/device/cuda/library.h"
#include "runtime/native/native.h"
#include "runtime/native/operator_kernel.h"
#include "runtime/native/shared_object.h"
#include "runtime/native/thread_pool.h"
#include "runtime/vm/buffer_pool.h"
#include "runtime/vm/device.h"
#include "runtime/vm/heap.h"
#include "runtime/vm/session.h"
#include "runtime/vm/states.h"
#include "runtime/vm/words.h"

namespace tenon::runtime {

class InstanceSource;
class RequestQueue;
class Run;

// Axes of inputs that must have equal sizes.
struct EqualSizes {
  size_t input = 0, axis = 0, other = 0, other_axis = 0;
};

struct Session::State {
  const Executable& executable;
  SessionOptions options;
  std::vector<EqualSizes> equal_sizes;
  std::vector<Words> code;      // by function
  SharedObject compiled;        // of functions that were compiled ahead of time
  std::vector<Word> constants;  // by constant
  std::vector<std::unique_ptr<TensorObject>> constant_objects;
  std::vector<std::vector<OperatorKernel>> kernels;       // by function and instruction; empty if that is no CallKernel
  std::vector<std::unique_ptr<Device>> devices;           // the accelerators of the options, and the GPU
  std::vector<uint32_t> device_of_program;                // by program
  std::vector<bool> launching;                            // by function: launching_functions()
  std::vector<std::optional<uint32_t>> device_of_native;  // by native code; none: the processor
  std::vector<std::variant<NativeLibrary, cuda::GpuLibrary>> natives;  // likewise
  std::optional<ThreadPool> own_pool;
  ThreadPool* pool = nullptr;  // null without native code and kernels of libraries
  BufferPool buffers;
  States states;  // of one thread at a time
  std::chrono::steady_clock::time_point origin = std::chrono::steady_clock::now();

  std::atomic<uint64_t> runs = 0;  // that have begun
  // Of instances that ran alone with calls put off: these calls, and those that were executed for them.
  std::atomic<uint64_t> alone_nodes = 0, alone_calls = 0;
  std::mutex budgeted;  // held during a run under a budget
  std::mutex mutex;     // guards all below
  Profile profile;
  std::vector<std::unique_ptr<Run>> idle;

  std::once_flag has_requests;             // guards the next one
  std::unique_ptr<RequestQueue> requests;  // whose thread uses all above, so that it ends first

  State(const Executable& program, SessionOptions how);
  ~State();

  int64_t now() const;                 // since the profile began
  void add(Profile made, bool ended);  // to the profile; `mutex` is held
  Status resolve_kernels();
  Status check_devices() const;
  Status upload_programs();
  Status load_natives();
  void use_threads();
  Status make_words();
  Status load_compiled();
  Status check_inputs(std::span<const Value> inputs) const;
  Status check_inputs(std::span<const Tensor> inputs) const;
  // Of inputs that have passed check_inputs().
  Expected<std::vector<Value>> run(std::span<const Value> inputs, const std::atomic<bool>* cancel = nullptr);
  Status run(std::span<const Tensor> inputs, std::vector<Tensor>& results);
  // Of inputs that are as many as those that are no states.
  Status update(std::span<const Tensor> inputs, std::vector<Tensor>& results, FunctionRef<bool(const Tensor&)> accept);
  std::vector<Expected<std::vector<Value>>> run_many(std::span<const std::vector<Value>* const> instances);
  void serve(InstanceSource& source, size_t most);
  // Whether instances can run together, instead of one after the other.
  bool runs_together() const;

 private:
  // The GPU of all code, and its index in `devices`, once it is open.
  struct OpenGpu {
    std::shared_ptr<cuda::SharedGpu> gpu;
    uint32_t device = 0;
  };
  Expected<cuda::GpuLibrary> load_gpu_code(const NativeCode& code, OpenGpu& open);
  Status check_input_count(size_t count) const;
  template <class Input>
  Status check_equal_sizes(std::span<const Input> inputs) const;
  // The budget is the session's, so its runs wait for each other.
  std::unique_lock<std::mutex> one_at_a_time();
  std::unique_ptr<Run> take_run();
  void give_back(std::unique_ptr<Run> run, bool ended);
};

// "f32 [1, 10]", for messages.
std::string describe(const Tensor& tensor);

}  // namespace tenon::runtime
