// The kernel's files that control a board, below a root: "/" on a board, a directory where a process emulates the
// board.
//
// Semantics: every path is given as on a board. Attributes are the one-line files of sysfs. A write of an attribute
// returns when the kernel has completed the requested action. A missing file or a failed access is an error with the
// path and errno.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::driver::uio {

// A file descriptor with an owner.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// The mapping of a file into this process, shared with the kernel or an emulator.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();
  static Expected<Mapping> map(const Fd& fd, uint64_t bytes, uint64_t offset, const std::string& path);
  std::byte* data() const { return base_; }

 private:
  std::byte* base_ = nullptr;
  uint64_t bytes_ = 0;
};

class Files {
 public:
  explicit Files(std::filesystem::path root) : root_(std::move(root)) {}

  std::string path(std::string_view on_board) const;
  bool exists(std::string_view on_board) const;
  bool is_socket(std::string_view on_board) const;
  std::vector<std::string> list(std::string_view directory) const;  // sorted names; empty where it does not exist

  Expected<std::string> read(std::string_view attribute) const;  // without the newline
  Expected<uint64_t> read_integer(std::string_view attribute) const;
  Status write(std::string_view attribute, std::string_view text) const;

  Expected<Fd> open(std::string_view device) const;     // for reading and writing; connects to a socket
  Expected<Fd> connect(std::string_view socket) const;  // to an emulator

 private:
  std::filesystem::path root_;
};

// The error "cannot ACTION: ERRNO", with advice for the common codes.
std::unexpected<Diagnostic> system_error(std::string_view action, const std::string& path, int code);

}  // namespace tenon::driver::uio
