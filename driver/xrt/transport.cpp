// The transport xrt: -- a board, or the emulated device, through Xilinx's XRT.
//
// A buffer is an xrt::bo: its host copy is staging only, each read and write synchronizes just its own range. Registers
// are reached through xrt::ip, which holds its unit exclusively. XRT throws; nothing leaves this file but Diagnostics.
#include <dlfcn.h>
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
#include "driver/plugin.h"
#include "driver/simulated.h"
#include "driver/uri.h"
#include "driver/xrt/emulated.h"
#include "driver/xrt/xclbin.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kPage = 4096;  // XRT's alignment of buffers
constexpr int kBusyPolls = 1000;  // before the waiting thread sleeps between looks
constexpr auto kNap = std::chrono::microseconds(20);
constexpr auto kLongestSleep = std::chrono::milliseconds(100);  // for an interrupt, before the status is read again

// How to get at the emulated device, whose directory lies beside this library or, installed, beside that one's.
std::string emulated_device() {
  Dl_info info{};
  std::error_code ignored;
  if (dladdr(reinterpret_cast<void*>(&emulated_device), &info) != 0 && info.dli_fname != nullptr) {
    const auto here = std::filesystem::canonical(info.dli_fname, ignored).parent_path();
    for (const auto& place : {here / "tenon-xrt", here.parent_path() / "tenon-xrt"}) {
      if (std::filesystem::exists(place / "lib" / "libxrt_core.so.2", ignored)) {
        return fmt::format("for the emulated device: export XILINX_XRT={}", place.string());
      }
    }
  }
  return "this build has no emulated device, which needs libxrt_hwemu.a of XRT 2.13: apt-get install libxrt-dev, then "
         "configure and build Tenon again";
}

std::string missing_xrt() {
  const char* root = std::getenv("XILINX_XRT");
  if (root == nullptr) {
    return fmt::format("XILINX_XRT names no XRT installation; on a board: source /opt/xilinx/xrt/setup.sh; {}",
                       emulated_device());
  }
  const auto library = std::filesystem::path(root) / "lib" / "libxrt_core.so.2";
  std::error_code ignored;
  if (std::filesystem::exists(library, ignored)) return {};
  return fmt::format("XILINX_XRT is {}, but there is no {}; {}", root, library.string(), emulated_device());
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
    if (bytes == 0 || alignment > kPage || (alignment & (alignment - 1)) != 0) {
      return error(
          fmt::format("a buffer of {} bytes aligned to {}: bytes must be positive, the alignment a power of two "
                      "up to {}",
                      bytes, alignment, kPage),
          info_.uri);
    }
    if (bytes > bank_bytes_) {  // XRT would take as much of the host's memory first
      return error(fmt::format("a buffer of {} bytes, and the device's memory has {}", bytes, bank_bytes_), info_.uri);
    }
    std::optional<Buffer> made;
    const auto status = attempt("allocate a buffer", [&] {
      xrt::bo bo(device_, (bytes + kPage - 1) / kPage * kPage, bank_);
      made = Buffer{bo.address(), bytes};
      buffers_.insert_or_assign(made->address, Held{std::move(bo), bytes});
    });
    if (!status) {
      return error(status.error().what, info_.uri,
                   fmt::format("{} bytes were asked for; free buffers, or ask for less", bytes));
    }
    return *made;
  }

  void free(const Buffer& buffer) override {
    const auto it = buffers_.find(buffer.address);
    if (it == buffers_.end() || it->second.bytes != buffer.size) {
      fmt::print(stderr, "{}: no live buffer has address {:#x} and {} bytes: freed twice, or never allocated\n",
                 info_.uri, buffer.address, buffer.size);
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

  // On the emulated device the limit counts its time, as on every simulator (driver/README.md).
  Expected<bool> wait_idle(std::chrono::nanoseconds limit) override {
    const auto end = Clock::now() + limit;
    double left = static_cast<double>(limit.count()) * 1e-9 * kNominalHz;
    for (int polls = 0;; ++polls) {
      const auto status = read_register(spec::reg::kStatus);
      if (!status) return std::unexpected(status.error());
      if ((*status & spec::kStatusBusy) == 0) return true;
      if (emulated_ ? left <= 0 : Clock::now() >= end) return false;
      left -= static_cast<double>(kEmulatedPollCycles);
      // Short launches are over sooner than an interrupt arrives; the emulated device has no such hurry.
      const auto rest = emulated_ ? std::chrono::milliseconds(static_cast<int64_t>(1e3 * left / kNominalHz))
                                  : std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
      if (interrupt_ && rest.count() > 0 && (emulated_ || polls > kBusyPolls)) {
        const auto nap = std::min(rest, kLongestSleep);
        const auto woken = wait_interrupt(nap);
        if (!woken) return std::unexpected(woken.error());
        if (!*woken) left -= 1e-3 * static_cast<double>(nap.count()) * kNominalHz;
        continue;
      }
      if (polls > kBusyPolls && !emulated_) std::this_thread::sleep_for(kNap);
    }
  }

  void set_emulated(bool emulated) { emulated_ = emulated; }

  // XRT has interrupts of xrt::ip on embedded boards and on the emulated device; elsewhere it throws, and waiting
  // polls.
  void use_interrupt() {
    try {
      interrupt_ = ip_.create_interrupt_notify();
    } catch (const std::exception&) {
      interrupt_.reset();
    }
  }

 private:
  struct Held {
    xrt::bo bo;
    uint64_t bytes;
  };

  // Sleeps until the unit says that it is done, or the limit is over: then false. The client's own use of the interrupt
  // registers is left as it was.
  Expected<bool> wait_interrupt(std::chrono::milliseconds limit) {
    bool woken = true;
    const auto status = attempt("wait for an interrupt", [&] {
      const uint32_t global = ip_.read_register(spec::reg::kGlobalInterruptEnable);
      const uint32_t enabled = ip_.read_register(spec::reg::kInterruptEnable);
      ip_.write_register(spec::reg::kInterruptEnable, enabled | 1);
      ip_.write_register(spec::reg::kGlobalInterruptEnable, 1);
      // What ended before it could ask is seen here; what ends from here on asks.
      if ((ip_.read_register(spec::reg::kStatus) & spec::kStatusBusy) != 0) {
        woken = interrupt_->wait(limit) == std::cv_status::no_timeout;
      }
      ip_.write_register(spec::reg::kGlobalInterruptEnable, global);
      ip_.write_register(spec::reg::kInterruptEnable, enabled);
      const bool ours = (enabled & 1) == 0;
      if (ours && (ip_.read_register(spec::reg::kInterruptStatus) & 1) != 0) {
        ip_.write_register(spec::reg::kInterruptStatus, 1);  // toggles
      }
    });
    if (!status) return std::unexpected(status.error());
    return woken;
  }

  template <class F>
  Status attempt(std::string_view what, F&& f) const {
    try {
      f();
      return {};
    } catch (const std::exception& e) {
      return error(fmt::format("XRT cannot {}: {}", what, e.what()), info_.uri);
    }
  }

  template <class F>
  Status move(const Buffer& buffer, uint64_t offset, uint64_t bytes, std::string_view verb, F&& f) {
    auto it = buffers_.upper_bound(buffer.address);
    const bool alive =
        it != buffers_.begin() && (--it, buffer.address - it->first <= it->second.bytes &&
                                             buffer.size <= it->second.bytes - (buffer.address - it->first));
    if (!alive) {
      return error(
          fmt::format("{} of a buffer that is not alive: address {:#x}, {} bytes", verb, buffer.address, buffer.size),
          info_.uri, "allocate it first, and do not use it behind free()");
    }
    if (offset > buffer.size || bytes > buffer.size - offset) {
      return error(
          fmt::format("{} of bytes [{}, {}) of a buffer of {} bytes", verb, offset, offset + bytes, buffer.size),
          info_.uri);
    }
    if (bytes == 0) return {};
    return attempt(fmt::format("{} a buffer", verb), [&] { f(it->second.bo, buffer.address - it->first + offset); });
  }

  const Info info_;
  xrt::device device_;
  xrt::ip ip_;
  std::optional<xrt::ip::interrupt> interrupt_;
  uint32_t bank_;
  uint64_t bank_bytes_;
  bool sync_;  // off: for memory that hardware keeps coherent
  bool emulated_ = false;
  std::map<uint64_t, Held> buffers_;  // by address
};

Expected<std::unique_ptr<Accelerator>> open_xrt(std::string_view rest) {
  const std::string uri = fmt::format("xrt:{}", rest);
  TENON_TRY_ASSIGN(options, Options::parse(uri, rest));
  const std::string file = options->text("xclbin", "");
  const auto unit = options->number("unit", 1, 1, 128);
  const bool sync = options->flag("sync", true), interrupt = options->flag("interrupt", true);
  TENON_TRY(options->finish());
  const std::string index_text = options->name().empty() ? "0" : options->name();
  unsigned index = 0;
  const auto [end, fault] = std::from_chars(index_text.data(), index_text.data() + index_text.size(), index);
  if (fault != std::errc() || end != index_text.data() + index_text.size()) {
    return error(fmt::format("\"{}\" is no device's index", index_text), uri, "for example xrt:0?xclbin=FILE",
                 Fault::kUsage);
  }
  if (file.empty())
    return error("which design?", uri, "xrt:0?xclbin=FILE; tenon xclbin write makes one", Fault::kUsage);
  if (const std::string missing = missing_xrt(); !missing.empty()) {
    return error("XRT cannot be used here", uri, missing, Fault::kInternal);
  }
  TENON_TRY_ASSIGN(xclbin, load_xclbin(file));
  if (!xclbin->config) {
    return error("the file does not say which accelerator is in it: it has no seal of Tenon", file,
                 "tenon xclbin seal FILE --config NAME");
  }
  TENON_TRY_ASSIGN(design, design_of(*xclbin, file));
  const auto memory = std::ranges::find(design->memories, true, &XclbinMemory::used);
  std::vector<std::string> units;
  for (const XclbinUnit& u : design->units) {
    if (u.kernel) units.push_back(u.name);
  }
  if (memory == design->memories.end() || units.size() < unit) {
    return error(fmt::format("the design has {} units, asked for is number {}", units.size(), unit), file);
  }
  // xrt::ip wants "kernel:{instance}".
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
    TENON_TRY(reset(*accelerator));  // of what a client before may have left
    if (interrupt) accelerator->use_interrupt();
    return accelerator;
  } catch (const std::system_error& e) {
    if (e.code().value() == EBUSY) {
      return error(fmt::format("unit {} is busy: another client holds it", units[unit - 1]), uri,
                   "end that client, or take another unit: &unit=2");
    }
    return error(fmt::format("XRT cannot open the device: {}", e.what()), uri);
  } catch (const std::exception& e) {
    return error(fmt::format("XRT cannot open the device: {}", e.what()), uri);
  }
}

}  // namespace
}  // namespace tenon::driver

bool tenon_driver_transport(const char* abi, tenon::driver::Transport* transport) {
  using namespace tenon;
  return tenon::driver::offer(
      abi, transport,
      {.scheme = "xrt",
       .doc = "a board with XRT, or the emulated one: xrt:INDEX?xclbin=FILE[&unit=1&sync=off&interrupt=off]",
       .open = driver::open_xrt,
       .missing = driver::missing_xrt});
}
