#include "runtime/device/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

namespace tenon::runtime::cuda {

std::string Driver::describe(int status) const {
  const char *name = nullptr, *text = nullptr;
  if (error_name(status, &name) != 0 || !name) return fmt::format("error {}", status);
  if (error_string(status, &text) != 0 || !text) return name;
  return fmt::format("{}: {}", name, text);
}

std::string default_driver() {
  const char* const variable = std::getenv("TENON_CUDA_DRIVER");
  return variable ? variable : "libcuda.so.1";
}

Expected<const Driver*> open_driver(const std::string& library) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Driver>> opened;
  const std::lock_guard lock(mutex);
  if (const auto found = opened.find(library); found != opened.end()) return found->second.get();
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return error(fmt::format("there is no CUDA driver: {}", dlerror()), "cuda",
                 "install NVIDIA's driver, or compile with --targets cuda:emulated");
  auto driver = std::make_unique<Driver>();
  std::string missing;
  const auto find = [&](auto& slot, const char* name) {
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(dlsym(handle, name));
    if (!slot && missing.empty()) missing = name;
  };
  find(driver->init, "cuInit");
  find(driver->error_name, "cuGetErrorName");
  find(driver->error_string, "cuGetErrorString");
  find(driver->device_count, "cuDeviceGetCount");
  find(driver->device, "cuDeviceGet");
  find(driver->device_name, "cuDeviceGetName");
  find(driver->device_attribute, "cuDeviceGetAttribute");
  find(driver->device_memory, "cuDeviceTotalMem_v2");
  find(driver->retain_context, "cuDevicePrimaryCtxRetain");
  find(driver->release_context, "cuDevicePrimaryCtxRelease_v2");
  find(driver->set_context, "cuCtxSetCurrent");
  find(driver->load_module, "cuModuleLoadDataEx");
  find(driver->unload_module, "cuModuleUnload");
  find(driver->function, "cuModuleGetFunction");
  find(driver->variable, "cuModuleGetGlobal_v2");
  find(driver->allocate, "cuMemAlloc_v2");
  find(driver->release, "cuMemFree_v2");
  find(driver->allocate_host, "cuMemAllocHost_v2");
  find(driver->release_host, "cuMemFreeHost");
  find(driver->upload, "cuMemcpyHtoDAsync_v2");
  find(driver->download, "cuMemcpyDtoHAsync_v2");
  find(driver->create_stream, "cuStreamCreate");
  find(driver->destroy_stream, "cuStreamDestroy_v2");
  find(driver->synchronize, "cuStreamSynchronize");
  find(driver->create_event, "cuEventCreate");
  find(driver->destroy_event, "cuEventDestroy_v2");
  find(driver->record, "cuEventRecord");
  find(driver->wait_for, "cuEventSynchronize");
  find(driver->elapsed, "cuEventElapsedTime");
  find(driver->launch, "cuLaunchKernel");
  const std::string required = missing;
  find(driver->begin_capture, "cuStreamBeginCapture_v2");
  find(driver->end_capture, "cuStreamEndCapture");
  find(driver->instantiate, "cuGraphInstantiateWithFlags");
  find(driver->destroy_graph, "cuGraphDestroy");
  find(driver->launch_graph, "cuGraphLaunch");
  find(driver->destroy_exec, "cuGraphExecDestroy");
  missing = required;  // without the others a GPU is only slower
  if (!missing.empty()) {
    dlclose(handle);
    return error(fmt::format("the CUDA driver {} has no function {}", library, missing), "cuda",
                 "install a driver of CUDA 11 or later");
  }
  return (opened[library] = std::move(driver)).get();
}

}  // namespace tenon::runtime::cuda
