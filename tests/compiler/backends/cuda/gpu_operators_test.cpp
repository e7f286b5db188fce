// The kernels of all operators through the driver's interface: memory, arguments, launches. On the GPU of this machine,
// or on a driver of the tests, which executes the launches on the CPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/backends/llvm/gpu_code.h"
#include "runtime/device/cuda/library.h"
#include "tests/compiler/backends/cuda/emulated_driver.h"
#include "tests/compiler/backends/cuda/operator_kernels.h"

namespace tenon::compiler {
namespace {

namespace cuda = runtime::cuda;

TEST(GpuOperators, ComputeTheResults) {
  Context context;
  size_t refused = 0;
  const auto kernels = bound_kernels(context, refused);
  ASSERT_GT(kernels.size(), 300u);
  std::vector<loop::Function> functions;
  std::vector<const loop::Function*> pointers;
  for (const BoundKernel& kernel : kernels) functions.push_back(kernel.function);
  for (const loop::Function& function : functions) pointers.push_back(&function);
  const auto code = native::compile_for_gpu(context, pointers, "sm_80");
  ASSERT_TRUE(code) << code.error().str();
  ASSERT_TRUE(verify(*code, "operators"));

  const auto found_gpu = cuda::Gpu::open(0, cuda::default_driver());
  std::optional<EmulatedDriver> driver;
  if (!found_gpu) {
    fmt::print("{}: the launches are executed on the CPU\n", found_gpu.error().what);
    driver.emplace(context, functions);
  }
  auto gpu = cuda::Gpu::open(0, driver ? TENON_FAKE_DRIVER : cuda::default_driver());
  ASSERT_TRUE(gpu) << gpu.error().str();
  const auto shared = std::make_shared<cuda::SharedGpu>(std::move(*gpu));
  auto library = cuda::GpuLibrary::load(*code, shared, {});
  ASSERT_TRUE(library) << library.error().str();
  runtime::CallMemory memory;
  for (size_t i = 0; i < kernels.size(); ++i) {
    std::vector<runtime::Tensor> found;
    const auto status = library->call(i, kernels[i].params, found, memory);
    ASSERT_TRUE(status) << kernels[i].where << ": " << status.error().str();
    ASSERT_EQ(found.size(), kernels[i].results.size()) << kernels[i].where;
    for (size_t k = 0; k < found.size(); ++k) expect_near(found[k], kernels[i].results[k], kernels[i].where);
  }
  const cuda::GpuCounters& counters = library->counters();
  EXPECT_GE(counters.launches, kernels.size());
  fmt::print("{} kernels of operators, {} launches on {}\n", kernels.size(), counters.launches, shared->gpu.name());
}

}  // namespace
}  // namespace tenon::compiler
