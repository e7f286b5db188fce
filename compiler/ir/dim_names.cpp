#include "compiler/ir/dim_names.h"

#include <algorithm>
#include <cctype>

namespace tenon::compiler {

std::string identifier(std::string_view name) {
  std::string out;
  bool plain = false;
  for (const char c : name) {
    const bool kept = std::isalnum(static_cast<unsigned char>(c)) != 0;
    plain |= kept;
    out += kept ? c : '_';
  }
  if (!plain) return "";
  if (std::isdigit(static_cast<unsigned char>(out[0]))) out = "d" + out;
  return out;
}

std::optional<Symbol> find_dim(Context& context, const Function& function, std::string_view name) {
  for (const std::string& text : {std::string(name), identifier(name)}) {
    if (text.empty()) continue;
    const Symbol dim = context.symbol(text);
    if (std::ranges::find(function.dims, dim) != function.dims.end()) return dim;
  }
  return std::nullopt;
}

}  // namespace tenon::compiler
