// PTX executed on the CPU, instruction by instruction: of the kernels of all operators, and of rows in warps.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "compiler/backends/llvm/gpu_code.h"
#include "compiler/loop/evaluate.h"
#include "runtime/native/native.h"
#include "support/random.h"
#include "tests/compiler/backends/cuda/operator_kernels.h"
#include "tests/compiler/backends/cuda/ptx_machine.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

Expected<PtxMachine> machine_of(const runtime::NativeCode& code) {
  return PtxMachine::load({reinterpret_cast<const char*>(code.object.data()), code.object.size()});
}

// The results of a kernel of constant sizes, by its launches.
std::vector<Tensor> results_of(PtxMachine& machine, const runtime::NativeKernel& kernel,
                               const std::vector<Tensor>& params, const std::string& where) {
  EXPECT_TRUE(kernel.signature.dims.empty()) << where;
  std::vector<Tensor> buffers = params;
  for (const auto* made : {&kernel.signature.results, &kernel.temporaries}) {
    for (const runtime::SignatureBuffer& buffer : *made) {
      runtime::Shape shape;
      for (const runtime::Size& axis : buffer.axes) shape.push_back(runtime::evaluate(axis, {}).value());
      buffers.emplace_back(buffer.dtype, shape);
    }
  }
  for (const runtime::GpuLaunch& launch : kernel.launches) {
    std::array<uint32_t, 3> grid{};
    for (size_t axis = 0; axis < 3; ++axis)
      grid[axis] = static_cast<uint32_t>(runtime::evaluate(launch.grid[axis], {}).value());
    std::vector<uint64_t> arguments;
    for (const uint32_t buffer : launch.buffers)
      arguments.push_back(reinterpret_cast<uint64_t>(buffers[buffer].bytes().data()));
    const Status status = machine.launch(launch.entry, grid, launch.threads, arguments);
    EXPECT_TRUE(status) << where << ": " << status.error().str();
  }
  const auto first = buffers.begin() + static_cast<ptrdiff_t>(params.size());
  return {first, first + static_cast<ptrdiff_t>(kernel.signature.results.size())};
}

TEST(PtxResults, OfAllOperatorsAreRight) {
  Context context;
  size_t refused = 0;
  const auto kernels = bound_kernels(context, refused);
  ASSERT_GT(kernels.size(), 300u);
  std::vector<const loop::Function*> functions;
  for (const BoundKernel& kernel : kernels) functions.push_back(&kernel.function);
  const auto code = native::compile_for_gpu(context, functions, "sm_80");
  ASSERT_TRUE(code) << code.error().str();
  auto machine = machine_of(*code);
  ASSERT_TRUE(machine) << machine.error().str();
  for (size_t i = 0; i < kernels.size(); ++i) {
    const auto found = results_of(*machine, code->kernels[i], kernels[i].params, kernels[i].where);
    ASSERT_EQ(found.size(), kernels[i].results.size()) << kernels[i].where;
    for (size_t k = 0; k < found.size(); ++k) expect_near(found[k], kernels[i].results[k], kernels[i].where);
  }
}

struct Rows {
  const char *dims, *dtype, *result, *call;
  bool shuffles = true;
};

TEST(PtxResults, OfRowsInWarpsAreRight) {
  constexpr Rows kRows[] = {
      {"(6, 64)", "f32", "(6, 64), f32", "softmax(%x)"},
      {"(2, 320)", "f32", "(2, 320), f32", "softmax(%x)"},
      {"(4, 100)", "f32", "(4, 100), f32", "softmax(%x)"},
      {"(1, 1000)", "f32", "(1, 1000), f32", "softmax(%x)"},
      {"(3, 2, 64)", "f32", "(3, 2, 64), f32", "log_softmax(%x)"},
      {"(2, 64)", "f16", "(2, 64), f16", "softmax(%x)"},
      {"(5, 384)", "f32", "(5,), f32", "mean(%x, axes=[1])"},
      {"(4, 48)", "f32", "(4,), f32", "norm_l2(%x, axes=[1])"},
      {"(4, 48)", "i32", "(4,), i32", "max(%x, axes=[1])"},
      {"(2, 300)", "i64", "(2,), i64", "sum(%x, axes=[1])"},
      {"(4, 64)", "f32", "(4,), i64", "arg_max(%x, axis=1, keep=0)"},
      {"(2, 6, 4, 32)", "f32", "(2, 6), f32", "sum(%x, axes=[2, 3])"},
      {"(4, 64)", "bool", "(4,), bool", "all(%x, axes=[1])"},
      {"(3, 64)", "f32", "(3, 64), f32", "softmax(%x)", false},
  };
  for (const Rows& rows : kRows) {
    Context context;
    const std::string text = fmt::format("#[version = \"1\"]\ndef @main(%x: Tensor[{}, {}]) -> Tensor[{}] {{ {} }}\n",
                                         rows.dims, rows.dtype, rows.result, rows.call);
    const auto module = parse(context, text, {}, "rows");
    ASSERT_TRUE(module) << module.error().str();
    const Function& main = *module->function(context.symbol("main"));
    const auto step = cuda::bound_step(context, *module, main, *find_machine("sm_90"));
    ASSERT_TRUE(step) << step.error().str();
    const loop::Function* const functions[] = {&step->function};
    const auto code = native::compile_for_gpu(context, functions, "sm_90");
    ASSERT_TRUE(code) << code.error().str();
    const std::string ptx(reinterpret_cast<const char*>(code->object.data()), code->object.size());
    EXPECT_EQ(ptx.find("shfl.sync") != std::string::npos, rows.shuffles) << text;
    EXPECT_EQ(ptx.find("bar.sync") == std::string::npos, rows.shuffles) << text;
    auto machine = machine_of(*code);
    ASSERT_TRUE(machine) << machine.error().str();
    Random random(1);
    const Tensor x = [&] {
      const auto& buffer = step->function.buffer(step->function.params[0]);
      runtime::Shape shape;
      for (const loop::BufferAxis& axis : buffer.axes) shape.push_back(*axis.extent.constant());
      Tensor made(buffer.dtype, shape);
      for (int64_t i = 0; i < made.size(); ++i) {
        const auto value = static_cast<int64_t>(random.below(41)) - 20;
        const auto at = static_cast<size_t>(i);
        if (buffer.dtype == runtime::DType::kF32) made.data<float>()[at] = 0.25f * static_cast<float>(value);
        if (buffer.dtype == runtime::DType::kI32) made.data<int32_t>()[at] = static_cast<int32_t>(value);
        if (buffer.dtype == runtime::DType::kI64) made.data<int64_t>()[at] = value;
        if (buffer.dtype == runtime::DType::kBool) made.bytes()[at] = std::byte{value != 20};
        if (buffer.dtype == runtime::DType::kF16)
          made.bytes()[2 * at + 1] = static_cast<std::byte>(value < 0 ? 0xbc : 0x3c);
      }
      return made;
    }();
    const auto expected = loop::evaluate(context, step->function, std::vector<Tensor>{x});
    ASSERT_TRUE(expected) << expected.error().str();
    expect_near(results_of(*machine, code->kernels[0], {x}, text)[0], (*expected)[0], text);
  }
}

// A shuffle that half of a warp skips hangs or is undefined on a GPU.
TEST(PtxResults, TheMachineRefusesWhatAGpuDoesNotDefine) {
  const auto kernel = [](const std::string& body) {
    return ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(\n\t.param .u64 k_param_0\n)\n"
           ".maxntid 32, 1, 1\n{\n\t.reg .pred %p<2>;\n\t.reg .b32 %r<4>;\n\t.shared .align 4 .b8 s[16];\n" +
           body + "\n}\n";
  };
  const std::string skips = "\tmov.u32 %r1, %tid.x;\n\tsetp.lt.u32 %p1, %r1, 16;\n\t@%p1 bra $L;\n";
  const std::pair<std::string, std::string> cases[] = {
      {skips + "\tshfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\n$L:\n\tret;", "a shuffle that some threads of a warp do not"},
      {skips + "\tbar.sync 0;\n\tret;\n$L:\n\tbar.sync 0;\n\tret;", "threads of a block wait at different barriers"},
      {"\tmov.u32 %r1, 1;\n\tst.shared.u32 [s+16], %r1;\n\tret;", "an address outside of shared memory"},
      {"\tmov.u32 %r1, 1;\n\tst.shared.u32 [s+14], %r1;\n\tret;", "an address outside of shared memory"},
      {"\tmov.u32 %r1, 1;\n\tst.shared.u16 [s+1], %r1;\n\tret;", "an address that is not aligned"},
  };
  for (const auto& [body, message] : cases) {
    auto machine = PtxMachine::load(kernel(body));
    ASSERT_TRUE(machine) << machine.error().str();
    const Status status = machine->launch("k", {1, 1, 1}, {32, 1, 1}, {0});
    ASSERT_FALSE(status) << body;
    EXPECT_NE(status.error().str().find(message), std::string::npos) << status.error().str();
  }
  const auto unsupported = PtxMachine::load(kernel("\ttanh.approx.f32 %r1, %r2;\n"));
  ASSERT_FALSE(unsupported);
  EXPECT_NE(unsupported.error().str().find("does not have this instruction"), std::string::npos);
}

}  // namespace
}  // namespace tenon::compiler
