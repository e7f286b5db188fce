#include "runtime/reference/kernels.h"

#include "runtime/reference/support.h"

namespace tenon::runtime::reference {
namespace {

template <class F>
void for_each_entry(F&& visit) {
  for (auto family :
       {contraction_kernels(), elementwise_kernels(), pool_kernels(), quantize_kernels(), shape_kernels()}) {
    for (const Entry& entry : family) visit(entry);
  }
}

}  // namespace

Kernel find(std::string_view op) {
  Kernel found = nullptr;
  for_each_entry([&](const Entry& entry) {
    if (entry.op == op) found = entry.kernel;
  });
  return found;
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for_each_entry([&](const Entry& entry) { all.push_back(entry.op); });
  return all;
}

}  // namespace tenon::runtime::reference
