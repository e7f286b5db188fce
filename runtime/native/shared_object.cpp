#include "runtime/native/shared_object.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tenon::runtime {

SharedObject::SharedObject(SharedObject&& other) noexcept
    : file_(std::exchange(other.file_, -1)), handle_(std::exchange(other.handle_, nullptr)) {}
SharedObject& SharedObject::operator=(SharedObject&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(handle_, other.handle_);
  return *this;
}
SharedObject::~SharedObject() {
  if (handle_) dlclose(handle_);
  if (file_ >= 0) close(file_);
}

Expected<SharedObject> SharedObject::load(std::span<const std::byte> bytes) {
  SharedObject object;
  object.file_ = memfd_create("tenon-native", MFD_CLOEXEC);
  if (object.file_ < 0) return error(fmt::format("no memory file: {}", std::strerror(errno)), {}, {}, Fault::kInternal);
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = write(object.file_, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return error(fmt::format("cannot write a memory file: {}", std::strerror(errno)));
    done += static_cast<size_t>(count);
  }
  object.handle_ = dlopen(fmt::format("/proc/self/fd/{}", object.file_).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!object.handle_) return error(fmt::format("the native code cannot be loaded: {}", dlerror()));
  return object;
}

void* SharedObject::symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace tenon::runtime
