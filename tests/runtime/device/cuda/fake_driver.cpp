// A library with the functions of NVIDIA's driver for tests without a GPU: its one GPU has 1 MiB of memory, and three
// kernels: add_one(x, n), faulty(), which records a division by 0, and trap(), after which every call fails. A test may
// add kernels that a module's PTX has (fake_driver.h): their launches must have the block that the PTX declares. Copies
// from and to pinned memory are made as late as the driver may make them: when an event after them is waited for, or
// the stream does other work.
#include "tests/runtime/device/cuda/fake_driver.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int kInvalid = 1, kOutOfMemory = 2, kNotFound = 500, kIllegalAddress = 700, kLaunchFailed = 719,
              kInvalidPtx = 218;

struct Record {
  uint32_t occurred, site;
  int64_t found, expected;
} record;
std::map<uint64_t, size_t> blocks;
size_t used = 0;
int broken = 0;
const char* const kNames[] = {"add_one", "faulty", "trap"};
int context, stream;
size_t memory = 1 << 20;

struct Copy {
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;
};
std::vector<Copy> queued;           // of pinned memory, in their order
size_t made = 0;                    // of these
std::map<uint64_t, size_t> pinned;  // memory of the host
bool has_pinned = true;
struct Event {
  size_t copies = 0;  // that were queued before it
};

void make_copies(size_t count) {
  for (; made < count; ++made) std::memcpy(queued[made].to, queued[made].from, queued[made].bytes);
}
void make_copies() { make_copies(queued.size()); }
bool is_pinned(const void* memory) {
  const auto address = reinterpret_cast<uint64_t>(memory);
  const auto after = pinned.upper_bound(address);
  return after != pinned.begin() && address < std::prev(after)->first + std::prev(after)->second;
}
void copy(void* to, const void* from, size_t bytes, const void* of_host) {
  queued.push_back({to, from, bytes});
  if (!is_pinned(of_host)) make_copies();
}

struct Kernel {
  bool (*run)(void* user, void** arguments) = nullptr;
  void* user = nullptr;
};
std::map<std::string, Kernel> kernels;
struct Module {
  std::string text;
};
// A launch that a graph repeats: its function, grid, block, and copies of its arguments.
struct Launch {
  void* function = nullptr;
  unsigned grid_x = 0, block[3] = {};
  std::vector<uint64_t> arguments;
};
using Launches = std::vector<Launch>;
Launches* captured = nullptr;  // the launches of the stream go there
int lists = 0;                 // that exist
struct Function {
  std::string name;
  const Module* module;
};

// The entry's text: its parameters and directives.
std::string declaration(const Function& function) {
  const size_t at = function.module->text.find(".entry " + function.name + "(");
  return at == std::string::npos ? "" : function.module->text.substr(at, function.module->text.find('{', at) - at);
}

// Whether the PTX declares this block of threads.
bool has_block(const Function& function, unsigned x, unsigned y, unsigned z) {
  const std::string text = declaration(function), block = ".maxntid ";
  const size_t at = text.find(block);
  unsigned found[3] = {0, 1, 1};
  return at != std::string::npos &&
         std::sscanf(text.c_str() + at + block.size(), "%u, %u, %u", &found[0], &found[1], &found[2]) >= 1 &&
         found[0] == x && found[1] == y && found[2] == z;
}

}  // namespace

extern "C" {
void fake_set_memory(size_t bytes) { memory = bytes; }
void fake_set_pinned(bool available) { has_pinned = available; }
size_t fake_pinned_bytes() {
  size_t bytes = 0;
  for (const auto& [address, size] : pinned) bytes += size;
  return bytes;
}
void fake_set_kernel(const char* entry, bool (*run)(void*, void**), void* user) {
  if (run) kernels[entry] = {run, user};
  else kernels.erase(entry);
}

int cuInit(unsigned) { return 0; }
int cuGetErrorName(int status, const char** name) {
  *name = status == kOutOfMemory      ? "CUDA_ERROR_OUT_OF_MEMORY"
          : status == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : status == kLaunchFailed   ? "CUDA_ERROR_LAUNCH_FAILED"
          : status == kNotFound       ? "CUDA_ERROR_NOT_FOUND"
          : status == kInvalidPtx     ? "CUDA_ERROR_INVALID_PTX"
                                      : "CUDA_ERROR_INVALID_VALUE";
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "a text";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::snprintf(name, static_cast<size_t>(bytes), "Fake GPU");
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const char* capability = std::getenv("FAKE_CAPABILITY");
  const int of_gpu = capability ? std::atoi(capability) : 90;
  *value = attribute == 75 ? of_gpu / 10 : of_gpu % 10;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = memory;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** out, int) {
  *out = &context;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {  // its memory is free again
  for (const auto& [address, bytes] : blocks) std::free(reinterpret_cast<void*>(address));
  blocks.clear();
  used = 0;
  broken = 0;
  return 0;
}
int cuCtxSetCurrent(void*) { return 0; }
int cuModuleLoadDataEx(void** out, const void* image, unsigned count, int* options, void** values) {
  if (!std::strstr(static_cast<const char*>(image), ".version")) {
    if (count == 2 && options[0] == 5) std::strcpy(static_cast<char*>(values[0]), "line 1: no version");
    return kInvalidPtx;
  }
  *out = new Module{static_cast<const char*>(image)};
  return 0;
}
int cuModuleUnload(void* module) {
  delete static_cast<Module*>(module);
  return 0;
}
int cuModuleGetFunction(void** out, void* module, const char* name) {
  static std::map<std::pair<void*, std::string>, Function> functions;
  Function& function = functions[{module, name}];
  function = {name, static_cast<Module*>(module)};
  *out = &function;
  if (kernels.contains(name) && !declaration(function).empty()) return 0;
  for (const char* const& known : kNames) {
    if (std::strcmp(known, name) == 0) return 0;
  }
  return kNotFound;
}
int cuModuleGetGlobal_v2(uint64_t* address, size_t* bytes, void*, const char*) {
  *address = reinterpret_cast<uint64_t>(&record);
  *bytes = sizeof record;
  return 0;
}
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  if (broken) return broken;
  if (used + bytes > memory) return kOutOfMemory;
  *address = reinterpret_cast<uint64_t>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  blocks[*address] = bytes;
  used += bytes;
  return 0;
}
int cuMemFree_v2(uint64_t address) {
  const auto found = blocks.find(address);
  if (found == blocks.end()) return kInvalid;
  make_copies();
  used -= found->second;
  blocks.erase(found);
  std::free(reinterpret_cast<void*>(address));
  return 0;
}
int cuMemAllocHost_v2(void** out, size_t bytes) {
  if (!has_pinned) return kOutOfMemory;
  *out = std::malloc(bytes);
  pinned[reinterpret_cast<uint64_t>(*out)] = bytes;
  return 0;
}
int cuMemFreeHost(void* address) {
  make_copies();
  if (pinned.erase(reinterpret_cast<uint64_t>(address)) == 0) return kInvalid;
  std::free(address);
  return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void*) {
  copy(reinterpret_cast<void*>(to), from, bytes, from);
  return broken;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void*) {
  copy(to, reinterpret_cast<const void*>(from), bytes, to);
  return broken;
}
int cuStreamCreate(void** out, unsigned) {
  *out = &stream;
  return 0;
}
int cuStreamDestroy_v2(void*) { return 0; }
int cuStreamSynchronize(void*) {
  make_copies();
  return broken;
}
int cuEventCreate(void** out, unsigned) {
  *out = new Event;
  return 0;
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return 0;
}
int cuEventRecord(void* event, void*) {
  static_cast<Event*>(event)->copies = queued.size();
  return 0;
}
int cuEventSynchronize(void* event) {
  make_copies(static_cast<Event*>(event)->copies);
  return broken;
}
int cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 1.5f;
  return 0;
}
int cuLaunchKernel(void* launched, unsigned grid_x, unsigned, unsigned, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned, void*, void** arguments, void**) {
  const Function& function = *static_cast<Function*>(launched);
  if (captured) {
    Launch& launch = captured->emplace_back(Launch{launched, grid_x, {block_x, block_y, block_z}, {}});
    const std::string text = declaration(function);
    size_t count = function.name == "add_one" ? 2 : 0;
    for (size_t at = text.find(".param"); at != std::string::npos; at = text.find(".param", at + 1)) ++count;
    for (size_t i = 0; i < count; ++i) launch.arguments.push_back(*static_cast<uint64_t*>(arguments[i]));
    return 0;
  }
  make_copies();
  const std::string& name = function.name;
  if (const auto kernel = kernels.find(name); kernel != kernels.end()) {
    if (!has_block(function, block_x, block_y, block_z)) return kInvalid;
    if (!kernel->second.run(kernel->second.user, arguments)) broken = kLaunchFailed;
    return 0;
  }
  if (name == "faulty") record = {1, 0, 0, 0};
  if (name == "trap") broken = kIllegalAddress;
  if (name != "add_one") return 0;
  auto* x = *static_cast<int32_t**>(arguments[0]);
  const auto n = *static_cast<uint64_t*>(arguments[1]);
  for (uint64_t i = 0; i < uint64_t{grid_x} * block_x && i < n; ++i) ++x[i];
  return 0;
}
int cuStreamBeginCapture_v2(void*, int) {
  if (captured || std::getenv("FAKE_NO_GRAPHS")) return kInvalid;
  captured = new Launches;
  return 0;
}
int cuStreamEndCapture(void*, void** graph) {
  *graph = std::exchange(captured, nullptr);
  return *graph ? 0 : kInvalid;
}
int cuGraphInstantiateWithFlags(void** list, void* graph, unsigned long long) {
  *list = new Launches(*static_cast<Launches*>(graph));
  ++lists;
  return 0;
}
int cuGraphDestroy(void* graph) {
  delete static_cast<Launches*>(graph);
  return 0;
}
int cuGraphLaunch(void* list, void* on) {
  for (Launch& launch : *static_cast<Launches*>(list)) {
    std::vector<void*> arguments;
    for (uint64_t& argument : launch.arguments) arguments.push_back(&argument);
    const int status = cuLaunchKernel(launch.function, launch.grid_x, 1, 1, launch.block[0], launch.block[1],
                                      launch.block[2], 0, on, arguments.data(), nullptr);
    if (status != 0) return status;
  }
  return broken;
}
int cuGraphExecDestroy(void* list) {
  delete static_cast<Launches*>(list);
  --lists;
  return 0;
}
int fake_lists() { return lists; }
}
