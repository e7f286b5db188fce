#include "driver/serial/emulator.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "sim/behavioral/behavioral.h"
#include "support/try.h"

namespace tenon::driver::serial {

Expected<std::unique_ptr<Line>> make_bridge(const spec::Config& config, uint64_t memory_bytes) {
  sim::BehavioralOptions options;
  options.memory_bytes = spec::serial::memory_end(memory_bytes);
  TENON_TRY_ASSIGN(simulator, sim::make_behavioral(config, options));
  return std::make_unique<Bridge>(std::move(*simulator), memory_bytes);
}

Expected<std::unique_ptr<Emulator>> Emulator::create(std::unique_ptr<Line> line, const Noise& noise,
                                                     const std::filesystem::path& link) {
  std::unique_ptr<Emulator> made(new Emulator(std::move(line), noise));
  made->far_ = uio::Fd(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  const int fd = made->far_.get();
  std::array<char, 128> name{};
  if (fd < 0 || grantpt(fd) != 0 || unlockpt(fd) != 0 || ptsname_r(fd, name.data(), name.size()) != 0) {
    return uio::system_error("open a pseudo-terminal", "/dev/ptmx", errno);
  }
  made->tty_ = name.data();
  made->near_ = uio::Fd(::open(made->tty_.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (made->near_.get() < 0) return uio::system_error("open the pseudo-terminal", made->tty_, errno);
  if (!link.empty()) {
    std::error_code fault;
    std::filesystem::remove(link, fault);
    std::filesystem::create_symlink(made->tty_, link, fault);
    if (fault) return uio::system_error("create the link", link.string(), fault.value());
  }
  return made;
}

Bytes Emulator::disturb(std::span<const uint8_t> bytes) {
  Bytes out;
  for (uint8_t byte : bytes) {
    if (happens(noise_.lost)) continue;
    if (happens(noise_.flipped)) byte ^= static_cast<uint8_t>(1u << random_() % 8);
    out.push_back(byte);
    if (happens(noise_.duplicated)) out.push_back(byte);
  }
  return out;
}

Status Emulator::run() {
  std::array<uint8_t, 4096> buffer{};
  while (true) {
    const ssize_t got = ::read(far_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return uio::system_error("read from the pseudo-terminal", tty_, errno);
    Bytes sent;
    line_->receive(disturb({buffer.data(), static_cast<size_t>(got)}), sent);
    const Bytes disturbed = disturb(sent);
    for (size_t done = 0; done < disturbed.size();) {
      const ssize_t written = ::write(far_.get(), disturbed.data() + done, disturbed.size() - done);
      if (written < 0 && errno != EINTR) return uio::system_error("write to the pseudo-terminal", tty_, errno);
      if (written > 0) done += static_cast<size_t>(written);
    }
  }
}

}  // namespace tenon::driver::serial
