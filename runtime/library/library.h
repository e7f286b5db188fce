// Kernels of external libraries, as oneDNN: shared objects that are opened when an executable calls them and never
// linked.
//
// A kernel whose name has a dot, "dnnl.conv2d", is "conv2d" of tenon-kernels-dnnl.so. The shared object is in the
// folder of the transports (driver/plugin.h), comes from the same build as the program that opens it, because its
// interface has C++ types, and exports one C function. It checks the attributes, types and shapes that it gets from an
// executable.
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

// Executes one call of an executable any number of times: it may keep prepared data, as reordered weights. Not
// thread-safe.
using LibraryKernel = std::function<Expected<std::vector<Tensor>>(std::span<const Tensor>)>;

struct KernelLibrary {
  std::string doc;
  // An error if there is no such kernel, or none with these attributes. threads: 0 for all usable processors.
  Expected<LibraryKernel> (*make)(std::string_view kernel, const Attrs& attrs, unsigned threads) = nullptr;
};

inline constexpr std::string_view kLibraries[] = {"dnnl"};  // those with a KernelLibrary in Tenon

// Opens the library, which stays open. The error explains what is missing and what to do.
Expected<KernelLibrary> open_library(std::string_view name);

// The kernel "LIBRARY.KERNEL".
Expected<LibraryKernel> library_kernel(std::string_view name, const Attrs& attrs, unsigned threads);

}  // namespace tenon::runtime

// Defined by each library; returns false if `abi` is not the library's own driver::kPluginAbi.
extern "C" __attribute__((visibility("default"))) bool tenon_kernel_library(const char* abi,
                                                                            tenon::runtime::KernelLibrary* library);
