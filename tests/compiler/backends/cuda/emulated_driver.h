// Lets the driver of the tests execute the launches of an executable's code for GPUs: each launch is the nest of
// blocks and threads of its loop function, compiled for this processor.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/loop/loop.h"
#include "runtime/native/native.h"

namespace tenon::compiler {

class EmulatedDriver {
 public:
  // `functions`: LowerOptions::gpu_functions.
  EmulatedDriver(Context& context, std::span<const loop::Function> functions);
  EmulatedDriver(const EmulatedDriver&) = delete;
  EmulatedDriver& operator=(const EmulatedDriver&) = delete;
  ~EmulatedDriver();

  size_t launches() const { return launches_; }  // as many as the GPU has executed
  static void set_memory(size_t bytes);          // of the GPU
  static int lists();                            // of recorded launches that exist

 private:
  struct Entry {
    EmulatedDriver* driver = nullptr;
    size_t kernel = 0;  // of the library
    std::string name;
  };
  static bool run(void* user, void** arguments);

  runtime::NativeCode compiled_;
  std::optional<runtime::NativeLibrary> library_;
  runtime::ThreadPool pool_{2};
  std::deque<Entry> entries_;
  size_t launches_ = 0;
};

}  // namespace tenon::compiler
