// Equations of einsum: a letter an axis, as "ij,jk->ik"; "..." stands for the axes in front that have no letter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::runtime::reference {

struct Einsum {
  std::vector<std::string>
      inputs;  // a character an axis; the axes of "..." are the characters '9' .. '0', the last one '0'
  std::string output;

  // For inputs of these ranks. Without "->" the result has the letters that occur once, in alphabetical order.
  static Expected<Einsum> parse(std::string_view equation, const std::vector<int64_t>& ranks);
  // The letters that are summed over.
  std::string summed() const;
};

}  // namespace tenon::runtime::reference
