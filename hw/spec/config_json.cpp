// The JSON form of a configuration: read with a message for every mistake, written canonically, hashed, compared.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "hw/spec/config_limits.h"
#include "hw/spec/isa.h"
#include "hw/spec/registers.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::spec {
namespace {

using Json = nlohmann::ordered_json;

// A configuration is an object of objects and arrays. Deeper nesting is refused during parsing: printing and freeing a
// value recurse for each level, so that a file of brackets would overflow the stack.
constexpr int kMaxLevels = 8;

// A value in a message: its kind if the value is long, else its text.
std::string shown(const Json& value) {
  return value.is_array() ? "an array" : value.is_object() ? "an object" : value.dump();
}

Expected<Json> parse_json(std::string_view text, std::string_view where) {
  std::string mistake;
  std::vector<std::set<std::string>> keys(kMaxLevels + 1);  // keys of the object that is open on each level
  const auto check = [&](int level, Json::parse_event_t event, Json& value) {
    if (level >= kMaxLevels) {
      mistake = fmt::format("more than {} nested values", kMaxLevels);
      return false;
    }
    if (event == Json::parse_event_t::object_start) keys[level + 1].clear();
    if (event == Json::parse_event_t::key && !keys[level].insert(value.get<std::string>()).second) {
      mistake = fmt::format("duplicate key \"{}\"", value.get<std::string>());
    }
    return true;
  };
  try {
    Json value = Json::parse(text, check);
    if (!mistake.empty()) return error(mistake, std::string(where), "see hw/configs/default.json");
    return value;
  } catch (const Json::exception& e) {  // not JSON, or a number beyond the range of double
    return error(fmt::format("not valid JSON: {}", json_problem(e.what())), std::string(where));
  }
}

Json to_object(const Config& config) {
  Json profiles = Json::array();
  if (config.base) profiles.push_back("base");
  if (config.native) profiles.push_back("native");
  Json buffers;
  for (int i = 0; i < kScratchpads; ++i) buffers[std::string(name(static_cast<Memory>(i)))] = config.bytes[i];
  Json object;
  object["version"] = kConfigVersion;
  object["name"] = config.name;
  for (const Limit& limit : kLimits) object[std::string(limit.key)] = config.*limit.member;
  object["profiles"] = profiles;
  object["buffers"] = buffers;
  Json extensions;
  for (const Switch& s : kExtensionSwitches) extensions[std::string(s.key)] = config.*s.member;
  for (const Limit& limit : kExtensionLimits) extensions[std::string(limit.key)] = config.*limit.member;
  object["extensions"] = extensions;
  return object;
}

// Reads members of one JSON object and records the requested keys, so that unknown keys can be reported.
class Reader {
 public:
  Reader(const Json& object, std::string_view where) : object_(object), where_(where) {}

  // Whether the object has the member, which it may leave out.
  bool has(std::string_view key) {
    requested_.insert(std::string(key));
    return object_.contains(std::string(key));
  }

  Expected<bool> boolean(std::string_view key) {
    TENON_TRY_ASSIGN(value, member(key));
    if (!(*value)->is_boolean()) {
      return error(fmt::format("{} is {}, must be true or false", key, shown(**value)), std::string(where_));
    }
    return (*value)->get<bool>();
  }

  // The values of `limits` that stand in the object; with `all` set, each must.
  Status integers(std::span<const Limit> limits, bool all, Config& config) {
    for (const Limit& limit : limits) {
      if (!has(limit.key) && !all) continue;
      TENON_TRY_ASSIGN(value, integer(limit.key));
      if (*value < INT32_MIN || *value > INT32_MAX) {
        return broken_limit(where_, limit.key, std::to_string(*value), fmt::format("{} .. {}", limit.min, limit.max),
                            limit.reason);
      }
      config.*limit.member = static_cast<int>(*value);
    }
    return {};
  }

  Expected<int64_t> integer(std::string_view key) {
    TENON_TRY_ASSIGN(value, member(key));
    if (!(*value)->is_number_integer() || ((*value)->is_number_unsigned() && (*value)->get<uint64_t>() > INT64_MAX)) {
      return error(fmt::format("{} is {}, must be an integer", key, shown(**value)), std::string(where_));
    }
    return (*value)->get<int64_t>();
  }

  Expected<const Json*> member(std::string_view key) {
    requested_.insert(std::string(key));
    const auto it = object_.find(std::string(key));
    if (it == object_.end()) {
      return error(fmt::format("\"{}\" is missing", key), std::string(where_),
                   "add it; hw/configs/default.json shows all keys");
    }
    return &*it;
  }

  Status check_unrequested_keys() const {
    for (const auto& [key, value] : object_.items()) {
      if (!requested_.contains(key)) {
        return error(fmt::format("unknown key \"{}\"", key), std::string(where_),
                     fmt::format("remove it, or correct it to one of: {}", fmt::join(requested_, ", ")));
      }
    }
    return {};
  }

 private:
  const Json& object_;
  std::string_view where_;
  std::set<std::string> requested_;
};

Status read_extensions(Reader& reader, std::string_view where, Config& config) {
  if (!reader.has("extensions")) return {};
  TENON_TRY_ASSIGN(extensions, reader.member("extensions"));
  if (!(*extensions)->is_object()) return error("extensions must be an object", std::string(where));
  const std::string inner_where = std::string(where) + ": extensions";
  Reader inner(**extensions, inner_where);
  for (const Switch& s : kExtensionSwitches) {
    if (!inner.has(s.key)) continue;
    TENON_TRY_ASSIGN(value, inner.boolean(s.key));
    config.*s.member = *value;
  }
  TENON_TRY(inner.integers(kExtensionLimits, false, config));
  return inner.check_unrequested_keys();
}

}  // namespace

Expected<Config> parse_config(std::string_view json, std::string_view where) {
  TENON_TRY_ASSIGN(parsed, parse_json(json, where));
  const Json& object = *parsed;
  if (!object.is_object())
    return error("a configuration must be a JSON object", std::string(where), "see hw/configs/default.json");

  Reader reader(object, where);
  Config config;
  TENON_TRY_ASSIGN(version, reader.integer("version"));
  if (*version != kConfigVersion) {
    return error(fmt::format("version is {}, this build reads version {}", *version, kConfigVersion),
                 std::string(where));
  }
  TENON_TRY_ASSIGN(name_member, reader.member("name"));
  if (!(*name_member)->is_string()) return error("name must be a string", std::string(where));
  config.name = (*name_member)->get<std::string>();
  TENON_TRY(reader.integers(kLimits, true, config));

  TENON_TRY_ASSIGN(profiles, reader.member("profiles"));
  config.base = config.native = false;
  if (!(*profiles)->is_array()) return error("profiles must be an array", std::string(where));
  for (const Json& profile : **profiles) {
    if (profile == "base") config.base = true;
    else if (profile == "native") config.native = true;
    else
      return error(fmt::format("unknown profile {}", shown(profile)), std::string(where),
                   "the profiles are \"base\" and \"native\"");
  }

  TENON_TRY_ASSIGN(buffers, reader.member("buffers"));
  if (!(*buffers)->is_object()) return error("buffers must be an object", std::string(where));
  const std::string inner_where = std::string(where) + ": buffers";
  Reader inner(**buffers, inner_where);
  for (int i = 0; i < kScratchpads; ++i) {
    TENON_TRY_ASSIGN(value, inner.integer(name(static_cast<Memory>(i))));
    config.bytes[i] = *value;
  }
  TENON_TRY(inner.check_unrequested_keys());
  TENON_TRY(read_extensions(reader, where, config));
  TENON_TRY(reader.check_unrequested_keys());
  TENON_TRY(validate(config, where));
  return config;
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
  const auto line = [&](const std::string& key, const std::string& first, const std::string& second) {
    std::string field = key.substr(1);
    std::replace(field.begin(), field.end(), '/', '.');
    text += fmt::format("{}: {} here, {} there\n", field, first, second);
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
