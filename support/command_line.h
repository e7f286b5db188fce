// The command line of one command: its options, their help, and the errors of wrong usage.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"
#include "support/number.h"

namespace tenon {

// The options of one command; the library that reads them is hidden in it. `names` is "-o,--output"; `value` in
// capitals is the placeholder of the value in help. A variable keeps its value where the option is absent; help shows
// the value as the default.
class Options {
 public:
  // `program` is what the user types before the options, as "tenon run".
  Options(std::string_view program, std::string_view doc);
  ~Options();

  void argument(std::string& variable, std::string_view name, std::string_view doc);  // positional, required
  void optional_argument(std::string& variable, std::string_view name, std::string_view doc);
  void arguments(std::vector<std::string>& variable, std::string_view name, std::string_view doc);  // one or more
  void required(std::string& variable, std::string_view names, std::string_view value, std::string_view doc);
  void option(std::string& variable, std::string_view names, std::string_view value, std::string_view doc);
  void option(std::vector<std::string>& variable, std::string_view names, std::string_view value, std::string_view doc);
  // One value each time that the option is given.
  void repeated(std::vector<std::string>& variable, std::string_view names, std::string_view value,
                std::string_view doc);
  void option(int64_t& variable, std::string_view names, std::string_view value, std::string_view doc,
              Bounds<int64_t> bounds);
  void option(uint64_t& variable, std::string_view names, std::string_view value, std::string_view doc,
              Bounds<uint64_t> bounds);
  void option(double& variable, std::string_view names, std::string_view value, std::string_view doc,
              Bounds<double> bounds);
  void choice(std::string& variable, std::string_view names, std::vector<std::string> values, std::string_view doc);
  void flag(bool& variable, std::string_view names, std::string_view doc);
  void footer(std::string_view text);  // examples, below the options

  void version(std::string_view text);  // what --version prints

  // Reads the arguments that follow the command's name. False where help or version was requested and printed.
  Expected<bool> parse(std::vector<std::string> arguments);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
