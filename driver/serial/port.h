// A serial port: opened raw at a baud rate, for one client, with time limits on every wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "driver/serial/frame.h"
#include "driver/uio/files.h"
#include "support/diagnostic.h"

namespace tenon::driver::serial {

class Port {
 public:
  // `uri` is for messages. A port that another client holds is an error with the word "busy".
  static Expected<Port> open(const std::string& path, uint32_t baud, const std::string& uri);

  // Discards what has arrived.
  void flush();
  Status write(std::span<const uint8_t> bytes, std::chrono::nanoseconds limit);
  // Appends what arrives within the limit, which is nothing where it passes.
  Status read(Bytes& bytes, std::chrono::nanoseconds limit);

 private:
  Port(uio::Fd fd, std::string path, std::string uri)
      : fd_(std::move(fd)), path_(std::move(path)), uri_(std::move(uri)) {}
  Expected<bool> wait(short event, std::chrono::nanoseconds limit);
  std::unexpected<Diagnostic> closed(const std::string& how) const;

  uio::Fd fd_;
  std::string path_, uri_;
};

}  // namespace tenon::driver::serial
