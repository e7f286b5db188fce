// Passes and their manager.
//
// Semantics: a pass transforms a well-formed module into a well-formed one with the same meaning, or returns a
// Diagnostic. Every pass accepts every module, whatever levels and kinds of values it mixes, and leaves unsupported
// values unchanged. No pass moves a binding that may fail or not terminate out of an arm, and none removes an effect
// (compiler/ir/effects.h).
//
// A pass is one file of this folder: its functions, and `Pass NAME_pass()` with its record. CMake generates the table.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

struct Pass {
  std::string name;           // as in --print-after NAME
  std::string documentation;  // one line
  std::function<Expected<Module>(Context&, Module)> run;
};

// All passes, sorted by name.
const std::vector<Pass>& all_passes();
// The pipeline of every model before it is quantized, partitioned or compiled. A pass may occur more than once.
const std::vector<Pass>& standard_passes();
// The pipeline after partitioning, for the operators on the CPU, which are fused into kernels.
const std::vector<Pass>& kernel_passes();
// The passes with these names; an unknown name is an error that suggests the closest name and lists all names.
Expected<std::vector<Pass>> find_passes(std::span<const std::string> names);

struct PassReport {
  std::string name;
  double seconds = 0;
  size_t bindings_before = 0, bindings_after = 0;  // of all functions
  uint64_t visits = 0;                             // the increase of Context::visits()
};

// Whether this build verifies modules after each pass by default: debug and sanitizer builds do.
bool verifies_always();

struct PassOptions {
  bool verify = verifies_always();                                          // after each pass; the error names the pass
  std::vector<std::string> print_before = {}, print_after = {}, diff = {};  // names of passes; "all": every pass
  std::function<void(std::string_view title, const std::string& text)> print = {};
  std::function<void(const PassReport&)> report = {};
};

// Checks that each name in the options is the name of a pass, of one of `more`, or "all".
Status check(const PassOptions& options, std::span<const Pass> more = {});

Expected<Module> run_passes(Context& context, Module module, std::span<const Pass> passes,
                            const PassOptions& options = {});

// The lines of `after` against those of `before`: "-old", "+new", and three lines around each change; empty where they
// are equal. (Myers 1986, the greedy algorithm; texts that differ in more than a few thousand lines are shown whole.)
std::string diff_lines(std::string_view before, std::string_view after);

}  // namespace tenon::compiler
