#include "driver/xrt/xclbin.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cstring>

#include "driver/xrt/metadata.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

// Offsets in the header; all other bytes are 0, those of the unused signature 0xff.
constexpr size_t kSignatureLength = 8, kSignatureEnd = 8 + 4 + 28 + 256, kUniqueId = 296, kLength = 304,
                 kTimestamp = 312, kVersionMajor = 330, kMode = 332, kPlatform = 352, kUuid = 416, kCount = 448,
                 kHeader = 456, kSectionHeader = 40, kPlatformBytes = 64, kNameBytes = 16;
constexpr char kMagic[8] = {'x', 'c', 'l', 'b', 'i', 'n', '2', '\0'};
constexpr uint32_t kMaxSections = 1000;

constexpr std::string_view kMetadataName = "tenon", kMetadataMagic = "tenon xclbin 1\n\n";
constexpr size_t kDigestAt = kMetadataMagic.size(), kConfigAt = kDigestAt + SHA256_DIGEST_LENGTH;

template <class T>
void put(std::vector<std::byte>& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
template <class T>
T get(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string text_at(std::span<const std::byte> bytes, size_t at, size_t max) {
  const auto* text = reinterpret_cast<const char*>(bytes.data() + at);
  return {text, strnlen(text, max)};
}

bool is_metadata(const XclbinSection& section) {
  return section.kind == SectionKind::kUserMetadata && section.name == kMetadataName;
}

std::array<uint8_t, SHA256_DIGEST_LENGTH> digest(std::span<const std::byte> bytes) {
  std::array<uint8_t, SHA256_DIGEST_LENGTH> result{};
  SHA256(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), result.data());
  return result;
}

struct Damage {
  std::string_view where;
  std::unexpected<Diagnostic> operator()(std::string what) const {
    return error(std::move(what), std::string(where), "write the file again, or copy it again from its source");
  }
};

// The configuration in the metadata, whose digest covers the file with zeros as the digest's own bytes.
Expected<spec::Config> check_metadata(std::span<const std::byte> file, size_t at, size_t bytes, const Damage& damage) {
  if (bytes < kConfigAt || text_at(file, at, kMetadataMagic.size()) != kMetadataMagic) {
    return damage("the metadata section of Tenon has an unknown format");
  }
  std::vector<std::byte> blank(file.begin(), file.end());
  std::fill_n(blank.begin() + static_cast<ptrdiff_t>(at + kDigestAt), SHA256_DIGEST_LENGTH, std::byte{});
  if (std::memcmp(digest(blank).data(), file.data() + at + kDigestAt, SHA256_DIGEST_LENGTH) != 0) {
    return damage("the file is damaged: its SHA-256 differs from its metadata");
  }
  const auto* text = reinterpret_cast<const char*>(file.data() + at);
  return spec::parse_config({text + kConfigAt, bytes - kConfigAt}, damage.where);
}

}  // namespace

std::string_view name(SectionKind kind) {
  switch (kind) {
    case SectionKind::kBitstream: return "BITSTREAM";
    case SectionKind::kEmbeddedMetadata: return "EMBEDDED_METADATA";
    case SectionKind::kMemTopology: return "MEM_TOPOLOGY";
    case SectionKind::kConnectivity: return "CONNECTIVITY";
    case SectionKind::kIpLayout: return "IP_LAYOUT";
    case SectionKind::kClockFreqTopology: return "CLOCK_FREQ_TOPOLOGY";
    case SectionKind::kUserMetadata: return "USER_METADATA";
  }
  return {};
}

const XclbinSection* Xclbin::find(SectionKind kind) const {
  const auto it = std::ranges::find(sections, kind, &XclbinSection::kind);
  return it == sections.end() ? nullptr : &*it;
}

void add_metadata(Xclbin& xclbin, const spec::Config& config) {
  std::erase_if(xclbin.sections, is_metadata);
  xclbin.config = config;
  const std::string text =
      std::string(kMetadataMagic) + std::string(SHA256_DIGEST_LENGTH, '\0') + spec::to_json(config);
  XclbinSection section{SectionKind::kUserMetadata, std::string(kMetadataName), {}};
  std::ranges::copy(std::as_bytes(std::span(text)), std::back_inserter(section.data));
  xclbin.sections.push_back(std::move(section));
}

std::vector<std::byte> to_bytes(Xclbin& xclbin) {
  size_t at = kHeader + kSectionHeader * xclbin.sections.size();
  std::vector<std::byte> file(at);
  std::optional<size_t> metadata;
  for (size_t i = 0; i < xclbin.sections.size(); ++i) {
    const XclbinSection& section = xclbin.sections[i];
    at = (file.size() + 7) / 8 * 8;
    file.resize(at + section.data.size());
    std::ranges::copy(section.data, file.begin() + static_cast<ptrdiff_t>(at));
    const size_t header = kHeader + kSectionHeader * i;
    put(file, header, section.kind);
    std::memcpy(file.data() + header + 4, section.name.data(), std::min(section.name.size(), kNameBytes - 1));
    put<uint64_t>(file, header + 24, at);
    put<uint64_t>(file, header + 32, section.data.size());
    if (is_metadata(section)) {
      metadata = at;
      std::fill_n(file.begin() + static_cast<ptrdiff_t>(at + kDigestAt), SHA256_DIGEST_LENGTH, std::byte{});
    }
  }
  std::memcpy(file.data(), kMagic, sizeof kMagic);
  std::fill_n(file.begin() + kSignatureLength, kSignatureEnd - kSignatureLength, std::byte{0xff});
  put(file, kUniqueId, xclbin.timestamp);
  put<uint64_t>(file, kLength, file.size());
  put(file, kTimestamp, xclbin.timestamp);
  put<uint8_t>(file, kVersionMajor, 2);
  put<uint8_t>(file, kVersionMajor + 1, 13);
  put(file, kMode, xclbin.mode);
  std::memcpy(file.data() + kPlatform, xclbin.platform.data(), std::min(xclbin.platform.size(), kPlatformBytes - 1));
  put(file, kCount, static_cast<uint32_t>(xclbin.sections.size()));
  std::memcpy(xclbin.uuid.data(), digest(file).data(), xclbin.uuid.size());
  put(file, kUuid, xclbin.uuid);
  if (metadata) put(file, *metadata + kDigestAt, digest(file));
  return file;
}

Expected<Xclbin> read_xclbin(std::span<const std::byte> file, std::string_view where) {
  const Damage damage{where};
  if (file.size() < kHeader || std::memcmp(file.data(), kMagic, sizeof kMagic) != 0) {
    return damage(fmt::format("not an xclbin file: its {} bytes do not start with \"xclbin2\"", file.size()));
  }
  if (const auto length = get<uint64_t>(file, kLength); length != file.size()) {
    return damage(fmt::format("the file has {} bytes, its header says {}", file.size(), length));
  }
  Xclbin xclbin;
  xclbin.platform = text_at(file, kPlatform, kPlatformBytes);
  xclbin.timestamp = get<uint64_t>(file, kTimestamp);
  xclbin.mode = get<uint16_t>(file, kMode);
  xclbin.uuid = get<std::array<uint8_t, 16>>(file, kUuid);
  const auto count = get<uint32_t>(file, kCount);
  if (count > kMaxSections || kHeader + kSectionHeader * size_t{count} > file.size()) {
    return damage(fmt::format("the file is too short for {} section headers", count));
  }
  for (size_t i = 0; i < count; ++i) {
    const size_t header = kHeader + kSectionHeader * i;
    XclbinSection section{get<SectionKind>(file, header), text_at(file, header + 4, kNameBytes), {}};
    const auto at = get<uint64_t>(file, header + 24), bytes = get<uint64_t>(file, header + 32);
    if (at > file.size() || bytes > file.size() - at) {
      return damage(
          fmt::format("section {} has bytes [{}, {} + {}) of a file of {} bytes", i, at, at, bytes, file.size()));
    }
    const auto data = file.subspan(at, bytes);
    section.data.assign(data.begin(), data.end());
    if (is_metadata(section)) {
      TENON_TRY_ASSIGN(config, check_metadata(file, at, bytes, damage));
      xclbin.config = std::move(*config);
    }
    xclbin.sections.push_back(std::move(section));
  }
  return xclbin;
}

Expected<Xclbin> load_xclbin(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes) return error(bytes.error().what, path, "tenon xclbin write generates a file");
  return read_xclbin(*bytes, path);
}

Xclbin make_xclbin(const spec::Config& config, const XclbinOptions& options) {
  Xclbin xclbin;
  xclbin.platform = "tenon:any:" + config.name;
  xclbin.sections = metadata_sections(config, options);
  if (!options.bitstream.empty()) {
    xclbin.sections.push_back({SectionKind::kBitstream, "", options.bitstream});
  }
  add_metadata(xclbin, config);
  return xclbin;
}

std::string uuid_text(const Xclbin& xclbin) {
  std::string text;
  for (size_t i = 0; i < xclbin.uuid.size(); ++i) {
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", xclbin.uuid[i]);
  }
  return text;
}

}  // namespace tenon::driver
