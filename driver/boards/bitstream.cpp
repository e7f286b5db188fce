#include "driver/boards/bitstream.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "support/file.h"
#include "support/json.h"
#include "support/number.h"
#include "support/try.h"

namespace tenon::driver::boards {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kFile = "bitstream.json";

std::string hash_text(uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace

std::string Bitstream::line() const { return fmt::format("tenon {} {} {}", board, config, hash_text(hash)); }

Status save(const Bitstream& bitstream, const fs::path& directory) {
  Json cells = Json::object();
  for (const auto& [kind, count] : bitstream.cells) cells[kind] = {{"used", count.first}, {"available", count.second}};
  const Json object = {{"version", 1},
                       {"board", bitstream.board},
                       {"config", bitstream.config},
                       {"hash", hash_text(bitstream.hash)},
                       {"file", bitstream.file},
                       {"tools", bitstream.tools},
                       {"requested_mhz", bitstream.requested_mhz},
                       {"achieved_mhz", bitstream.achieved_mhz},
                       {"cells", cells}};
  return write_file(directory / kFile, object.dump(2) + "\n");
}

Expected<Bitstream> load_bitstream(const fs::path& directory, const std::string& board) {
  const std::string where = (directory / kFile).string();
  const std::string help = fmt::format("build it: tenon board build {} -o {}", board, directory.string());
  std::error_code ignored;
  if (!fs::is_regular_file(where, ignored)) return error("no bitstream was built here", where, help);
  TENON_TRY_ASSIGN(text, read_text(where));
  const Json object = Json::parse(*text, nullptr, false);
  Bitstream result;
  try {
    result = {.board = object.at("board"),
              .config = object.at("config"),
              .file = object.at("file"),
              .tools = object.at("tools"),
              .requested_mhz = object.at("requested_mhz"),
              .achieved_mhz = object.at("achieved_mhz"),
              .cells = {}};
    const std::string hash = object.at("hash");
    const auto read = hash.size() == 16 ? parse_number<uint64_t>("0x" + hash) : std::nullopt;
    if (!read) return error("\"hash\" is not 16 hexadecimal digits", where, help);
    result.hash = *read;
  } catch (const Json::exception& e) {
    return error(fmt::format("the description of the bitstream is damaged: {}", json_problem(e.what())), where, help);
  }
  if (result.board != board) {
    return error(fmt::format("the bitstream is for the board {}, not {}", result.board, board), where, help);
  }
  if (fs::path(result.file).has_parent_path()) return error("\"file\" names a file elsewhere", where, help);
  const fs::path file = directory / result.file;
  TENON_TRY_ASSIGN(contents, read_regular_file(file));
  if (!result.tools.contains("vivado") && !result.tools.contains("v++") &&
      !std::string_view(reinterpret_cast<const char*>(contents->data()), contents->size()).contains(result.line())) {
    return error(fmt::format("the bitstream does not contain \"{}\", as its description says", result.line()),
                 file.string(), help);
  }
  return result;
}

}  // namespace tenon::driver::boards
