#include "compiler/kernels/knob.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/literal.h"
#include "compiler/ir/operator.h"

namespace tenon::compiler::kernels {

std::string str(const KnobSettings& settings) {
  std::string text;
  for (const auto& [knob, option] : settings) text += fmt::format("{}{}={}", text.empty() ? "" : " ", knob, option);
  return text;
}

KnobSettings parse_knob_settings(std::string_view text) {
  KnobSettings settings;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view token = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t sign = token.find('=');
    if (sign != std::string_view::npos) settings.emplace(token.substr(0, sign), token.substr(sign + 1));
  }
  return settings;
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

KnobSettings OperatorKnobs::settings() const {
  KnobSettings settings;
  for (const Knob& knob : knobs) settings.emplace(knob.name, knob.options[knob.selected].name);
  return settings;
}

void KernelKnobs::begin_operator(std::string key, KnobSettings settings) {
  operators_.push_back({std::move(key), {}});
  settings_.push_back(std::move(settings));
}

size_t KernelKnobs::current() {
  if (operators_.empty()) begin_operator({}, {});
  return operators_.size() - 1;
}

size_t KernelKnobs::choose(size_t op, std::string_view knob, std::vector<Option> options) {
  size_t selected = static_cast<size_t>(std::ranges::min_element(options, {}, &Option::cost) - options.begin());
  if (const auto setting = settings_[op].find(knob); setting != settings_[op].end()) {
    const auto option = std::ranges::find(options, setting->second, &Option::name);
    if (option != options.end()) selected = static_cast<size_t>(option - options.begin());
  }
  operators_[op].knobs.push_back({std::string(knob), std::move(options), selected});
  return selected;
}

std::vector<OperatorKnobs> KernelKnobs::take() && {
  std::erase_if(operators_, [](const OperatorKnobs& op) { return op.knobs.empty(); });
  return std::move(operators_);
}

}  // namespace tenon::compiler::kernels
