// The state that a session keeps from run to run: session.cpp creates it, run.cpp executes with it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/library/library.h"
#include "runtime/native/native.h"
#include "runtime/native/thread_pool.h"
#include "runtime/vm/program_on_device.h"
#include "runtime/vm/session.h"
#include "runtime/vm/stack.h"

namespace tenon::runtime {

struct Session::State {
  class Run;  // of the entry function, once

  const Executable& executable;
  SessionOptions options;
  std::vector<std::vector<LibraryKernel>> kernels;  // by function and instruction; empty if that is no CallKernel
  std::vector<ProgramOnDevice> programs;
  std::vector<bool> launched;  // by program, since the profile was cleared
  std::vector<NativeLibrary> natives;
  std::optional<ThreadPool> own_pool;
  ThreadPool* pool = nullptr;  // null without native code
  Arenas arenas;
  Profile profile;
  std::chrono::steady_clock::time_point origin = std::chrono::steady_clock::now();

  State(const Executable& program, SessionOptions how)
      : executable(program), options(std::move(how)), arenas(program) {}

  int64_t now() const;  // since the profile began
  Status resolve_kernels();
  Status upload_programs();
  Status load_natives();
  Status check_inputs(std::span<const Tensor> inputs) const;
  Expected<std::vector<Tensor>> run(std::span<const Tensor> inputs);  // that have passed check_inputs()
};

// "f32 [1, 10]", for messages.
std::string describe(const Tensor& tensor);

}  // namespace tenon::runtime
