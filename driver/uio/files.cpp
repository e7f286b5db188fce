#include "driver/uio/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "support/number.h"
#include "support/try.h"

namespace tenon::driver::uio {

namespace fs = std::filesystem;

std::unexpected<Diagnostic> system_error(std::string_view action, const std::string& path, int code) {
  std::string help;
  if (code == EACCES || code == EPERM) help = "run as root, or grant your user access to the file by a udev rule";
  if (code == ECONNREFUSED) help = "the process that emulated the PL has ended; start it again";
  return error(fmt::format("cannot {}: {}", action, std::strerror(code)), path, std::move(help));
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

Mapping::~Mapping() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

Expected<Mapping> Mapping::map(const Fd& fd, uint64_t bytes, uint64_t offset, const std::string& path) {
  if (bytes > SIZE_MAX / 2) return error(fmt::format("a process cannot map {} bytes", bytes), path);
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), static_cast<off_t>(offset));
  if (base == MAP_FAILED) return system_error(fmt::format("map {} bytes", bytes), path, errno);
  Mapping mapping;
  mapping.base_ = static_cast<std::byte*>(base);
  mapping.bytes_ = bytes;
  return mapping;
}

std::string Files::path(std::string_view on_board) const {
  if (root_.empty() || root_ == "/") return std::string(on_board);
  return (root_ / on_board.substr(on_board.starts_with('/') ? 1 : 0)).string();
}

bool Files::exists(std::string_view on_board) const {
  struct stat status {};
  return ::stat(path(on_board).c_str(), &status) == 0;
}

bool Files::is_socket(std::string_view on_board) const {
  struct stat status {};
  return ::stat(path(on_board).c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

std::vector<std::string> Files::list(std::string_view directory) const {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path(directory), ignored)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

Expected<std::string> Files::read(std::string_view attribute) const {
  const std::string at = path(attribute);
  const Fd fd(::open(at.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return system_error("read", at, errno);
  std::array<char, 4096> text{};
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got < 0) return system_error("read", at, errno);
  const std::string_view content(text.data(), static_cast<size_t>(got));
  return std::string(content.substr(0, content.find('\n')));
}

Expected<uint64_t> Files::read_integer(std::string_view attribute) const {
  TENON_TRY_ASSIGN(text, read(attribute));
  if (const auto value = parse_number<uint64_t>(*text)) return *value;
  return error(fmt::format("\"{}\" is not an integer", *text), path(attribute));
}

Status Files::write(std::string_view attribute, std::string_view text) const {
  const std::string at = path(attribute);
  if (is_socket(attribute)) {
    TENON_TRY_ASSIGN(emulated, connect(attribute));
    int32_t code = EIO;
    if (::send(emulated->get(), text.data(), text.size(), MSG_NOSIGNAL) < 0 ||
        ::recv(emulated->get(), &code, sizeof code, 0) != sizeof code) {
      return system_error("write", at, errno != 0 ? errno : EPIPE);
    }
    if (code != 0) return system_error(fmt::format("write \"{}\"", text), at, code);
    return {};
  }
  const Fd fd(::open(at.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd.get() < 0) return system_error("write", at, errno);
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return system_error(fmt::format("write \"{}\"", text), at, errno);
  }
  return {};
}

Expected<Fd> Files::open(std::string_view device) const {
  if (is_socket(device)) return connect(device);
  const std::string at = path(device);
  Fd fd(::open(at.c_str(), O_RDWR | O_CLOEXEC));
  if (fd.get() < 0) return system_error("open", at, errno);
  return fd;
}

Expected<Fd> Files::connect(std::string_view socket) const {
  const std::string at = path(socket);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (at.size() >= sizeof address.sun_path) {
    return error(
        fmt::format("the path has {} letters, a socket's has at most {}", at.size(), sizeof address.sun_path - 1), at,
        "use a root with a shorter path");
  }
  std::memcpy(address.sun_path, at.c_str(), at.size());
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return system_error("create a socket", at, errno);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return system_error("connect", at, errno);
  }
  return fd;
}

}  // namespace tenon::driver::uio
