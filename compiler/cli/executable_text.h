// What an executable is made of, as text and as JSON, for the commands that print it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/executable/executable.h"

namespace tenon::cli {

// The signature of a native kernel: the names of its dims, and its buffers as "f32 (n, 4)".
struct KernelTexts {
  std::vector<std::string> dims, params, results, temporaries, checks;
};
KernelTexts texts_of(const runtime::NativeKernel& kernel);

void print_signature(const runtime::Executable& e);
void print_code(const runtime::Executable& e, const runtime::Function& function);
// The plan of each function that computes tensors, or of the function `only`: the bytes of its arena, the most that are
// live at once, and the results for which each run of the frame allocates memory.
void print_plan(const runtime::Executable& e, std::string_view only = "");
void print_constants(const runtime::Executable& e);
void print_native_code(const runtime::NativeCode& native);
void print_native_kernel(const runtime::NativeKernel& kernel);

// Everything but the data of constants, kernels and programs; names as tenon-run --info --json has them.
std::string executable_json(const runtime::Executable& e);

}  // namespace tenon::cli
