// The parser of the debugger's command lines: words, engines, memories, and usage errors.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/spec/config.h"
#include "hw/spec/isa.h"
#include "support/diagnostic.h"

namespace tenon::driver {

inline std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

inline std::optional<spec::Engine> parse_engine(std::string_view text) {
  for (int i = 0; i < spec::kEngines; ++i) {
    if (name(static_cast<spec::Engine>(i)) == text) return static_cast<spec::Engine>(i);
  }
  return std::nullopt;
}

inline std::optional<spec::Memory> parse_memory(std::string_view text) {
  for (int i = 0; i <= spec::kScratchpads; ++i) {
    if (name(static_cast<spec::Memory>(i)) == text) return static_cast<spec::Memory>(i);
  }
  return std::nullopt;
}

inline std::unexpected<Diagnostic> usage_error(std::string what) {
  return error(std::move(what), {}, "help lists the commands", Fault::kUsage);
}

inline std::unexpected<Diagnostic> not_an_integer(std::string_view text) {
  return usage_error(fmt::format("\"{}\" is not an integer", text));
}

}  // namespace tenon::driver
