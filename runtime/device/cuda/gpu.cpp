#include "runtime/device/cuda/gpu.h"

#include <fmt/format.h>

#include <bit>
#include <cassert>

#include "runtime/native/fault.h"
#include "support/try.h"

namespace tenon::runtime::cuda {
namespace {

constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;  // CUdevice_attribute
constexpr int kJitErrorLog = 5, kJitErrorLogBytes = 6;       // CUjit_option
constexpr int kLeastCapability = 80;                         // of the PTX that the compiler generates
constexpr std::array<int64_t, 3> kMaxGrid{INT32_MAX, 65535, 65535};
constexpr uint64_t kLeastBytes = 512;

// The first fault of a kernel; ptx.h describes it.
struct FaultRecord {
  uint32_t occurred = 0, site = 0;
  int64_t found = 0, expected = 0;
};

uint64_t size_class(uint64_t bytes) { return std::bit_ceil(std::max(bytes, kLeastBytes)); }

}  // namespace

Expected<Gpu> Gpu::open(int ordinal, const std::string& library) {
  TENON_TRY_ASSIGN(driver, open_driver(library));
  const auto failed = [&](int status, const std::string& action) {
    return error(fmt::format("{}: {}", action, (*driver)->describe(status)), fmt::format("cuda:{}", ordinal),
                 "see whether nvidia-smi shows the GPU");
  };
  if (const int status = (*driver)->init(0); status != 0) return failed(status, "the CUDA driver does not start");
  int count = 0, device = 0;
  if (const int status = (*driver)->device_count(&count); status != 0) return failed(status, "GPUs cannot be counted");
  if (ordinal < 0 || ordinal >= count)
    return error(fmt::format("there is no GPU {}: the driver has {}", ordinal, count), fmt::format("cuda:{}", ordinal),
                 "GPUs are numbered from 0");
  if (const int status = (*driver)->device(&device, ordinal); status != 0)
    return failed(status, "the GPU cannot be opened");
  Gpu gpu(**driver, device);
  TENON_TRY(gpu.start());
  return gpu;
}

Status Gpu::start() {
  char name[256] = {};
  int major = 0, minor = 0;
  size_t bytes = 0;
  TENON_TRY(check(driver_->device_name(name, sizeof name, device_), "the GPU's name is unknown"));
  TENON_TRY(check(driver_->device_attribute(&major, kCapabilityMajor, device_), "the GPU's capability is unknown"));
  TENON_TRY(check(driver_->device_attribute(&minor, kCapabilityMinor, device_), "the GPU's capability is unknown"));
  TENON_TRY(check(driver_->device_memory(&bytes, device_), "the GPU's memory is unknown"));
  name_ = name;
  capability_ = 10 * major + minor;
  memory_bytes_ = bytes;
  if (capability_ < kLeastCapability)
    return error(fmt::format("{} has compute capability {}.{}, at least 8.0 is required", name_, major, minor), "cuda",
                 "compile with --targets cuda:emulated, or for the CPU");
  Context* context = nullptr;
  TENON_TRY(check(driver_->retain_context(&context, device_), "the GPU has no context"));
  has_context_ = true;
  TENON_TRY(check(driver_->set_context(context), "the GPU's context is not usable"));
  TENON_TRY(check(driver_->create_stream(&stream_, 1), "the GPU has no stream"));
  TENON_TRY(check(driver_->create_event(&begin_, 0), "the GPU has no event"));
  return check(driver_->create_event(&end_, 0), "the GPU has no event");
}

Gpu::Gpu(Gpu&& other) noexcept
    : driver_(other.driver_),
      device_(other.device_),
      has_context_(std::exchange(other.has_context_, false)),
      name_(std::move(other.name_)),
      capability_(other.capability_),
      memory_bytes_(other.memory_bytes_),
      pooled_bytes_(std::exchange(other.pooled_bytes_, 0)),
      used_bytes_(other.used_bytes_),
      stream_(std::exchange(other.stream_, nullptr)),
      begin_(std::exchange(other.begin_, nullptr)),
      end_(std::exchange(other.end_, nullptr)),
      pool_(std::move(other.pool_)),
      copies_(std::exchange(other.copies_, {})),
      codes_(std::move(other.codes_)) {}

Gpu::~Gpu() {
  if (!has_context_) return;
  if (stream_) (void)driver_->synchronize(stream_);
  empty_pool();
  copies_.release(*driver_);
  for (const auto& code : codes_) (void)driver_->unload_module(code->module);
  if (begin_) (void)driver_->destroy_event(begin_);
  if (end_) (void)driver_->destroy_event(end_);
  if (stream_) (void)driver_->destroy_stream(stream_);
  (void)driver_->release_context(device_);
}

Status Gpu::check(int status, const std::string& action) const {
  if (status == 0) return {};
  return error(fmt::format("{}: {}", action, driver_->describe(status)), name_.empty() ? "cuda" : name_);
}

// --- Memory ---

void Gpu::empty_pool() {
  for (const auto& [bytes, addresses] : pool_)
    for (const Address address : addresses) (void)driver_->release(address);
  pool_.clear();
  pooled_bytes_ = 0;
}

Expected<Memory> Gpu::allocate(uint64_t bytes) {
  const uint64_t size = size_class(bytes);
  Memory memory{0, bytes};
  if (const auto found = pool_.find(size); found != pool_.end() && !found->second.empty()) {
    memory.address = found->second.back();
    found->second.pop_back();
    pooled_bytes_ -= size;
    used_bytes_ += size;
    return memory;
  }
  int status = driver_->allocate(&memory.address, size);
  if (status == kOutOfMemory && pooled_bytes_ > 0) {
    (void)driver_->synchronize(stream_);
    empty_pool();
    status = driver_->allocate(&memory.address, size);
  }
  if (status == kOutOfMemory)
    return error(fmt::format("the GPU's memory is full: {} bytes are needed, {} of {} are in use", size, used_bytes_,
                             memory_bytes_),
                 name_, "use a smaller batch, or compile fewer layers for the GPU");
  TENON_TRY(check(status, "memory cannot be allocated"));
  used_bytes_ += size;
  return memory;
}

void Gpu::release(const Memory& memory) {
  const uint64_t size = size_class(memory.bytes);
  pool_[size].push_back(memory.address);
  pooled_bytes_ += size;
  used_bytes_ -= size;
}

Status Gpu::upload(const Memory& to, std::span<const std::byte> from) {
  assert(from.size() <= to.bytes);
  if (from.empty()) return {};
  return check(copies_.upload(*driver_, to.address, from, stream_), "data cannot be copied to the GPU");
}

Status Gpu::download(std::span<std::byte> to, const Memory& from) {
  assert(to.size() <= from.bytes);
  const int status = to.empty() ? 0 : copies_.download(*driver_, to, from.address, stream_);
  TENON_TRY(wait());  // says why a copy failed, if a kernel before it did
  return check(status, "data cannot be copied from the GPU");
}

// --- Kernels ---

Expected<const Code*> Gpu::load(const std::string& ptx, std::vector<std::pair<uint32_t, std::string>> sites) {
  auto code = std::make_unique<Code>();
  std::string log(8192, '\0');
  int options[] = {kJitErrorLog, kJitErrorLogBytes};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  if (const int status = driver_->load_module(&code->module, ptx.c_str(), 2, options, values); status != 0)
    return error(fmt::format("the driver does not accept the PTX: {}: {}", driver_->describe(status), log.c_str()),
                 name_, "install a newer driver");
  size_t bytes = 0;
  if (driver_->variable(&code->fault_record, &bytes, code->module, "tn_fault_record") != 0) code->fault_record = 0;
  code->sites = std::move(sites);
  codes_.push_back(std::move(code));
  return codes_.back().get();
}

Status Gpu::launch(const Code& code, const std::string& kernel, std::array<int64_t, 3> grid,
                   std::array<int64_t, 3> threads, std::span<const uint64_t> arguments) {
  for (size_t axis = 0; axis < 3; ++axis) {
    if (grid[axis] <= 0) return {};  // no blocks
    if (grid[axis] > kMaxGrid[axis])
      return error(fmt::format("the kernel {} has {} blocks along {}, at most {} are possible", kernel, grid[axis],
                               "xyz"[axis], kMaxGrid[axis]),
                   name_, "use a smaller batch");
  }
  Function* function = nullptr;
  TENON_TRY(check(driver_->function(&function, code.module, kernel.c_str()),
                  fmt::format("the code has no kernel {}", kernel)));
  std::vector<uint64_t> copies(arguments.begin(), arguments.end());
  std::vector<void*> pointers;
  for (uint64_t& argument : copies) pointers.push_back(&argument);
  const auto u = [](int64_t value) { return static_cast<unsigned>(value); };
  return check(driver_->launch(function, u(grid[0]), u(grid[1]), u(grid[2]), u(threads[0]), u(threads[1]),
                               u(threads[2]), 0, stream_, pointers.data(), nullptr),
               fmt::format("the kernel {} cannot be launched", kernel));
}

// --- Lists ---

Status Gpu::begin_list() {
  constexpr int kRelaxed = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED: this thread may allocate memory meanwhile
  if (!records_lists()) return error("the driver records no launches", name_);
  return check(driver_->begin_capture(stream_, kRelaxed), "launches cannot be recorded");
}

Expected<GraphExec*> Gpu::end_list() {
  Graph* graph = nullptr;
  TENON_TRY(check(driver_->end_capture(stream_, &graph), "launches cannot be recorded"));
  GraphExec* list = nullptr;
  const Status made = check(driver_->instantiate(&list, graph, 0), "recorded launches cannot be prepared");
  (void)driver_->destroy_graph(graph);
  if (!made) return std::unexpected(made.error());
  return list;
}

Status Gpu::launch(GraphExec* list) {
  return check(driver_->launch_graph(list, stream_), "recorded launches cannot be repeated");
}

void Gpu::destroy(GraphExec* list) {
  (void)driver_->synchronize(stream_);
  (void)driver_->destroy_exec(list);
}

Status Gpu::wait() {
  if (const int status = driver_->synchronize(stream_); status != 0)
    return error(fmt::format("the GPU stopped: {}", driver_->describe(status)), name_,
                 "the process must open the GPU again; cuda:emulated finds accesses out of bounds", Fault::kInternal);
  for (const auto& code : codes_) TENON_TRY(fault_of(*code));
  return {};
}

// Reads the fault of the code's kernels, if there is one, and clears it.
Status Gpu::fault_of(const Code& code) {
  if (code.fault_record == 0) return {};
  FaultRecord record;
  TENON_TRY(check(driver_->download(&record, code.fault_record, sizeof record, stream_), "the fault cannot be read"));
  TENON_TRY(check(driver_->synchronize(stream_), "the fault cannot be read"));
  if (record.occurred == 0) return {};
  const FaultRecord none;
  TENON_TRY(check(driver_->upload(code.fault_record, &none, sizeof none, stream_), "the fault cannot be cleared"));
  TENON_TRY(check(driver_->synchronize(stream_), "the fault cannot be cleared"));
  const bool is_known = record.site < code.sites.size();
  return error(fault_message(is_known ? code.sites[record.site].first : UINT32_MAX, record.found, record.expected),
               is_known ? code.sites[record.site].second : name_);
}

Status Gpu::begin_interval() { return check(driver_->record(begin_, stream_), "the event cannot be recorded"); }

Status Gpu::end_interval() { return check(driver_->record(end_, stream_), "the event cannot be recorded"); }

Expected<double> Gpu::interval_seconds() {
  float milliseconds = 0;
  TENON_TRY(check(driver_->elapsed(&milliseconds, begin_, end_), "the time is unknown"));
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace tenon::runtime::cuda
