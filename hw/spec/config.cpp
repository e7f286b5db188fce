#include "hw/spec/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "hw/spec/data_path.h"
#include "hw/spec/isa.h"
#include "hw/spec/registers.h"

namespace tenon::spec {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, kScratchpads + 1> kMemoryNames = {"uop", "wgt", "inp", "acc",
                                                                         "out", "par", "res", "dram"};

// One integer field of the file: where it lives, what it may be, and why.
struct Limit {
  std::string_view key;
  int Config::*member;
  int min, max;
  bool power_of_two;
  std::string_view reason;
};
constexpr Limit kLimits[] = {
    {"block_in", &Config::block_in, 2, 64, true,
     "an input vector is fetched in whole bytes of a power-of-two address space"},
    {"block_out", &Config::block_out, 2, 64, true, "accumulator lanes are addressed by bits of a DMA unit's number"},
    {"axi_data_bits", &Config::axi_data_bits, 32, 512, true,
     "AXI4 has no other widths, and registers are 32 bits wide"},
    {"max_burst_beats", &Config::max_burst_beats, 1, 256, true, "AXI4 INCR bursts have at most 256 beats"},
    {"queue_depth", &Config::queue_depth, 2, 64, true, "a queue is a small FIFO in look-up tables"},
};

// How many elements a scratchpad may have, from the width of the fields that address it.
struct DepthLimit {
  Memory memory;
  int64_t max;
  std::string_view reason;
};
constexpr DepthLimit kDepthLimits[] = {
    {Memory::kUop, 8192, "uop_begin and uop_end share the first word of a GEMM with two trip counts"},
    {Memory::kWgt, 16384, "wgt_base has 14 bits"},
    {Memory::kInp, 16384, "src_base has 14 bits"},
    {Memory::kAcc, 16384, "dst_base has 14 bits"},
    {Memory::kOut, 16384, "out_base has 14 bits"},
    {Memory::kPar, 4096, "par_base has 12 bits"},
    {Memory::kRes, 16384, "res_base has 14 bits"},
};

std::unexpected<Diagnostic> bad(std::string_view where, std::string_view key, const std::string& found,
                                const std::string& constraint, std::string_view reason) {
  return error(fmt::format("{} is {}, must be {}: {}", key, found, constraint, reason), std::string(where),
               fmt::format("change \"{}\"", key));
}

Json to_object(const Config& config) {
  Json profiles = Json::array();
  if (config.base) profiles.push_back("base");
  if (config.native) profiles.push_back("native");
  Json buffers;
  for (int i = 0; i < kScratchpads; ++i) buffers[std::string(kMemoryNames[i])] = config.bytes[i];
  Json object;
  object["version"] = kConfigVersion;
  object["name"] = config.name;
  for (const Limit& limit : kLimits) object[std::string(limit.key)] = config.*limit.member;
  object["profiles"] = profiles;
  object["buffers"] = buffers;
  return object;
}

// Reads members of one JSON object and remembers which were asked for, so that unknown keys can be named.
class Reader {
 public:
  Reader(const Json& object, std::string_view where) : object_(object), where_(where) {}

  Expected<int64_t> integer(std::string_view key) {
    auto value = member(key);
    if (!value) return forward_error(value);
    if (!(*value)->is_number_integer() || ((*value)->is_number_unsigned() && (*value)->get<uint64_t>() > INT64_MAX)) {
      return error(fmt::format("{} is {}, must be an integer", key, (*value)->dump()), std::string(where_));
    }
    return (*value)->get<int64_t>();
  }

  Expected<const Json*> member(std::string_view key) {
    known_.insert(std::string(key));
    const auto it = object_.find(std::string(key));
    if (it == object_.end()) {
      return error(fmt::format("\"{}\" is missing", key), std::string(where_),
                   "add it; hw/configs/default.json shows all keys");
    }
    return &*it;
  }

  Status no_others() const {
    for (const auto& [key, value] : object_.items()) {
      if (!known_.contains(key)) {
        return error(fmt::format("unknown key \"{}\"", key), std::string(where_),
                     fmt::format("remove it, or correct it to one of: {}", fmt::join(known_, ", ")));
      }
    }
    return {};
  }

 private:
  const Json& object_;
  std::string_view where_;
  std::set<std::string> known_;
};

}  // namespace

std::string_view name(Memory memory) { return kMemoryNames[static_cast<size_t>(memory)]; }

int Config::element_bytes(Memory memory) const {
  switch (memory) {
    case Memory::kUop: return 4;
    case Memory::kWgt: return block_in * block_out;
    case Memory::kInp: return block_in;
    case Memory::kAcc: return block_out * 4;
    case Memory::kOut: return block_out;
    case Memory::kPar: return block_out * 8;
    case Memory::kRes: return block_out;
    case Memory::kDram: return 1;
  }
  return 1;
}

int Config::unit_bytes(Memory memory) const {
  switch (memory) {
    case Memory::kUop: return 4;
    case Memory::kWgt:
    case Memory::kInp: return block_in;
    case Memory::kAcc:
    case Memory::kOut:
    case Memory::kPar:
    case Memory::kRes: return block_out;
    case Memory::kDram: return 1;
  }
  return 1;
}

int Config::index_bits(Memory memory) const {
  return std::bit_width(static_cast<uint64_t>(std::max<int64_t>(depth(memory), 1))) - 1;
}

Status validate(const Config& config, std::string_view where) {
  if (config.name.empty() ||
      config.name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") !=
          std::string::npos) {
    return bad(where, "name", '"' + config.name + '"', "letters, digits, '-', '_' and '.'",
               "it becomes part of file names");
  }
  for (const Limit& limit : kLimits) {
    const int value = config.*limit.member;
    const bool fits = value >= limit.min && value <= limit.max &&
                      (!limit.power_of_two || std::has_single_bit(static_cast<unsigned>(value)));
    if (!fits) {
      return bad(where, limit.key, std::to_string(value),
                 fmt::format("{}{} .. {}", limit.power_of_two ? "a power of two in " : "", limit.min, limit.max),
                 limit.reason);
    }
  }
  if (!config.base && !config.native) {
    return error("profiles is empty: an accelerator without instructions does nothing", std::string(where),
                 "list \"base\", \"native\" or both");
  }
  for (const DepthLimit& limit : kDepthLimits) {
    const auto key = fmt::format("buffers.{}", name(limit.memory));
    const int64_t bytes = config.bytes[static_cast<size_t>(limit.memory)];
    const int element = config.element_bytes(limit.memory);
    if (bytes < 2 * element || bytes % element != 0 || !std::has_single_bit(static_cast<uint64_t>(bytes / element))) {
      return bad(
          where, key,
          fmt::format("{} bytes ({} elements of {} bytes)", bytes, static_cast<double>(bytes) / element, element),
          "a power of two of elements, at least 2", "addresses are plain bit fields");
    }
    if (bytes / element > limit.max) {
      return bad(where, key, fmt::format("{} elements of {} bytes", bytes / element, element),
                 fmt::format("at most {} elements", limit.max), limit.reason);
    }
  }
  if (config.base) {
    const int source = std::max(config.index_bits(Memory::kInp), config.index_bits(Memory::kAcc));
    const int bits = config.index_bits(Memory::kAcc) + source + config.index_bits(Memory::kWgt);
    if (bits > 32) {
      return error(fmt::format("a micro-op needs {} bits (acc {}, inp or acc {}, wgt {}), must be at most 32", bits,
                               config.index_bits(Memory::kAcc), source, config.index_bits(Memory::kWgt)),
                   std::string(where), "make these buffers smaller, or leave \"base\" out of \"profiles\"");
    }
    if (config.index_bits(Memory::kAcc) + source > 22) {
      return error(fmt::format("the factors of an ALU instruction need 2 x ({} + {}) bits, must be at most 44",
                               config.index_bits(Memory::kAcc), source),
                   std::string(where), "make acc or inp smaller, or leave \"base\" out of \"profiles\"");
    }
  }
  return {};
}

Expected<Config> parse_config(std::string_view json, std::string_view where) {
  Json object;
  try {
    object = Json::parse(json);
  } catch (const Json::exception& e) {  // also a number that no double holds
    return error(fmt::format("not valid JSON: {}", e.what()), std::string(where));
  }
  if (!object.is_object())
    return error("a configuration is a JSON object", std::string(where), "see hw/configs/default.json");

  Reader reader(object, where);
  Config config;
  auto version = reader.integer("version");
  if (!version) return forward_error(version);
  if (*version != kConfigVersion) {
    return error(fmt::format("version is {}, this build reads version {}", *version, kConfigVersion),
                 std::string(where));
  }
  auto name_member = reader.member("name");
  if (!name_member) return forward_error(name_member);
  if (!(*name_member)->is_string()) return error("name must be a string", std::string(where));
  config.name = (*name_member)->get<std::string>();
  for (const Limit& limit : kLimits) {
    auto value = reader.integer(limit.key);
    if (!value) return forward_error(value);
    if (*value < INT32_MIN || *value > INT32_MAX) {
      return bad(where, limit.key, std::to_string(*value), fmt::format("{} .. {}", limit.min, limit.max), limit.reason);
    }
    config.*limit.member = static_cast<int>(*value);
  }

  auto profiles = reader.member("profiles");
  if (!profiles) return forward_error(profiles);
  config.base = config.native = false;
  if (!(*profiles)->is_array()) return error("profiles must be an array", std::string(where));
  for (const Json& profile : **profiles) {
    if (profile == "base") config.base = true;
    else if (profile == "native") config.native = true;
    else
      return error(fmt::format("unknown profile {}", profile.dump()), std::string(where),
                   "the profiles are \"base\" and \"native\"");
  }

  auto buffers = reader.member("buffers");
  if (!buffers) return forward_error(buffers);
  if (!(*buffers)->is_object()) return error("buffers must be an object", std::string(where));
  const std::string inner_where = std::string(where) + ": buffers";
  Reader inner(**buffers, inner_where);
  for (int i = 0; i < kScratchpads; ++i) {
    auto value = inner.integer(kMemoryNames[i]);
    if (!value) return forward_error(value);
    config.bytes[i] = *value;
  }
  if (auto status = inner.no_others(); !status) return forward_error(status);
  if (auto status = reader.no_others(); !status) return forward_error(status);
  if (auto status = validate(config, where); !status) return forward_error(status);
  return config;
}

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
                   fmt::format("known: {}; or give the path of a .json file", fmt::join(named_configs(), ", ")));
    }
  }
  std::error_code ignored;
  std::ifstream stream(file, std::ios::binary);
  if (!stream || std::filesystem::is_directory(file, ignored))
    return error("cannot read the configuration", file.string(), "check the path and its permissions");
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  return parse_config(text, file.string());
}

std::string to_json(const Config& config) { return to_object(config).dump(2) + "\n"; }

uint64_t hash(const Config& config) {
  Json object = to_object(config);
  object.erase("name");
  const std::string text = object.dump() + fmt::format("isa {} registers {}", kIsaVersion, kRegisterMapVersion);
  uint64_t value = 0xcbf29ce484222325;
  for (const unsigned char c : text) value = (value ^ c) * 0x100000001b3;
  return value;
}

std::string difference(const Config& a, const Config& b) {
  const Json left = to_object(a).flatten(), right = to_object(b).flatten();
  std::string text;
  const auto line = [&](const std::string& key, const std::string& here, const std::string& there) {
    std::string field = key.substr(1);
    std::replace(field.begin(), field.end(), '/', '.');
    text += fmt::format("{}: {} here, {} there\n", field, here, there);
  };
  for (const auto& [key, value] : left.items()) {
    if (key == "/name") continue;
    const auto other = right.find(key);
    if (other == right.end()) line(key, value.dump(), "absent");
    else if (*other != value) line(key, value.dump(), other->dump());
  }
  for (const auto& [key, value] : right.items()) {
    if (!left.contains(key)) line(key, "absent", value.dump());
  }
  return text;
}

}  // namespace tenon::spec
