#include "runtime/library/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "support/try.h"

namespace tenon::runtime {

Expected<KernelLibrary> open_library(std::string_view name) {
  // The name becomes a part of a file name.
  if (std::ranges::find(kLibraries, name) == std::end(kLibraries)) {
    return error(fmt::format("there is no library of kernels '{}'", name), {},
                 fmt::format("the libraries are {}", fmt::join(kLibraries, ", ")));
  }
  const std::string file_name = fmt::format("tenon-kernels-{}.so", name);
  for (const std::filesystem::path& directory : driver::plugin_directories()) {
    const std::filesystem::path file = directory / file_name;
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) continue;
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return error(fmt::format("{} cannot be opened: {}", file.string(), dlerror()));
    const auto get = reinterpret_cast<decltype(&tenon_kernel_library)>(dlsym(library, "tenon_kernel_library"));
    KernelLibrary opened;
    if (!get || !get(driver::kPluginAbi, &opened)) {
      return error(fmt::format("{} belongs to another build of Tenon", file.string()), {},
                   "build and install the whole again");
    }
    return opened;
  }
  return error(fmt::format("the library of kernels '{}' is not installed: there is no {}", name, file_name), {},
               "install oneDNN (Debian: libdnnl-dev) and build Tenon again, or compile the model without --targets");
}

Expected<LibraryKernel> library_kernel(std::string_view name, const Attrs& attrs, unsigned threads) {
  const size_t dot = std::min(name.find('.'), name.size());
  TENON_TRY_ASSIGN(library, open_library(name.substr(0, dot)));
  return library->make(name.substr(std::min(dot + 1, name.size())), attrs, threads);
}

}  // namespace tenon::runtime
