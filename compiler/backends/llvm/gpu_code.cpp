#include "compiler/backends/llvm/gpu_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/backends/llvm/compile.h"
#include "compiler/backends/llvm/ptx.h"
#include "support/try.h"

namespace tenon::compiler::native {
namespace {

// The function with the temporaries of its kernels as further results, and after them one for each launch, whose sizes
// are the numbers of blocks: so one signature has the sizes of all.
loop::Function with_launches_as_results(TypeContext& context, const loop::Function& function,
                                        const std::vector<loop::Kernel>& kernels) {
  loop::Function described = function;
  described.body.clear();
  if (kernels.empty()) return described;
  described.results = kernels.front().function.results;
  described.buffers = kernels.front().function.buffers;
  for (const loop::Kernel& kernel : kernels) {
    loop::Buffer grid{context.symbol(kernel.name), DType::kU8, {}};
    for (size_t axis = 0; axis < 3; ++axis)
      grid.axes.push_back({context.symbol(fmt::format("g{}", axis)), kernel.launch.grid[axis]});
    described.results.push_back(static_cast<loop::BufferId>(described.buffers.size()));
    described.buffers.push_back(std::move(grid));
  }
  return described;
}

Expected<runtime::NativeKernel> describe(TypeContext& context, const loop::Function& function,
                                         const std::vector<loop::Kernel>& kernels) {
  TENON_TRY_ASSIGN(all, signature_of(context, with_launches_as_results(context, function, kernels)));
  runtime::NativeKernel described{std::string(context.name(function.name)),
                                  {all->dims, all->params, {}, {}, all->checks}};
  const size_t results = function.results.size(), temporaries = all->results.size() - kernels.size();
  for (size_t i = 0; i < temporaries; ++i)
    (i < results ? described.signature.results : described.temporaries).push_back(all->results[i]);
  for (size_t i = 0; i < kernels.size(); ++i) {
    runtime::GpuLaunch& launch = described.launches.emplace_back();
    launch.entry = kernels[i].name;
    launch.buffers.resize(all->params.size() + temporaries);
    std::iota(launch.buffers.begin(), launch.buffers.end(), 0u);
    for (size_t dim = 0; dim < all->dims.size(); ++dim)
      launch.sizes.push_back({{runtime::SizeStep::Op::kDim, static_cast<int64_t>(dim)}});
    std::ranges::copy(all->results[temporaries + i].axes, launch.grid.begin());
    for (size_t axis = 0; axis < 3; ++axis)
      launch.threads[axis] = static_cast<uint32_t>(kernels[i].launch.threads[axis]);
  }
  return described;
}

}  // namespace

Expected<runtime::NativeCode> compile_for_gpu(TypeContext& context, std::span<const loop::Function* const> functions,
                                              const std::string& level) {
  runtime::NativeCode code{.triple = std::string(runtime::kGpuTriple), .levels = {level}, .object = {}, .kernels = {}};
  std::vector<PtxFunction> entries;
  for (const loop::Function* function : functions) {
    TENON_TRY_ASSIGN(kernels, loop::kernels_of(context, *function));
    TENON_TRY_ASSIGN(kernel, describe(context, *function, *kernels));
    code.kernels.push_back(std::move(*kernel));
    entries.push_back({function, std::move(*kernels)});
  }
  TENON_TRY_ASSIGN(ptx, make_ptx(context, entries, level));
  const auto bytes = std::as_bytes(std::span(ptx->text));
  code.object.assign(bytes.begin(), bytes.end());
  for (auto& [fault, where] : ptx->sites) code.sites.push_back({fault, std::move(where)});
  return code;
}

Status check_for_gpu(TypeContext& context, const loop::Function& function, const std::string& level) {
  TENON_TRY_ASSIGN(kernels, loop::kernels_of(context, function));
  TENON_TRY(describe(context, function, *kernels));
  const PtxFunction entry{&function, *std::move(kernels)};
  return check_ptx(context, std::span(&entry, 1), level);
}

}  // namespace tenon::compiler::native
