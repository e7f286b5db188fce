#include "runtime/native/functions.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "runtime/native/call.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

struct Opened {
  std::mutex mutex;
  std::map<std::string, LibraryFunction, std::less<>> functions;  // with stable addresses
  std::set<void*> handles;
};
Opened& opened_libraries() {
  static Opened opened;
  return opened;
}

// Adds the functions of the object, or returns why it has none.
Status add(Opened& opened, void* handle, const std::string& file) {
  const std::string_view help = "runtime/native/kernel.h defines what a library of functions exports";
  const auto get = reinterpret_cast<decltype(&tn_library_get)>(dlsym(handle, "tn_library_get"));
  const tn_library* library = get ? get() : nullptr;
  if (!library)
    return error("it is not a library of functions: it does not export tn_library_get", file, std::string(help));
  if (!is_known_interface(*library))
    return error(fmt::format("it has interface {}, this runtime has {}", library->abi, int{TN_ABI}), file,
                 "compile it with this version's runtime/native/kernel.h");
  auto variant = best_variant(*library, {});
  if (!variant) {
    variant.error().where = file;
    return std::unexpected(std::move(variant.error()));
  }
  for (uint32_t i = 0; i < library->count; ++i) {
    const auto before = opened.functions.find(std::string_view(library->names[i]));
    if (before != opened.functions.end())
      return error(fmt::format("it has a function '{}', and so has {}", library->names[i], before->second.file), file,
                   "give them different names, or open one of the two");
  }
  for (uint32_t i = 0; i < library->count; ++i)
    opened.functions.emplace(library->names[i],
                             LibraryFunction{library->names[i], file, (*variant)->kernels[i], library});
  return {};
}

}  // namespace

Status open_functions(const std::filesystem::path& file) {
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::absolute(file, failed);  // else the system's folders are searched
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return error(fmt::format("the library cannot be opened: {}", dlerror()), file.string(),
                 "name a shared object for this machine that has the functions the program calls");
  Opened& opened = opened_libraries();
  const std::lock_guard lock(opened.mutex);
  if (!opened.handles.insert(handle).second) return {};
  if (auto status = add(opened, handle, file.string()); !status) {
    opened.handles.erase(handle);
    dlclose(handle);
    return status;
  }
  return {};
}

Expected<const LibraryFunction*> find_function(std::string_view name) {
  Opened& opened = opened_libraries();
  const std::lock_guard lock(opened.mutex);
  const auto found = opened.functions.find(name);
  if (found != opened.functions.end()) return &found->second;
  return error(fmt::format("the library function '{}' does not exist", name), {},
               opened.handles.empty() ? "open the shared object that has it: --library FILE.so"
                                      : "no opened library has it; open another one: --library FILE.so");
}

Status call_function(const LibraryFunction& function, std::span<const Tensor> inputs, std::span<Tensor> outputs,
                     ThreadPool& pool) {
  std::vector<void*> buffers;
  std::vector<int64_t> dims;
  std::vector<tn_operand> operands;
  const auto add = [&](const Tensor& tensor, const std::byte* data) {
    buffers.push_back(const_cast<std::byte*>(data));
    dims.insert(dims.end(), tensor.shape().begin(), tensor.shape().end());
    operands.push_back({static_cast<uint32_t>(tensor.dtype()), static_cast<uint32_t>(tensor.shape().size())});
  };
  for (const Tensor& input : inputs) add(input, input.bytes().data());
  for (Tensor& output : outputs) add(output, output.bytes().data());
  const LibraryFunction* const only[] = {&function};
  Call call = make_call(nullptr, nullptr, &pool);
  call.functions = only;
  int32_t failed = 0;
  pool.with_arena([&](Arena& arena) {
    call.arena = &arena;
    failed = call.function(&call, 0, buffers.data(), dims.data(), operands.data(), static_cast<uint32_t>(inputs.size()),
                           static_cast<uint32_t>(outputs.size()));
  });
  if (failed == 0) return {};
  return std::unexpected(explain(call, *function.library, {}));
}

}  // namespace tenon::runtime
