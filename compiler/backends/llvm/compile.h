// Loop functions to native code: LLVM makes an object file for any processor that it knows, lld links it into a shared
// object with the interface of runtime/native/kernel.h. No LLVM header is visible here.
//
// Semantics: those of compiler/loop/loop.h, as its evaluator has them. Integers wrap; each operation of floats is
// rounded in its type, so that the results of + - * / sqrt, of conversions and of comparisons are the evaluator's bit
// for bit, on every processor and level, whatever the schedule and the number of threads. exp, log, tanh, erf and atan
// of f32 are polynomials, the same on every processor; their errors are stated in math.h. Other functions are the C
// library's. Errors of the program (a division by 0, a computed index outside its extent, a float that does not fit an
// integer) end the call with a message that names function and stage. What the evaluator checks beyond that (an index
// of a load or store outside its buffer, an element read before it is written) is the schedule's duty and not checked
// here.
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
      {};  // of the processor; empty: all that make a difference, one chosen where it is loaded
  // a * b + c is rounded once where the level has an instruction for it: faster, and no longer bit for bit.
  bool contract = false;
  // By level and number, functions that stand for one there: of the same signature.
  std::map<std::string, std::map<size_t, const loop::Function*>> of_level = {};
};

// The levels that code for a triple is made for, the best first.
Expected<std::vector<std::string>> levels_of(const std::string& triple);

// One library with these functions under their names, which must differ. A function has passed loop::verify(). Errors:
// a triple or level that is not there, with those that are; a function that uses what is not supported, with its name.
Expected<runtime::NativeCode> compile(TypeContext& context, std::span<const loop::Function* const> functions,
                                      const Options& options = {});

// Why there is no code for a function, whatever the processor: also where it has no signature.
Status supported(TypeContext& context, const loop::Function& function);

// What a caller has to give and gets. An error where the parameters do not determine the function's dims.
Expected<runtime::Signature> signature_of(TypeContext& context, const loop::Function& function);

}  // namespace tenon::compiler::native
