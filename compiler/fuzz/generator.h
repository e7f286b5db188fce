// Random well-typed modules, which test every part of the language.
//
// Semantics: a module is well typed by construction, has a function @main whose parameters hold no functions and no
// references, and ends: recursion is by fuel or by structure, and an estimate of the work bounds calls. Integers never
// depend on how floats are rounded: a discontinuous operator (a comparison, a conversion) is only applied to values
// that no pass computes. A seed names a module for good, on every machine, as long as the operators stay the same.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/ir/module.h"

namespace tenon::compiler::fuzz {

struct Options {
  int size = 24;                     // statements of @main, at most; other functions have fewer
  bool control = true;               // false: @main alone, of operators and tuples, as a model's graph
  std::optional<DType> floats = {};  // nothing: f32 or f64, by the seed
  // Only what has a derivative: no loop functions and library functions, and operators with gradient rules.
  bool derivable = false;
};

Module random_module(Context& context, uint64_t seed, const Options& options = {});

// The library functions that such modules declare; each returns its argument and is an observable effect.
inline constexpr const char* kLibraries[] = {"fuzz.log", "fuzz.tick"};

}  // namespace tenon::compiler::fuzz
