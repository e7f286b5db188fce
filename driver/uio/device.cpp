#include "driver/uio/device.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <thread>

#include "driver/simulated.h"
#include "driver/uio/emulated.h"
#include "hw/spec/registers.h"
#include "support/clock.h"
#include "support/try.h"

namespace tenon::driver::uio {
namespace {

using std::chrono::nanoseconds;
constexpr auto kPollInterval = std::chrono::microseconds(20);  // of a device without an interrupt line
// The longest wait for an interrupt before the status is read again: a disconnected line makes a device slow, not hang.
constexpr auto kMaxSleep = std::chrono::milliseconds(100);

Expected<Answer> ask(const Fd& fd, const Request& request, const std::string& path) {
  Answer answer;
  if (::send(fd.get(), &request, sizeof request, MSG_NOSIGNAL) != sizeof request ||
      ::recv(fd.get(), &answer, sizeof answer, 0) != sizeof answer) {
    return error("the process that emulates the PL does not answer any more", path, "start it again");
  }
  return answer;
}

// The process that has a lock on the file, by /proc/locks; empty where /proc/locks has no entry.
std::string holder(const struct stat& file) {
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string id, kind, mode, access, process, inode;
    words >> id >> kind >> mode >> access >> process >> inode;
    if (kind != "FLOCK" || !inode.ends_with(fmt::format(":{}", file.st_ino))) continue;
    std::string name;
    std::getline(std::ifstream("/proc/" + process + "/comm") >> std::ws, name);
    return fmt::format("process {}{}", process, name.empty() ? "" : " (" + name + ")");
  }
  return {};
}

}  // namespace

Status lock(const Fd& fd, const std::string& path) {
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return system_error("lock", path, errno);
  struct stat file {};
  const std::string process = ::fstat(fd.get(), &file) == 0 ? holder(file) : "";
  return error(fmt::format("the device is busy: {} holds it", process.empty() ? "another client" : process), path,
               "end that client, or use another device");
}

Expected<Device> Device::open(const Files& files, int index) {
  const std::string node = fmt::format("/dev/uio{}", index);
  const std::string map = fmt::format("/sys/class/uio/uio{}/maps/map0/", index);
  Device device;
  device.path_ = files.path(node);
  TENON_TRY_ASSIGN(bytes, files.read_integer(map + "size"));
  // The offset of the registers in their first page, where the bus address is not a multiple of a page.
  uint64_t offset = 0;
  if (files.exists(map + "offset")) {
    TENON_TRY_ASSIGN(read, files.read_integer(map + "offset"));
    offset = *read;
  }
  if (*bytes < spec::kRegisterSpaceBytes || offset % 4 != 0) {
    return error(fmt::format("the window has {} bytes at offset {:#x}, the accelerator's registers require {:#x}",
                             *bytes, offset, spec::kRegisterSpaceBytes),
                 device.path_, "correct `reg` of the device tree's node: tenon hw overlay");
  }
  TENON_TRY_ASSIGN(fd, files.open(node));
  device.fd_ = std::move(*fd);
  if (files.is_socket(node)) {
    TENON_TRY_ASSIGN(registers, files.connect(node + kRegistersSuffix));
    device.registers_ = std::move(*registers);
    return device;
  }
  TENON_TRY_ASSIGN(window, Mapping::map(device.fd_, offset + spec::kRegisterSpaceBytes, 0, device.path_));
  device.window_ = std::move(*window);
  device.words_ = reinterpret_cast<volatile uint32_t*>(device.window_.data() + offset);
  struct stat kind {};
  device.interrupts_ = ::fstat(device.fd_.get(), &kind) == 0 && S_ISCHR(kind.st_mode);
  return device;
}

Status Device::lock() {
  if (emulated()) return {};  // the lock on the memory suffices, since an emulated PL has one memory
  return uio::lock(fd_, path_);
}

Expected<uint32_t> Device::read(uint32_t offset) {
  if (emulated()) {
    TENON_TRY_ASSIGN(answer, ask(registers_, {.kind = Request::Kind::kRead, .offset = offset}, path_));
    return static_cast<uint32_t>(answer->value);
  }
  const uint32_t value = words_[offset / 4];
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return value;
}

Status Device::write(uint32_t offset, uint32_t value) {
  if (emulated()) {
    TENON_TRY_ASSIGN(answer, ask(registers_, {.kind = Request::Kind::kWrite, .offset = offset, .value = value}, path_));
    return {};
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  words_[offset / 4] = value;
  return {};
}

Status Device::unmask() {
  const int32_t on = 1;
  if (!interrupts_ || ::write(fd_.get(), &on, sizeof on) == sizeof on) return {};
  if (errno != EIO && errno != ENOSYS) return system_error("unmask the interrupt", path_, errno);
  interrupts_ = false;  // the device tree's node has no interrupt
  return {};
}

Expected<nanoseconds> Device::wait(nanoseconds limit) {
  const Stopwatch stopwatch;
  if (!interrupts_) {
    std::this_thread::sleep_for(std::min<nanoseconds>(limit, kPollInterval));
    return stopwatch.elapsed();
  }
  bool simulated = false;  // the emulator has simulated the time of the wait
  if (emulated()) {
    const auto cycles = static_cast<uint64_t>(limit.count() / static_cast<int64_t>(1e9 / kNominalHz));
    TENON_TRY_ASSIGN(answer, ask(registers_, {.kind = Request::Kind::kWait, .value = cycles}, path_));
    simulated = answer->value != kRunsFreely;
  }
  const auto sleep = simulated ? nanoseconds(0) : std::min<nanoseconds>(limit, kMaxSleep);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(sleep);
  const timespec timeout{.tv_sec = static_cast<time_t>(seconds.count()),
                         .tv_nsec = static_cast<long>((sleep - seconds).count())};
  pollfd event{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  const int ready = ::ppoll(&event, 1, &timeout, nullptr);
  if (ready < 0 && errno != EINTR) return system_error("wait for the interrupt", path_, errno);
  if (ready > 0) {
    uint32_t count = 0;
    if (::read(fd_.get(), &count, sizeof count) != sizeof count) {
      if (emulated())
        return error("the process that emulates the PL does not answer any more", path_, "start it again");
      return system_error("read the interrupt's count", path_, errno);
    }
  }
  return simulated ? limit : stopwatch.elapsed();
}

}  // namespace tenon::driver::uio
