// Compilation of loop functions to native code: LLVM generates an object file for any processor that it supports, lld
// links it into a shared object with the interface of runtime/native/kernel.h. This header includes no LLVM header.
//
// Semantics: those of compiler/loop/loop.h and its evaluator. Integers wrap; each operation of floats is
// rounded in its type, so that the results of + - * / sqrt, of conversions and of comparisons are the evaluator's bit
// for bit, on every processor and level, whatever the schedule and the number of threads. exp, log, tanh, erf and atan
// of f32 are polynomials, equal on every processor; their errors are stated in math.h. Other functions are the C
// library's. Errors of the program (a division by 0, a computed index outside its extent, a float that does not fit an
// integer) end the call with a message that names function and stage. Further checks of the evaluator (an index of a
// load or store outside its buffer, an element that is read before it is written) do not happen in native code: the
// loop function must not need them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/loop/loop.h"
#include "runtime/native/native.h"

namespace tenon::compiler::native {

struct Options {
  std::string triple = {};  // "aarch64-unknown-linux-gnu"; empty: this machine's
  std::vector<std::string> levels =
      {};  // of the processor; empty: all that differ for the functions; the loader selects one
  // Rounds a * b + c once if the level has an instruction for it: faster, but not bit for bit the evaluator's result.
  bool contract = false;
  // By level and index, functions of equal signature that replace the function there.
  std::map<std::string, std::map<size_t, const loop::Function*>> overrides = {};
};

// The levels of a triple, the best first.
Expected<std::vector<std::string>> levels_of(const std::string& triple);

// Compiles one library with these functions under their names, which must be unique. A function has passed
// loop::verify(). Errors: an unknown triple or level, with the known ones; a function that uses unsupported features,
// with its name.
Expected<runtime::NativeCode> compile(TypeContext& context, std::span<const loop::Function* const> functions,
                                      const Options& options = {});

// Whether native code supports the function, on any processor; a function must have a signature.
Status supported(TypeContext& context, const loop::Function& function);

// The parameters and results of a function for its callers. An error if the parameters do not determine its dims.
Expected<runtime::Signature> signature_of(TypeContext& context, const loop::Function& function);

}  // namespace tenon::compiler::native
