// tenon bench transfer: how fast buffers are written and read, beside a copy through a socket of this machine.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "compiler/cli/command.h"
#include "driver/accelerator.h"
#include "support/clock.h"
#include "support/json.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 32;

// Two connected TCP sockets of this machine.
struct Loopback {
  int sender = -1, receiver = -1;

  Loopback() {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener, raw, size) == 0 && ::listen(listener, 1) == 0 && ::getsockname(listener, raw, &size) == 0) {
      sender = ::socket(AF_INET, SOCK_STREAM, 0);
      if (::connect(sender, raw, size) == 0) receiver = ::accept(listener, nullptr, nullptr);
    }
    ::close(listener);
  }
  ~Loopback() {
    ::close(sender);
    ::close(receiver);
  }
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;

  // Seconds for the bytes to be in the receiver's memory, and an answer in the sender's.
  Expected<double> copy(std::span<const std::byte> from, std::span<std::byte> to) const {
    if (receiver < 0) return error("cannot connect two sockets", "127.0.0.1", {}, Fault::kInternal);
    const Stopwatch stopwatch;
    std::thread other([&] {
      for (auto left = to; !left.empty();) {
        const ssize_t got = ::recv(receiver, left.data(), left.size(), 0);
        if (got <= 0) break;
        left = left.subspan(static_cast<size_t>(got));
      }
      (void)::send(receiver, "", 1, MSG_NOSIGNAL);
    });
    for (auto left = from; !left.empty();) {
      const ssize_t sent = ::send(sender, left.data(), left.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;
      left = left.subspan(static_cast<size_t>(sent));
    }
    char answer = 0;
    (void)::recv(sender, &answer, 1, 0);
    const double seconds = stopwatch.seconds();
    other.join();
    return seconds;
  }
};

struct BenchTransfer {
  std::string device = "behavioral:default";
  int64_t bytes = 64 << 20, rounds = 9;
  bool json = false;

  Status run() const {
    TENON_TRY_ASSIGN(accelerator, driver::open(device));
    std::vector<std::byte> data(static_cast<size_t>(bytes)), back(data.size());
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 37 + i / 256);
    TENON_TRY_ASSIGN(buffer, (*accelerator)->allocate(data.size()));
    const Loopback loopback;
    std::vector<double> copies, writes, reads;
    for (int64_t i = 0; i < rounds; ++i) {  // one after the other, so that other programs disturb all alike
      TENON_TRY_ASSIGN(copied, loopback.copy(data, back));
      copies.push_back(*copied);
      const Stopwatch upload;
      TENON_TRY((*accelerator)->write(*buffer, 0, data));
      TENON_TRY((*accelerator)->read_register(spec::reg::kStatus));  // the bytes have arrived
      writes.push_back(upload.seconds());
      std::ranges::fill(back, std::byte{});
      const Stopwatch download;
      TENON_TRY((*accelerator)->read(*buffer, 0, back));
      reads.push_back(download.seconds());
      if (back != data)
        return error("the bytes that are read are not those that were written", device, {}, Fault::kInternal);
    }
    const auto rate = [&](const std::vector<double>& seconds) {
      return static_cast<double>(bytes) / median(seconds) * 1e-9;
    };
    if (!json) {
      print_stdout("{}: {} bytes, median of {}\n", device, bytes, rounds);
      print_stdout("write {:.2f} GB/s, read {:.2f} GB/s; a copy through a socket of this machine {:.2f} GB/s\n",
                   rate(writes), rate(reads), rate(copies));
      return {};
    }
    Json out;
    out.begin_object().field("device", device).field("bytes", bytes).field("write_gb_s", rate(writes));
    print_stdout("{}", out.field("read_gb_s", rate(reads)).field("loopback_gb_s", rate(copies)).end().str());
    return {};
  }
};

}  // namespace

Action bench_transfer(Options& options) {
  auto command = std::make_shared<BenchTransfer>();
  options.option(command->device, "-d,--device", "URI", "the device; tenon devices lists the kinds");
  options.option(command->bytes, "--bytes", "N", "of the buffer", {1, kMostBytes});
  options.option(command->rounds, "--rounds", "N", "how often", {1, 1'000'000});
  options.flag(command->json, "--json", "print JSON");
  return [command] { return command->run(); };
}

}  // namespace tenon::cli
