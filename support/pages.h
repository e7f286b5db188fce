// Memory in pages of 4 KiB: the alignment of device buffers, and anonymous mappings that cost no memory before use.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace tenon {

inline constexpr uint64_t kPageBytes = 4096;

// The size of the pages that hold `bytes`.
constexpr uint64_t whole_pages(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

// Zero-filled pages: the system allocates each page at its first access and releases all of them with the object.
class Pages {
 public:
  explicit Pages(uint64_t bytes) {
    const auto size = static_cast<size_t>(bytes);
    if (size != bytes) return;  // more than a processor of 32 bits has addresses for
    void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data != MAP_FAILED) bytes_ = {static_cast<std::byte*>(data), size};
  }
  ~Pages() {
    if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
  }
  Pages(Pages&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Pages& operator=(Pages&&) = delete;

  std::span<std::byte> span() const { return bytes_; }  // empty where the pages could not be mapped
  void zero() { madvise(bytes_.data(), bytes_.size(), MADV_DONTNEED); }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace tenon
