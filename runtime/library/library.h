// Kernels of a library that somebody else wrote, as oneDNN: shared objects that are opened where an executable calls
// them and never linked.
//
// A kernel whose name has a dot, "dnnl.conv2d", is "conv2d" of tenon-kernels-dnnl.so. That lies where transports lie
// (driver/plugin.h), is made by the same build as the program that opens it, because C++ types cross the border, and
// exports one C function. What reaches it from an executable is checked by it: attributes, types and shapes are trusted
// in nothing.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "driver/plugin.h"
#include "runtime/attrs.h"
#include "runtime/tensor.h"
#include "support/diagnostic.h"

namespace tenon::runtime {

// One call of an executable, again and again: it may keep what it has prepared, as reordered weights. Not thread-safe.
using LibraryKernel = std::function<Expected<std::vector<Tensor>>(std::span<const Tensor>)>;

struct KernelLibrary {
  std::string doc;
  // An error where there is no such kernel, or not with these attributes. threads: 0 for those that are usable.
  Expected<LibraryKernel> (*make)(std::string_view kernel, const Attrs& attrs, unsigned threads) = nullptr;
};

inline constexpr std::string_view kLibraries[] = {"dnnl"};  // that Tenon has code for

// The library, which stays open. An error says what is missing and what to do.
Expected<KernelLibrary> open_library(std::string_view name);

// The kernel "LIBRARY.KERNEL".
Expected<LibraryKernel> library_kernel(std::string_view name, const Attrs& attrs, unsigned threads);

}  // namespace tenon::runtime

// Defined by each library; false where `abi` is not its own (driver::kPluginAbi).
extern "C" __attribute__((visibility("default"))) bool tenon_kernel_library(const char* abi,
                                                                            tenon::runtime::KernelLibrary* library);
