// The one error type of Tenon: what went wrong, where, why and what to do about it.
//
// Semantics: whatever a user can cause travels as `Expected<T>` (or `Status` where there is no value); a broken
// invariant of ours is an assertion and never a Diagnostic. `Fault` decides the exit code of the commands.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace tenon {

enum class Fault : unsigned char {
  kInput = 1,     // the user's data, model, configuration or device is wrong
  kUsage = 2,     // the command line is wrong
  kInternal = 3,  // Tenon is wrong, or the machine under it
};

struct Diagnostic {
  std::string what;   // the finding, with the constraint and both values
  std::string where;  // file:line:column, operator, or instruction; may be empty
  std::string help;   // what the user can do about it; may be empty
  Fault fault = Fault::kInput;

  // "WHERE: error: WHAT\n  help: HELP", without the parts that are empty; no final newline.
  std::string str() const;
};

template <class T>
using Expected = std::expected<T, Diagnostic>;
using Status = Expected<void>;

// The short way to return a Diagnostic: `return error("x is 3, must be even", "config.json", "round it up");`
inline std::unexpected<Diagnostic> error(std::string what, std::string where = {}, std::string help = {},
                                         Fault fault = Fault::kInput) {
  return std::unexpected(Diagnostic{std::move(what), std::move(where), std::move(help), fault});
}

// Passes on the error of `expected`, for functions with another value type.
template <class T>
std::unexpected<Diagnostic> forward_error(Expected<T>& expected) {
  return std::unexpected(std::move(expected.error()));
}

}  // namespace tenon
