// The promises that every well-typed module keeps, checked one after the other.
//
// - verify: the verifier accepts it.
// - text, binary: parse(print(m)) equals m, in one layout; from_binary(to_binary(m)) too.
// - shadowing: with variables named as others that are no longer used, the text is the same module.
// - infer: with the types of bindings left out, where inference can do without them, the text is the same module; where
//   it cannot, the reader says so.
// - run: the interpreter ends without an internal error.
// - machine: the module compiles, and the virtual machine computes the same bits with the reference kernels, NaN where
//   the interpreter has NaN; it fails where the interpreter fails.
// - ahead of time: so do its functions as machine code.
// - budget N: so does the machine where its tensors have N bytes of memory, or says that this is too little.
// - pass NAME, pipeline, pipeline to kernels: the module after the pass verifies and computes equal results: integers
//   exactly, floats to a tolerance times the largest value in between; the calls of library functions and the failures
//   of checks too.
// - native: so does the module after all passes, compiled with native kernels.
// - batch: the module with the units of batches computes the same, and each batched unit what its calls compute, bit
//   for bit; so do instances that run together in the virtual machine.
// - gradient: a derivative expands to a module that keeps these promises, and agrees with central differences.
// - mutant: a text that is not a module is rejected with a location; one that is keeps the promises above.
#pragma once

#include <map>
#include <string>

#include "compiler/ir/module.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pass.h"

namespace tenon::compiler::fuzz {

struct Counts {
  int64_t modules = 0, bindings = 0, runs = 0;
  int64_t failing = 0;                 // the program stops by a check of its own
  int64_t endless = 0;                 // too long to be run
  int64_t unbounded = 0;               // NaN or infinity among the floats: only the integers are compared
  int64_t annotated = 0;               // inference alone does not determine every type
  int64_t loops = 0;                   // calls of loop functions
  int64_t changed = 0;                 // by a pass
  int64_t compiled = 0;                // runs of the virtual machine that were compared
  int64_t native = 0;                  // runs with native kernels that were compared
  int64_t budgeted = 0;                // runs under a budget that were compared
  int64_t refused = 0;                 // runs whose budget was too little
  int64_t limited = 0;                 // runs of the machine that ended at a limit
  int64_t rejected = 0, accepted = 0;  // mutants
  int64_t units = 0;                   // of batches
  int64_t batches = 0;                 // of several calls of a unit
  int64_t put_off = 0, joined = 0;     // calls of units in runs of several instances; calls less by batches
  int64_t derivatives = 0;             // that agree with differences
  int64_t kinks = 0;                   // where differences do not converge
  std::map<std::string, int64_t, std::less<>> operators = {};    // how often each was applied
  std::map<std::string, int64_t, std::less<>> values = {};       // and each kind of value made
  std::map<std::string, int64_t, std::less<>> stops = {};        // the errors that stopped programs
  std::map<std::string, int64_t, std::less<>> unbatched = {};    // the operators because of which units are not batched
  std::map<std::string, int64_t, std::less<>> underivable = {};  // why programs have no derivative

  void count(const Module& module);
};

struct OracleOptions {
  std::vector<Pass> passes = {};  // each alone
  bool pipeline = true;           // the standard passes, and those that make kernels
  bool text = true;
  bool machine = true;
  bool batch = true;
  uint64_t native = 0;      // modules whose seeds are multiples of it; 0: none
  int budgets = 0;          // of memory, under which each module runs
  int mutants = 2;          // of each kind
  bool gradients = false;   // the modules are those of with_gradient (gradients.h), and promise what is said there
  int64_t steps = 100'000;  // of the interpreter; a longer program is not compared
};

// A broken promise: the name of the check, and how it fails.
struct Violation {
  std::string check;
  Diagnostic problem;
  Text mutant = {};  // the text that breaks the promise, where it is not the module's own
};

// The file of a failing module's constants, which texts of mutants name.
std::string side_file(uint64_t seed);

// `seed` determines inputs and mutants; modules that are compared with each other need equal seeds.
std::optional<Violation> examine(Context& context, const Module& module, uint64_t seed, const OracleOptions& options,
                                 Counts& counts);

}  // namespace tenon::compiler::fuzz
