// Kernels of external libraries, as oneDNN: shared objects that are opened when an executable calls them and never
// linked.
//
// A kernel whose name has a dot, "dnnl.conv2d", is "conv2d" of tenon-kernels-dnnl.so, which is in the folder of the
// transports (driver/plugin.h), or a file that the user names (use_library), and has the C interface of
// runtime/native/kernel.h, so that anyone can build one. It checks the attributes, types and shapes that it gets from
// an executable. Opened libraries belong to the process.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/attrs.h"
#include "runtime/native/operator_kernel.h"
#include "support/diagnostic.h"
#include "support/function_ref.h"

namespace tenon::runtime {

// The libraries that are installed, and those that Tenon has an adapter for, by name.
std::vector<std::string> library_names();

// The name of the library in the file: NAME of NAME.so, libNAME.so and tenon-kernels-NAME.so.
std::string library_name(const std::filesystem::path& file);
// Small letters, digits and underscores: a name becomes a part of a file name.
bool is_library_name(std::string_view name);

// The library of the name library_name(file) is this file from now on, before those that are installed; it is opened
// when a kernel is called. An error where there is no file, or its name is no name of a library, or that of another
// file.
Status use_library(const std::filesystem::path& file);

// Opens the library, which stays open. The error explains what is missing and what to do.
Expected<const tn_library*> open_library(std::string_view name);

// What the library says of itself in one line, or nothing.
std::string_view doc(const tn_library& library);

// The kernel "LIBRARY.KERNEL", prepared for a call with these attributes.
Expected<OperatorKernel> library_kernel(std::string_view name, const Attrs& attrs);

// Makes each call of a library's kernel, and opens it before: `call` is either of them.
using AroundKernel = std::function<Status(std::string_view name, FunctionRef<Status()> call)>;
// From now on, of all kernels that library_kernel() finds in this process; for one that tries an executable, and while
// no other thread finds kernels.
void watch_library_kernels(AroundKernel around);

}  // namespace tenon::runtime
