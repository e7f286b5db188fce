// The transport uio: -- a Zynq board without XRT, through the kernel's UIO, u-dma-buf and FPGA manager.
#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "driver/checks.h"
#include "driver/identity.h"
#include "driver/plugin_export.h"
#include "driver/uio/device.h"
#include "driver/uio/files.h"
#include "driver/uio/fpga.h"
#include "driver/uio/memory.h"
#include "driver/uri.h"
#include "support/number.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

namespace reg = spec::reg;
using std::chrono::nanoseconds;

constexpr char kDefaultName[] = "tenon";

class UioAccelerator final : public Accelerator {
 public:
  UioAccelerator(Info info, uio::Device device, uio::Memory memory)
      : info_(std::move(info)),
        device_(std::move(device)),
        memory_(std::move(memory)),
        allocator_(memory_.size(), memory_.physical()) {}

  const Info& info() const override { return info_; }
  void set_config(spec::Config config) { info_.config = std::move(config); }

  // Buffers own whole cache lines: a line that two buffers share could not be synchronized for one side only.
  Expected<Buffer> allocate(uint64_t bytes, uint64_t alignment) override {
    auto address = allocator_.allocate(whole_lines(bytes), alignment < uio::kCacheLine && std::has_single_bit(alignment)
                                                               ? uio::kCacheLine
                                                               : alignment);
    if (!address) address.error().where = info_.uri;
    TENON_TRY(address);
    return Buffer{*address, bytes};
  }
  void free(const Buffer& buffer) override {
    release_or_abort(allocator_, {buffer.address, whole_lines(buffer.size)}, info_.uri);
  }
  Status write(const Buffer& buffer, uint64_t offset, std::span<const std::byte> data) override {
    TENON_TRY(check_access(allocator_, buffer, offset, data.size(), "write", info_.uri));
    return memory_.write(buffer.address - memory_.physical() + offset, data);
  }
  Status read(const Buffer& buffer, uint64_t offset, std::span<std::byte> data) override {
    TENON_TRY(check_access(allocator_, buffer, offset, data.size(), "read", info_.uri));
    return memory_.read(buffer.address - memory_.physical() + offset, data);
  }

  Expected<uint32_t> read_register(uint32_t offset) override {
    TENON_TRY(check_register(offset, info_.uri));
    return device_.read(offset);
  }
  Status write_register(uint32_t offset, uint32_t value) override {
    TENON_TRY(check_register(offset, info_.uri));
    return device_.write(offset, value);
  }

  Expected<bool> wait_idle(nanoseconds limit) override {
    if (auto idle = is_idle(); !idle || *idle) return idle;
    // The interrupt is enabled during the wait only, and the client's setting is restored: it may use the register
    // itself.
    TENON_TRY_ASSIGN(enabled, device_.read(reg::kInterruptEnable));
    TENON_TRY(device_.write(reg::kGlobalInterruptEnable, 1));
    TENON_TRY(device_.write(reg::kInterruptEnable, *enabled | kDone));
    auto idle = wait_for_interrupt(limit);
    TENON_TRY(device_.write(reg::kInterruptEnable, *enabled));
    if ((*enabled & kDone) == 0) {
      TENON_TRY(acknowledge());
    }
    return idle;
  }

 private:
  static constexpr uint32_t kDone = 1;  // in the interrupt registers

  static uint64_t whole_lines(uint64_t bytes) {
    return bytes > UINT64_MAX - uio::kCacheLine ? bytes
                                                : (bytes + uio::kCacheLine - 1) / uio::kCacheLine * uio::kCacheLine;
  }

  Expected<bool> is_idle() {
    TENON_TRY_ASSIGN(status, device_.read(reg::kStatus));
    return (*status & spec::kStatusBusy) == 0;
  }

  Status acknowledge() {
    TENON_TRY_ASSIGN(pending, device_.read(reg::kInterruptStatus));
    if ((*pending & kDone) == 0) return {};
    return device_.write(reg::kInterruptStatus, kDone);
  }

  Expected<bool> wait_for_interrupt(nanoseconds remaining) {
    while (true) {
      TENON_TRY(device_.unmask());
      auto idle = is_idle();
      if (!idle || *idle) return idle;
      if (remaining <= nanoseconds(0)) return false;
      TENON_TRY_ASSIGN(waited, device_.wait(remaining));
      remaining -= *waited;
      idle = is_idle();
      if (!idle || *idle) return idle;
      TENON_TRY(acknowledge());  // the interrupt belongs to an earlier run
    }
  }

  Info info_;
  uio::Device device_;
  uio::Memory memory_;
  Allocator allocator_;
};

// Finds "/dev/uio0" and "uio0" by index, any other name by the name in the device tree.
Expected<int> find_device(const uio::Files& files, const std::string& name, const std::string& uri) {
  const std::string_view node = std::string_view(name).substr(name.starts_with("/dev/") ? 5 : 0);
  const auto index_of = [](std::string_view device) -> std::optional<int> {
    if (!device.starts_with("uio")) return std::nullopt;
    const auto index = parse_number<int64_t>(device.substr(3));
    return index && *index >= 0 && *index <= INT32_MAX ? std::optional(static_cast<int>(*index)) : std::nullopt;
  };
  if (const auto index = index_of(node)) {
    if (files.exists(fmt::format("/sys/class/uio/{}", node))) return *index;
    return error(fmt::format("the UIO device {} does not exist", node), uri,
                 "apply the device-tree overlay (tenon hw overlay), and load uio_pdrv_genirq");
  }
  std::string names;
  for (const std::string& device : files.list("/sys/class/uio")) {
    auto found = files.read(fmt::format("/sys/class/uio/{}/name", device));
    const auto index = index_of(device);
    if (!found || !index) continue;
    names += fmt::format("{}{} is \"{}\"", names.empty() ? "" : ", ", device, *found);
    if (*found == name) return *index;
  }
  return error(
      fmt::format("no UIO device is called \"{}\"; {}", name, names.empty() ? "this machine has no UIO device" : names),
      uri,
      "apply the device-tree overlay (tenon hw overlay), load uio_pdrv_genirq with "
      "of_id=generic-uio, or name the device: uio:/dev/uio0");
}

Expected<std::unique_ptr<Accelerator>> open_uio(std::string_view target) {
  const std::string uri = fmt::format("uio:{}", target);
  TENON_TRY_ASSIGN(options, Options::parse(uri, target));
  const uio::Files files(options->text("root", "/"));
  const std::string name = options->name().empty() ? kDefaultName : options->name();
  const std::string config_name = options->text("config", "");
  const std::string memory_name = options->text("memory", "udmabuf0");
  const std::string bitstream = options->text("bitstream", "");
  const bool partial = options->flag("partial", false);
  const bool sync = options->flag("sync", true);
  const uint64_t clock = options->integer("clock", 0, 1, 10000);
  TENON_TRY(options->finish());

  TENON_TRY_ASSIGN(stated, stated_config(config_name));
  TENON_TRY_ASSIGN(memory, uio::Memory::open(files, memory_name, sync));  // takes the lock before any change
  if (!bitstream.empty()) {
    TENON_TRY(uio::load_bitstream(files, bitstream, partial));
  }
  TENON_TRY_ASSIGN(index, find_device(files, name, uri));
  TENON_TRY_ASSIGN(device, uio::Device::open(files, *index));
  TENON_TRY(device->lock());
  const bool emulated = device->emulated();
  auto accelerator = std::make_unique<UioAccelerator>(Info{.uri = uri,
                                                           .config = std::move(*stated),
                                                           .simulated = emulated,
                                                           .cycle_accurate = !emulated,
                                                           .clock_hz = 1e6 * static_cast<double>(clock)},
                                                      std::move(*device), std::move(*memory));
  TENON_TRY_ASSIGN(version, accelerator->read_register(reg::kVersion));
  constexpr uint32_t kExpected = uint32_t{spec::kIsaVersion} << 16 | spec::kRegisterMapVersion;
  if (*version != kExpected) {
    return error(fmt::format("the window has no accelerator that this build supports: its version register reads "
                             "{:#010x}, must be {:#010x}",
                             *version, kExpected),
                 uri, "load a bitstream of Tenon first: ?bitstream=FILE");
  }
  TENON_TRY_ASSIGN(config, identify(*accelerator, !config_name.empty()));
  accelerator->set_config(std::move(*config));
  return accelerator;
}

std::string missing_uio() {
  const uio::Files files("/");
  if (!files.list("/sys/class/uio").empty()) return {};
  return "this machine has no UIO device; on a Zynq board: apply an overlay of tenon hw overlay and load "
         "uio_pdrv_genirq and u-dma-buf; elsewhere tenon-pl emulates a board: uio:?root=DIR";
}

}  // namespace
}  // namespace tenon::driver

tenon::driver::Transport tenon::driver::transport() {
  return {.scheme = "uio",
          .doc =
              "a Zynq board: uio:DEVICE[?config=NAME&memory=udmabuf0&bitstream=FILE&partial=on&sync=off&"
              "clock=MHZ&root=DIR]",
          .open = open_uio,
          .missing = missing_uio};
}
