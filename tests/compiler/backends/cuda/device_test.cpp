// The target "cuda": executables with code for a GPU, and whole models through the driver of the tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/backends/cuda/target.h"
#include "compiler/ir/text.h"
#include "compiler/lower/lower.h"
#include "compiler/partition/partition.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/device/cuda/library.h"
#include "tests/compiler/backends/cuda/emulated_driver.h"
#include "tests/compiler/backends/cuda/models.h"
#include "tests/compiler/backends/cuda/ptxas.h"
#include "tests/compiler/backends/cuda/transformer.h"
#include "tests/random_tensor.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

runtime::SessionOptions on_fake_gpu() { return {.gpu_driver = TENON_FAKE_DRIVER}; }

// How many calls of native kernels the entry has.
size_t native_calls(const runtime::Executable& executable) {
  return static_cast<size_t>(std::ranges::count_if(executable.main().code, [](const runtime::Instruction& i) {
    return std::holds_alternative<runtime::CallNative>(i.operation);
  }));
}

TEST(CudaDevice, ResNet8HasTheResultsOfTheCpu) {
  auto model = load_model(kResNet8 + ".onnx", {{"N", 1}});
  ASSERT_TRUE(model) << model.error().str();
  const auto cpu = compile(*model, {.accelerators = {}, .cpu = this_processor()});
  const auto gpu = compile(*model, {.accelerators = {}, .targets = {"cuda"}, .cpu = this_processor()});
  ASSERT_TRUE(cpu) << cpu.error().str();
  ASSERT_TRUE(gpu) << gpu.error().str();
  const std::vector<Target> targets{cuda::make_target()};
  std::vector<loop::Function> functions;
  const auto made = lower(*model->context, gpu->partitioned, model->entry, targets,
                          {.name = "resnet8", .facts = {}, .cpu = this_processor(), .gpu_functions = &functions});
  ASSERT_TRUE(made) << made.error().str();
  const auto file = runtime::serialize(*made);
  ASSERT_TRUE(file) << file.error().str();
  const auto executable = runtime::deserialize(*file, "resnet8.tnx");
  ASSERT_TRUE(executable) << executable.error().str();
  EXPECT_EQ(executable->natives, made->natives);
  const auto code = std::ranges::find_if(executable->natives, &runtime::NativeCode::is_for_gpu);
  ASSERT_NE(code, executable->natives.end());
  const EmulatedDriver driver(*model->context, functions);
  for (const Tensor& image : images("x", 3)) {
    const auto wanted = run(cpu->executable, {image}), found = run(*executable, {image}, on_fake_gpu());
    ASSERT_TRUE(wanted) << wanted.error().str();
    ASSERT_TRUE(found) << found.error().str();
    expect_close((*found)[0], (*wanted)[0]);
  }
  EXPECT_GE(driver.launches(), 3 * 9u);
  EXPECT_EQ(native_calls(*executable), 1u) << "all layers are one region";
}

// Compiled once: the sizes of buffers and grids are those of each run.
TEST(CudaDevice, AnEncoderOfUnknownSizesHasTheResultsOfTheCpu) {
  auto model = load_model(kEncoder + ".onnx", {});
  ASSERT_TRUE(model) << model.error().str();
  const auto cpu = compile(*model, {.accelerators = {}, .cpu = this_processor()});
  const auto gpu = compile(*model, {.accelerators = {}, .targets = {"cuda"}, .cpu = this_processor()});
  ASSERT_TRUE(cpu) << cpu.error().str();
  ASSERT_TRUE(gpu) << gpu.error().str();
  const std::vector<Target> targets{cuda::make_target()};
  std::vector<loop::Function> functions;
  const auto made = lower(*model->context, gpu->partitioned, model->entry, targets,
                          {.name = "encoder", .facts = {}, .cpu = this_processor(), .gpu_functions = &functions});
  ASSERT_TRUE(made) << made.error().str();
  const auto file = runtime::serialize(*made);
  ASSERT_TRUE(file) << file.error().str();
  const auto executable = runtime::deserialize(*file, "encoder.tnx");
  ASSERT_TRUE(executable) << executable.error().str();
  EXPECT_EQ(executable->natives, made->natives);
  for (const Placement& placement : gpu->placements) {
    if (placement.op != "expand_dims") {  // which copies nothing on the host
      EXPECT_EQ(placement.target, "cuda") << placement.op << ": " << placement.reason;
    }
  }
  const EmulatedDriver driver(*model->context, functions);
  for (const int64_t count : {1, 2, 7, 31, 64, 128}) {
    const size_t before = driver.launches();
    const auto wanted = run(cpu->executable, sentence(count)), found = run(*executable, sentence(count), on_fake_gpu());
    ASSERT_TRUE(wanted) << wanted.error().str();
    ASSERT_TRUE(found) << found.error().str();
    expect_close((*found)[0], (*wanted)[0]);
    EXPECT_GE(driver.launches() - before, 40u) << "the layers are the GPU's at every length";
  }
}

// One function on the GPU alone.
class CudaCode : public testing::Test {
 protected:
  runtime::Executable compiled(const std::string& params, const std::string& type, const std::string& body) {
    return compiled("#[version = \"1\"]\ndef @main" + params + " -> " + type + " {\n" + body + "\n}\n");
  }
  runtime::Executable compiled(const std::string& text) {
    auto module = parse(context, text, {}, "m");
    EXPECT_TRUE(module) << module.error().str();
    const Symbol main = context.symbol("main");
    const auto placements = partition(context, *module, main, targets);
    EXPECT_TRUE(placements) << placements.error().str();
    auto made = lower(context, *module, main, targets,
                      {.name = "m", .facts = {}, .cpu = this_processor(), .gpu_functions = &functions});
    EXPECT_TRUE(made) << made.error().str();
    return std::move(*made);
  }

  // Runs the compiled function on the GPU of the tests; returns the number of launches.
  size_t expect_results_of_the_cpu(const runtime::Executable& executable, const std::string& text,
                                   const std::vector<Tensor>& inputs) {
    const auto module = parse(context, text, {}, "m");
    EXPECT_TRUE(module) << module.error().str();
    const auto cpu =
        lower(context, *module, context.symbol("main"), {}, {.name = "m", .facts = {}, .cpu = this_processor()});
    EXPECT_TRUE(cpu) << cpu.error().str();
    const EmulatedDriver driver(context, functions);
    const auto wanted = run(*cpu, inputs), found = run(executable, inputs, on_fake_gpu());
    EXPECT_TRUE(wanted) << wanted.error().str();
    EXPECT_TRUE(found) << found.error().str();
    for (size_t i = 0; wanted && found && i < wanted->size(); ++i) expect_close((*found)[i], (*wanted)[i]);
    return driver.launches();
  }

  std::vector<Target> targets{cuda::make_target()};
  Context context;
  std::vector<loop::Function> functions;
};

TEST_F(CudaCode, WithoutADriverASessionSaysWhatToDo) {
  const auto executable = compiled("(%x: Tensor[(3, 4), f32])", "Tensor[(3, 4), f32]", "  relu(%x)");
  const auto session = runtime::Session::create(executable, {.gpu_driver = "no_such_driver.so.1"});
  ASSERT_FALSE(session);
  EXPECT_NE(session.error().str().find("m: error: the executable has 1 kernels for a GPU: there is no CUDA driver: "
                                       "no_such_driver.so.1"),
            std::string::npos)
      << session.error().str();
  EXPECT_NE(session.error().help.find("compile with --targets cuda:emulated"), std::string::npos);
  const auto forbidden = runtime::Session::create(executable, {.native = false});
  ASSERT_FALSE(forbidden);
  EXPECT_NE(forbidden.error().what.find("has native code, which was forbidden"), std::string::npos);
}

TEST_F(CudaCode, ATransformerIsOneRegion) {
  const Transformer model = TransformerMaker(test_seed(22)).make(2);
  const auto executable = compiled(model.text);
  EXPECT_EQ(native_calls(executable), 1u) << "values stay on the GPU from one operator to the next";
  EXPECT_GE(expect_results_of_the_cpu(executable, model.text, model.inputs), 2 * 14u);
}

// A parameter that two steps read, a value that is returned and read on, and one of two results of an operator.
TEST_F(CudaCode, RegionsReturnAndReadValuesOften) {
  const std::string text =
      "#[version = \"1\"]\ndef @main(%x: Tensor[(3, 4), f32], %y: Tensor[(4, 3), f32]) -> (Tensor[(3, 3), f32], "
      "Tensor[(3, 2), f32], Tensor[(3, 3), f32]) {\n  let %p = matmul(%x, %y);\n  let %t = split(softmax(%p), "
      "sizes=[1, 2], "
      "axis=1);\n  (%p, %t.1, tanh(matmul(%p, matmul(%x, %y))))\n}\n";
  const auto executable = compiled(text);
  EXPECT_EQ(native_calls(executable), 1u);
  std::vector<Tensor> inputs{Tensor(DType::kF32, {3, 4}), Tensor(DType::kF32, {4, 3})};
  for (Tensor& input : inputs)
    for (size_t i = 0; i < 12; ++i) input.data<float>()[i] = static_cast<float>(i % 5) / 4 - 0.3f;
  expect_results_of_the_cpu(executable, text, inputs);
}

// The PTX of tensor cores and of dp4a, which the driver of the tests does not execute: it has the loops.
TEST_F(CudaCode, ProductsOfBytesAreInstructions) {
  const std::string text =
      "#[version = \"1\"]\ndef @main[n](%x: Tensor[(n, 70), i8], %w: Tensor[(70, 40), i8]) -> Tensor[(n, 40), i32] {\n"
      "  relu(matmul(cast(%x, dtype=\"i32\"), cast(%w, dtype=\"i32\")))\n}\n";
  const auto executable = compiled(text);
  const auto& object = executable.natives[0].object;
  const std::string ptx(reinterpret_cast<const char*>(object.data()), object.size());
  EXPECT_NE(ptx.find("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find("ldmatrix.sync.aligned.m8n8.x4.shared.b16"), std::string::npos) << "fragments of rows";
  EXPECT_NE(ptx.find("ldmatrix.sync.aligned.m8n8.x2.shared.b16"), std::string::npos) << "fragments of columns";
  EXPECT_EQ(ptx.find("ld.local"), std::string::npos) << "sums are in registers";
  if (const auto ptxas = find_ptxas()) {
    EXPECT_EQ(assemble(*ptxas, ptx, "sm_80"), "");
  }
  for (const int64_t n : {1, 65}) {
    std::vector<Tensor> inputs{Tensor(DType::kI8, {n, 70}), Tensor(DType::kI8, {70, 40})};
    for (Tensor& input : inputs)
      for (int64_t k = 0; k < input.size(); ++k)
        input.data<int8_t>()[static_cast<size_t>(k)] = static_cast<int8_t>(k * 71 % 256);
    expect_results_of_the_cpu(executable, text, inputs);
  }
}

// Where the user allows it. The assembler accepts them for both GPUs, and the loops have the CPU's results.
TEST_F(CudaCode, ProductsOfFloatsAreInstructions) {
  const std::pair<std::string, std::string> cases[] = {{"f16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"},
                                                       {"bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"},
                                                       {"f32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"}};
  for (const auto& [type, instruction] : cases) {
    const std::string text = fmt::format(
        "#[version = \"1\"]\ndef @main[n](%x: Tensor[(n, 70), {0}], %w: Tensor[(40, 70), {0}]) -> Tensor[(n, 40), {0}] "
        "{{\n  relu(dense(%x, %w))\n}}\n",
        type);
    targets = {cuda::make_target({.inexact = {.f16 = true, .bf16 = true, .tf32 = true}})};
    functions.clear();  // of the case before, whose kernels have the same names
    const auto executable = compiled(text);
    const auto& object = executable.natives[0].object;
    const std::string ptx(reinterpret_cast<const char*>(object.data()), object.size());
    EXPECT_NE(ptx.find(instruction), std::string::npos) << ptx;
    EXPECT_NE(ptx.find("ldmatrix.sync.aligned.m8n8.x4.shared.b16"), std::string::npos);
    EXPECT_EQ(ptx.find("ld.local"), std::string::npos) << "sums are in registers";
    if (const auto ptxas = find_ptxas()) {
      EXPECT_EQ(assemble(*ptxas, ptx, "sm_80"), "");
      EXPECT_EQ(assemble(*ptxas, ptx, "sm_90"), "");
    }
    for (const int64_t n : {1, 65}) {
      const auto made = [&]<class T>(T) {
        std::vector<Tensor> inputs{Tensor(runtime::dtype_of<T>, {n, 70}), Tensor(runtime::dtype_of<T>, {40, 70})};
        for (Tensor& input : inputs)
          for (size_t k = 0; k < input.data<T>().size(); ++k)
            input.data<T>()[k] = T(static_cast<float>(k * 7 % 23) / 8 - 1);
        return inputs;
      };
      const auto inputs = type == "f16"    ? made(runtime::Half{})
                          : type == "bf16" ? made(runtime::BFloat16{})
                                           : made(float{});
      expect_results_of_the_cpu(executable, text, inputs);
    }
  }
}

TEST_F(CudaCode, LaunchesThatTheDriverRefusesAreErrors) {
  auto executable = compiled("(%x: Tensor[(3, 4), f32])", "Tensor[(3, 4), f32]", "  relu(%x)");
  const EmulatedDriver driver(context, functions);
  const std::vector<Tensor> input{Tensor(DType::kF32, {3, 4})};
  EXPECT_TRUE(run(executable, input, on_fake_gpu()));
  executable.natives[0].kernels[0].launches[0].threads = {7, 1, 1};
  const auto refused = run(executable, input, on_fake_gpu());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().str().find("cannot be launched: CUDA_ERROR_INVALID_VALUE"), std::string::npos)
      << refused.error().str();
}

// A kernel that is started before it is called: the results are the call's, whatever was started.
TEST_F(CudaCode, KernelsThatAreStartedHaveTheResultsOfTheirCalls) {
  const auto plain =
      compiled("(%x: Tensor[(3, 4), f32], %y: Tensor[(3, 4), f32])", "Tensor[(3, 4), f32]", "  softmax(relu(%x))");
  const EmulatedDriver driver(context, functions);
  std::vector<Tensor> inputs{Tensor(DType::kF32, {3, 4}), Tensor(DType::kF32, {3, 4})};
  for (size_t i = 0; i < 12; ++i) inputs[0].data<float>()[i] = static_cast<float>(i % 5) - 2;
  const auto wanted = run(plain, inputs, on_fake_gpu());
  ASSERT_TRUE(wanted) << wanted.error().str();
  const auto& code = plain.main().code;
  const auto call = std::ranges::find_if(
      code, [](const runtime::Instruction& i) { return std::holds_alternative<runtime::CallNative>(i.operation); });
  ASSERT_NE(call, code.end());
  const auto& native = std::get<runtime::CallNative>(call->operation);
  const runtime::Instruction start{runtime::StartNative{native.code, native.kernel, native.args}, ""},
      other{runtime::StartNative{native.code, native.kernel, {1}}, ""};
  for (const auto& starts : std::vector<std::vector<runtime::Instruction>>{
           {start}, {start, start}, {other}, {other, start}, {start, other}}) {
    auto changed = plain;
    auto& changed_code = changed.functions[changed.entry].code;
    changed_code.insert(changed_code.begin() + (call - code.begin()), starts.begin(), starts.end());
    const auto file = runtime::serialize(changed);
    ASSERT_TRUE(file) << file.error().str();
    const auto executable = runtime::deserialize(*file, "m.tnx");
    ASSERT_TRUE(executable) << executable.error().str();
    auto session = runtime::Session::create(*executable, on_fake_gpu());
    ASSERT_TRUE(session) << session.error().str();
    for (int i = 0; i < 2; ++i) {
      const auto found = session->run(inputs);
      ASSERT_TRUE(found) << found.error().str();
      EXPECT_EQ((*found)[0], (*wanted)[0]);
    }
  }
}

TEST_F(CudaCode, AKernelThatIsStartedAndNeverCalledEndsWithTheRun) {
  auto executable = compiled("(%x: Tensor[(3, 4), f32])", "Tensor[(3, 4), f32]", "  relu(%x)");
  const EmulatedDriver driver(context, functions);
  auto& code = executable.functions[executable.entry].code;
  const auto call = std::ranges::find_if(
      code, [](const runtime::Instruction& i) { return std::holds_alternative<runtime::CallNative>(i.operation); });
  ASSERT_NE(call, code.end());
  const auto native = std::get<runtime::CallNative>(call->operation);
  code.insert(call + 1, {runtime::StartNative{native.code, native.kernel, native.results}, ""});
  for (int i = 0; i < 2; ++i) {
    const auto found = run(executable, {Tensor(DType::kF32, {3, 4})}, on_fake_gpu());
    EXPECT_TRUE(found) << found.error().str();
  }
}

TEST_F(CudaCode, TemporariesShareMemory) {
  std::string body = "%x";
  for (int i = 0; i < 12; ++i) body = "softmax(" + body + ")";
  const auto executable = compiled("(%x: Tensor[(64, 64), f32])", "Tensor[(64, 64), f32]", "  " + body);
  const EmulatedDriver driver(context, functions);
  auto gpu = runtime::cuda::Gpu::open(0, TENON_FAKE_DRIVER);
  ASSERT_TRUE(gpu) << gpu.error().str();
  const auto shared = std::make_shared<runtime::cuda::SharedGpu>(std::move(*gpu));
  auto library = runtime::cuda::GpuLibrary::load(executable.natives[0], shared, {});
  ASSERT_TRUE(library) << library.error().str();
  const std::vector<Tensor> params{Tensor(DType::kF32, {64, 64})};
  std::vector<Tensor> results;
  runtime::CallMemory memory;
  const auto status = library->call(0, params, results, memory);
  ASSERT_TRUE(status) << status.error().str();
  EXPECT_EQ(results[0].data<float>()[5], 1.0f / 64);
  EXPECT_EQ(library->counters().uploads, 1u);
  EXPECT_EQ(library->counters().downloads, 1u);
  EXPECT_LE(shared->gpu.pooled_bytes(), 8u * 64 * 64 * 4)
      << "all memory of the call, of which 11 values are temporaries";
}

// The second call with the same sizes records its launches, later ones repeat them; a driver without graphs, and a GPU
// whose memory is full, launch one by one.
TEST_F(CudaCode, RecordedLaunchesHaveTheResultsOfSingleOnes) {
  const auto executable = compiled(
      "#[version = \"1\"]\ndef @main[n](%x: Tensor[(n, 16), f32]) -> Tensor[(n, 16), f32] {\n"
      "  softmax(tanh(softmax(%x)) * %x)\n}\n");
  const EmulatedDriver driver(context, functions);
  const auto open = [&] {
    auto gpu = runtime::cuda::Gpu::open(0, TENON_FAKE_DRIVER);
    EXPECT_TRUE(gpu) << gpu.error().str();
    auto library = runtime::cuda::GpuLibrary::load(executable.natives[0],
                                                   std::make_shared<runtime::cuda::SharedGpu>(std::move(*gpu)), {});
    EXPECT_TRUE(library) << library.error().str();
    return std::move(*library);
  };
  std::mt19937 random(test_seed(31));
  const auto call = [&](runtime::cuda::GpuLibrary& library, const Tensor& x) {
    std::vector<Tensor> results;
    runtime::CallMemory memory;
    const auto status = library.call(0, std::vector{x}, results, memory);
    EXPECT_TRUE(status) << status.error().str();
    return results.empty() ? Tensor() : results[0];
  };
  {
    runtime::cuda::GpuLibrary recording = open();
    setenv("FAKE_NO_GRAPHS", "1", 1);
    runtime::cuda::GpuLibrary plain = open();
    for (const int64_t n : {3, 3, 3, 5, 5, 3, 5, 0, 0, 0, 3}) {
      const Tensor x = random_tensor(random, DType::kF32, {n, 16});
      setenv("FAKE_NO_GRAPHS", "1", 1);
      const Tensor expected = call(plain, x);
      unsetenv("FAKE_NO_GRAPHS");
      EXPECT_EQ(call(recording, x), expected) << n;
    }
    EXPECT_EQ(plain.counters().recorded_lists, 0u) << "the driver refused";
    EXPECT_EQ(recording.counters().recorded_lists, 3u);
    EXPECT_EQ(recording.counters().replayed_lists, 8u) << "all calls but the first one of each size";
    EXPECT_EQ(recording.counters().launches, plain.counters().launches);
    EXPECT_EQ(EmulatedDriver::lists(), 3);
  }
  EXPECT_EQ(EmulatedDriver::lists(), 0);
  runtime::cuda::GpuLibrary limited = open();
  for (int64_t n = 1; n <= 20; ++n) {
    const Tensor x = random_tensor(random, DType::kF32, {n, 16});
    EXPECT_EQ(call(limited, x), call(limited, x)) << n;
  }
  EXPECT_EQ(limited.counters().recorded_lists, 16u) << "a kernel of many sizes keeps as many lists";
  // A call that needs their memory gets it.
  const Tensor large = random_tensor(random, DType::kF32, {900, 16});
  EmulatedDriver::set_memory(size_t{200} << 10);
  EXPECT_EQ(call(limited, large), call(limited, large));
  EXPECT_EQ(EmulatedDriver::lists(), 0);
}

TEST_F(CudaCode, SizesBeyondAllLimitsAreErrors) {
  using runtime::NativeCode, runtime::SizeStep;
  const auto executable =
      compiled("(%x: Tensor[(3, 4), f32])", "Tensor[(3, 4), f32]", "  softmax(softmax(softmax(%x)))");
  const EmulatedDriver driver(context, functions);
  const auto message = [&](void (*damage)(runtime::NativeKernel&)) {
    auto damaged = executable;
    damage(damaged.natives[0].kernels[0]);
    const auto found = run(damaged, {Tensor(DType::kF32, {3, 4})}, on_fake_gpu());
    return found ? std::string("no error") : found.error().str();
  };
  const auto has = [&](void (*damage)(runtime::NativeKernel&), const std::string& text) {
    EXPECT_NE(message(damage).find(text), std::string::npos) << message(damage);
  };
  EXPECT_EQ(message([](runtime::NativeKernel&) {}), "no error");
  has(
      [](runtime::NativeKernel& k) {
        k.temporaries[0].axes = {{{SizeStep::Op::kConstant, int64_t{1} << 60}}};
      },
      "would be a (1152921504606846976,) of f32");
  has(
      [](runtime::NativeKernel& k) {
        k.temporaries[0].axes = {{{SizeStep::Op::kConstant, -1}}};
      },
      "must be 0 or more and at most 64 bits");
  has(
      [](runtime::NativeKernel& k) {
        k.launches[0].grid[0] = {
            {SizeStep::Op::kConstant, INT64_MAX}, {SizeStep::Op::kConstant, 2}, {SizeStep::Op::kMultiply}};
      },
      "the number of blocks of");
  has(
      [](runtime::NativeKernel& k) {
        k.launches[0].sizes = {
            {{SizeStep::Op::kConstant, INT64_MAX}, {SizeStep::Op::kConstant, 2}, {SizeStep::Op::kMultiply}}};
      },
      "is beyond 64 bits");
}

TEST_F(CudaCode, BrokenLaunchesAreRefused) {
  using runtime::NativeCode, runtime::SizeStep;
  const auto executable = compiled("(%x: Tensor[(3, 4), f32])", "Tensor[(3, 4), f32]", "  softmax(%x)");
  const auto message = [&](void (*damage)(NativeCode&)) {
    NativeCode code = executable.natives[0];
    damage(code);
    const Status status = verify(code, "m.tnx");
    return status ? std::string("verified") : status.error().str();
  };
  EXPECT_EQ(message([](NativeCode&) {}), "verified");
  const auto has = [&](void (*damage)(NativeCode&), const std::string& text) {
    EXPECT_NE(message(damage).find(text), std::string::npos) << message(damage);
  };
  has(
      [](NativeCode& c) {
        c.kernels[0].launches[0].grid[1] = {{SizeStep::Op::kDim, 0}};
      },
      "has a malformed number of blocks");
  has(
      [](NativeCode& c) {
        c.kernels[0].launches[0].threads = {32, 33, 1};
      },
      "has 32 x 33 x 1 threads, a block has 1 to 1024");
  has(
      [](NativeCode& c) {
        c.kernels[0].launches[0].sizes = {{{SizeStep::Op::kAdd, 0}}};
      },
      "has a malformed size as argument");
  has([](NativeCode& c) { c.kernels[0].launches[0].threads[2] = 0; }, "0 threads, a block has 1 to 1024");
  has([](NativeCode& c) { c.kernels[0].launches[0].buffers[0] = 9; }, "has a buffer that does not exist");
  has([](NativeCode& c) { c.kernels[0].temporaries.push_back({"t", DType::kF32, {{}}}); }, "'t' has a malformed size");
  has([](NativeCode& c) { c.triple = "x86_64-unknown-linux-gnu"; }, "it launches kernels of a GPU in code for x86_64");
  has([](NativeCode& c) { c.object.push_back(std::byte{0}); }, "the PTX has a byte 0");
  has(
      [](NativeCode& c) {
        c = {.triple = "x86_64-unknown-linux-gnu", .levels = {}, .object = {}, .kernels = {}, .sites = {{0, "@f"}}};
      },
      "has the fault sites of a GPU");
}

}  // namespace
}  // namespace tenon::compiler
