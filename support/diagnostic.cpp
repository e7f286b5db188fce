#include "support/diagnostic.h"

namespace tenon {

std::string Diagnostic::str() const {
  std::string text = where.empty() ? "" : where + ": ";
  text += "error: " + what;
  if (!help.empty()) text += "\n  help: " + help;
  return text;
}

}  // namespace tenon
