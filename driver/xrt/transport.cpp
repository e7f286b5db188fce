// The transport xrt: -- a board, or the emulated device, through Xilinx's XRT.
//
// A buffer is an xrt::bo: its host copy is staging only, each read and write synchronizes its own range only. Registers
// are accessed through xrt::ip, which owns its unit exclusively. This file converts XRT's exceptions to Diagnostics.
#include <experimental/xrt_ip.h>
#include <fmt/format.h>
#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <thread>

#include "driver/checks.h"
#include "driver/identity.h"
#include "driver/plugin_export.h"
#include "driver/simulated.h"
#include "driver/uri.h"
#include "driver/xrt/emulated.h"
#include "driver/xrt/xclbin.h"
#include "support/clock.h"
#include "support/file.h"
#include "support/number.h"
#include "support/output.h"
#include "support/pages.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

constexpr int kBusyPolls = 1000;  // before the waiting thread sleeps between polls
constexpr auto kPollInterval = std::chrono::microseconds(20);
constexpr auto kMaxSleep = std::chrono::milliseconds(100);  // for an interrupt, before the status is read again

// The command that selects the emulated device, whose directory is next to this library or, in an installation, next to
// this library's directory.
std::string emulated_device() {
  std::error_code ignored;
  const auto directory = own_file().parent_path();
  for (const auto& root : {directory / "tenon-xrt", directory.parent_path() / "tenon-xrt"}) {
    if (std::filesystem::exists(root / "lib" / "libxrt_core.so.2", ignored)) {
      return fmt::format("for the emulated device: export XILINX_XRT={}", root.string());
    }
  }
  return "the emulated device is not available in this build; it requires libxrt_hwemu.a of XRT 2.13: apt-get install "
         "libxrt-dev, then configure and build Tenon again";
}

std::string missing_xrt() {
  const char* root = std::getenv("XILINX_XRT");
  if (root == nullptr) {
    return fmt::format("XILINX_XRT is not set; on a board: source /opt/xilinx/xrt/setup.sh; {}", emulated_device());
  }
  const auto library = std::filesystem::path(root) / "lib" / "libxrt_core.so.2";
  std::error_code ignored;
  if (std::filesystem::exists(library, ignored)) return {};
  return fmt::format("XILINX_XRT is {}, but {} does not exist; {}", root, library.string(), emulated_device());
}

class XrtAccelerator final : public Accelerator {
 public:
  XrtAccelerator(Info info, xrt::device device, xrt::ip ip, uint32_t bank, uint64_t bank_bytes, bool sync)
      : info_(std::move(info)),
        device_(std::move(device)),
        ip_(std::move(ip)),
        bank_(bank),
        bank_bytes_(bank_bytes),
        sync_(sync) {}

  const Info& info() const override { return info_; }

  Expected<Buffer> allocate(uint64_t bytes, uint64_t alignment) override {
    if (bytes == 0 || alignment > kPageBytes || (alignment & (alignment - 1)) != 0) {  // XRT aligns to pages
      return error(
          fmt::format("a buffer of {} bytes aligned to {}: bytes must be positive, the alignment a power of two "
                      "up to {}",
                      bytes, alignment, kPageBytes),
          info_.uri);
    }
    if (bytes > bank_bytes_) {  // XRT would allocate as much of the host's memory first
      return error(fmt::format("a buffer of {} bytes, and the device's memory has {}", bytes, bank_bytes_), info_.uri);
    }
    std::optional<Buffer> made;
    const auto status = attempt("allocate a buffer", [&] {
      xrt::bo bo(device_, whole_pages(bytes), bank_);
      made = Buffer{bo.address(), bytes};
      buffers_.insert_or_assign(made->address, Allocation{std::move(bo), bytes});
    });
    if (!status) {
      return error(status.error().what, info_.uri,
                   fmt::format("{} bytes were requested; free buffers, or request less", bytes));
    }
    return *made;
  }

  void free(const Buffer& buffer) override {
    const auto it = buffers_.find(buffer.address);
    if (it == buffers_.end() || it->second.bytes != buffer.size) {
      print_stderr("{}: no live buffer has address {:#x} and {} bytes: freed twice, or never allocated\n", info_.uri,
                   buffer.address, buffer.size);
      std::abort();
    }
    buffers_.erase(it);
  }

  Status write(const Buffer& buffer, uint64_t offset, std::span<const std::byte> data) override {
    return move(buffer, offset, data.size(), "write", [&](xrt::bo& bo, uint64_t at) {
      bo.write(data.data(), data.size(), at);
      if (sync_) bo.sync(XCL_BO_SYNC_BO_TO_DEVICE, data.size(), at);
    });
  }
  Status read(const Buffer& buffer, uint64_t offset, std::span<std::byte> data) override {
    return move(buffer, offset, data.size(), "read", [&](xrt::bo& bo, uint64_t at) {
      if (sync_) bo.sync(XCL_BO_SYNC_BO_FROM_DEVICE, data.size(), at);
      bo.read(data.data(), data.size(), at);
    });
  }

  Expected<uint32_t> read_register(uint32_t offset) override {
    TENON_TRY(check_register(offset, info_.uri));
    uint32_t value = 0;
    TENON_TRY(attempt("read a register", [&] { value = ip_.read_register(offset); }));
    return value;
  }
  Status write_register(uint32_t offset, uint32_t value) override {
    TENON_TRY(check_register(offset, info_.uri));
    return attempt("write a register", [&] { ip_.write_register(offset, value); });
  }

  // On the emulated device the limit counts simulated time, as on every simulator (driver/README.md).
  Expected<bool> wait_idle(std::chrono::nanoseconds limit) override {
    using std::chrono::milliseconds;
    const Deadline deadline(limit);
    double remaining_cycles = static_cast<double>(limit.count()) * 1e-9 * kNominalHz;
    for (int polls = 0;; ++polls) {
      TENON_TRY_ASSIGN(status, read_register(spec::reg::kStatus));
      if ((*status & spec::kStatusBusy) == 0) return true;
      if (emulated_ ? remaining_cycles <= 0 : deadline.passed()) return false;
      remaining_cycles -= static_cast<double>(kEmulatedPollCycles);
      // A board is polled first, since a short launch ends before an interrupt arrives.
      const auto remaining = emulated_ ? milliseconds(static_cast<int64_t>(1e3 * remaining_cycles / kNominalHz))
                                       : std::chrono::duration_cast<milliseconds>(deadline.remaining());
      if (interrupt_ && remaining.count() > 0 && (emulated_ || polls > kBusyPolls)) {
        const auto sleep = std::min(remaining, kMaxSleep);
        TENON_TRY_ASSIGN(woken, wait_interrupt(sleep));
        if (!*woken) remaining_cycles -= 1e-3 * static_cast<double>(sleep.count()) * kNominalHz;
        continue;
      }
      if (polls > kBusyPolls && !emulated_) std::this_thread::sleep_for(kPollInterval);
    }
  }

  void set_emulated(bool emulated) { emulated_ = emulated; }

  // XRT supports interrupts of xrt::ip on embedded boards and on the emulated device; elsewhere it throws, and a wait
  // polls.
  void use_interrupt() {
    try {
      interrupt_ = ip_.create_interrupt_notify();
    } catch (const std::exception&) {
      interrupt_.reset();
    }
  }

 private:
  struct Allocation {
    xrt::bo bo;
    uint64_t bytes;
  };

  // Sleeps until the unit is done, or the limit has passed: then false. The client's settings of the interrupt
  // registers are restored.
  Expected<bool> wait_interrupt(std::chrono::milliseconds limit) {
    bool woken = true;
    const auto status = attempt("wait for an interrupt", [&] {
      const uint32_t global = ip_.read_register(spec::reg::kGlobalInterruptEnable);
      const uint32_t enabled = ip_.read_register(spec::reg::kInterruptEnable);
      ip_.write_register(spec::reg::kInterruptEnable, enabled | 1);
      ip_.write_register(spec::reg::kGlobalInterruptEnable, 1);
      // A run that ended before its interrupt was enabled is idle here; a run that ends later raises its interrupt.
      if ((ip_.read_register(spec::reg::kStatus) & spec::kStatusBusy) != 0) {
        woken = interrupt_->wait(limit) == std::cv_status::no_timeout;
      }
      ip_.write_register(spec::reg::kGlobalInterruptEnable, global);
      ip_.write_register(spec::reg::kInterruptEnable, enabled);
      const bool enabled_here = (enabled & 1) == 0;
      if (enabled_here && (ip_.read_register(spec::reg::kInterruptStatus) & 1) != 0) {
        ip_.write_register(spec::reg::kInterruptStatus, 1);  // toggles
      }
    });
    TENON_TRY(status);
    return woken;
  }

  template <class F>
  Status attempt(std::string_view action, F&& f) const {
    try {
      f();
      return {};
    } catch (const std::exception& e) {
      return error(fmt::format("XRT cannot {}: {}", action, e.what()), info_.uri);
    }
  }

  template <class F>
  Status move(const Buffer& buffer, uint64_t offset, uint64_t bytes, std::string_view verb, F&& f) {
    auto it = buffers_.upper_bound(buffer.address);
    const bool live =
        it != buffers_.begin() && (--it, buffer.address - it->first <= it->second.bytes &&
                                             buffer.size <= it->second.bytes - (buffer.address - it->first));
    TENON_TRY(check_access(live, buffer, offset, bytes, verb, info_.uri));
    if (bytes == 0) return {};
    return attempt(fmt::format("{} a buffer", verb), [&] { f(it->second.bo, buffer.address - it->first + offset); });
  }

  const Info info_;
  xrt::device device_;
  xrt::ip ip_;
  std::optional<xrt::ip::interrupt> interrupt_;
  uint32_t bank_;
  uint64_t bank_bytes_;
  bool sync_;  // false: for memory that is coherent in hardware
  bool emulated_ = false;
  std::map<uint64_t, Allocation> buffers_;  // by address
};

Expected<std::unique_ptr<Accelerator>> open_xrt(std::string_view target) {
  const std::string uri = fmt::format("xrt:{}", target);
  TENON_TRY_ASSIGN(options, Options::parse(uri, target));
  const std::string file = options->text("xclbin", "");
  const auto unit = options->integer("unit", 1, 1, 128);
  const bool sync = options->flag("sync", true), interrupt = options->flag("interrupt", true);
  TENON_TRY(options->finish());
  const std::string index_text = options->name().empty() ? "0" : options->name();
  const auto read = parse_number<uint64_t>(index_text);
  if (!read || *read > UINT32_MAX) {
    return error(fmt::format("\"{}\" is not a device index", index_text), uri, "for example xrt:0?xclbin=FILE",
                 Fault::kUsage);
  }
  const auto index = static_cast<unsigned>(*read);
  if (file.empty())
    return error("requires option xclbin, the file of the design", uri,
                 "xrt:0?xclbin=FILE; tenon xclbin write generates a file", Fault::kUsage);
  if (const std::string missing = missing_xrt(); !missing.empty()) {
    return error("XRT is not available", uri, missing, Fault::kInternal);
  }
  TENON_TRY_ASSIGN(xclbin, load_xclbin(file));
  if (!xclbin->config) {
    return error("the file has no metadata section of Tenon, which names its accelerator", file,
                 "tenon xclbin annotate FILE --config NAME");
  }
  TENON_TRY_ASSIGN(design, design_of(*xclbin, file));
  const auto memory = std::ranges::find(design->memories, true, &XclbinMemory::used);
  std::vector<std::string> units;
  for (const XclbinUnit& u : design->units) {
    if (u.kernel) units.push_back(u.name);
  }
  if (memory == design->memories.end() || units.size() < unit) {
    return error(fmt::format("the design has {} units, requested is unit {}", units.size(), unit), file);
  }
  // xrt::ip requires the form "kernel:{instance}".
  std::string name = units[unit - 1];
  if (const size_t colon = name.find(':'); colon != std::string::npos) {
    name = fmt::format("{}:{{{}}}", name.substr(0, colon), name.substr(colon + 1));
  }
  try {
    xrt::device device(index);
    const xrt::uuid uuid = device.load_xclbin(file);
    xrt::ip ip(device, uuid, name);
    const bool emulated = device.get_info<xrt::info::device::name>() == kEmulatedName;
    Info info{.uri = uri,
              .config = *xclbin->config,
              .simulated = emulated,
              .cycle_accurate = true,
              .clock_hz = 1e6 * design->clock_mhz};
    auto accelerator =
        std::make_unique<XrtAccelerator>(std::move(info), std::move(device), std::move(ip),
                                         static_cast<uint32_t>(memory - design->memories.begin()), memory->bytes, sync);
    accelerator->set_emulated(emulated);
    TENON_TRY(check_identity(*accelerator));
    TENON_TRY(reset(*accelerator));  // an earlier client may have left state
    if (interrupt) accelerator->use_interrupt();
    return accelerator;
  } catch (const std::system_error& e) {
    if (e.code().value() == EBUSY) {
      return error(fmt::format("unit {} is busy: another client holds it", units[unit - 1]), uri,
                   "end that client, or use another unit: &unit=2");
    }
    return error(fmt::format("XRT cannot open the device: {}", e.what()), uri);
  } catch (const std::exception& e) {
    return error(fmt::format("XRT cannot open the device: {}", e.what()), uri);
  }
}

}  // namespace
}  // namespace tenon::driver

tenon::driver::Transport tenon::driver::transport() {
  return {.scheme = "xrt",
          .doc = "a board with XRT, or the emulated device: xrt:INDEX?xclbin=FILE[&unit=1&sync=off&interrupt=off]",
          .open = open_xrt,
          .missing = missing_xrt};
}
