// What must hold for every well-typed module, checked one after the other.
//
// - verify: the verifier accepts it.
// - text, binary: parse(print(m)) equals m, in one layout; from_binary(to_binary(m)) too.
// - infer: with the types of bindings left out, where inference can do without them, the text is the same module; where
//   it cannot, the reader says so.
// - run: the interpreter ends without an internal error.
// - pass NAME, pipeline, pipeline to kernels: the module after the pass verifies and gives the same: integers exactly,
// floats to a tolerance
//   times the largest value in between; the calls of library functions and the failures of checks too.
// - mutant: what is no longer a module is rejected with a place; what still is one keeps the promises above.
#pragma once

#include <map>
#include <string>

#include "compiler/ir/module.h"
#include "compiler/passes/pass.h"

namespace tenon::compiler::fuzz {

struct Counts {
  int64_t modules = 0, bindings = 0, runs = 0;
  int64_t failing = 0;                 // the program stops by a check of its own
  int64_t endless = 0;                 // too long to be run
  int64_t unbounded = 0;               // floats without a number among them: only the integers are compared
  int64_t annotated = 0;               // inference alone does not decide every type
  int64_t loops = 0;                   // calls of loop functions
  int64_t changed = 0;                 // by a pass
  int64_t rejected = 0, accepted = 0;  // mutants
  std::map<std::string, int64_t, std::less<>> operators = {};  // how often each was applied
  std::map<std::string, int64_t, std::less<>> values = {};     // and each kind of value made
  std::map<std::string, int64_t, std::less<>> stops = {};      // what stopped the programs that stopped

  void count(const Module& module);
};

struct OracleOptions {
  std::vector<Pass> passes = {};  // each alone
  bool pipeline = true;           // the standard ones, and those that make kernels
  bool text = true;
  int mutants = 2;          // of each kind
  int64_t steps = 100'000;  // of the interpreter; what needs more is not run
};

// What does not hold: the name of the check, and how it fails.
struct Violation {
  std::string check;
  Diagnostic problem;
  std::string mutant = {};  // the text that it happened with, where that is not the module's own
};

// `seed` makes inputs and mutants; the same for all modules that are to be compared with this one.
std::optional<Violation> examine(Context& context, const Module& module, uint64_t seed, const OracleOptions& options,
                                 Counts& counts);

}  // namespace tenon::compiler::fuzz
