#include "driver/xrt/shim/device.h"

#include <ert.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xrt.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "driver/simulated.h"
#include "hw/spec/registers.h"
#include "sim/behavioral/behavioral.h"
#include "sim/verilator/verilated.h"
#include "support/clock.h"
#include "support/output.h"
#include "support/pages.h"
#include "support/try.h"

namespace tenon::driver::shim {
namespace {

namespace reg = spec::reg;

constexpr uint64_t kRunCycles = 4096;  // between two checks whether the device is closed
constexpr uint32_t kBankMask = 0xffff;

}  // namespace

struct Device::Buffer {
  uint64_t address = 0, bytes = 0;  // bytes: the requested size
  uint64_t reserved = 0;            // bytes of device memory; 0: a command packet, which has no device memory
  uint32_t flags = 0;
  std::byte* host = nullptr;
  bool owns_host = false;
  Allocator* allocator = nullptr;
  ~Buffer() {
    if (owns_host) munmap(host, reserved == 0 ? whole_pages(bytes) : reserved);
  }
};

struct Device::Unit {
  std::unique_ptr<sim::Simulator> simulator;
  std::mutex mutex;
  int clients = 0;
  bool exclusive = false;
  int board = -1;  // the unit's file in TENON_XRT_BOARD, locked while it has clients
  ~Unit() {
    if (board >= 0) close(board);
  }
};

namespace {

// Locks a unit of the board. Each process has its own board, unless TENON_XRT_BOARD names a directory: processes with
// the same directory compete for the units of one board, as with the kernel's driver. Their memories stay separate.
// Returns the locked file, or a negative errno.
int lock_on_board(uint32_t unit, bool shared) {
  const char* directory = std::getenv("TENON_XRT_BOARD");
  if (directory == nullptr) return -1;
  const std::string file = fmt::format("{}/unit-{}", directory, unit);
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) {
    const int code = errno;
    print_stderr("TENON_XRT_BOARD: cannot open {}: {}\n", file, std::strerror(code));
    return -code;
  }
  if (flock(fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) return fd;
  close(fd);
  return -EBUSY;
}

}  // namespace

Device::Device(Model model) : model_(model) {}
Device::~Device() { clear(); }

void Device::stop_workers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  queued_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  stop_ = false;
}

void Device::clear() {
  stop_workers();
  const std::lock_guard lock(mutex_);
  queue_.clear();
  buffers_.clear();
  units_.clear();
  allocator_.reset();
  if (!memory_.empty()) munmap(memory_.data(), memory_.size());
  memory_ = {};
}

Status Device::load(std::span<const std::byte> file) {
  TENON_TRY_ASSIGN(xclbin, read_xclbin(file, "xclbin"));
  if (!xclbin->config) {
    return error("the file has no metadata section of Tenon, which names the accelerator to emulate", "xclbin",
                 "use a file of tenon xclbin write");
  }
  TENON_TRY_ASSIGN(design, design_of(*xclbin, "xclbin"));
  const auto memory = std::ranges::find(design->memories, true, &XclbinMemory::used);
  if (memory == design->memories.end() || memory->base != 0 || memory->bytes == 0 || memory->bytes % kPageBytes != 0) {
    return error("an emulated device requires a memory at address 0 whose size is a multiple of 4 KiB", "xclbin");
  }
  {
    const std::lock_guard lock(mutex_);
    if (std::ranges::any_of(units_, [](const auto& unit) { return unit->clients > 0; })) {
      if (uuid_ == xclbin->uuid) return {};
      return error("units of the loaded design are in use", "xclbin", "end their clients first");
    }
  }
  clear();
  const std::lock_guard lock(mutex_);
  uuid_ = xclbin->uuid;
  void* pages =
      mmap(nullptr, memory->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED)
    return error(fmt::format("cannot reserve {} bytes of device memory", memory->bytes), "xclbin");
  memory_ = {static_cast<std::byte*>(pages), memory->bytes};
  memory_index_ = static_cast<uint32_t>(memory - design->memories.begin());
  allocator_ = std::make_unique<Allocator>(memory->bytes);
  sim::BehavioralOptions behavioral;
  behavioral.memory = memory_;
  sim::VerilatedOptions rtl;
  rtl.memory = memory_;
  // For tests, the hardware may have another configuration than the file.
  auto config = *xclbin->config;
  if (const char* other = std::getenv("TENON_XRT_CONFIG")) {
    TENON_TRY_ASSIGN(loaded, spec::load_config(other));
    config = std::move(*loaded);
  }
  const auto kernels = std::ranges::count_if(design->units, &XclbinUnit::kernel);
  for (int64_t i = 0; i < kernels; ++i) {
    TENON_TRY_ASSIGN(
        simulator, model_ == Model::kRtl ? sim::make_verilated(config, rtl) : sim::make_behavioral(config, behavioral));
    units_.push_back(std::make_unique<Unit>());
    units_.back()->simulator = std::move(*simulator);
  }
  for (size_t i = 0; i < units_.size(); ++i) workers_.emplace_back([this] { work(); });
  return {};
}

// Buffers
// -----------------------------------------------------------------------------------------------------------

std::shared_ptr<Device::Buffer> Device::find(uint32_t handle) {
  const auto it = buffers_.find(handle);
  return it == buffers_.end() ? nullptr : it->second;
}

bool Device::inside(const Buffer& buffer, uint64_t offset, uint64_t bytes) const {
  return buffer.reserved != 0 && offset <= buffer.bytes && bytes <= buffer.bytes - offset;
}

uint32_t Device::allocate(void* host, size_t bytes, uint32_t flags) {
  const std::lock_guard lock(mutex_);
  auto buffer = std::make_shared<Buffer>();
  buffer->bytes = bytes;
  buffer->flags = flags;
  const uint64_t whole = whole_pages(std::max<uint64_t>(bytes, 1));
  if ((flags & XCL_BO_FLAGS_EXECBUF) == 0) {
    if (!allocator_ || (flags & kBankMask) != memory_index_ || whole < bytes) {
      errno = EINVAL;
      return kNoBuffer;
    }
    const auto address = allocator_->allocate(whole, kPageBytes);
    if (!address) {
      errno = ENOMEM;
      return kNoBuffer;
    }
    buffer->address = *address;
    buffer->reserved = whole;
  }
  if (host == nullptr) {
    void* pages = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
      if (buffer->reserved != 0) (void)allocator_->release(buffer->address, buffer->reserved);
      errno = ENOMEM;
      return kNoBuffer;
    }
    host = pages;
    buffer->owns_host = true;
  }
  buffer->host = static_cast<std::byte*>(host);
  buffers_.emplace(next_handle_, std::move(buffer));
  return next_handle_++;
}

void Device::free(uint32_t handle) {
  const std::lock_guard lock(mutex_);
  const auto it = buffers_.find(handle);
  if (it == buffers_.end()) return;
  if (it->second->reserved != 0) (void)allocator_->release(it->second->address, it->second->reserved);
  buffers_.erase(it);  // a worker that runs a packet shares its ownership
}

void* Device::map(uint32_t handle) {
  const std::lock_guard lock(mutex_);
  const auto buffer = find(handle);
  return buffer ? buffer->host : nullptr;
}

std::optional<Device::Properties> Device::properties(uint32_t handle) {
  const std::lock_guard lock(mutex_);
  const auto buffer = find(handle);
  if (!buffer) return std::nullopt;
  return Properties{buffer->address, buffer->bytes, buffer->flags};
}

int Device::sync(uint32_t handle, bool to_device, uint64_t bytes, uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const auto buffer = find(handle);
  if (!buffer || !inside(*buffer, offset, bytes)) return -EINVAL;
  std::byte* const host = buffer->host + offset;
  std::byte* const device = memory_.data() + buffer->address + offset;
  std::memcpy(to_device ? device : host, to_device ? host : device, bytes);
  return 0;
}

int Device::copy(uint32_t to, uint32_t from, uint64_t bytes, uint64_t to_offset, uint64_t from_offset) {
  const std::lock_guard lock(mutex_);
  const auto target = find(to), source = find(from);
  if (!target || !source || !inside(*target, to_offset, bytes) || !inside(*source, from_offset, bytes)) return -EINVAL;
  std::memmove(memory_.data() + target->address + to_offset, memory_.data() + source->address + from_offset, bytes);
  return 0;
}

int Device::access(uint64_t address, void* data, uint64_t bytes, bool write) {
  const std::lock_guard lock(mutex_);
  if (address > memory_.size() || bytes > memory_.size() - address) return -EINVAL;
  std::memcpy(write ? memory_.data() + address : data, write ? data : memory_.data() + address, bytes);
  return 0;
}

// Units
// -----------------------------------------------------------------------------------------------------------

int Device::open_context(uint32_t unit, bool shared) {
  const std::lock_guard lock(mutex_);
  if (unit >= units_.size()) return unit == UINT32_MAX ? 0 : -EINVAL;  // UINT32_MAX: the device as a whole
  Unit& u = *units_[unit];
  if (u.exclusive || (!shared && u.clients > 0)) return -EBUSY;
  if (u.clients == 0) {
    const int board = lock_on_board(unit, shared);
    if (board < -1) return board;
    u.board = board;
  }
  ++u.clients;
  u.exclusive = !shared;
  return 0;
}

int Device::close_context(uint32_t unit) {
  const std::lock_guard lock(mutex_);
  if (unit >= units_.size()) return unit == UINT32_MAX ? 0 : -EINVAL;
  Unit& u = *units_[unit];
  if (u.clients == 0) return -EINVAL;
  --u.clients;
  u.exclusive = false;
  if (u.clients == 0 && u.board >= 0) close(std::exchange(u.board, -1));
  return 0;
}

int Device::read_register(uint32_t unit, uint32_t offset, uint32_t& value) {
  if (unit >= units_.size()) return -EINVAL;
  Unit& u = *units_[unit];
  const std::lock_guard lock(u.mutex);
  value = u.simulator->read_register(offset);
  if (offset == reg::kControl || offset == reg::kStatus) u.simulator->advance(kEmulatedPollCycles);
  return 0;
}

int Device::write_register(uint32_t unit, uint32_t offset, uint32_t value) {
  if (unit >= units_.size()) return -EINVAL;
  Unit& u = *units_[unit];
  const std::lock_guard lock(u.mutex);
  u.simulator->write_register(offset, value);
  return 0;
}

bool Device::wait_interrupt(uint32_t unit, std::optional<std::chrono::milliseconds> limit) {
  if (unit >= units_.size()) return false;
  Unit& u = *units_[unit];
  const Deadline deadline(limit.value_or(std::chrono::milliseconds(0)));
  double remaining_cycles = limit ? static_cast<double>(limit->count()) * 1e-3 * kNominalHz : 0;
  while (true) {
    bool busy = false;
    {
      const std::lock_guard lock(u.mutex);
      const bool enabled = (u.simulator->read_register(reg::kGlobalInterruptEnable) & 1) != 0;
      if (enabled && u.simulator->read_register(reg::kInterruptStatus) != 0) return true;
      busy = u.simulator->advance(kRunCycles);
    }
    if (stopping()) return false;
    remaining_cycles -= static_cast<double>(kRunCycles);
    if (busy && limit && remaining_cycles <= 0) return false;
    if (busy) continue;
    // A run that has just ended has raised its interrupt; an idle unit must be started first.
    {
      const std::lock_guard lock(u.mutex);
      const bool enabled = (u.simulator->read_register(reg::kGlobalInterruptEnable) & 1) != 0;
      if (enabled && u.simulator->read_register(reg::kInterruptStatus) != 0) return true;
    }
    if (limit && deadline.passed()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// Packets
// -----------------------------------------------------------------------------------------------------------

int Device::execute(uint32_t handle) {
  {
    const std::lock_guard lock(mutex_);
    auto packet = find(handle);
    if (!packet || packet->bytes < sizeof(ert_packet)) return -EINVAL;
    queue_.push_back(std::move(packet));
  }
  queued_.notify_one();
  return 0;
}

int Device::wait(int milliseconds, uint64_t& seen) {
  std::unique_lock lock(mutex_);
  const auto limit = std::chrono::milliseconds(milliseconds < 0 ? 1000 : milliseconds);
  if (!completed_.wait_for(lock, limit, [&] { return completions_ != seen; })) return 0;
  seen = completions_;
  return 1;
}

bool Device::stopping() {
  const std::lock_guard lock(mutex_);
  return stop_;
}

void Device::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    queued_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    const auto buffer = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    auto& packet = *reinterpret_cast<ert_packet*>(buffer->host);
    const uint32_t state = run(packet) ? ERT_CMD_STATE_COMPLETED : ERT_CMD_STATE_ERROR;
    lock.lock();
    // The client polls this word without a lock.
    std::atomic_ref(packet.header).store((packet.header & ~0xfu) | state, std::memory_order_release);
    ++completions_;
    completed_.notify_all();
  }
}

bool Device::run(ert_packet& packet) {
  switch (packet.opcode) {
    case ERT_START_CU: return run_unit(packet);
    case ERT_START_COPYBO: return run_copy(packet);
    default:
      print_stderr("the emulated device does not support packet opcode {}\n", uint32_t{packet.opcode});
      return false;
  }
}

bool Device::run_copy(ert_packet& packet) {
  auto& copy_packet = reinterpret_cast<ert_start_copybo_cmd&>(packet);
  return copy(copy_packet.dst_bo_hdl, copy_packet.src_bo_hdl, copy_packet.size, ert_copybo_dst_offset(&copy_packet),
              ert_copybo_src_offset(&copy_packet)) == 0;
}

bool Device::run_unit(ert_packet& packet) {
  const auto& start = reinterpret_cast<const ert_start_kernel_cmd&>(packet);
  const uint32_t masks = 1 + start.extra_cu_masks;
  if (start.count < masks + 4) return false;
  std::vector<Unit*> candidates;
  for (uint32_t w = 0; w < masks; ++w) {
    const uint32_t mask = w == 0 ? start.cu_mask : start.data[w - 1];
    for (uint32_t b = 0; b < 32; ++b) {
      if ((mask >> b & 1) != 0 && 32 * w + b < units_.size()) candidates.push_back(units_[32 * w + b].get());
    }
  }
  if (candidates.empty()) return false;
  std::unique_lock<std::mutex> lock;
  Unit* unit = candidates[0];
  for (Unit* candidate : candidates) {
    lock = std::unique_lock(candidate->mutex, std::try_to_lock);
    if (lock.owns_lock()) {
      unit = candidate;
      break;
    }
  }
  if (!lock.owns_lock()) lock = std::unique_lock(unit->mutex);
  sim::Simulator& simulator = *unit->simulator;
  // The packet has no valid values of words 0 .. 3, control and interrupts.
  const uint32_t* words = start.data + start.extra_cu_masks;
  const uint32_t count = std::min(start.count - masks, spec::kRegisterSpaceBytes / 4);
  for (uint32_t i = 4; i < count; ++i) simulator.write_register(4 * i, words[i]);
  simulator.write_register(reg::kControl, spec::kApStart);
  while (simulator.advance(kRunCycles)) {
    if (stopping()) return false;
  }
  simulator.read_register(reg::kControl);  // clears ap_done
  const uint32_t code = simulator.read_register(reg::kStatus) & 0xff;
  if (code != 0) {
    print_stderr("the emulated unit stopped with code {} at instruction {}: {}\n", code,
                 simulator.read_register(reg::kErrorIndex), simulator.explain());
  }
  return code == 0;
}

}  // namespace tenon::driver::shim
