// Kernels of bound loop functions as PTX, NVIDIA's assembly, which the driver or ptxas translates to a GPU's code.
//
// Semantics: those of compile.h with `contract`: operations of floats are IEEE, subnormal numbers included, and a
// product and its addition to a sum are rounded once; exp, log, tanh, erf and atan of f32 are the same polynomials; no
// library of NVIDIA is linked. A fault is recorded in the module's variable tn_fault_record {i32 occurred, i32 site,
// i64 found, i64 expected}, and ends the thread; the first one stays.
#pragma once

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/loop/bindings.h"
#include "runtime/native/kernel.h"

namespace tenon::compiler::native {

struct Ptx {
  std::string text;
  std::vector<std::pair<uint32_t, std::string>> sites;  // of faults: a tn_fault and the location
};

struct PtxFunction {
  const loop::Function* function = nullptr;
  std::vector<loop::Kernel> kernels;  // of the function
};

// One entry for each kernel, under its name, which must be unique; its arguments are the addresses of the
// function's parameters and results, and then the dims in the order of the function's signature. `level`: a machine, as
// sm_80. Errors: an unknown level; a function of the C library, a ragged buffer, a table of rows, buffers of a thread
// that do not fit its stack, with the function.
Expected<Ptx> make_ptx(TypeContext& context, std::span<const PtxFunction> functions, const std::string& level);
// The error that make_ptx() has for the functions, if any, without the time of LLVM's passes, which is most of its own;
// that this LLVM cannot emit PTX is reported by make_ptx() alone.
Status check_ptx(TypeContext& context, std::span<const PtxFunction> functions, const std::string& level);

}  // namespace tenon::compiler::native
