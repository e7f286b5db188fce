// A subcommand of `tenon`: its name, options and action; each has a file and a line in commands.cpp.
//
// Semantics: declare() names the options, bound to variables that the returned action owns, and does nothing else: only
// the chosen command's declare() is called. The action's error decides the exit code (exit_code); results go to
// standard output, all else to standard error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::cli {

using Action = std::function<Status()>;

// The options of one command; the command-line library is hidden in it. `names` is "-o,--output"; `value` in capitals
// is the placeholder of the value in help. A variable keeps its value where the option is absent; help shows the value
// as the default.
class Options {
 public:
  Options(std::string_view command, std::string_view doc);
  ~Options();

  void argument(std::string& variable, std::string_view name, std::string_view doc);  // positional, required
  void arguments(std::vector<std::string>& variable, std::string_view name, std::string_view doc);  // one or more
  void required(std::string& variable, std::string_view names, std::string_view value, std::string_view doc);
  void option(std::string& variable, std::string_view names, std::string_view value, std::string_view doc);
  void option(std::vector<std::string>& variable, std::string_view names, std::string_view value, std::string_view doc);
  // One value each time that the option is given.
  void repeated(std::vector<std::string>& variable, std::string_view names, std::string_view value,
                std::string_view doc);
  void option(int64_t& variable, std::string_view names, std::string_view value, std::string_view doc);
  void option(uint64_t& variable, std::string_view names, std::string_view value, std::string_view doc);
  void option(double& variable, std::string_view names, std::string_view value, std::string_view doc);
  void choice(std::string& variable, std::string_view names, std::vector<std::string> values, std::string_view doc);
  void flag(bool& variable, std::string_view names, std::string_view doc);
  void footer(std::string_view text);  // examples, below the options

  // Reads the arguments that follow the command's name. False where help was requested and printed.
  Expected<bool> parse(std::vector<std::string> arguments);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct Command {
  std::string_view name;  // "hw generate"
  std::string_view doc;   // one line for the list
  Action (*declare)(Options&);
};

std::span<const Command> commands();

// Runs the command line, prints the error if there is one, and returns the exit code.
int run(const std::vector<std::string>& arguments);

// 0 done, 1 the input's fault, 2 wrong usage, 3 ours.
int exit_code(const Status& status);

}  // namespace tenon::cli
