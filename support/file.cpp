#include "support/file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace tenon {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

std::unexpected<Diagnostic> system_error(std::string_view action, const std::filesystem::path& path, int code) {
  return error(fmt::format("cannot {}: {}", action, std::strerror(code)), path.string());
}

}  // namespace

Expected<std::vector<std::byte>> read_file(const std::filesystem::path& path) {
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) return system_error("open the file", path, errno);
  // Read until the end instead of asking for the size: pipes have none, and a directory opens but does not read.
  std::vector<std::byte> bytes;
  std::error_code ignored;
  if (auto size = std::filesystem::file_size(path, ignored); !ignored) bytes.reserve(size);
  constexpr size_t kChunk = 1 << 16;
  for (;;) {
    const size_t old_size = bytes.size();
    bytes.resize(old_size + kChunk);
    const size_t count = std::fread(bytes.data() + old_size, 1, kChunk, file.get());
    bytes.resize(old_size + count);
    if (count < kChunk) break;
  }
  if (std::ferror(file.get())) return system_error("read the file", path, errno);
  return bytes;
}

Expected<std::string> read_text(const std::filesystem::path& path) {
  const auto bytes = read_file(path);
  if (!bytes) return std::unexpected(bytes.error());
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

Status write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  return write_file(path, std::span(&bytes, 1));
}

Status write_file(const std::filesystem::path& path, std::span<const std::span<const std::byte>> parts) {
  std::filesystem::path partial = path;
  partial += fmt::format(".{}.part", getpid());
  File file(std::fopen(partial.c_str(), "wb"));
  if (!file) return system_error("write the file", path, errno);
  bool ok = std::ranges::all_of(parts, [&](std::span<const std::byte> part) {
    return std::fwrite(part.data(), 1, part.size(), file.get()) == part.size();
  });
  ok = ok && std::fflush(file.get()) == 0;
  int code = errno;
  file.reset();
  if (ok && std::rename(partial.c_str(), path.c_str()) == 0) return {};
  if (ok) code = errno;
  std::remove(partial.c_str());
  return system_error("write the file", path, code);
}

Status write_file(const std::filesystem::path& path, std::string_view text) {
  return write_file(path, std::as_bytes(std::span(text)));
}

}  // namespace tenon
