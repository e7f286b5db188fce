// Passes and their manager.
//
// Semantics: a pass takes a well-formed module and gives a well-formed one that means the same, or a Diagnostic. Every
// pass takes every module: what it does not know it leaves alone.
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

// All that have a name, in the order of the standard set.
const std::vector<Pass>& all_passes();
// What every model goes through before it is quantized or compiled.
const std::vector<Pass>& standard_passes();
// By their names; an unknown one is an error that lists the known.
Expected<std::vector<Pass>> find_passes(std::span<const std::string> names);

struct PassReport {
  std::string name;
  double seconds = 0;
  size_t bindings_before = 0, bindings_after = 0;  // of all functions
};

struct PassOptions {
#ifdef NDEBUG
  bool verify = false;
#else
  bool verify = true;  // after each pass; a finding names the pass
#endif
  std::vector<std::string> print_before = {}, print_after = {};  // names of passes
  std::function<void(std::string_view title, const std::string& text)> print = {};
  std::function<void(const PassReport&)> report = {};
};

Expected<Module> run_passes(Context& context, Module module, std::span<const Pass> passes,
                            const PassOptions& options = {});

}  // namespace tenon::compiler
