#include "support/diagnostic.h"

#include "support/printable.h"

namespace tenon {

std::string Diagnostic::str() const {
  constexpr size_t kLongestWhere = 1000;
  std::string text = where.empty() ? "" : printable(where, kLongestWhere) + ": ";
  text += "error: " + printable_lines(what);
  if (!help.empty()) text += "\n  help: " + printable_lines(help);
  for (const Diagnostic& other : more) text += "\n" + other.str();
  return text;
}

}  // namespace tenon
