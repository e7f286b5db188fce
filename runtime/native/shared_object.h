// A shared object in memory, loaded into this process. Internal to the runtime.
#pragma once

#include <cstddef>
#include <span>

#include "support/diagnostic.h"

namespace tenon::runtime {

class SharedObject {
 public:
  SharedObject() = default;
  SharedObject(SharedObject&& other) noexcept;
  SharedObject& operator=(SharedObject&& other) noexcept;
  ~SharedObject();

  static Expected<SharedObject> load(std::span<const std::byte> bytes);
  // The address of an exported symbol; nullptr if there is none.
  void* symbol(const char* name) const;

 private:
  int file_ = -1;  // open as long as the object is loaded: the loader identifies objects by their names
  void* handle_ = nullptr;
};

}  // namespace tenon::runtime
