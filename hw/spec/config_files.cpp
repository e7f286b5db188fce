// Named configurations: the directories that hold them, and the search by name.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "hw/spec/config.h"
#include "hw/spec/data_path.h"

namespace tenon::spec {

std::vector<std::filesystem::path> config_path() {
  std::vector<std::filesystem::path> path;
  if (const char* variable = std::getenv("TENON_CONFIG_PATH")) {
    std::istringstream stream(variable);
    for (std::string part; std::getline(stream, part, ':');) {
      if (!part.empty()) path.emplace_back(part);
    }
  }
  for (std::filesystem::path& directory : data_path("hw/configs")) path.push_back(std::move(directory));
  return path;
}

std::vector<std::string> named_configs() {
  std::set<std::string> names;
  for (const auto& directory : config_path()) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
      if (entry.path().extension() == ".json") names.insert(entry.path().stem().string());
    }
  }
  return {names.begin(), names.end()};
}

Expected<Config> load_config(std::string_view name_or_path) {
  const bool is_path = name_or_path.ends_with(".json") || name_or_path.find('/') != std::string_view::npos;
  std::filesystem::path file(name_or_path);
  if (!is_path) {
    file.clear();
    for (const auto& directory : config_path()) {
      auto candidate = directory / (std::string(name_or_path) + ".json");
      std::error_code ignored;
      if (std::filesystem::is_regular_file(candidate, ignored)) {
        file = candidate;
        break;
      }
    }
    if (file.empty()) {
      return error(fmt::format("no configuration is called \"{}\"", name_or_path), {},
                   fmt::format("known: {}; or give the path of a .json file", fmt::join(named_configs(), ", ")),
                   Fault::kUsage);
    }
  }
  std::error_code ignored;
  std::ifstream stream(file, std::ios::binary);
  if (!stream || std::filesystem::is_directory(file, ignored))
    return error("cannot read the configuration", file.string(), "check the path and its permissions");
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  return parse_config(text, file.string());
}

}  // namespace tenon::spec
