// Reading and writing of whole files, with the system's reason in the error message.
#pragma once

#include <cstddef>
#include <filesystem>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tenon {

// Memory at multiples of a cache line, so that parts of a file at such offsets can be used where they are.
template <class T>
struct CacheLineAllocator {
  static constexpr std::align_val_t kAlignment{64};
  using value_type = T;
  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}  // NOLINT: allocators convert
  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kAlignment)); }
  void deallocate(T* data, size_t) { ::operator delete(data, kAlignment); }
  bool operator==(const CacheLineAllocator&) const = default;
};
using AlignedBytes = std::vector<std::byte, CacheLineAllocator<std::byte>>;

Expected<std::vector<std::byte>> read_file(const std::filesystem::path& path);
Expected<AlignedBytes> read_aligned_file(const std::filesystem::path& path);
// A file that another file names: what is no regular one, as a pipe, is refused and not waited for.
Expected<std::vector<std::byte>> read_regular_file(const std::filesystem::path& path);
Expected<std::string> read_text(const std::filesystem::path& path);

// The content of a regular file changes at once: it is written to a temporary file in the same folder, waited for, and
// renamed, so that neither a reader nor a machine that stops sees a part of it. Symbolic links are followed; a file
// that exists keeps its mode and owner (one that only its owner could replace is written in place). What is no regular
// file, as a device, a pipe or a name in /dev/fd, is written into as it is.
Status write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
Status write_file(const std::filesystem::path& path, std::span<const std::span<const std::byte>> parts);  // in turn
Status write_file(const std::filesystem::path& path, std::string_view text);

// The program or the shared object that this code is part of, beside which an installation has its other files; empty
// where the system does not tell.
std::filesystem::path own_file();

}  // namespace tenon
