#include "support/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory>

namespace tenon {
namespace {

// The number after the text that the line begins with, in a file of the system; UINT64_MAX where there is none.
uint64_t read_system_number(const char* path, const char* format) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "r"), std::fclose);
  char line[256];
  while (file && std::fgets(line, sizeof line, file.get())) {
    uint64_t number = 0;
    if (std::sscanf(line, format, &number) == 1) return number;
  }
  return UINT64_MAX;
}

double gibibytes(uint64_t bytes) { return static_cast<double>(bytes) / (uint64_t{1} << 30); }

}  // namespace

uint64_t usable_memory() {
  const uint64_t free_kib = read_system_number("/proc/meminfo", "MemAvailable: %" SCNu64);
  uint64_t bytes = free_kib > UINT64_MAX >> 10 ? UINT64_MAX : free_kib << 10;
  bytes = std::min(bytes, read_system_number("/sys/fs/cgroup/memory.max", "%" SCNu64));
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      bytes = std::min<uint64_t>(bytes, limit.rlim_cur);
  }
  return bytes;
}

Status check_memory(uint64_t bytes, std::string_view what, std::string where) {
  constexpr uint64_t kSmall = uint64_t{64} << 20;
  if (bytes <= kSmall) return {};
  const uint64_t usable = usable_memory();
  if (bytes <= usable) return {};
  return error(
      fmt::format("{} takes {:.1f} GiB of memory, {:.1f} GiB are free", what, gibibytes(bytes), gibibytes(usable)),
      std::move(where), "a machine with more memory, or a higher limit, is needed if the file is right");
}

}  // namespace tenon
