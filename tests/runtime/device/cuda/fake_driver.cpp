// A library with the functions of NVIDIA's driver for tests without a GPU: its one GPU has 1 MiB of memory, and three
// kernels: add_one(x, n), faulty(), which records a division by 0, and trap(), after which every call fails.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace {

constexpr size_t kMemory = 1 << 20;
constexpr int kInvalid = 1, kOutOfMemory = 2, kNotFound = 500, kIllegalAddress = 700, kInvalidPtx = 218;

struct Record {
  uint32_t occurred, site;
  int64_t found, expected;
} record;
std::map<uint64_t, size_t> blocks;
size_t used = 0;
int broken = 0;
const char* const kNames[] = {"add_one", "faulty", "trap"};
int context, stream, event, module;

}  // namespace

extern "C" {
int cuInit(unsigned) { return 0; }
int cuGetErrorName(int status, const char** name) {
  *name = status == kOutOfMemory      ? "CUDA_ERROR_OUT_OF_MEMORY"
          : status == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
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
  *bytes = kMemory;
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
  *out = &module;
  if (std::strstr(static_cast<const char*>(image), ".version")) return 0;
  if (count == 2 && options[0] == 5) std::strcpy(static_cast<char*>(values[0]), "line 1: no version");
  return kInvalidPtx;
}
int cuModuleUnload(void*) { return 0; }
int cuModuleGetFunction(void** out, void*, const char* name) {
  for (const char* const& known : kNames) {
    if (std::strcmp(known, name) != 0) continue;
    *out = const_cast<void*>(static_cast<const void*>(&known));
    return 0;
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
  if (used + bytes > kMemory) return kOutOfMemory;
  *address = reinterpret_cast<uint64_t>(std::malloc(bytes));
  blocks[*address] = bytes;
  used += bytes;
  return 0;
}
int cuMemFree_v2(uint64_t address) {
  const auto found = blocks.find(address);
  if (found == blocks.end()) return kInvalid;
  used -= found->second;
  blocks.erase(found);
  std::free(reinterpret_cast<void*>(address));
  return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void*) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return broken;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void*) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return broken;
}
int cuStreamCreate(void** out, unsigned) {
  *out = &stream;
  return 0;
}
int cuStreamDestroy_v2(void*) { return 0; }
int cuStreamSynchronize(void*) { return broken; }
int cuEventCreate(void** out, unsigned) {
  *out = &event;
  return 0;
}
int cuEventDestroy_v2(void*) { return 0; }
int cuEventRecord(void*, void*) { return 0; }
int cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 1.5f;
  return 0;
}
int cuLaunchKernel(void* function, unsigned grid_x, unsigned, unsigned, unsigned block_x, unsigned, unsigned, unsigned,
                   void*, void** arguments, void**) {
  const std::string name = *static_cast<const char**>(function);
  if (name == "faulty") record = {1, 0, 0, 0};
  if (name == "trap") broken = kIllegalAddress;
  if (name != "add_one") return 0;
  auto* x = *static_cast<int32_t**>(arguments[0]);
  const auto n = *static_cast<uint64_t*>(arguments[1]);
  for (uint64_t i = 0; i < uint64_t{grid_x} * block_x && i < n; ++i) ++x[i];
  return 0;
}
}
