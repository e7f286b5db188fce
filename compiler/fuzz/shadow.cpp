// Shadowing in printed text: a variable takes the name of another one that is no longer used.
#include <algorithm>
#include <cctype>
#include <map>
#include <utility>
#include <vector>

#include "compiler/fuzz/strip.h"

namespace tenon::compiler::fuzz {
namespace {

struct NamedVariable {
  std::string_view name;
  bool let = false;
  size_t begin = 0, end = 0;     // offsets of the text in which the name means this variable
  std::vector<size_t> mentions;  // offsets of the name, the definition first
};

bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The offset after the string that begins at `at`.
size_t string_end(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\';
  return std::min(text.size(), at + 1);
}

// Where the variable of a `let` is first visible: at the end of the statement, or at its name where the value has a
// closure, which may refer to itself.
size_t visible_from(std::string_view text, size_t let) {
  int depth = 0;
  for (size_t at = let; at < text.size(); ++at) {
    if (text[at] == '"') at = string_end(text, at) - 1;
    else if (text.substr(at).starts_with("fn (%") || text.substr(at).starts_with("fn(")) return let;
    else if (text[at] == ';' && depth == 0) return at;
    else depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
  }
  return let;
}

// The variables of one function, in the order of their definitions.
std::vector<NamedVariable> named_variables(std::string_view text) {
  std::vector<NamedVariable> variables;
  std::map<std::string_view, size_t> known;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') at = string_end(text, at) - 1;
    if (at >= text.size() || text[at] != '%') continue;
    size_t end = at + 1;
    while (end < text.size() && is_name_part(text[end])) ++end;
    if (end == at + 1) continue;  // the operator
    const std::string_view name = text.substr(at, end - at);
    const auto [entry, is_new] = known.emplace(name, variables.size());
    if (is_new) {
      const bool let = at >= 4 && text.substr(at - 4, 4) == "let ";
      variables.push_back({.name = name, .let = let, .begin = let ? visible_from(text, at) : at, .mentions = {}});
    }
    NamedVariable& variable = variables[entry->second];
    variable.end = std::max(variable.begin, at);
    variable.mentions.push_back(at);
    at = end - 1;
  }
  return variables;
}

std::string shadowed(std::string_view text, Random& random) {
  const std::vector<NamedVariable> all = named_variables(text);
  std::map<std::string_view, std::vector<std::pair<size_t, size_t>>> taken;
  for (const NamedVariable& variable : all) {
    if (!variable.let) taken[variable.name].emplace_back(variable.begin, variable.end);
  }
  std::map<size_t, std::pair<std::string_view, std::string_view>> edits;  // offset: old name, new name
  for (size_t i = 0; i < all.size(); ++i) {
    const NamedVariable& variable = all[i];
    if (!variable.let) continue;
    std::string_view name = variable.name;
    if (i > 0 && random.chance(80)) {
      const std::string_view other = all[static_cast<size_t>(random.between(0, static_cast<int64_t>(i) - 1))].name;
      const bool free = std::ranges::all_of(
          taken[other], [&](const auto& range) { return range.second < variable.begin || variable.end < range.first; });
      if (free) name = other;
    }
    taken[name].emplace_back(variable.begin, variable.end);
    for (const size_t mention : variable.mentions) edits[mention] = {variable.name, name};
  }
  std::string out;
  size_t at = 0;
  for (const auto& [offset, names] : edits) {
    out += text.substr(at, offset - at);
    out += names.second;
    at = offset + names.first.size();
  }
  return out += text.substr(at);
}

}  // namespace

std::string with_shadowing(std::string_view text, Random& random) {
  std::string out;
  while (!text.empty()) {
    const bool function = text.starts_with("def @");
    const size_t next = function ? text.find("\n}\n") : text.find("\ndef @");
    const std::string_view part = text.substr(0, next == std::string_view::npos ? text.size() : next + 1);
    out += function ? shadowed(part, random) : std::string(part);
    text.remove_prefix(part.size());
  }
  return out;
}

}  // namespace tenon::compiler::fuzz
