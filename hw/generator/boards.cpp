#include "hw/generator/boards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "hw/spec/data_path.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::generator {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kFlows[] = {"ice40", "ecp5", "vivado", "vitis"};
constexpr std::string_view kFile = "board.json";

// Reads members of the file; the first wrong one is kept, and every unread one is unknown.
class Reader {
 public:
  Reader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  std::string text(const char* key) {
    const Json* value = member(key);
    if (value == nullptr) return {};
    if (!value->is_string()) return fail(key, *value, "a string"), std::string();
    return value->get<std::string>();
  }
  int64_t integer(const char* key, int64_t min, int64_t max) {
    const Json* value = member(key);
    if (value == nullptr) return min;
    const bool whole = value->is_number_integer();
    if (!whole || value->get<double>() < static_cast<double>(min) || value->get<double>() > static_cast<double>(max)) {
      return fail(key, *value, fmt::format("an integer from {} to {}", min, max)), min;
    }
    return value->get<int64_t>();
  }
  bool flag(const char* key) {
    const Json* value = member(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return fail(key, *value, "true or false"), false;
    return value->get<bool>();
  }
  std::vector<std::string> words(const char* key) {
    const Json* value = member(key);
    std::vector<std::string> list;
    if (value == nullptr) return list;
    const auto is_text = [](const Json& element) { return element.is_string(); };
    if (!value->is_array() || !std::ranges::all_of(*value, is_text))
      return fail(key, *value, "a list of strings"), list;
    return value->get<std::vector<std::string>>();
  }
  void fail(const char* key, const Json& value, const std::string& constraint) {
    report(fmt::format("{} is {}, must be {}", key, value.dump(), constraint));
  }

  Status finish() {
    for (const auto& [key, value] : object_.items()) {
      if (!read_.contains(key)) {
        report(fmt::format("unknown key \"{}\"; the keys of this board are: {}", key, fmt::join(read_, ", ")));
      }
    }
    if (failure_.empty()) return {};
    return error(failure_, where_, "hw/boards/README.md explains each key");
  }

 private:
  const Json* member(const char* key) {
    read_.insert(key);
    const auto it = object_.find(key);
    if (it != object_.end()) return &*it;
    report(fmt::format("\"{}\" is missing", key));
    return nullptr;
  }
  void report(std::string what) {
    if (failure_.empty()) failure_ = std::move(what);
  }

  const Json& object_;
  std::string where_, failure_;
  std::set<std::string> read_;
};

void read_flow(Reader& reader, Board& board) {
  if (board.flow != Flow::kVitis) board.constraints = board.directory / reader.text("constraints");
  if (board.open()) {
    board.baud = static_cast<int>(reader.integer("baud", 300, 12'000'000));
    board.memory_bytes = reader.integer("memory_bytes", 4096, int64_t{1} << 30);
    board.sdram = reader.flag("sdram");
    if (board.sdram && board.flow != Flow::kEcp5) reader.fail("sdram", true, "false, except of an ECP5");
    board.yosys = reader.words("yosys");
    board.nextpnr = reader.words("nextpnr");
    board.packer = reader.words("packer");
    return;
  }
  board.part = reader.text("part");
  if (board.flow == Flow::kVivado) {
    for (const std::string& setting : reader.words("processor")) {
      const size_t equals = setting.find('=');
      if (equals == std::string::npos || setting.find_first_of(" {}[]$\"") != std::string::npos) {
        reader.fail("processor", setting, "a list of PROPERTY=VALUE");
        continue;
      }
      board.processor.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
    }
    return;
  }
  board.platform = reader.text("platform");
  board.memory = reader.text("memory");
  board.max_units = static_cast<int>(reader.integer("max_units", 1, 15));
  board.embedded = reader.flag("embedded");
}

std::vector<fs::path> search_path() {
  std::vector<fs::path> path;
  const char* variable = std::getenv("TENON_BOARD_PATH");
  std::istringstream stream(variable == nullptr ? "" : variable);
  for (std::string part; std::getline(stream, part, ':');) {
    if (!part.empty()) path.emplace_back(part);
  }
  const auto data = spec::data_path("hw/boards");
  path.insert(path.end(), data.begin(), data.end());
  return path;
}

}  // namespace

std::string_view name(Flow flow) { return kFlows[static_cast<size_t>(flow)]; }

Expected<Board> read_board(const fs::path& directory) {
  const std::string where = (directory / kFile).string();
  TENON_TRY_ASSIGN(text, read_text(directory / kFile));
  const Json object = Json::parse(*text, nullptr, false);
  if (!object.is_object()) return error("the file is not a JSON object", where, "hw/boards/README.md shows one");
  Reader reader(object, where);
  Board board;
  board.directory = fs::absolute(directory);
  (void)reader.integer("version", 1, 1);
  board.name = reader.text("name");
  if (board.name != directory.filename().string()) {
    reader.fail("name", board.name, fmt::format("\"{}\", that of its directory", directory.filename().string()));
  }
  board.description = reader.text("description");
  const std::string flow = reader.text("tool");
  const auto found = std::ranges::find(kFlows, flow);
  if (found == std::end(kFlows)) {
    reader.fail("tool", flow, fmt::format("one of {}", fmt::join(kFlows, ", ")));
    TENON_TRY(reader.finish());
  }
  board.flow = static_cast<Flow>(found - std::begin(kFlows));
  board.config = reader.text("config");
  board.clock_mhz = static_cast<int>(reader.integer("clock_mhz", 1, 1000));
  constexpr int64_t kMostCells = 100'000'000;
  board.luts = reader.integer("luts", 1, kMostCells);
  board.registers = reader.integer("registers", 1, kMostCells);
  board.multipliers = reader.integer("multipliers", 0, kMostCells);
  board.block_rams = reader.integer("block_rams", 0, kMostCells);
  board.flash = reader.words("flash");
  board.port = reader.text("port");
  board.device = reader.text("device");
  read_flow(reader, board);
  TENON_TRY(reader.finish());
  std::error_code ignored;
  if (!board.constraints.empty() && !fs::is_regular_file(board.constraints, ignored)) {
    return error("the constraints file does not exist", board.constraints.string(),
                 fmt::format("\"constraints\" in {} names it", where));
  }
  return board;
}

Expected<std::vector<Board>> boards() {
  std::vector<Board> result;
  for (const fs::path& directory : search_path()) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(directory, ignored)) {
      if (!fs::is_regular_file(entry.path() / kFile, ignored)) continue;
      if (std::ranges::find(result, entry.path().filename().string(), &Board::name) != result.end()) continue;
      TENON_TRY_ASSIGN(board, read_board(entry.path()));
      result.push_back(std::move(*board));
    }
  }
  std::ranges::sort(result, {}, &Board::name);
  return result;
}

Expected<Board> find_board(std::string_view name) {
  TENON_TRY_ASSIGN(all, boards());
  const auto it = std::ranges::find(*all, name, &Board::name);
  if (it != all->end()) return std::move(*it);
  std::vector<std::string> names;
  for (const Board& board : *all) names.push_back(board.name);
  return error(fmt::format("no board is called \"{}\"", name), {}, fmt::format("known: {}", fmt::join(names, ", ")),
               Fault::kUsage);
}

}  // namespace tenon::generator
