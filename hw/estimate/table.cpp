#include "hw/estimate/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "hw/spec/data_path.h"
#include "support/file.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::estimate {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFamilies[] = {"ice40", "ecp5", "xilinx"};

Expected<Row> parse_row(const std::string& line, const std::string& where) {
  constexpr std::string_view kHelp = "write the line again: scripts/cells --record";
  const Json object = Json::parse(line, nullptr, false);
  if (!object.is_object()) return error("the line is not a JSON object", where, std::string(kHelp));
  Row row;
  try {
    TENON_TRY_ASSIGN(config, spec::parse_config(object.at("config").dump(), where));
    row.config = *std::move(config);
    row.cells = {.lut = object.at("lut"), .ff = object.at("ff"), .dsp = object.at("dsp"), .ram = object.at("ram")};
    row.mhz = object.value("mhz", 0.0);
  } catch (const Json::exception& e) {
    return error(fmt::format("the line is no row of cells: {}", json_problem(e.what())), where, std::string(kHelp));
  }
  if (row.cells.lut <= 0) return error("\"lut\" must be positive", where, std::string(kHelp));
  return row;
}

}  // namespace

std::string_view name(Family family) { return kFamilies[static_cast<size_t>(family)]; }

Expected<Family> find_family(std::string_view name) {
  const auto found = std::ranges::find(kFamilies, name);
  if (found != std::end(kFamilies)) return static_cast<Family>(found - std::begin(kFamilies));
  return error(fmt::format("there is no family of chips \"{}\"", name), {},
               fmt::format("the families are {}", fmt::join(kFamilies, ", ")), Fault::kUsage);
}

Expected<std::vector<Row>> parse_table(std::string_view text, std::string_view where) {
  std::vector<Row> rows;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty()) continue;
    TENON_TRY_ASSIGN(row, parse_row(line, fmt::format("{}:{}", where, number)));
    rows.push_back(*std::move(row));
  }
  return rows;
}

Expected<std::vector<Row>> read_table(Family family) {
  const auto candidates = spec::data_path(fmt::format("hw/estimate/{}.jsonl", name(family)));
  for (const auto& file : candidates) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) continue;
    TENON_TRY_ASSIGN(text, read_text(file));
    return parse_table(*text, file.string());
  }
  return error(fmt::format("no configuration was synthesized for {}", name(family)), candidates.back().string(),
               fmt::format("synthesize some: scripts/cells --target {} --record", name(family)));
}

}  // namespace tenon::estimate
