#include "driver/bringup/reproducer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "support/file.h"
#include "support/pages.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr uint64_t kMaxMemory = uint64_t{1} << 40;
constexpr uint64_t kMaxLimit = 1'000'000'000'000'000;  // 10^6 seconds, the maximum of tenon run
constexpr size_t kMaxLaunches = 4096;

std::string assembly_of(const Reproducer& reproducer) {
  const spec::Isa isa(reproducer.config);
  std::string text =
      fmt::format("# configuration {}, {} launches\n", reproducer.config.name, reproducer.launches.size());
  for (size_t i = 0; i < reproducer.launches.size(); ++i) {
    const Launch& launch = reproducer.launches[i];
    text += fmt::format("# launch {}: {} profile, {} slots at {:#x}\n", i, name(launch.profile), launch.count,
                        launch.instructions);
    for (size_t b = 0; b < launch.bases.size(); ++b) {
      if (launch.bases[b] != 0) text += fmt::format("# base {}: {:#x}\n", b, launch.bases[b]);
    }
    const auto decoded = instructions(reproducer, i);
    if (!decoded) {
      text += fmt::format("# {}\n", decoded.error().what);
      continue;
    }
    for (const auto& d : *decoded) text += fmt::format("{}  # {}\n", isa.disassemble(d.instruction), d.index);
  }
  return text;
}

Expected<std::string> read(const fs::path& path) {
  const auto bytes = read_regular_file(path);
  if (!bytes) {
    return error(
        bytes.error().what, path.string(),
        "a reproducer is the directory that tenon writes after a mismatch; is this directory a complete reproducer?");
  }
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

// Reads the fields of a JSON object and checks their types and limits.
class Reader {
 public:
  explicit Reader(std::string where) : where_(std::move(where)) {}

  std::unexpected<Diagnostic> wrong(const std::string& what) const {
    return error(what, where_, "the reproducer is damaged: copy it again from its source");
  }
  void fail(std::string what) {
    if (failure_.empty()) failure_ = std::move(what);
  }
  uint64_t integer(const Json& object, const char* key, uint64_t max) {
    const auto it = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || it == object.end() || !it->is_number_unsigned() || it->get<uint64_t>() > max) {
      fail(fmt::format("\"{}\" must be an integer from 0 to {}", key, max));
      return 0;
    }
    return it->get<uint64_t>();
  }
  std::string text(const Json& object, const char* key) {
    const auto it = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || it == object.end() || !it->is_string()) {
      fail(fmt::format("\"{}\" must be a string", key));
      return {};
    }
    return it->get<std::string>();
  }
  const Json& list(const Json& object, const char* key) {
    static const Json kNone = Json::array();
    const auto it = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || it == object.end() || !it->is_array()) {
      fail(fmt::format("\"{}\" must be a list", key));
      return kNone;
    }
    return *it;
  }
  Status status() const {
    if (failure_.empty()) return {};
    return wrong(failure_);
  }

 private:
  std::string where_, failure_;
};

Json regions_to_json(const std::vector<Region>& regions, std::vector<std::byte>& blob) {
  Json list = Json::array();
  for (const Region& region : regions) {
    Json entry = {{"address", region.address}, {"bytes", region.bytes.size()}, {"at", blob.size()}};
    if (!region.name.empty()) entry["name"] = region.name;
    list.push_back(std::move(entry));
    std::ranges::copy(region.bytes, std::back_inserter(blob));
  }
  return list;
}

std::vector<Region> regions_from_json(Reader& reader, const Json& list, std::string_view blob, uint64_t memory_bytes) {
  std::vector<Region> regions;
  for (const Json& entry : list) {
    Region region;
    region.address = reader.integer(entry, "address", memory_bytes);
    const uint64_t bytes = reader.integer(entry, "bytes", memory_bytes - region.address);
    const uint64_t at = reader.integer(entry, "at", blob.size());
    if (bytes > blob.size() - at) {
      reader.fail(fmt::format("memory.bin has {} bytes, a region requires [{}, {})", blob.size(), at, at + bytes));
      return regions;
    }
    if (entry.is_object() && entry.contains("name")) region.name = reader.text(entry, "name");
    region.bytes.resize(bytes);
    if (bytes > 0) std::memcpy(region.bytes.data(), blob.data() + at, bytes);
    regions.push_back(std::move(region));
  }
  return regions;
}

}  // namespace

void add_contents(Reproducer& reproducer, uint64_t address, std::span<const std::byte> bytes) {
  const auto is_zero = [](std::span<const std::byte> part) {
    return std::ranges::all_of(part, [](std::byte b) { return b == std::byte{}; });
  };
  for (size_t at = 0; at < bytes.size(); at += kPageBytes) {
    const auto page = bytes.subspan(at, std::min<size_t>(kPageBytes, bytes.size() - at));
    if (is_zero(page)) continue;
    const uint64_t begin = address + at;
    const bool follows =
        !reproducer.memory.empty() && reproducer.memory.back().address + reproducer.memory.back().bytes.size() == begin;
    if (!follows) reproducer.memory.push_back({"", begin, {}});
    std::ranges::copy(page, std::back_inserter(reproducer.memory.back().bytes));
  }
}

std::vector<std::byte> contents(const Reproducer& reproducer, uint64_t address, uint64_t bytes) {
  std::vector<std::byte> result(bytes);
  for (const Region& region : reproducer.memory) {
    const uint64_t begin = std::max(address, region.address);
    const uint64_t end = std::min(address + bytes, region.address + region.bytes.size());
    if (begin >= end) continue;
    std::memcpy(result.data() + (begin - address), region.bytes.data() + (begin - region.address), end - begin);
  }
  return result;
}

Expected<std::vector<spec::Decoded>> instructions(const Reproducer& reproducer, size_t launch) {
  const Launch& l = reproducer.launches.at(launch);
  if (l.instructions > reproducer.memory_bytes ||
      uint64_t{l.count} * spec::kSlotBytes > reproducer.memory_bytes - l.instructions) {
    return error(fmt::format("launch {} has {} slots at {:#x}, outside the memory of {} bytes", launch, l.count,
                             l.instructions, reproducer.memory_bytes));
  }
  const auto bytes = contents(reproducer, l.instructions, uint64_t{l.count} * spec::kSlotBytes);
  std::vector<spec::Slot> slots(l.count);
  if (!bytes.empty()) std::memcpy(slots.data(), bytes.data(), bytes.size());
  auto decoded = spec::Isa(reproducer.config).decode_all(slots, l.profile);
  if (!decoded) {
    return error(fmt::format("launch {}, slot {}: {}: {}", launch, decoded.error().index,
                             spec::describe(decoded.error().code), decoded.error().message));
  }
  return std::move(*decoded);
}

Status save_reproducer(const Reproducer& reproducer, const fs::path& directory) {
  std::error_code fault;
  fs::create_directories(directory, fault);
  if (fault) return error(fmt::format("cannot create the directory: {}", fault.message()), directory.string());
  std::vector<std::byte> blob;
  Json json = {{"format", kVersion},
               {"version", reproducer.version},
               {"device", reproducer.device},
               {"origin", reproducer.origin},
               {"seed", reproducer.seed},
               {"reported", reproducer.reported},
               {"found", reproducer.found},
               {"configuration", Json::parse(spec::to_json(reproducer.config))},
               {"configuration_hash", fmt::format("{:016x}", spec::hash(reproducer.config))},
               {"memory_bytes", reproducer.memory_bytes},
               {"limit_ns", reproducer.limit.count()},
               {"memory", regions_to_json(reproducer.memory, blob)},
               {"launches", Json::array()},
               {"expected", regions_to_json(reproducer.expected, blob)}};
  for (const Launch& launch : reproducer.launches) {
    json["launches"].push_back({{"profile", name(launch.profile)},
                                {"instructions", launch.instructions},
                                {"count", launch.count},
                                {"bases", launch.bases}});
  }
  const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::string program = assembly_of(reproducer);
  TENON_TRY(write_file(directory / "reproducer.json", text));
  TENON_TRY(write_file(directory / "memory.bin", blob));
  return write_file(directory / "program.txt", program);
}

Expected<Reproducer> load_reproducer(const fs::path& directory) {
  if (std::error_code ignored; fs::exists(directory / "bundle.json", ignored)) {
    return error("the directory was kept by an earlier version of Tenon", directory.string(),
                 "rename its bundle.json to reproducer.json, which has the same fields");
  }
  TENON_TRY_ASSIGN(text, read(directory / "reproducer.json"));
  Reader reader((directory / "reproducer.json").string());
  const Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return reader.wrong("the file must be a JSON object");
  const uint64_t format = reader.integer(json, "format", 1000);
  TENON_TRY(reader.status());
  if (format != kVersion) {
    return error(fmt::format("the reproducer has format {}, this version of Tenon reads {}", format, kVersion),
                 directory.string(), "replay it with the version of Tenon that wrote it");
  }
  TENON_TRY_ASSIGN(blob, read(directory / "memory.bin"));

  Reproducer reproducer;
  reproducer.version = reader.text(json, "version");
  reproducer.device = reader.text(json, "device");
  reproducer.origin = reader.text(json, "origin");
  reproducer.seed = reader.integer(json, "seed", UINT64_MAX);
  reproducer.reported = reader.text(json, "reported");
  reproducer.found = reader.text(json, "found");
  reproducer.memory_bytes = reader.integer(json, "memory_bytes", kMaxMemory);
  reproducer.limit = std::chrono::nanoseconds(reader.integer(json, "limit_ns", kMaxLimit));
  reproducer.memory = regions_from_json(reader, reader.list(json, "memory"), *blob, reproducer.memory_bytes);
  reproducer.expected = regions_from_json(reader, reader.list(json, "expected"), *blob, reproducer.memory_bytes);
  const Json& launches = reader.list(json, "launches");
  if (launches.size() > kMaxLaunches) reader.fail(fmt::format("more than {} launches", kMaxLaunches));
  for (const Json& entry : launches) {
    Launch launch;
    const std::string profile = reader.text(entry, "profile");
    if (profile != "base" && profile != "native") reader.fail(fmt::format("unknown profile \"{}\"", profile));
    launch.profile = profile == "base" ? spec::Profile::kBase : spec::Profile::kNative;
    launch.instructions = reader.integer(entry, "instructions", UINT64_MAX);
    launch.count = static_cast<uint32_t>(reader.integer(entry, "count", UINT32_MAX));
    const Json& bases = reader.list(entry, "bases");
    if (bases.size() != launch.bases.size()) {
      reader.fail(fmt::format("a launch has {} bases, must have {}", bases.size(), launch.bases.size()));
    }
    for (size_t i = 0; i < std::min(bases.size(), launch.bases.size()); ++i) {
      if (!bases[i].is_number_unsigned()) reader.fail("a base must be an integer");
      else launch.bases[i] = bases[i].get<uint64_t>();
    }
    reproducer.launches.push_back(launch);
  }
  const std::string hash = reader.text(json, "configuration_hash");
  TENON_TRY(reader.status());
  TENON_TRY_ASSIGN(config, spec::parse_config(json.contains("configuration") ? json["configuration"].dump() : "",
                                              directory.string()));
  reproducer.config = std::move(*config);
  if (hash != fmt::format("{:016x}", spec::hash(reproducer.config))) {
    return error(
        fmt::format("the reproducer's configuration hash is {}, in this version of Tenon its configuration {} has "
                    "{:016x}",
                    hash, reproducer.config.name, spec::hash(reproducer.config)),
        directory.string(), "replay it with the version of Tenon that wrote it: " + reproducer.version);
  }
  return reproducer;
}

fs::path free_name(const fs::path& parent) {
  std::error_code ignored;
  for (int i = 1;; ++i) {
    fs::path name = parent / fmt::format("mismatch-{}", i);
    if (!fs::exists(name, ignored)) return name;
  }
}

}  // namespace tenon::driver
