#include "driver/uio/memory.h"

#include <fmt/format.h>

#include <cstring>

#include "driver/uio/device.h"
#include "support/try.h"

namespace tenon::driver::uio {

Expected<Memory> Memory::open(const Files& files, const std::string& name, bool sync) {
  Memory memory(files);
  // The class was called udmabuf before version 2.
  for (const char* kind : {"u-dma-buf", "udmabuf"}) {
    const std::string directory = fmt::format("/sys/class/{}/{}/", kind, name);
    if (memory.attributes_.empty() && files.exists(directory)) memory.attributes_ = directory;
  }
  if (memory.attributes_.empty()) {
    return error(fmt::format("no memory for the accelerator: u-dma-buf has no device {}", name),
                 files.path(fmt::format("/sys/class/u-dma-buf/{}", name)),
                 "load it: insmod u-dma-buf.ko udmabuf0=67108864; or apply an overlay of tenon hw overlay; or use "
                 "another device: ?memory=NAME");
  }
  TENON_TRY_ASSIGN(physical, files.read_integer(memory.attributes_ + "phys_addr"));
  TENON_TRY_ASSIGN(size, files.read_integer(memory.attributes_ + "size"));
  memory.physical_ = *physical;
  memory.size_ = *size;
  // sync_for_* takes the offset in 32 bits.
  if (*size == 0 || *size > UINT32_MAX || *size % kCacheLine != 0) {
    return error(fmt::format("the memory has {} bytes, must be a multiple of {} below 4 GiB", *size, kCacheLine),
                 files.path(memory.attributes_ + "size"));
  }
  memory.sync_ = sync;
  if (sync && files.exists(memory.attributes_ + "dma_coherent")) {
    TENON_TRY_ASSIGN(coherent, files.read_integer(memory.attributes_ + "dma_coherent"));
    memory.sync_ = *coherent == 0;
  }
  const std::string node = "/dev/" + name;
  TENON_TRY_ASSIGN(fd, files.open(node));
  TENON_TRY(lock(*fd, files.path(node)));
  memory.fd_ = std::move(*fd);
  TENON_TRY_ASSIGN(mapping, Mapping::map(memory.fd_, *size, 0, files.path(node)));
  memory.mapping_ = std::move(*mapping);
  return memory;
}

Status Memory::write(uint64_t offset, std::span<const std::byte> data) {
  if (data.empty()) return {};
  const uint64_t end = offset + data.size();
  // A partly written line keeps the accelerator's values in its other bytes, which may not be in the cache yet.
  if (offset % kCacheLine != 0 || end % kCacheLine != 0) {
    TENON_TRY(sync(offset, offset + 1, Direction::kFromDevice));
    TENON_TRY(sync(end - 1, end, Direction::kFromDevice));
  }
  std::memcpy(mapping_.data() + offset, data.data(), data.size());
  return sync(offset, end, Direction::kToDevice);
}

Status Memory::read(uint64_t offset, std::span<std::byte> data) {
  if (data.empty()) return {};
  TENON_TRY(sync(offset, offset + data.size(), Direction::kFromDevice));
  std::memcpy(data.data(), mapping_.data() + offset, data.size());
  return {};
}

Status Memory::sync(uint64_t begin, uint64_t end, Direction direction) {
  if (!sync_) return {};
  begin = begin / kCacheLine * kCacheLine;
  end = (end + kCacheLine - 1) / kCacheLine * kCacheLine;
  // A single write requests the sync: offset in the upper half, and size, direction and 1 in the lower half.
  const auto low = static_cast<uint32_t>(end - begin) | static_cast<uint32_t>(direction) << 2 | 1;
  const char* attribute = direction == Direction::kToDevice ? "sync_for_device" : "sync_for_cpu";
  return files_.write(attributes_ + attribute, fmt::format("0x{:08x}{:08x}", begin, low));
}

}  // namespace tenon::driver::uio
