// The transport serial: -- a board with a serial line and memory of its own, by the bridge of hw/serial.
#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "driver/checks.h"
#include "driver/identity.h"
#include "driver/plugin_export.h"
#include "driver/serial/link.h"
#include "driver/simulated.h"
#include "driver/uri.h"
#include "support/clock.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

namespace reg = spec::reg;
namespace wire = spec::serial;

class SerialAccelerator final : public Accelerator {
 public:
  SerialAccelerator(Info info, serial::Link link)
      : info_(std::move(info)),
        link_(std::move(link)),
        allocator_(link_.identification().memory_bytes, wire::memory_base(link_.identification().memory_bytes)) {}

  const Info& info() const override { return info_; }
  void set_config(spec::Config config) { info_.config = std::move(config); }

  Expected<Buffer> allocate(uint64_t bytes, uint64_t alignment) override {
    auto address = allocator_.allocate(bytes, alignment);
    if (!address) {
      address.error().where = info_.uri;
      address.error().help = fmt::format(
          "the board's memory is {} bytes: use a smaller model, or a board with more memory", allocator_.size());
    }
    TENON_TRY(address);
    return Buffer{*address, bytes};
  }
  void free(const Buffer& buffer) override { release_or_abort(allocator_, buffer, info_.uri); }

  Status write(const Buffer& buffer, uint64_t offset, std::span<const std::byte> data) override {
    TENON_TRY(check_access(allocator_, buffer, offset, data.size(), "write", info_.uri));
    if (data.empty()) return {};
    const Words words(buffer.address + offset, data.size());
    if (words.exact(data.size())) return link_.write_memory(words.begin, data);
    // The line carries whole words: the bytes around the data are those of the memory.
    std::vector<std::byte> bytes(words.bytes);
    const auto edge = [&](uint64_t at) {
      return link_.read_memory(words.begin + at, std::span(bytes).subspan(at, wire::kWordBytes));
    };
    TENON_TRY(edge(0));
    TENON_TRY(edge(words.bytes - wire::kWordBytes));
    std::ranges::copy(data, bytes.begin() + static_cast<std::ptrdiff_t>(words.skipped));
    return link_.write_memory(words.begin, bytes);
  }

  Status read(const Buffer& buffer, uint64_t offset, std::span<std::byte> data) override {
    TENON_TRY(check_access(allocator_, buffer, offset, data.size(), "read", info_.uri));
    if (data.empty()) return {};
    const Words words(buffer.address + offset, data.size());
    if (words.exact(data.size())) return link_.read_memory(words.begin, data);
    std::vector<std::byte> bytes(words.bytes);
    TENON_TRY(link_.read_memory(words.begin, bytes));
    std::ranges::copy(std::span(bytes).subspan(words.skipped, data.size()), data.begin());
    return {};
  }

  Expected<uint32_t> read_register(uint32_t offset) override {
    TENON_TRY(check_register(offset, info_.uri));
    return link_.read_register(offset);
  }
  Status write_register(uint32_t offset, uint32_t value) override {
    TENON_TRY(check_register(offset, info_.uri));
    return link_.write_register(offset, value);
  }

  // Polls at the pace of the line. A limit on a model counts its time.
  Expected<bool> wait_idle(std::chrono::nanoseconds limit) override {
    const Deadline deadline(limit);
    const auto limit_cycles = static_cast<uint64_t>(static_cast<double>(limit.count()) * 1e-9 * kNominalHz);
    uint64_t poll = wire::kFrameCycles, cycles = 0;
    while (true) {
      TENON_TRY_ASSIGN(status, link_.read_register(reg::kStatus));
      if ((*status & spec::kStatusBusy) == 0) return true;
      cycles += poll = wire::next_poll(poll);
      if (info_.simulated ? cycles >= limit_cycles : deadline.passed()) return false;
    }
  }

 private:
  // The words that contain a range of bytes.
  struct Words {
    Words(uint64_t address, uint64_t size)
        : begin(address / wire::kWordBytes * wire::kWordBytes),
          skipped(address - begin),
          bytes((skipped + size + wire::kWordBytes - 1) / wire::kWordBytes * wire::kWordBytes) {}
    bool exact(uint64_t size) const { return skipped == 0 && bytes == size; }
    uint64_t begin, skipped, bytes;
  };

  Info info_;
  serial::Link link_;
  Allocator allocator_;
};

Expected<std::unique_ptr<Accelerator>> open_serial(std::string_view target) {
  const std::string uri = fmt::format("serial:{}", target);
  TENON_TRY_ASSIGN(options, Options::parse(uri, target));
  serial::LinkOptions link_options;
  link_options.baud = static_cast<uint32_t>(options->integer("baud", link_options.baud, 300, 12'000'000));
  link_options.timeout = std::chrono::milliseconds(
      options->integer("timeout", static_cast<uint64_t>(link_options.timeout.count()), 1, 60'000));
  const std::string config_name = options->text("config", "");
  const uint64_t clock = options->integer("clock", 0, 1, 10000);
  TENON_TRY(options->finish());
  if (options->name().empty()) {
    return error("the URI names no serial port", uri, "name the board's port, as serial:/dev/ttyUSB1", Fault::kUsage);
  }
  TENON_TRY_ASSIGN(stated, stated_config(config_name));
  TENON_TRY_ASSIGN(link, serial::Link::open(options->name(), link_options, uri));
  const bool simulated = link->identification().simulated;
  auto accelerator = std::make_unique<SerialAccelerator>(Info{.uri = uri,
                                                              .config = std::move(*stated),
                                                              .simulated = simulated,
                                                              .cycle_accurate = !simulated,
                                                              .clock_hz = 1e6 * static_cast<double>(clock)},
                                                         std::move(*link));
  TENON_TRY_ASSIGN(config, identify(*accelerator, !config_name.empty()));
  accelerator->set_config(std::move(*config));
  return accelerator;
}

std::string missing_serial() {
  std::error_code ignored;
  if (std::filesystem::exists("/dev/serial/by-id", ignored)) return {};
  return "this machine has no serial port of a USB adapter; elsewhere tenon-serial emulates a board";
}

}  // namespace
}  // namespace tenon::driver

tenon::driver::Transport tenon::driver::transport() {
  return {.scheme = "serial",
          .doc = "a board with a serial line: serial:TTY[?baud=115200&config=NAME&timeout=MS&clock=MHZ]",
          .open = open_serial,
          .missing = missing_serial};
}
