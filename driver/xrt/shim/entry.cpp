// The entry points through which libxrt_coreutil accesses a device: XRT 2.13's internal C interface, over device.h.
//
// XRT's own classes system and device come from its static libxrt_hwemu.a; the functions below replace the parts of
// that archive that communicate with AMD's emulator. TENON_XRT_MODEL=behavioral (the default) or rtl selects the
// simulator.
#define XCL_DRIVER_DLL_EXPORT
#include <ert.h>
#include <fmt/format.h>
#include <xclbin.h>
#include <xrt.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>

#include "driver/xrt/shim/device.h"
#include "support/output.h"
#include "support/pages.h"

namespace xrt_core {  // names that libxrt_coreutil exports without a header
class device {
 public:
  void register_axlf(const axlf*);
};
std::shared_ptr<device> get_userpf_device(void* handle, unsigned int id);
std::shared_ptr<device> get_userpf_device(void* handle);
}  // namespace xrt_core

namespace {

using tenon::driver::shim::Device;

// A client of the board. XRT opens one handle for each xrt::device object.
struct Handle {
  std::shared_ptr<Device> device;
  uint64_t seen = 0;                       // completions
  std::shared_ptr<xrt_core::device> core;  // XRT's object, which has no reference to this handle
};
Device& device_of(xclDeviceHandle handle) { return *static_cast<Handle*>(handle)->device; }

// The board of this process, which exists as long as it has a client. Without a model: the existing board, or nullptr.
std::shared_ptr<Device> the_board(std::optional<Device::Model> model = {}) {
  static std::mutex mutex;
  static std::weak_ptr<Device> board;
  const std::lock_guard lock(mutex);
  auto found = board.lock();
  if (!found && model) board = found = std::make_shared<Device>(*model);
  return found;
}

bool wait_interrupt(int unit, std::optional<std::chrono::milliseconds> limit) {
  const auto board = the_board();
  return board && board->wait_interrupt(static_cast<uint32_t>(unit), limit);
}

}  // namespace

// XRT declares these functions with C++ linkage.
int xclUpdateSchedulerStat(xclDeviceHandle) { return 0; }
int xclInternalResetDevice(xclDeviceHandle, xclResetKind) { return -ENOSYS; }
int xclCmaEnable(xclDeviceHandle, bool, uint64_t) { return -ENOSYS; }
int xclCloseExportHandle(xclBufferExportHandle) { return -ENOSYS; }

extern "C" {

// The archive's device class calls two functions of the stock shim; the answer "no such handle" disables both uses.
void* tenon_handle_check(void*) asm("_ZN11xclhwemhal28HwEmShim11handleCheckEPv");
void* tenon_handle_check(void*) { return nullptr; }
uint32_t tenon_device_query(void*, int) asm("_ZN11xclhwemhal28HwEmShim11deviceQueryEN8xrt_core5query8key_typeE");
uint32_t tenon_device_query(void*, int) { return 0; }

// Interrupts of xrt::ip. XRT's class defines them with a body that throws; these definitions are found first and
// replace the body. The class's `this` is unused, since a process has one board. The handle is the unit's index.
int tenon_open_interrupt(void*, unsigned unit) asm("_ZN8xrt_core5ishim24open_ip_interrupt_notifyEj");
int tenon_open_interrupt(void*, unsigned unit) { return static_cast<int>(unit); }
void tenon_close_interrupt(void*, int) asm("_ZN8xrt_core5ishim25close_ip_interrupt_notifyEi");
void tenon_close_interrupt(void*, int) {}
void tenon_enable_interrupt(void*, int) asm("_ZN8xrt_core5ishim19enable_ip_interruptEi");
void tenon_enable_interrupt(void*, int) {}  // the wait checks the level
void tenon_disable_interrupt(void*, int) asm("_ZN8xrt_core5ishim20disable_ip_interruptEi");
void tenon_disable_interrupt(void*, int) {}
void tenon_wait_interrupt(void*, int unit) asm("_ZN8xrt_core5ishim17wait_ip_interruptEi");
void tenon_wait_interrupt(void*, int unit) { wait_interrupt(unit, {}); }
std::cv_status tenon_wait_interrupt_for(void*, int unit, int32_t ms) asm("_ZN8xrt_core5ishim17wait_ip_interruptEii");
std::cv_status tenon_wait_interrupt_for(void*, int unit, int32_t ms) {
  return wait_interrupt(unit, std::chrono::milliseconds(ms)) ? std::cv_status::no_timeout : std::cv_status::timeout;
}

unsigned xclProbe() { return 1; }

xclDeviceHandle xclOpen(unsigned index, const char*, xclVerbosityLevel) {
  if (index != 0) return nullptr;
  const char* variable = std::getenv("TENON_XRT_MODEL");
  const std::string model = variable == nullptr ? "behavioral" : variable;
  if (model != "behavioral" && model != "rtl") {
    tenon::print_stderr("TENON_XRT_MODEL is \"{}\", must be behavioral or rtl\n", model);
    return nullptr;
  }
  auto handle = std::make_unique<Handle>();
  handle->device = the_board(model == "rtl" ? Device::Model::kRtl : Device::Model::kBehavioral);
  handle->core = xrt_core::get_userpf_device(handle.get(), index);
  return handle.release();
}
void xclClose(xclDeviceHandle handle) { delete static_cast<Handle*>(handle); }

int xclGetDeviceInfo2(xclDeviceHandle, xclDeviceInfo2* info) {
  std::memset(info, 0, sizeof *info);
  info->mMagic = 0x586C0C6C;
  std::strncpy(info->mName, tenon::driver::kEmulatedName, sizeof info->mName - 1);
  info->mHALMajorVersion = 2;
  info->mHALMinorVersion = 1;
  info->mDataAlignment = tenon::kPageBytes;
  info->mDDRBankCount = 1;
  info->mOCLFrequency[0] = 100;
  info->mNumClocks = 1;
  return 0;
}

int xclLoadXclBin(xclDeviceHandle handle, const axlf* xclbin) {
  const std::span file(reinterpret_cast<const std::byte*>(xclbin), xclbin->m_header.m_length);
  if (const auto status = device_of(handle).load(file); !status) {
    tenon::print_stderr("{}\n", status.error().str());
    return -EINVAL;
  }
  xrt_core::get_userpf_device(handle)->register_axlf(xclbin);
  return 0;
}

int xclOpenContext(xclDeviceHandle handle, const xuid_t, unsigned unit, bool shared) {
  return device_of(handle).open_context(unit, shared);
}
int xclCloseContext(xclDeviceHandle handle, const xuid_t, unsigned unit) {
  return device_of(handle).close_context(unit);
}

xclBufferHandle xclAllocBO(xclDeviceHandle handle, size_t bytes, int, unsigned flags) {
  return device_of(handle).allocate(nullptr, bytes, flags);
}
xclBufferHandle xclAllocUserPtrBO(xclDeviceHandle handle, void* host, size_t bytes, unsigned flags) {
  return device_of(handle).allocate(host, bytes, flags);
}
void xclFreeBO(xclDeviceHandle handle, xclBufferHandle buffer) { device_of(handle).free(buffer); }
void* xclMapBO(xclDeviceHandle handle, xclBufferHandle buffer, bool) { return device_of(handle).map(buffer); }
int xclUnmapBO(xclDeviceHandle, xclBufferHandle, void*) { return 0; }
int xclSyncBO(xclDeviceHandle handle, xclBufferHandle buffer, xclBOSyncDirection direction, size_t bytes,
              size_t offset) {
  return device_of(handle).sync(buffer, direction == XCL_BO_SYNC_BO_TO_DEVICE, bytes, offset);
}
int xclCopyBO(xclDeviceHandle handle, xclBufferHandle to, xclBufferHandle from, size_t bytes, size_t to_offset,
              size_t from_offset) {
  return device_of(handle).copy(to, from, bytes, to_offset, from_offset);
}
int xclGetBOProperties(xclDeviceHandle handle, xclBufferHandle buffer, xclBOProperties* properties) {
  const auto found = device_of(handle).properties(buffer);
  if (!found) return -EINVAL;
  std::memset(properties, 0, sizeof *properties);
  properties->handle = buffer;
  properties->flags = found->flags;
  properties->size = found->bytes;
  properties->paddr = found->address;
  return 0;
}
xclBufferExportHandle xclExportBO(xclDeviceHandle, xclBufferHandle) { return XRT_NULL_BO_EXPORT; }
xclBufferHandle xclImportBO(xclDeviceHandle, xclBufferExportHandle, unsigned) { return XRT_NULL_BO; }

int xclExecBuf(xclDeviceHandle handle, xclBufferHandle packet) { return device_of(handle).execute(packet); }
int xclExecWait(xclDeviceHandle handle, int milliseconds) {
  return device_of(handle).wait(milliseconds, static_cast<Handle*>(handle)->seen);
}

int xclRegWrite(xclDeviceHandle handle, uint32_t unit, uint32_t offset, uint32_t value) {
  return device_of(handle).write_register(unit, offset, value);
}
int xclRegRead(xclDeviceHandle handle, uint32_t unit, uint32_t offset, uint32_t* value) {
  return device_of(handle).read_register(unit, offset, *value);
}
size_t xclWrite(xclDeviceHandle, xclAddressSpace, uint64_t, const void*, size_t) { return 0; }
size_t xclRead(xclDeviceHandle, xclAddressSpace, uint64_t, void*, size_t) { return 0; }
ssize_t xclUnmgdPread(xclDeviceHandle handle, unsigned, void* data, size_t bytes, uint64_t address) {
  return device_of(handle).access(address, data, bytes, false);
}
ssize_t xclUnmgdPwrite(xclDeviceHandle handle, unsigned, const void* data, size_t bytes, uint64_t address) {
  return device_of(handle).access(address, const_cast<void*>(data), bytes, true);
}
int xclReClock2(xclDeviceHandle, unsigned short, const uint16_t*) { return 0; }
int xclP2pEnable(xclDeviceHandle, bool, bool) { return -ENOSYS; }

}  // extern "C"
