// A subcommand of `tenon`: its name, options and action; each has a file and a line in commands.cpp.
//
// Semantics: declare() names the options, bound to variables that the returned action owns, and does nothing else: only
// the chosen command's declare() is called. The action's error decides the exit code; results go to standard output,
// all else to standard error (support/output.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/command_line.h"
#include "support/diagnostic.h"
#include "support/output.h"

namespace tenon::cli {

using Action = std::function<Status()>;

struct Command {
  std::string_view name;  // "hw generate"
  std::string_view doc;   // one line for the list
  Action (*declare)(Options&);
};

std::span<const Command> commands();

// Runs the command line, prints the error if there is one, and returns the exit code.
int run(const std::vector<std::string>& arguments);

}  // namespace tenon::cli
