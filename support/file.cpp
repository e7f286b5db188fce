#include "support/file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "support/memory.h"
#include "support/try.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

std::unexpected<Diagnostic> system_error(std::string_view action, const fs::path& path, int code) {
  return error(fmt::format("cannot {}: {}", action, std::strerror(code)), path.string());
}

// The code of the last system call that failed, or 0.
using Code = int;

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  bool valid() const { return value_ >= 0; }
  int get() const { return value_; }
  void release() { value_ = -1; }  // to an owner
  // Network file systems report some errors of write() only here.
  Code close() { return ::close(std::exchange(value_, -1)) == 0 ? 0 : errno; }

 private:
  int value_;
};

using Parts = std::span<const std::span<const std::byte>>;

Code write_parts(int file, Parts parts) {
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      const ssize_t count = ::write(file, part.data(), part.size());
      if (count < 0 && errno != EINTR) return errno;
      if (count > 0) part = part.subspan(static_cast<size_t>(count));
    }
  }
  return 0;
}

// Waits until the disk has the data; a file system without this function is no error.
Code sync(int file) {
  if (::fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS) return 0;
  return errno;
}

// The path that the symbolic links of `path` lead to, whether a file is there or not; nothing where they go in a
// circle. Links of /proc stand for open files and are followed by the system alone: the result may be such a link.
std::optional<fs::path> follow_links(fs::path path) {
  constexpr int kMostLinks = 40;  // as Linux has it
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code failure;
    if (!fs::is_symlink(fs::symlink_status(path, failure))) return path;
    const fs::path folder = fs::canonical(path.has_parent_path() ? path.parent_path() : ".", failure);
    if (failure || folder.string().starts_with("/proc/")) return path;
    const fs::path target = fs::read_symlink(path, failure);
    if (failure) return path;
    path = folder / target;
  }
  return std::nullopt;
}

// Writes into what is at the path, which keeps its identity.
Code write_in_place(const fs::path& path, Parts parts, int flags) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC | flags));
  if (!file.valid()) return errno;
  if (const Code code = write_parts(file.get(), parts)) return code;
  return file.close();
}

// Gives a new file the mode and the owner of the old one. False where the process must not do so.
bool adopt(int file, const struct stat& old) {
  struct stat now {};
  if (::fstat(file, &now) != 0) return false;
  if ((now.st_uid != old.st_uid || now.st_gid != old.st_gid) && ::fchown(file, old.st_uid, old.st_gid) != 0)
    return false;
  return ::fchmod(file, old.st_mode & 07777) == 0;
}

// A new file with a name of its own in the folder; several threads and processes may write there.
int create_partial(const fs::path& folder, fs::path& name) {
  static std::atomic<unsigned> count = 0;
  constexpr int kTries = 1000;  // names that a killed process of the same id has left
  for (int i = 0; i < kTries; ++i) {
    name = folder / fmt::format(".tenon-{}-{}.part", getpid(), count++);
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

// Writes a regular file, new or old, so that its name always stands for a complete content, even if the machine stops.
Code replace(const fs::path& path, Parts parts, const struct stat* old) {
  if (old && ::access(path.c_str(), W_OK) != 0) return errno;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  fs::path partial;
  Descriptor file(create_partial(folder, partial));
  const bool forbidden = !file.valid() && (errno == EACCES || errno == EPERM);
  if (!file.valid() && !(old && forbidden)) return errno;
  if (forbidden || (old && !adopt(file.get(), *old))) {  // another user's file, which a new one cannot stand for
    if (!forbidden) std::remove(partial.c_str());
    return write_in_place(path, parts, O_TRUNC);
  }
  Code code = write_parts(file.get(), parts);
  if (code == 0) code = sync(file.get());
  if (const Code closed = file.close(); code == 0) code = closed;
  if (code == 0 && std::rename(partial.c_str(), path.c_str()) != 0) code = errno;
  if (code != 0) return std::remove(partial.c_str()), code;
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return directory.valid() ? sync(directory.get()) : 0;  // a folder may be writable and not readable
}

Code write_any(const fs::path& given, Parts parts) {
  const std::optional<fs::path> path = follow_links(given);
  if (!path) return ELOOP;
  struct stat old {};
  const bool exists = ::stat(path->c_str(), &old) == 0;
  if (!exists && errno != ENOENT) return errno;
  std::error_code ignored;
  const bool link = fs::is_symlink(fs::symlink_status(*path, ignored));  // an open file, by its name in /proc
  if (exists && (!S_ISREG(old.st_mode) || link)) return write_in_place(*path, parts, O_APPEND);
  return replace(*path, parts, exists ? &old : nullptr);
}

}  // namespace

namespace {

template <class Bytes = std::vector<std::byte>>
Expected<Bytes> read_all(const File& file, const fs::path& path) {
  // Read until the end instead of asking for the size: pipes have none, and a directory opens but does not read.
  constexpr size_t kChunk = 1 << 16;
  Bytes bytes;
  struct stat info {};
  if (::fstat(::fileno(file.get()), &info) == 0 && S_ISREG(info.st_mode)) {
    const auto size = static_cast<uint64_t>(info.st_size);
    TENON_TRY(check_memory(size, "the file", path.string()));
    bytes.reserve(size + kChunk);  // the last chunk is that of the end
  }
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

template <class Bytes>
Expected<Bytes> open_and_read(const fs::path& path) {
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) return system_error("open the file", path, errno);
  return read_all<Bytes>(file, path);
}

}  // namespace

Expected<std::vector<std::byte>> read_file(const fs::path& path) { return open_and_read<std::vector<std::byte>>(path); }

Expected<AlignedBytes> read_aligned_file(const fs::path& path) { return open_and_read<AlignedBytes>(path); }

Expected<std::vector<std::byte>> read_regular_file(const fs::path& path) {
  Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!descriptor.valid()) return system_error("open the file", path, errno);
  struct stat info {};
  if (::fstat(descriptor.get(), &info) != 0) return system_error("read the file", path, errno);
  if (S_ISDIR(info.st_mode)) return system_error("read the file", path, EISDIR);
  if (!S_ISREG(info.st_mode)) return error("it is not a regular file", path.string());
  const File file(::fdopen(descriptor.get(), "rb"));
  if (!file) return system_error("open the file", path, errno);
  descriptor.release();
  return read_all(file, path);
}

Expected<std::string> read_text(const fs::path& path) {
  const auto bytes = read_file(path);
  if (!bytes) return std::unexpected(bytes.error());
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

Status write_file(const fs::path& path, std::span<const std::byte> bytes) {
  return write_file(path, std::span(&bytes, 1));
}

Status write_file(const fs::path& path, std::span<const std::span<const std::byte>> parts) {
  if (const Code code = write_any(path, parts)) return system_error("write the file", path, code);
  return {};
}

Status write_file(const fs::path& path, std::string_view text) {
  return write_file(path, std::as_bytes(std::span(text)));
}

std::filesystem::path own_file() {
  Dl_info info{};
  link_map* map = nullptr;
  std::error_code fault;
  // Of the program, the name is what it was called by, which may be of any folder: the map of the linker has none.
  const bool known =
      dladdr1(reinterpret_cast<void*>(&own_file), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
  const std::filesystem::path file = known && map && map->l_name && *map->l_name
                                         ? std::filesystem::canonical(map->l_name, fault)
                                         : std::filesystem::read_symlink("/proc/self/exe", fault);
  return fault ? std::filesystem::path() : file;
}

}  // namespace tenon
