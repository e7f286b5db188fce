// Reads and writes .npz files, the part of ZIP that numpy.savez and savez_compressed write: central directory, stored
// and deflated members.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "runtime/npy.h"
#include "support/file.h"
#include "support/memory.h"
#include "support/try.h"

namespace tenon::runtime {

struct NpzEntry {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, unpacked = 0, offset = 0;
};

namespace {

constexpr uint32_t kEndSignature = 0x06054b50, kEntrySignature = 0x02014b50, kLocalSignature = 0x04034b50;
constexpr uint32_t kEnd64Signature = 0x06064b50, kLocator64Signature = 0x07064b50;
constexpr size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr uint16_t kExtra64 = 1;  // the extra field with sizes that need 64 bits
// Deflate's best ratio; a member that claims a better one is damaged, and no memory is allocated for it.
constexpr uint64_t kMaxRatio = 1032;

using Entry = NpzEntry;

class Archive {
 public:
  Archive(std::span<const std::byte> bytes, std::string_view where) : bytes_(bytes), where_(where) {}

  Expected<std::vector<Entry>> entries() const {
    auto end = find_end();
    if (!end) {
      return error("not a .npz file: no ZIP directory found", where_, "write it with numpy.savez");
    }
    uint64_t count = u16(*end + 10), at = u32(*end + 16);
    if (count == UINT16_MAX || at == UINT32_MAX) {
      const uint64_t end64 = *end >= kLocator64Bytes && u32(*end - kLocator64Bytes) == kLocator64Signature
                                 ? u64(*end - kLocator64Bytes + 8)
                                 : bytes_.size();
      if (has(end64, kEnd64Bytes) && u32(end64) == kEnd64Signature) count = u64(end64 + 32), at = u64(end64 + 48);
    }
    std::vector<Entry> result;
    uint64_t packed = 0;
    for (uint64_t i = 0; i < count; ++i) {
      if (!has(at, kEntryBytes) || u32(at) != kEntrySignature) return damaged("the directory");
      const size_t name_bytes = u16(at + 28), extra_bytes = u16(at + 30);
      const size_t skip = name_bytes + extra_bytes + u16(at + 32);
      if (!has(at, kEntryBytes + skip)) return damaged("the directory");
      std::string name(reinterpret_cast<const char*>(bytes_.data()) + at + kEntryBytes, name_bytes);
      result.push_back(
          {std::move(name), u16(at + 8), u16(at + 10), u32(at + 16), u32(at + 20), u32(at + 24), u32(at + 42)});
      wide(result.back(), at + kEntryBytes + name_bytes, extra_bytes);
      at += kEntryBytes + skip;
      // Members that share their bytes could unpack to any size.
      if (result.back().packed > bytes_.size() - packed) return damaged("the directory");
      packed += result.back().packed;
    }
    return result;
  }

  // At most `limit` bytes of the member; all of them are compared with the checksum, fewer are not.
  Expected<std::vector<std::byte>> unpack(const Entry& entry, uint64_t limit = UINT64_MAX) const {
    if (entry.flags & 1) return error(fmt::format("member '{}' is encrypted", entry.name), where_);
    if (!has(entry.offset, kLocalBytes) || u32(entry.offset) != kLocalSignature) return damaged(entry.name);
    size_t begin = entry.offset + kLocalBytes + u16(entry.offset + 26) + u16(entry.offset + 28);
    if (!has(begin, entry.packed)) return damaged(entry.name);
    auto packed = bytes_.subspan(begin, entry.packed);
    std::vector<std::byte> data;
    if (entry.method == 0) {
      if (entry.packed != entry.unpacked) return damaged(entry.name);
      packed = packed.first(std::min<uint64_t>(packed.size(), limit));
      data.assign(packed.begin(), packed.end());
    } else if (entry.method == 8) {
      if (entry.unpacked > UINT32_MAX || entry.packed > UINT32_MAX) {
        return error(fmt::format("member '{}' is deflated and larger than 4 GiB", entry.name), where_,
                     "write it with numpy.savez");
      }
      if (entry.unpacked > kMaxRatio * (entry.packed + 1) ||
          !inflate_into(packed, std::min<uint64_t>(entry.unpacked, limit), limit >= entry.unpacked, data)) {
        return damaged(entry.name);
      }
    } else {
      return error(
          fmt::format("member '{}' has ZIP method {}, must be 0 (stored) or 8 (deflated)", entry.name, entry.method),
          where_);
    }
    if (limit < entry.unpacked) return data;
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
  uint64_t u64(size_t at) const {
    uint64_t value;
    std::memcpy(&value, bytes_.data() + at, 8);
    return value;
  }
  // Reads the sizes that do not fit 32 bits (all ones there) from the extra field, which has them in this order.
  void wide(Entry& entry, size_t at, size_t length) const {
    for (const size_t end = at + length; end - at >= 4;) {
      const size_t id = u16(at), field = u16(at + 2), next = at + 4 + field;
      if (next > end) return;
      if (id == kExtra64) {
        size_t value = at + 4;
        for (uint64_t* size : {&entry.unpacked, &entry.packed, &entry.offset}) {
          if (*size != UINT32_MAX || next - value < 8) continue;
          *size = u64(value);
          value += 8;
        }
        return;
      }
      at = next;
    }
  }
  // Only a comment of at most 65535 bytes follows the end record.
  std::optional<size_t> find_end() const {
    if (bytes_.size() < kEndBytes) return std::nullopt;
    size_t last = bytes_.size() - kEndBytes, first = last > UINT16_MAX ? last - UINT16_MAX : 0;
    for (size_t at = last + 1; at-- > first;) {
      if (u32(at) == kEndSignature) return at;
    }
    return std::nullopt;
  }
  // The first `size` bytes, which are all that there are where `whole` is set.
  static bool inflate_into(std::span<const std::byte> packed, size_t size, bool whole, std::vector<std::byte>& data) {
    data.resize(size);
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
    std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(data.data());
    stream.avail_out = static_cast<uInt>(size);
    const int result = inflate(&stream, whole ? Z_FINISH : Z_SYNC_FLUSH);
    return (result == Z_STREAM_END || (!whole && result == Z_OK)) && stream.avail_out == 0;
  }
  std::unexpected<Diagnostic> damaged(std::string_view part) const {
    return error(fmt::format("the archive is damaged at '{}'", part), where_);
  }

  std::span<const std::byte> bytes_;
  std::string where_;
};

std::string_view member_name(const Entry& entry) {
  std::string_view name = entry.name;
  if (name.ends_with(".npy")) name.remove_suffix(4);
  return name;
}

constexpr uint64_t kPrefix = 12 + UINT16_MAX;  // the header of format version 1, and every plausible one of others

Expected<NpyType> member_type(const Archive& archive, const Entry& entry, std::string_view where) {
  TENON_TRY_ASSIGN(prefix, archive.unpack(entry, kPrefix));
  return parse_npy_type(*prefix, fmt::format("{}:{}", where, entry.name));
}

// Gigabytes of zeros may be a small member: its header is compared with its size before all of it is unpacked.
Expected<Tensor> member(const Archive& archive, const Entry& entry, std::string_view where) {
  const std::string name = fmt::format("{}:{}", where, entry.name);
  TENON_TRY_ASSIGN(type, member_type(archive, entry, where));
  const auto size = static_cast<uint64_t>(checked_bytes(type->dtype, type->shape).value_or(0));
  if (entry.unpacked < size || entry.unpacked > size + kPrefix) {
    return error(fmt::format("{} of {} takes {} bytes, the member has {}", to_string(type->shape),
                             runtime::name(type->dtype), size, entry.unpacked),
                 name);
  }
  TENON_TRY(check_memory(2 * entry.unpacked, "the member", name));  // as bytes, and as a tensor
  TENON_TRY_ASSIGN(data, archive.unpack(entry));
  return parse_npy(*data, name);
}

// The data itself if it is larger than zlib's limit (4 GiB), or if its beginning does not shrink by an eighth: weights
// hardly do, and would take three times as long to load.
std::vector<std::byte> deflated(std::span<const std::byte> data) {
  constexpr size_t kSample = size_t{1} << 16;
  if (data.size() > kSample && deflated(data.first(kSample)).size() > kSample / 8 * 7)
    return {data.begin(), data.end()};
  std::vector<std::byte> packed;
  z_stream stream{};
  if (data.size() >= UINT32_MAX || deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, 0) != Z_OK) {
    return {data.begin(), data.end()};
  }
  std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, deflateEnd);
  packed.resize(deflateBound(&stream, data.size()));
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  if (::deflate(&stream, Z_FINISH) != Z_STREAM_END) return {data.begin(), data.end()};
  packed.resize(stream.total_out);
  return packed;
}

}  // namespace

Expected<Npz> Npz::open(std::span<const std::byte> bytes, std::string_view where) {
  TENON_TRY_ASSIGN(entries, Archive(bytes, where).entries());
  Npz npz;
  npz.bytes_ = bytes, npz.where_ = where;
  for (Entry& entry : *entries) {
    const std::string name(member_name(entry));
    if (!npz.entries_.emplace(name, std::make_shared<const Entry>(std::move(entry))).second)
      return error(fmt::format("two members are named '{}'", name), npz.where_);
  }
  return npz;
}

uint64_t Npz::unpacked_bytes() const {
  uint64_t sum = 0;
  for (const auto& [name, entry] : entries_) sum += std::min(entry->unpacked, UINT64_MAX - sum);
  return sum;
}

std::vector<std::string_view> Npz::names() const {
  std::vector<std::string_view> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

Expected<NpyType> Npz::type(std::string_view name) const {
  return member_type(Archive(bytes_, where_), *entries_.find(name)->second, where_);
}

Expected<Tensor> Npz::read(std::string_view name) const {
  return member(Archive(bytes_, where_), *entries_.find(name)->second, where_);
}

Expected<NamedTensors> parse_npz(std::span<const std::byte> bytes, std::string_view where) {
  TENON_TRY_ASSIGN(npz, Npz::open(bytes, where));
  TENON_TRY(check_memory(npz->unpacked_bytes(), "its members", std::string(where)));
  NamedTensors tensors;
  for (const std::string_view name : npz->names()) {
    TENON_TRY_ASSIGN(tensor, npz->read(name));
    tensors.emplace(name, std::move(*tensor));
  }
  return tensors;
}

std::vector<std::byte> to_npz(const NamedTensors& tensors, bool deflate) {
  std::vector<std::byte> file, directory;
  auto put = [](std::vector<std::byte>& to, auto... values) {
    auto append = [&](auto value) {
      const auto bytes = std::bit_cast<std::array<std::byte, sizeof value>>(value);
      to.insert(to.end(), bytes.begin(), bytes.end());
    };
    (append(values), ...);
  };
  auto name_of = [&](std::vector<std::byte>& to, std::string_view name) {
    for (const char c : name) to.push_back(static_cast<std::byte>(c));
  };
  constexpr uint16_t kVersion = 45, kUtf8 = 0x800, kStored = 0, kDeflated = 8, kTime = 0, kDate = 0x21;  // 1980-01-01
  constexpr uint16_t kNone = 0, kLocalExtra = 20, kExtra = 28;
  for (const auto& [key, tensor] : tensors) {
    const std::string name = key + ".npy";
    std::vector<std::byte> data = to_npy(tensor);
    const uint64_t size = data.size(), offset = file.size();
    const auto crc = static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
    uint16_t method = kStored;
    if (deflate) {
      if (auto packed = deflated(data); packed.size() < data.size()) data = std::move(packed), method = kDeflated;
    }
    const uint64_t packed = data.size();
    const auto length = static_cast<uint16_t>(name.size());
    put(file, kLocalSignature, kVersion, kUtf8, method, kTime, kDate, crc, UINT32_MAX, UINT32_MAX, length, kLocalExtra);
    name_of(file, name);
    put(file, kExtra64, uint16_t{16}, size, packed);
    file.insert(file.end(), data.begin(), data.end());
    put(directory, kEntrySignature, kVersion, kVersion, kUtf8, method, kTime, kDate, crc, UINT32_MAX, UINT32_MAX,
        length, kExtra, kNone, kNone, kNone, uint32_t{0}, UINT32_MAX);
    name_of(directory, name);
    put(directory, kExtra64, uint16_t{24}, size, packed, offset);
  }
  const uint64_t count = tensors.size(), start = file.size(), length = directory.size(), end = start + length;
  file.insert(file.end(), directory.begin(), directory.end());
  put(file, kEnd64Signature, uint64_t{kEnd64Bytes - 12}, kVersion, kVersion, uint32_t{0}, uint32_t{0}, count, count,
      length, start);
  put(file, kLocator64Signature, uint32_t{0}, end, uint32_t{1});
  put(file, kEndSignature, kNone, kNone, UINT16_MAX, UINT16_MAX, UINT32_MAX, UINT32_MAX, kNone);
  return file;
}

Status save_npz(const std::filesystem::path& path, const NamedTensors& tensors) {
  return write_file(path, to_npz(tensors));
}

Expected<Tensor> parse_npz(std::span<const std::byte> bytes, std::string_view where, std::string_view name) {
  const Archive archive(bytes, where);
  TENON_TRY_ASSIGN(entries, archive.entries());
  const Entry* found = nullptr;
  std::set<std::string_view> names;
  for (const Entry& entry : *entries) {
    names.insert(member_name(entry));
    if (member_name(entry) != name) continue;
    if (found) return error(fmt::format("two members are named '{}'", name), std::string(where));
    found = &entry;
  }
  if (found) return member(archive, *found, where);
  return error(name.empty() ? "an .npz file has several tensors, and no name is given"
                            : fmt::format("no tensor is called \"{}\"", name),
               std::string(where), fmt::format("write {}:NAME; its tensors are {}", where, fmt::join(names, ", ")),
               Fault::kUsage);
}

Expected<NamedTensors> load_npz(const std::filesystem::path& path) {
  TENON_TRY_ASSIGN(file, read_file(path));
  return parse_npz(*file, path.string());
}

Expected<Tensor> load_npz(const std::filesystem::path& path, std::string_view name) {
  TENON_TRY_ASSIGN(file, read_file(path));
  return parse_npz(*file, path.string(), name);
}

Expected<std::vector<std::string>> npz_names(const std::filesystem::path& path) {
  TENON_TRY_ASSIGN(file, read_file(path));
  const std::string where = path.string();
  const Archive archive(*file, where);
  TENON_TRY_ASSIGN(entries, archive.entries());
  std::vector<std::string> names;
  for (const Entry& entry : *entries) names.emplace_back(member_name(entry));
  return names;
}

}  // namespace tenon::runtime
