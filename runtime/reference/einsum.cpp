#include "runtime/reference/einsum.h"
#include "support/try.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tenon::runtime::reference {
namespace {

// The axes of one term; "..." becomes `hidden` digits.
Expected<std::string> axes_of(std::string_view term, int64_t hidden) {
  std::string axes;
  bool dots = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == '.') {
      if (dots || !term.substr(i).starts_with("..."))
        return error(fmt::format("'{}' has a dot that is not part of one \"...\"", term));
      dots = true;
      i += 2;
      for (int64_t d = hidden; d-- > 0;) axes += static_cast<char>('0' + d);
    } else if (std::isalpha(static_cast<unsigned char>(term[i])) != 0) {
      axes += term[i];
    } else {
      return error(fmt::format("'{}' is not a letter", term[i]));
    }
  }
  return axes;
}

}  // namespace

Expected<Einsum> Einsum::parse(std::string_view text, const std::vector<int64_t>& ranks) {
  std::string equation(text);
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  std::string_view left = std::string_view(equation).substr(0, arrow);
  Einsum result;
  int64_t most_hidden = 0;
  for (size_t n = 0;; ++n) {
    const std::string_view term = left.substr(0, left.find(','));
    if (n >= ranks.size())
      return error(fmt::format("'{}' has more terms than there are inputs, {}", text, ranks.size()));
    const bool dots = term.find('.') != std::string_view::npos;
    const int64_t letters = static_cast<int64_t>(term.size()) - (dots ? 3 : 0), hidden = ranks[n] - letters;
    if (hidden < 0 || hidden > 9 || (!dots && hidden > 0)) {
      return error(fmt::format("'{}' has {} letters, input {} has {} dims", term, letters, n, ranks[n]));
    }
    TENON_TRY_ASSIGN(axes, axes_of(term, hidden));
    result.inputs.push_back(*axes);
    most_hidden = std::max(most_hidden, hidden);
    if (term.size() == left.size()) break;
    left.remove_prefix(term.size() + 1);
  }
  if (result.inputs.size() != ranks.size()) {
    return error(fmt::format("'{}' has {} terms for {} inputs", text, result.inputs.size(), ranks.size()));
  }
  std::map<char, int> uses;
  for (const std::string& axes : result.inputs) {
    for (char axis : axes) ++uses[axis];
  }
  if (arrow == std::string::npos) {
    for (int64_t d = most_hidden; d-- > 0;) result.output += static_cast<char>('0' + d);
    for (const auto& [axis, count] : uses) {
      if (std::isalpha(static_cast<unsigned char>(axis)) != 0 && count == 1) result.output += axis;
    }
    return result;
  }
  TENON_TRY_ASSIGN(output, axes_of(std::string_view(equation).substr(arrow + 2), most_hidden));
  for (char axis : *output) {
    if (!uses.contains(axis)) return error(fmt::format("the result's axis '{}' is in no input", axis));
    if (std::ranges::count(*output, axis) > 1) return error(fmt::format("the result has axis '{}' twice", axis));
  }
  result.output = *output;
  return result;
}

std::string Einsum::summed() const {
  std::string axes;
  for (const std::string& input : inputs) {
    for (char axis : input) {
      if (output.find(axis) == std::string::npos && axes.find(axis) == std::string::npos) axes += axis;
    }
  }
  return axes;
}

}  // namespace tenon::runtime::reference
