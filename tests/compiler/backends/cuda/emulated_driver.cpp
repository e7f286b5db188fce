#include "tests/compiler/backends/cuda/emulated_driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "compiler/backends/llvm/compile.h"
#include "compiler/loop/bindings.h"
#include "tests/runtime/device/cuda/fake_driver.h"

namespace tenon::compiler {
namespace {

template <class F>
F* of_driver(const char* name) {
  static void* const library = dlopen(TENON_FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(library) << dlerror();
  return reinterpret_cast<F*>(dlsym(library, name));
}

// One function for each launch, with the kernels' arguments: its nest alone.
std::vector<loop::Function> launches_of(Context& context, const loop::Function& function) {
  const auto kernels = loop::kernels_of(context, function);
  const auto launches = loop::launches_of(context, function);
  EXPECT_TRUE(kernels && launches);
  std::vector<loop::Function> made;
  for (size_t i = 0; i < launches->size(); ++i) {
    loop::Function& launch = made.emplace_back(function);
    launch.name = context.symbol((*kernels)[i].name);
    launch.results = (*kernels)[i].function.results;
    launch.body.clear();
    launch.body.push_back(loop::Stmt{*(*launches)[i].nest});
  }
  return made;
}

}  // namespace

EmulatedDriver::EmulatedDriver(Context& context, std::span<const loop::Function> functions) {
  std::deque<loop::Function> launches;
  for (const loop::Function& function : functions) {
    for (loop::Function& made : launches_of(context, function)) {
      entries_.push_back({this, launches.size(), std::string(context.name(made.name))});
      launches.push_back(std::move(made));
    }
  }
  std::vector<const loop::Function*> pointers;
  for (const loop::Function& launch : launches) pointers.push_back(&launch);
  auto compiled = native::compile(context, pointers, {.levels = {std::string(runtime::host_levels().front())}});
  EXPECT_TRUE(compiled) << compiled.error().str();
  compiled_ = std::move(*compiled);
  auto library = runtime::NativeLibrary::load(compiled_);
  EXPECT_TRUE(library) << library.error().str();
  library_.emplace(std::move(*library));
  set_memory(size_t{1} << 28);
  for (Entry& entry : entries_)
    of_driver<decltype(fake_set_kernel)>("fake_set_kernel")(entry.name.c_str(), run, &entry);
}

void EmulatedDriver::set_memory(size_t bytes) { of_driver<decltype(fake_set_memory)>("fake_set_memory")(bytes); }
int EmulatedDriver::lists() { return of_driver<decltype(fake_lists)>("fake_lists")(); }

EmulatedDriver::~EmulatedDriver() {
  for (const Entry& entry : entries_)
    of_driver<decltype(fake_set_kernel)>("fake_set_kernel")(entry.name.c_str(), nullptr, nullptr);
}

bool EmulatedDriver::run(void* user, void** arguments) {
  const Entry& entry = *static_cast<Entry*>(user);
  const runtime::Signature& signature = entry.driver->compiled_.kernels[entry.kernel].signature;
  const size_t buffers = signature.params.size() + signature.results.size();
  std::vector<std::optional<int64_t>> dims;
  for (size_t i = 0; i < signature.dims.size(); ++i)
    dims.emplace_back(*static_cast<const int64_t*>(arguments[buffers + i]));
  const auto view = [&](const runtime::SignatureBuffer& buffer, size_t argument) {
    runtime::Shape shape;
    for (const runtime::Size& axis : buffer.axes) shape.push_back(runtime::evaluate(axis, dims).value());
    const auto bytes = static_cast<size_t>(runtime::checked_bytes(buffer.dtype, shape).value());
    auto* memory = *static_cast<std::byte**>(arguments[argument]);
    return runtime::Tensor::in({{std::shared_ptr<std::byte[]>(), memory}, bytes}, buffer.dtype, shape);
  };
  std::vector<runtime::Tensor> params, results;
  for (const auto& param : signature.params) params.push_back(view(param, params.size()));
  for (const auto& result : signature.results) results.push_back(view(result, params.size() + results.size()));
  ++entry.driver->launches_;
  const Status status = entry.driver->library_->call_into(entry.kernel, params, results, entry.driver->pool_);
  EXPECT_TRUE(status) << entry.name << ": " << status.error().str();
  return static_cast<bool>(status);
}

}  // namespace tenon::compiler
