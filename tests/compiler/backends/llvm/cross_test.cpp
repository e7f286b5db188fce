// Native code for another processor, run in an emulator: its results are the evaluator's.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>

#include "compiler/fuzz/random_loops.h"
#include "compiler/loop/evaluate.h"
#include "compiler/loop/schedule/schedule.h"
#include "runtime/native/functions.h"
#include "support/file.h"
#include "tests/compiler/backends/llvm/operations.h"

namespace tenon::compiler::native {
namespace {

namespace fs = std::filesystem;

bool is_installed(const char* program) {
  return std::system(fmt::format("command -v {} >/dev/null 2>&1", program).c_str()) == 0;
}

// A file of 64-bit words, the input of runner.c.
class WordFile {
 public:
  void put(int64_t value) { put_bytes(std::as_bytes(std::span(&value, 1))); }
  void put_bytes(std::span<const std::byte> bytes) {
    data_.insert(data_.end(), bytes.begin(), bytes.end());
    data_.resize((data_.size() + 7) / 8 * 8);
  }
  const std::vector<std::byte>& data() const { return data_; }

 private:
  std::vector<std::byte> data_;
};

struct Machine {
  std::string triplet, emulator, short_name;
  std::vector<std::string> levels;
  int programs;              // number of random programs
  std::string flushes = {};  // the level whose vectors flush subnormal floats to 0
  std::string options = {};  // of the emulator
};

// Equal up to the smallest normal float.
bool nearly(const Tensor& found, const Tensor& wanted) {
  if (found.dtype() != DType::kF32) return static_cast<bool>(same(found, wanted));
  for (size_t i = 0; i < static_cast<size_t>(found.size()); ++i) {
    const float a = found.data<float>()[i], b = wanted.data<float>()[i];
    if (a != b && !(std::isnan(a) && std::isnan(b)) &&
        !(std::abs(a - b) <= std::numeric_limits<float>::min() && std::isfinite(a - b)))
      return false;
  }
  return true;
}

void run_emulated(const Machine& machine) {
  if (!is_installed(machine.emulator.c_str()) || !is_installed((machine.triplet + "-gcc").c_str()))
    GTEST_SKIP() << "needs qemu-user and g++-" << machine.triplet << ": its code is compiled, and not run";
  TypeContext context;
  Cases cases = operations(context, false);
  add_dots(context, cases);
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(machine.programs); ++seed) {
    Random random(seed);
    std::string text = loop::random_program(random);
    text.replace(text.find("@p["), 2, fmt::format("@p{}", seed));
    const loop::Function program = must_parse(context, text);
    const auto n = static_cast<int64_t>(1 + random.below(6));
    const int64_t m = *program.buffer(program.params[1]).axes[0].extent.constant();
    std::vector<Tensor> params{Tensor(DType::kI32, {n, m}), Tensor(DType::kI32, {m, m})};
    for (Tensor& param : params)
      for (int32_t& value : param.data<int32_t>()) value = static_cast<int32_t>(random.below(2000)) - 1000;
    loop::Schedule schedule(context, program);
    for (int step = 0; step < 12; ++step) {
      for (const std::string& step_text : loop::random_steps(context, schedule.function(), random))
        (void)schedule.apply(step_text);
    }
    cases.functions.push_back(schedule.function());
    cases.params.push_back(params);
  }
  // The runner defines a function of this name, too.
  ASSERT_TRUE(runtime::open_functions(TENON_FUNCTIONS_SAMPLE));
  cases.functions.push_back(must_parse(
      context, "loop @calls[n](%x: Tensor[(n, 3), f32]) -> (%y: Tensor[(n, 3), f32]) { call halve(%x) -> (%y); }"));
  cases.params.push_back({Tensor::of<float>({2, 3}, std::vector<float>{1, -3, 5, 7, 0.25, 1e6})});
  // Functions that consist of basic operations are equal bit for bit on both processors.
  const size_t functions = cases.functions.size();
  for (std::string_view name : {"exp", "log", "tanh", "erf", "sin", "cos", "pow"}) {
    const std::string operands = name == "pow" ? "%x[i], %y[i]" : "%x[i]";
    cases.functions.push_back(must_parse(
        context, elementwise(name, DType::kF32, {{fmt::format("{}({})", name, operands), DType::kF32}}, true)));
    cases.params.push_back({interesting(DType::kF32, 2003, 1), interesting(DType::kF32, 2003, 2)});
  }
  if (!machine.flushes.empty()) {
    for (auto& params : cases.params) {
      for (Tensor& param : params) {
        param = param.clone();
        if (param.dtype() != DType::kF32) continue;
        for (float& x : param.data<float>()) x = std::fpclassify(x) == FP_SUBNORMAL ? 0.0f : x;
      }
    }
  }
  std::vector<const loop::Function*> pointers;
  for (const loop::Function& function : cases.functions) pointers.push_back(&function);
  const auto code = compile(context, pointers, {.triple = machine.short_name});
  ASSERT_TRUE(code) << code.error().str();
  EXPECT_EQ(code->levels, machine.levels);
  const auto host_code = compile(context, std::span(pointers).subspan(functions), host_options());
  ASSERT_TRUE(host_code) << host_code.error().str();
  const auto library = runtime::NativeLibrary::load(*host_code);
  ASSERT_TRUE(library) << library.error().str();
  EXPECT_FALSE(runtime::NativeLibrary::load(*code)) << "this is another processor";

  runtime::ThreadPool pool(1);
  std::vector<std::vector<Tensor>> expected;
  std::vector<std::vector<std::shared_ptr<const std::vector<int64_t>>>> tables;
  WordFile calls;
  calls.put(static_cast<int64_t>(pointers.size()));
  for (size_t i = 0; i < pointers.size(); ++i) {
    auto results = i < functions ? evaluate(context, *pointers[i], cases.params[i])
                                 : library->call(i - functions, cases.params[i], pool);
    ASSERT_TRUE(results) << results.error().str();
    runtime::CallMemory memory;
    const auto bound = bind_dims(code->kernels[i].signature, cases.params[i], memory);
    ASSERT_TRUE(bound) << bound.error().str();
    const auto made = make_tables(code->kernels[i].signature, cases.params[i], memory);
    ASSERT_TRUE(made) << made.error().str();
    tables.push_back(*made);
    calls.put(static_cast<int64_t>(i));
    calls.put(static_cast<int64_t>(memory.dims.size()));
    for (int64_t dim : memory.dims) calls.put(dim);
    calls.put(static_cast<int64_t>(cases.params[i].size() + results->size() + made->size()));
    for (const Tensor& tensor : cases.params[i]) {
      calls.put(static_cast<int64_t>(tensor.bytes().size()));
      calls.put_bytes(tensor.bytes());
    }
    for (const Tensor& tensor : *results) {
      calls.put(static_cast<int64_t>(tensor.bytes().size()));
      calls.put_bytes(std::vector<std::byte>(tensor.bytes().size(), std::byte{0x5a}));
    }
    for (const auto& table : *made) {
      const auto bytes = table ? std::as_bytes(std::span(*table)) : std::span<const std::byte>();
      calls.put(static_cast<int64_t>(bytes.size()));
      calls.put_bytes(bytes);
    }
    expected.push_back(std::move(*results));
  }
  const fs::path dir = fs::temp_directory_path() / fmt::format("tenon-cross-{}", getpid());
  fs::create_directories(dir);
  ASSERT_TRUE(write_file(dir / "kernels.so", code->object));
  ASSERT_TRUE(write_file(dir / "calls", calls.data()));
  const std::string make = fmt::format(
      "{2}-gcc -O1 -I{0} {0}/tests/compiler/backends/llvm/runner.c -o {1}/runner -Wl,--no-as-needed -ldl -lm -lgcc_s",
      TENON_SOURCE_DIR, dir.string(), machine.triplet);
  ASSERT_EQ(std::system(make.c_str()), 0) << make;
  for (const std::string& level : code->levels) {
    const std::string run = fmt::format("{2} {4} -L /usr/{3} {0}/runner {0}/kernels.so {1} {0}/calls {0}/results",
                                        dir.string(), level, machine.emulator, machine.triplet, machine.options);
    ASSERT_EQ(std::system(run.c_str()), 0) << run;
    const auto bytes = read_file(dir / "results");
    ASSERT_TRUE(bytes) << bytes.error().str();
    size_t offset = 0;
    auto take = [&](std::span<std::byte> to) {
      ASSERT_LE(offset + to.size(), bytes->size());
      std::memcpy(to.data(), bytes->data() + offset, to.size());
      offset += (to.size() + 7) / 8 * 8;
    };
    for (size_t i = 0; i < pointers.size(); ++i) {
      int64_t failed = 1;
      take(std::as_writable_bytes(std::span(&failed, 1)));
      EXPECT_EQ(failed, 0) << print(context, *pointers[i]);
      for (const Tensor& param : cases.params[i]) take(param.clone().bytes());
      for (const Tensor& wanted : expected[i]) {
        Tensor found(wanted.dtype(), wanted.shape());
        take(found.bytes());
        if (level == machine.flushes) EXPECT_TRUE(nearly(found, wanted)) << level << print(context, *pointers[i]);
        else EXPECT_TRUE(same(found, wanted)) << level << print(context, *pointers[i]);
      }
      for (const auto& table : tables[i]) {
        std::vector<int64_t> unchanged(table ? table->size() : 0);
        take(std::as_writable_bytes(std::span(unchanged)));
      }
    }
    EXPECT_EQ(offset, bytes->size());
  }
  fs::remove_all(dir);
}

TEST(Cross, KernelsForAarch64GiveTheEvaluatorsBits) {
  run_emulated({"aarch64-linux-gnu", "qemu-aarch64", "aarch64", {"armv8.2-a+dotprod", "armv8-a"}, 100});
}
TEST(Cross, KernelsForArmhfGiveTheEvaluatorsBits) {
  run_emulated({"arm-linux-gnueabihf", "qemu-arm", "armhf", {"armv7-a+neon", "armv7-a"}, 40, "armv7-a+neon"});
}
TEST(Cross, KernelsForRiscVGiveTheEvaluatorsBits) {
  run_emulated(
      {"riscv64-linux-gnu", "qemu-riscv64", "riscv64", {"rv64gcv", "rv64gc"}, 100, {}, "-cpu rv64,v=true,vlen=128"});
}

// Code for all other processors of LLVM is compiled, but not run.
TEST(Cross, CompilesForOtherProcessors) {
  TypeContext context;
  const loop::Function function =
      must_parse(context, elementwise("f", DType::kF32, {{"%x[i] * %y[i]", DType::kF32}}, true));
  const loop::Function* functions[] = {&function};
  for (const char* triple :
       {"armv7-unknown-linux-gnueabihf", "i686-linux-gnu", "x86_64-linux-musl", "aarch64-linux-android"}) {
    const auto code = compile(context, functions, {.triple = triple});
    ASSERT_TRUE(code) << code.error().str();
    EXPECT_GT(code->object.size(), 500u) << triple;
  }
}

}  // namespace
}  // namespace tenon::compiler::native
