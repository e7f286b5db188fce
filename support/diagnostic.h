// The one error type of Tenon: what went wrong, where, why and what to do about it.
//
// Semantics: an error that a user can cause is returned as an `Expected<T>` (or a `Status` where there is no value); a
// broken invariant of Tenon's own code is an assertion and never a Diagnostic. `Fault` determines the exit code of the
// commands.
#pragma once

#include <expected>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

enum class Fault : unsigned char {
  kInput = 1,     // the user's data, model, configuration or device is wrong
  kUsage = 2,     // the command line is wrong
  kInternal = 3,  // a bug in Tenon, or a failure of the machine under it
};

struct Diagnostic {
  std::string what;   // the finding, with the constraint and both values
  std::string where;  // file:line:column, operator, or instruction; may be empty
  std::string help;   // what the user can do about it; may be empty
  Fault fault = Fault::kInput;
  std::vector<Diagnostic> more = {};  // other mistakes that the same run found, as in a text

  // "WHERE: error: WHAT\n  help: HELP", without the empty parts and without a final newline; the others follow, each on
  // lines of its own.
  std::string str() const;
};

template <class T>
using Expected = std::expected<T, Diagnostic>;
using Status = Expected<void>;

// The short way to return a Diagnostic: `return error("x is 3, must be even", "config.json", "round it up");`
inline std::unexpected<Diagnostic> error(std::string what, std::string where = {}, std::string help = {},
                                         Fault fault = Fault::kInput) {
  return std::unexpected(Diagnostic{std::move(what), std::move(where), std::move(help), fault, {}});
}

}  // namespace tenon
