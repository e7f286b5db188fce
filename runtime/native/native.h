// Native kernels in this process: the code as a value, and as a loaded library that is called with tensors.
//
// Trust: native code is code. It runs with all rights of this process, whatever the rest of a file has been checked
// for; a file that holds some is loaded only where its user trusts its maker.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/native/kernel.h"
#include "runtime/native/signature.h"
#include "runtime/native/thread_pool.h"

namespace tenon::runtime {

struct NativeKernel {
  std::string name;
  Signature signature;
  bool operator==(const NativeKernel&) const = default;
};

// A shared object with kernels in all levels of a processor; as it lies in an executable.
struct NativeCode {
  std::string triple;               // "x86_64-unknown-linux-gnu"
  std::vector<std::string> levels;  // the best first: "x86-64-v4", ...
  std::vector<std::byte> object;
  std::vector<NativeKernel> kernels;  // as the library numbers them
  bool operator==(const NativeCode&) const = default;
};

// The architecture of this process as the first part of a triple names it: "x86_64"; and the levels that its processor
// has, the best first.
std::string_view host_architecture();
std::span<const std::string_view> host_levels();

class NativeLibrary {
 public:
  // Loads the object, for the best level that this processor has, or for that one. `code` outlives the library. Errors:
  // another architecture; no level that this processor has; what is no library of this interface's version, or has
  // other kernels than `code` says.
  static Expected<NativeLibrary> load(const NativeCode& code, std::string_view level = {});
  NativeLibrary(NativeLibrary&&) noexcept;
  NativeLibrary& operator=(NativeLibrary&&) noexcept;
  ~NativeLibrary();

  const NativeCode& code() const;
  std::string_view level() const;

  // The kernel's results for these tensors, computed by the pool's threads. Errors: tensors that do not fit the
  // signature, and the program's own, where the message says which loop function and stage.
  // A result lies in its place, where there are places and it fits.
  Expected<std::vector<Tensor>> call(size_t kernel, std::span<const Tensor> params, ThreadPool& pool,
                                     std::span<const Storage> places = {}) const;
  // The same, into tensors that are there: of the types and shapes that the signature says (asserted), and none of them
  // a parameter.
  Status call_into(size_t kernel, std::span<const Tensor> params, std::span<Tensor> results, ThreadPool& pool) const;
  // The first, where an unknown name is an error too.
  Expected<std::vector<Tensor>> call(std::string_view kernel, std::span<const Tensor> params, ThreadPool& pool) const;

 private:
  Status run(size_t kernel, std::span<const Tensor> params, std::span<Tensor> results, std::span<const int64_t> dims,
             ThreadPool& pool) const;

  struct State;
  explicit NativeLibrary(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tenon::runtime
