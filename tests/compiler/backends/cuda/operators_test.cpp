// The kernels of all operators, bound to a GPU: their PTX is assembled, and a processor computes the same results.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/backends/llvm/compile.h"
#include "compiler/backends/llvm/ptx.h"
#include "compiler/loop/bindings.h"
#include "runtime/native/native.h"
#include "runtime/native/thread_pool.h"
#include "tests/compiler/backends/cuda/operator_kernels.h"
#include "tests/compiler/backends/cuda/ptxas.h"

namespace tenon::compiler {
namespace {

TEST(CudaOperators, PtxOfAllKernelsIsAssembled) {
  const auto ptxas = find_ptxas();
  Context context;
  size_t refused = 0;
  const auto kernels = bound_kernels(context, refused);
  ASSERT_GT(kernels.size(), 300u);
  EXPECT_EQ(refused, 0u);
  for (const std::string level : {"sm_80", "sm_90"}) {
    std::vector<native::PtxFunction> functions;
    for (const BoundKernel& kernel : kernels) {
      auto launches = loop::kernels_of(context, kernel.function);
      ASSERT_TRUE(launches) << kernel.where << launches.error().str();
      functions.push_back({&kernel.function, std::move(*launches)});
    }
    const auto ptx = native::make_ptx(context, functions, level);
    ASSERT_TRUE(ptx) << ptx.error().str();
    if (ptxas) {
      EXPECT_EQ(assemble(*ptxas, ptx->text, level), "");
    }
  }
  fmt::print("{} kernels\n", kernels.size());
  if (!ptxas) GTEST_SKIP() << kNoPtxas;
}

TEST(CudaOperators, EmulatedKernelsComputeTheResults) {
  Context context;
  size_t refused = 0;
  const auto kernels = bound_kernels(context, refused);
  std::vector<const loop::Function*> functions;
  for (const BoundKernel& kernel : kernels) functions.push_back(&kernel.function);
  native::Options options;
  options.levels = {std::string(runtime::host_levels().front())};
  const auto code = native::compile(context, functions, options);
  ASSERT_TRUE(code) << code.error().str();
  const auto library = runtime::NativeLibrary::load(*code);
  ASSERT_TRUE(library) << library.error().str();
  runtime::ThreadPool pool(2);
  for (size_t i = 0; i < kernels.size(); ++i) {
    const auto found = library->call(i, kernels[i].params, pool);
    ASSERT_TRUE(found) << kernels[i].where << ": " << found.error().str();
    ASSERT_EQ(found->size(), kernels[i].results.size()) << kernels[i].where;
    for (size_t k = 0; k < found->size(); ++k) expect_near((*found)[k], kernels[i].results[k], kernels[i].where);
  }
}

}  // namespace
}  // namespace tenon::compiler
