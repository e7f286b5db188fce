#include "driver/serial/port.h"

// <termios.h> lacks arbitrary baud rates, and cannot be included beside this header.
#include <asm/termbits.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "support/clock.h"
#include "support/try.h"

namespace tenon::driver::serial {
namespace {

constexpr char kPortHelp[] = "name the board's serial port, as serial:/dev/ttyUSB1; `ls /dev/serial/by-id` lists them";

Status make_raw(int fd, uint32_t baud, const std::string& path, const std::string& uri) {
  termios2 settings{};
  if (ioctl(fd, TCGETS2, &settings) != 0) {
    return error(fmt::format("{} is not a serial port: {}", path, std::strerror(errno)), uri, kPortHelp);
  }
  settings.c_iflag = 0;
  settings.c_oflag = 0;
  settings.c_lflag = 0;
  settings.c_cflag = CS8 | CREAD | CLOCAL | BOTHER;
  settings.c_ispeed = settings.c_ospeed = baud;
  settings.c_cc[VMIN] = 0;
  settings.c_cc[VTIME] = 0;
  if (ioctl(fd, TCSETS2, &settings) != 0) {
    return error(fmt::format("{} does not support {} baud: {}", path, baud, std::strerror(errno)), uri,
                 "use the baud rate that the bitstream was built for: ?baud=115200");
  }
  return {};
}

}  // namespace

Expected<Port> Port::open(const std::string& path, uint32_t baud, const std::string& uri) {
  uio::Fd fd(::open(path.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) {
    const std::string what = fmt::format("cannot open the serial port {}: {}", path, std::strerror(errno));
    if (errno == EACCES) return error(what, uri, "add yourself to the port's group: sudo usermod -aG dialout $USER");
    return error(what, uri, kPortHelp);
  }
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return error(fmt::format("the serial port {} is busy: another client holds it", path), uri,
                 "wait until the other client has ended");
  }
  TENON_TRY(make_raw(fd.get(), baud, path, uri));
  return Port(std::move(fd), path, uri);
}

void Port::flush() { ioctl(fd_.get(), TCFLSH, TCIFLUSH); }

std::unexpected<Diagnostic> Port::closed(const std::string& how) const {
  return error(fmt::format("the serial port {} is gone: {}", path_, how), uri_,
               "connect the board again, and look for the port's new name");
}

// Returns false where the limit passes.
Expected<bool> Port::wait(short event, std::chrono::nanoseconds limit) {
  const Deadline deadline(limit);
  while (true) {
    const auto remaining = std::max(deadline.remaining(), std::chrono::nanoseconds(0));
    const timespec time{.tv_sec = remaining.count() / 1'000'000'000, .tv_nsec = remaining.count() % 1'000'000'000};
    pollfd events{.fd = fd_.get(), .events = event, .revents = 0};
    const int ready = ppoll(&events, 1, &time, nullptr);
    if (ready < 0 && errno != EINTR) return closed(std::strerror(errno));
    if (ready > 0 && (events.revents & event) != 0) return true;
    if (ready > 0) return closed("its other end is closed");
    if (deadline.passed()) return false;
  }
}

Status Port::write(std::span<const uint8_t> bytes, std::chrono::nanoseconds limit) {
  const Deadline deadline(limit);
  while (!bytes.empty()) {
    TENON_TRY_ASSIGN(ready, wait(POLLOUT, deadline.remaining()));
    if (!*ready) {
      return error(fmt::format("the serial port {} takes no data: {} bytes are left after {} ms", path_, bytes.size(),
                               std::chrono::duration_cast<std::chrono::milliseconds>(limit).count()),
                   uri_, "connect the board again, or reload the driver of its USB adapter");
    }
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EAGAIN && errno != EINTR) return closed(std::strerror(errno));
    if (written > 0) bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Status Port::read(Bytes& bytes, std::chrono::nanoseconds limit) {
  TENON_TRY_ASSIGN(ready, wait(POLLIN, limit));
  if (!*ready) return {};
  std::array<uint8_t, 4096> buffer{};
  const ssize_t got = ::read(fd_.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got < 0) return closed(std::strerror(errno));
  if (got == 0) return closed("it has no data although it is readable");
  bytes.insert(bytes.end(), buffer.begin(), buffer.begin() + got);
  return {};
}

}  // namespace tenon::driver::serial
