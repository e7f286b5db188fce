// The words that an expression may begin with and that name no operator, constructor or dim.
#pragma once

#include <algorithm>
#include <string_view>

#include "compiler/ir/module.h"

namespace tenon::compiler {

inline constexpr std::string_view kKeywords[] = {"else",       "false",    "fn",   "gradient", "if",   "let",  "match",
                                                 "match_cast", "pullback", "read", "ref",      "size", "true", "write"};

inline std::string_view word(Gradient::Kind kind) {
  return kind == Gradient::Kind::kPullback ? "pullback" : "gradient";
}

// Whether a dim of this name is written as size(NAME): it is a keyword, or may begin a literal, as inff32.
inline bool is_reserved(std::string_view name) {
  return std::ranges::find(kKeywords, name) != std::end(kKeywords) || name.starts_with("inf") ||
         name.starts_with("nan");
}

}  // namespace tenon::compiler
