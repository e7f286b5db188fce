// The options that print and time passes, shared by the commands that run passes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/cli/command.h"
#include "compiler/passes/pass.h"

namespace tenon::cli {

struct PassFlags {
  std::string print_before, print_after, diff;  // lists of names
  bool time = false, verify = false;

  void declare(Options& options);
  // Prints modules to standard output, times to standard error. The flags outlive the returned options, which may name
  // these passes beside those of compiler/passes.
  Expected<compiler::PassOptions> options(std::span<const compiler::Pass> steps) const;
  bool prints() const { return !print_before.empty() || !print_after.empty() || !diff.empty(); }
};

// "a, b" as its parts.
std::vector<std::string> split(const std::string& list);
// The same, with an empty part after a last comma, and of an empty list.
std::vector<std::string> split_all(const std::string& list);

}  // namespace tenon::cli
