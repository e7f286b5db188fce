#include "compiler/kernels/choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/literal.h"
#include "compiler/ir/operator.h"

namespace tenon::compiler::kernels {

std::string str(const Choice& choice) {
  std::string text;
  for (const auto& [decision, option] : choice)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", decision, option);
  return text;
}

Choice parse_choice(std::string_view text) {
  Choice choice;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t sign = word.find('=');
    if (sign != std::string_view::npos) choice.emplace(word.substr(0, sign), word.substr(sign + 1));
  }
  return choice;
}

std::string operator_key(const Operator& op, const Attrs& attrs, const std::vector<std::string>& args) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const std::string& arg : args) add(arg);
  for (const AttrSpec& spec : op.attributes) {
    const auto found = attrs.find(spec.name);
    if (found != attrs.end() && found->second != spec.default_value)
      add(fmt::format("{}={}", spec.name, attribute(found->second)));
  }
  return fmt::format("{}({})", op.name, text);
}

Choice Decided::choice() const {
  Choice choice;
  for (const Decision& decision : decisions) choice.emplace(decision.name, decision.options[decision.taken].name);
  return choice;
}

}  // namespace tenon::compiler::kernels
