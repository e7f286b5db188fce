#include "runtime/reference/kernels.h"

#include "runtime/reference/support.h"

namespace tenon::runtime::reference {

std::vector<std::span<const Entry>> families();  // generated

Kernel find(std::string_view op) {
  for (auto family : families()) {
    for (const Entry& entry : family) {
      if (entry.op == op) return entry.kernel;
    }
  }
  return nullptr;
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> ops;
  for (auto family : families()) {
    for (const Entry& entry : family) ops.push_back(entry.op);
  }
  return ops;
}

}  // namespace tenon::runtime::reference
