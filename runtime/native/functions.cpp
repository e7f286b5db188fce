#include "runtime/native/functions.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "runtime/native/call.h"

namespace tenon::runtime {
namespace {

struct Opened {
  std::mutex mutex;
  std::map<std::string, LibraryFunction, std::less<>> functions;  // whose places do not change
  std::set<void*> handles;
};
Opened& opened() {
  static Opened all;
  return all;
}

// What the object offers, or why it offers nothing.
Status add(Opened& all, void* handle, const std::string& file) {
  const std::string_view help = "runtime/native/kernel.h says what a library of functions exports";
  const auto get = reinterpret_cast<decltype(&tn_library_get)>(dlsym(handle, "tn_library_get"));
  const tn_library* library = get ? get() : nullptr;
  if (!library) return error("it is no library of functions: there is no tn_library_get", file, std::string(help));
  if (!is_known_interface(*library))
    return error(fmt::format("it has interface {}, this runtime has {}", library->abi, int{TN_ABI}), file,
                 "compile it with this version's runtime/native/kernel.h");
  auto variant = best_variant(*library, {});
  if (!variant) {
    variant.error().where = file;
    return forward_error(variant);
  }
  for (uint32_t i = 0; i < library->count; ++i) {
    const auto before = all.functions.find(std::string_view(library->names[i]));
    if (before != all.functions.end())
      return error(fmt::format("it has a function '{}', and so has {}", library->names[i], before->second.file), file,
                   "give them different names, or open one of the two");
  }
  for (uint32_t i = 0; i < library->count; ++i)
    all.functions.emplace(library->names[i], LibraryFunction{library->names[i], file, (*variant)->kernels[i], library});
  return {};
}

}  // namespace

Status open_functions(const std::filesystem::path& file) {
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::absolute(file, failed);  // else the system's folders are searched
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return error(fmt::format("the library cannot be opened: {}", dlerror()), file.string(),
                 "name a shared object for this machine that has the functions which are called");
  Opened& all = opened();
  const std::lock_guard lock(all.mutex);
  if (!all.handles.insert(handle).second) return {};
  if (auto status = add(all, handle, file.string()); !status) {
    all.handles.erase(handle);
    dlclose(handle);
    return status;
  }
  return {};
}

Expected<const LibraryFunction*> find_function(std::string_view name) {
  Opened& all = opened();
  const std::lock_guard lock(all.mutex);
  const auto found = all.functions.find(name);
  if (found != all.functions.end()) return &found->second;
  return error(fmt::format("the library function '{}' is not there", name), {},
               all.handles.empty() ? "open the shared object that has it: --library FILE.so"
                                   : "none of the libraries that were opened has it; one more: --library FILE.so");
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
  Call call = make_call(nullptr, nullptr, pool);
  call.functions = only;
  int32_t failed = 0;
  pool.with_arena([&](Arena& arena) {
    call.arena = &arena;
    failed = call.function(&call, 0, buffers.data(), dims.data(), operands.data(), static_cast<uint32_t>(inputs.size()),
                           static_cast<uint32_t>(outputs.size()));
  });
  if (failed == 0) return {};
  std::string where;
  std::string what = explain(call, *function.library, where);
  return error(std::move(what), where.substr(2));  // less the comma behind a caller
}

}  // namespace tenon::runtime
