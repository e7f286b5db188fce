// Passes and their manager.
//
// Semantics: a pass takes a well-formed module and gives a well-formed one that means the same, or a Diagnostic. Every
// pass takes every module, whatever levels and kinds of values it mixes: what it does not know it leaves alone. No pass
// moves out of an arm what may fail or never end, and none drops an effect (compiler/ir/effects.h).
//
// A pass is one file of this folder: its functions, and `Pass NAME_pass()` with its record. CMake makes the table.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/module.h"

namespace tenon::compiler {

struct Pass {
  std::string name;           // as --print-after takes it
  std::string documentation;  // one line
  std::function<Expected<Module>(Context&, Module)> run;
};

// All that have a name, in the order of their names.
const std::vector<Pass>& all_passes();
// What every model goes through before it is quantized, partitioned or compiled. A pass may come more than once.
const std::vector<Pass>& standard_passes();
// What goes on after that, for what is left to the CPU: operators into kernels.
const std::vector<Pass>& kernel_passes();
// By their names; an unknown one is an error that names the closest one and the known.
Expected<std::vector<Pass>> find_passes(std::span<const std::string> names);

struct PassReport {
  std::string name;
  double seconds = 0;
  size_t bindings_before = 0, bindings_after = 0;  // of all functions
  uint64_t visits = 0;                             // Context::visits(), what the pass added
};

// Whether this build checks modules after each pass without being asked: debug and sanitizer builds do.
bool verifies_always();

struct PassOptions {
  bool verify = verifies_always();                                          // after each pass; a finding names the pass
  std::vector<std::string> print_before = {}, print_after = {}, diff = {};  // names of passes; "all": every one
  std::function<void(std::string_view title, const std::string& text)> print = {};
  std::function<void(const PassReport&)> report = {};
};

// That each name in the options is that of a pass, or "all".
Status check(const PassOptions& options);

Expected<Module> run_passes(Context& context, Module module, std::span<const Pass> passes,
                            const PassOptions& options = {});

// The lines of `after` against those of `before`: "-old", "+new", and three lines around each change; empty where they
// are equal. (Myers 1986, greedily; texts that differ in more than a few thousand lines come as a whole.)
std::string diff_lines(std::string_view before, std::string_view after);

}  // namespace tenon::compiler
