#include "runtime/library/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "driver/plugin.h"
#include "runtime/native/call.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

constexpr std::string_view kAdapted[] = {"dnnl"};  // which this build of Tenon has if the library was there
constexpr std::string_view kFilePrefix = "tenon-kernels-", kFileSuffix = ".so";

// The files that the user has named, by the names of their libraries.
struct UsedLibraries {
  std::mutex mutex;
  std::map<std::string, std::filesystem::path, std::less<>> files;
};
UsedLibraries& used_libraries() {
  static UsedLibraries used;
  return used;
}

Expected<const tn_library*> open_file(const std::filesystem::path& file) {
  void* opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) return error(fmt::format("{} cannot be opened: {}", file.string(), dlerror()));
  const auto get = reinterpret_cast<decltype(&tn_library_get)>(dlsym(opened, "tn_library_get"));
  const tn_library* library = get ? get() : nullptr;
  if (!library) return error(fmt::format("{} exports no tn_library_get", file.string()));
  if (!is_known_interface(*library)) {
    return error(fmt::format("{} has interface {}, this runtime has {}", file.string(), library->abi, int{TN_ABI}), {},
                 "compile it with this version's runtime/native/kernel.h");
  }
  return library;
}

}  // namespace

bool is_library_name(std::string_view name) {
  const auto is_allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && std::ranges::all_of(name, is_allowed);
}

std::string library_name(const std::filesystem::path& file) {
  std::string name = file.filename().string();
  if (name.ends_with(kFileSuffix)) name.resize(name.size() - kFileSuffix.size());
  for (const std::string_view prefix : {kFilePrefix, std::string_view("lib")}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

Status use_library(const std::filesystem::path& file) {
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::absolute(file, failed);  // else the system's folders are searched
  const std::string name = library_name(path);
  if (!is_library_name(name)) {
    return error(fmt::format("'{}' cannot be the name of a library of kernels", name), file.string(),
                 "names of libraries have small letters, digits and underscores");
  }
  // It is opened when a kernel is called, and its name would have no other file from now on.
  if (!std::filesystem::exists(path, failed)) return error("the file does not exist", file.string());
  UsedLibraries& used = used_libraries();
  const std::lock_guard lock(used.mutex);
  const std::filesystem::path& known = used.files.emplace(name, path).first->second;
  if (known == path) return {};
  return error(fmt::format("{} is a library of kernels '{}' too", known.string(), name), file.string(),
               "give one of the two files");
}

std::vector<std::string> library_names() {
  std::set<std::string> names(std::begin(kAdapted), std::end(kAdapted));
  for (const std::filesystem::path& directory : driver::plugin_directories()) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
      const std::string file = entry.path().filename().string();
      if (!file.starts_with(kFilePrefix) || !file.ends_with(kFileSuffix)) continue;
      std::string name = file.substr(kFilePrefix.size(), file.size() - kFilePrefix.size() - kFileSuffix.size());
      if (is_library_name(name)) names.insert(std::move(name));
    }
  }
  return {names.begin(), names.end()};
}

Expected<const tn_library*> open_library(std::string_view name) {
  if (!is_library_name(name)) {
    return error(fmt::format("there is no library of kernels '{}'", name), {},
                 "names of libraries have small letters, digits and underscores");
  }
  {
    UsedLibraries& used = used_libraries();
    const std::lock_guard lock(used.mutex);
    if (const auto found = used.files.find(name); found != used.files.end()) return open_file(found->second);
  }
  const std::string file_name = fmt::format("{}{}{}", kFilePrefix, name, kFileSuffix);
  for (const std::filesystem::path& directory : driver::plugin_directories()) {
    const std::filesystem::path file = directory / file_name;
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) continue;
    return open_file(file);
  }
  const bool is_adapted = std::ranges::find(kAdapted, name) != std::end(kAdapted);
  return error(
      fmt::format("the library of kernels '{}' is not installed: there is no {}", name, file_name), {},
      is_adapted
          ? "install oneDNN (Debian: libdnnl-dev) and build Tenon again, or compile the model without --targets"
          : "name its file by --plugin (in the C interface: plugins of tenon_session_options), copy it into the folder "
            "lib/tenon beside the program, or name its folder by TENON_DRIVER_PATH");
}

std::string_view doc(const tn_library& library) {
  return library.abi >= TN_ABI_OPERATORS && library.doc ? library.doc : std::string_view();
}

namespace {

Expected<OperatorKernel> open_kernel(std::string_view name, const Attrs& attrs) {
  const size_t dot = std::min(name.find('.'), name.size());
  const std::string_view library_name = name.substr(0, dot);
  TENON_TRY_ASSIGN(library, open_library(library_name));
  return OperatorKernel::open(**library, library_name, name.substr(std::min(dot + 1, name.size())), attrs);
}

AroundKernel& around_kernel() {
  static AroundKernel around;
  return around;
}

struct WatchedKernel {
  std::string name;
  OperatorKernel kernel;
};

int32_t call_watched(tn_call* base) {
  auto& call = *static_cast<Call*>(base);
  const auto& watched = *static_cast<const WatchedKernel*>(call.state);
  const OperatorCall how{.outputs = call.outputs, .constants = call.constants, .pool = call.pool, .stop = call.stop};
  Status status = around_kernel()(
      watched.name, [&] { return watched.kernel.call(call.tensors, how, *call.results, *call.result_memory); });
  return status ? 0 : refuse(call, std::move(status.error()));
}

}  // namespace

void watch_library_kernels(AroundKernel around) { around_kernel() = std::move(around); }

Expected<OperatorKernel> library_kernel(std::string_view name, const Attrs& attrs) {
  if (!around_kernel()) return open_kernel(name, attrs);
  auto watched = std::make_shared<WatchedKernel>(std::string(name));
  TENON_TRY(around_kernel()(name, [&]() -> Status {
    TENON_TRY_ASSIGN(kernel, open_kernel(name, attrs));
    watched->kernel = std::move(*kernel);
    return {};
  }));
  return OperatorKernel(call_watched, std::move(watched));
}

}  // namespace tenon::runtime
