// The part of ZIP that numpy.savez and savez_compressed write: central directory, stored and deflated members.
#include <fmt/format.h>
#include <zlib.h>

#include <cstring>
#include <memory>
#include <optional>

#include "runtime/file.h"
#include "runtime/npy.h"

namespace tenon::runtime {
namespace {

constexpr uint32_t kEndSignature = 0x06054b50, kEntrySignature = 0x02014b50, kLocalSignature = 0x04034b50;
constexpr size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;
// Deflate's best ratio is 1032; a member that claims more lies, and memory is not taken for it.
constexpr uint64_t kMaxRatio = 1032;

struct Entry {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0, packed = 0, unpacked = 0, offset = 0;
};

class Archive {
 public:
  Archive(std::span<const std::byte> bytes, std::string_view where) : bytes_(bytes), where_(where) {}

  Expected<std::vector<Entry>> entries() const {
    auto end = find_end();
    if (!end) {
      return error("not a .npz file: no ZIP directory found", where_, "write it with numpy.savez");
    }
    size_t count = u16(*end + 10), at = u32(*end + 16);
    std::vector<Entry> result;
    uint64_t packed = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!has(at, kEntryBytes) || u32(at) != kEntrySignature) return damaged("the directory");
      size_t name_bytes = u16(at + 28), skip = name_bytes + u16(at + 30) + u16(at + 32);
      if (!has(at, kEntryBytes + skip)) return damaged("the directory");
      std::string name(reinterpret_cast<const char*>(bytes_.data()) + at + kEntryBytes, name_bytes);
      result.push_back(
          {std::move(name), u16(at + 8), u16(at + 10), u32(at + 16), u32(at + 20), u32(at + 24), u32(at + 42)});
      at += kEntryBytes + skip;
      packed += result.back().packed;
    }
    // Members that share their bytes could unpack to any size.
    if (packed > bytes_.size()) return damaged("the directory");
    return result;
  }

  Expected<std::vector<std::byte>> unpack(const Entry& entry) const {
    if (entry.flags & 1) return error(fmt::format("member '{}' is encrypted", entry.name), where_);
    if (entry.packed == UINT32_MAX || entry.unpacked == UINT32_MAX || entry.offset == UINT32_MAX) {
      return error(fmt::format("member '{}' is larger than 4 GiB", entry.name), where_, "save it as .npy");
    }
    if (!has(entry.offset, kLocalBytes) || u32(entry.offset) != kLocalSignature) return damaged(entry.name);
    size_t begin = entry.offset + kLocalBytes + u16(entry.offset + 26) + u16(entry.offset + 28);
    if (!has(begin, entry.packed)) return damaged(entry.name);
    auto packed = bytes_.subspan(begin, entry.packed);
    std::vector<std::byte> data;
    if (entry.method == 0) {
      if (entry.packed != entry.unpacked) return damaged(entry.name);
      data.assign(packed.begin(), packed.end());
    } else if (entry.method == 8) {
      if (entry.unpacked > kMaxRatio * (uint64_t{entry.packed} + 1) || !inflate_into(packed, entry.unpacked, data)) {
        return damaged(entry.name);
      }
    } else {
      return error(
          fmt::format("member '{}' has ZIP method {}, known are 0 (stored) and 8 (deflated)", entry.name, entry.method),
          where_);
    }
    auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size());
    if (crc != entry.crc) {
      return error(
          fmt::format("member '{}' is damaged: CRC is {:08x}, the directory says {:08x}", entry.name, crc, entry.crc),
          where_);
    }
    return data;
  }

 private:
  bool has(size_t at, size_t count) const { return at <= bytes_.size() && count <= bytes_.size() - at; }
  uint16_t u16(size_t at) const {
    uint16_t value;
    std::memcpy(&value, bytes_.data() + at, 2);
    return value;
  }
  uint32_t u32(size_t at) const {
    uint32_t value;
    std::memcpy(&value, bytes_.data() + at, 4);
    return value;
  }
  // The end record is the last thing but a comment of at most 65535 bytes.
  std::optional<size_t> find_end() const {
    if (bytes_.size() < kEndBytes) return std::nullopt;
    size_t last = bytes_.size() - kEndBytes, first = last > UINT16_MAX ? last - UINT16_MAX : 0;
    for (size_t at = last + 1; at-- > first;) {
      if (u32(at) == kEndSignature) return at;
    }
    return std::nullopt;
  }
  static bool inflate_into(std::span<const std::byte> packed, size_t size, std::vector<std::byte>& data) {
    data.resize(size);
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
    std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(data.data());
    stream.avail_out = static_cast<uInt>(size);
    return inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_out == 0;
  }
  std::unexpected<Diagnostic> damaged(std::string_view what) const {
    return error(fmt::format("the archive is damaged at '{}'", what), where_);
  }

  std::span<const std::byte> bytes_;
  std::string where_;
};

}  // namespace

Expected<NamedTensors> parse_npz(std::span<const std::byte> bytes, std::string_view where) {
  Archive archive(bytes, where);
  auto entries = archive.entries();
  if (!entries) return forward_error(entries);
  NamedTensors tensors;
  for (const Entry& entry : *entries) {
    auto data = archive.unpack(entry);
    if (!data) return forward_error(data);
    auto tensor = parse_npy(*data, fmt::format("{}:{}", where, entry.name));
    if (!tensor) return forward_error(tensor);
    std::string_view name = entry.name;
    if (name.ends_with(".npy")) name.remove_suffix(4);
    if (!tensors.emplace(name, std::move(*tensor)).second) {
      return error(fmt::format("two members are named '{}'", name), std::string(where));
    }
  }
  return tensors;
}

Expected<NamedTensors> load_npz(const std::filesystem::path& path) {
  auto file = read_file(path);
  if (!file) return forward_error(file);
  return parse_npz(*file, path.string());
}

}  // namespace tenon::runtime
