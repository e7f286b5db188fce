// The memory of sessions: what they allocate, counted in malloc itself, which this program replaces.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "compiler/bench/vm_models.h"
#include "compiler/ir/text.h"
#include "compiler/lower/lower.h"
#include "compiler/passes/passes.h"
#include "runtime/vm/session.h"
#include "tests/rounds.h"

namespace {

std::atomic<int64_t> allocations = 0, live_bytes = 0, peak_bytes = 0;

void* counted(void* memory) {
  if (!memory) return memory;
  ++allocations;
  const int64_t live = live_bytes += static_cast<int64_t>(malloc_usable_size(memory));
  if (live > peak_bytes) peak_bytes = live;
  return memory;
}

}  // namespace

#if !TENON_SANITIZED
// The names by which glibc exports its allocator for programs that replace it.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);

void* malloc(size_t bytes) { return counted(__libc_malloc(bytes)); }
void* calloc(size_t count, size_t bytes) { return counted(__libc_calloc(count, bytes)); }
void* realloc(void* memory, size_t bytes) {
  if (memory) live_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  return counted(__libc_realloc(memory, bytes));
}
void* memalign(size_t alignment, size_t bytes) { return counted(__libc_memalign(alignment, bytes)); }
void* aligned_alloc(size_t alignment, size_t bytes) { return counted(__libc_memalign(alignment, bytes)); }
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  *memory = counted(__libc_memalign(alignment, bytes));
  return *memory ? 0 : 12;  // ENOMEM
}
void free(void* memory) {
  if (memory) live_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  __libc_free(memory);
}
}
#endif

namespace tenon::compiler {
namespace {

using runtime::Tensor;

// A network with a loop of tail calls: `n` is a size with a bound, or a number instead.
std::string looped_text(const std::string& n, const std::string& bound) {
  return "#[version = \"1\"]\ndef @count" + bound + "(%x: Tensor[(" + n +
         ", 64), f32], %i: Tensor[(), i64]) -> Tensor[(" + n + R"(, 64), f32] {
      if (%i < 1i64) { %x } else {
        let %a = exp(%x);
        let %b = softmax(%a);
        let %c = matmul(%b, transpose(%a, axes=[1, 0]));
        @count(softmax(matmul(%c, %b)), %i - 1i64)
      }
    }
    def @main)" +
         bound + "(%x: Tensor[(" + n + ", 64), f32], %i: Tensor[(), i64]) -> Tensor[(" + n + R"(, 64), f32] {
      let %y = @count(exp(softmax(%x)), %i);
      exp(softmax(%y))
    })";
}

runtime::Executable compiled(const std::string& text, bool fused = false) {
  Context context;
  auto module = parse(context, text);
  EXPECT_TRUE(module) << module.error().str();
  if (fused) module = run_passes(context, std::move(*module), kernel_passes());
  auto executable =
      lower(context, *module, context.symbol("main"), {}, {.name = "test", .facts = {}, .cpu = {.native = true}});
  EXPECT_TRUE(executable) << executable.error().str();
  return std::move(*executable);
}

class AllocationsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (TENON_SANITIZED) GTEST_SKIP() << "sanitizers have an allocator of their own";
  }
};

TEST_F(AllocationsTest, OfARunAreThoseOfTheFirst) {
  const runtime::Executable executable = compiled(looped_text("n", "[n in 1..256]"));
  for (const unsigned threads : {1u, 2u}) {
    auto session = runtime::Session::create(executable, {.profile = false, .threads = threads});
    ASSERT_TRUE(session) << session.error().str();
    std::vector<Tensor> results;
    const auto run = [&](int64_t n, int64_t steps) {
      const std::vector<Tensor> inputs = {Tensor(DType::kF32, {n, 64}),
                                          Tensor::of<int64_t>({}, std::vector<int64_t>{steps})};
      const int64_t before = allocations;
      const Status status = session->run_into(inputs, results);
      const int64_t made = allocations - before;
      EXPECT_TRUE(status) << status.error().str();
      EXPECT_EQ(results.at(0).shape(), (runtime::Shape{n, 64}));
      return made;
    };
    EXPECT_GT(run(256, 20), 0) << "the hook counts";
    for (const int64_t n : {256, 255, 128, 1, 17, 256}) {
      for (const int64_t steps : {0, 1, 2, 20, 100})
        EXPECT_EQ(run(n, steps), 0) << "n = " << n << ", " << steps << " steps, " << threads << " threads";
    }
  }
}

// All results are handed out, so each needs memory, and the memory of one that goes is that of the next.
TEST_F(AllocationsTest, MemoryOfResultsComesBack) {
  const runtime::Executable executable = compiled(looped_text("n", "[n in 1..256]"));
  std::vector<Tensor> kept;
  {
    auto session = runtime::Session::create(executable, {.profile = false, .threads = 1});
    ASSERT_TRUE(session) << session.error().str();
    const std::vector<Tensor> inputs = {Tensor(DType::kF32, {64, 64}),
                                        Tensor::of<int64_t>({}, std::vector<int64_t>{3})};
    std::vector<Tensor> results;
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(session->run_into(inputs, results));
      kept.push_back(results[0]);
    }
    for (int i = 0; i < 4; ++i) {
      const void* memory = kept.back().bytes().data();
      results[0] = Tensor();
      kept.pop_back();
      const int64_t before = allocations;
      ASSERT_TRUE(session->run_into(inputs, results));
      EXPECT_EQ(allocations - before, 1) << "the shape of the result that was replaced here";
      EXPECT_EQ(results[0].bytes().data(), memory);
      for (const Tensor& other : kept) EXPECT_EQ(other, results[0]);
    }
    kept.push_back(results[0]);
  }
  // Results outlive their session.
  EXPECT_EQ(kept[0].data<float>().size(), 64u * 64);
  EXPECT_GT(kept[0].data<float>()[0], 0);
}

// The state of a session, as weights in training: a run that updates it reads and writes it where it is.
TEST_F(AllocationsTest, OfAThousandUpdatesAreThoseOfTheFirstTwo) {
  runtime::Executable executable = compiled(R"(#[version = "1"]
    def @main(%w: Tensor[(64, 64), f32], %x: Tensor[(64, 64), f32]) -> (Tensor[(), f32], Tensor[(64, 64), f32]) {
      let %y = matmul(%x, %w);
      let %g = matmul(transpose(%x, axes=[1, 0]), %y - %x);
      (mean(%y * %y), %w - %g * 0.001f32)
    })",
                                            true);
  executable.states = {{.param = 0, .result = 1, .first = std::nullopt}};
  ASSERT_TRUE(verify(executable, "test"));
  auto session = runtime::Session::create(executable, {.profile = false, .threads = 1});
  ASSERT_TRUE(session) << session.error().str();
  std::vector<Tensor> inputs{Tensor(DType::kF32, {64, 64})}, results;
  for (size_t i = 0; i < 64 * 64; ++i) inputs[0].data<float>()[i] = static_cast<float>(i % 7) / 8 - 0.375F;
  Tensor expected(DType::kF32, {64, 64});
  const auto by_hand = [&] {
    auto made = session->run(std::vector{expected, inputs[0]});
    ASSERT_TRUE(made) << made.error().str();
    expected = std::move((*made)[1]);
  };
  const auto update = [&] {
    const Status status = session->update(inputs, results, [](const Tensor&) { return true; });
    EXPECT_TRUE(status) << status.error().str();
  };
  for (int i = 0; i < 2; ++i) update(), by_hand();
  const void* memory = session->state(0).bytes().data();
  const int64_t before = allocations, live = live_bytes;
  for (int i = 0; i < 1000; ++i) update();
  EXPECT_EQ(allocations - before, 0);
  EXPECT_EQ(live_bytes - live, 0);
  EXPECT_EQ(session->state(0).bytes().data(), memory);
  for (int i = 0; i < 1000; ++i) by_hand();
  EXPECT_EQ(session->state(0), expected) << "the same bits as with the state as an input and a result";
}

// Memory of kernels for themselves, which threads keep, is no part of the plan.
TEST_F(AllocationsTest, PeakAtTheBoundIsThatOfTheStaticPlan) {
  const auto peak = [](const runtime::Executable& executable) {
    auto session = runtime::Session::create(executable, {.profile = true, .threads = 1});
    const std::vector<Tensor> inputs = {Tensor(DType::kF32, {256, 64}),
                                        Tensor::of<int64_t>({}, std::vector<int64_t>{9})};
    std::vector<Tensor> results;
    const int64_t before = live_bytes;
    peak_bytes = before;
    EXPECT_TRUE(session && session->run_into(inputs, results));
    const auto planned = static_cast<int64_t>(session->profile().memory.peak_bytes);
    EXPECT_GE(peak_bytes - before, planned) << "the hook counts bytes";
    return static_cast<double>(planned);
  };
  const double dynamic = peak(compiled(looped_text("n", "[n in 1..256]")));
  EXPECT_LE(dynamic, 1.05 * peak(compiled(looped_text("256", ""))));
}

// All that a run takes from the system is within its budget, but for the bookkeeping of tensors and calls, and what
// malloc adds to a tensor to fill its pages; inputs, which are the caller's, are a part of the budget.
TEST_F(AllocationsTest, ABudgetHolds) {
  std::string text = "#[version = \"1\"]\ndef @net(%x: Tensor[(512, 512), f32], %w: Tensor[(512, 512), f32]) {\n";
  std::string last = "x";
  for (int i = 0; i < 16; ++i) {
    text += "let %h" + std::to_string(i) + " = softmax(%" + last + " * %w);\n";
    last = "h" + std::to_string(i);
  }
  text += "sum(%" + last + R"() }
    def @main(%x: Tensor[(512, 512), f32], %w: Tensor[(512, 512), f32]) -> Tensor[(512, 512), f32] {
      let %p = gradient(@net, wrt=[0])(%x, %w);
      let %d = %p.1;
      %d.0
    })";
  Context context;
  auto module = parse(context, text);
  ASSERT_TRUE(module) << module.error().str();
  module = run_passes(context, std::move(*module), standard_passes());
  module = run_passes(context, std::move(*module), kernel_passes());
  const auto executable =
      lower(context, *module, context.symbol("main"), {}, {.name = "test", .facts = {}, .cpu = {.native = true}});
  ASSERT_TRUE(executable) << executable.error().str();
  const std::vector<Tensor> inputs = {Tensor(DType::kF32, {512, 512}), Tensor(DType::kF32, {512, 512})};
  const int64_t of_inputs = 2 * 512 * 512 * 4;
  constexpr int64_t kBookkeeping = 400 << 10;  // a tensor has 1 MiB
  uint64_t peak = uint64_t{1} << 40, repeated = 0;
  Tensor expected;
  for (int part = 20; part >= 8; --part) {
    const uint64_t budget = part == 20 ? peak : peak * static_cast<uint64_t>(part) / 20;
    auto session = runtime::Session::create(*executable, {.profile = false, .threads = 2, .budget = budget});
    ASSERT_TRUE(session) << session.error().str();
    std::vector<Tensor> results;
    const int64_t before = live_bytes;
    peak_bytes = before;
    const Status status = session->run_into(inputs, results);
    EXPECT_LE(peak_bytes - before + of_inputs, static_cast<int64_t>(budget) + kBookkeeping) << part;
    if (!status) continue;
    if (part == 20) {
      expected = results[0];
      peak = session->memory().peak_bytes;
    }
    EXPECT_EQ(results[0], expected);
    repeated = std::max(repeated, session->memory().repeated_calls);
  }
  EXPECT_GT(repeated, 8u);
}

// The first token makes the caches, with room for the bound's tokens; each further token adds its rows in place.
TEST_F(AllocationsTest, OfADecodeLoopAreThoseOfItsFirstToken) {
  constexpr int64_t kLayers = 4, kWidth = 256, kTokens = 512;
  const bench::VmModel model = bench::decoder_model(kLayers, kWidth, kTokens, 0);
  const runtime::Executable executable = compiled(model.text, true);
  const auto run = [&](int64_t steps) {
    auto session = runtime::Session::create(executable, {.profile = false, .threads = 1});
    EXPECT_TRUE(session) << session.error().str();
    std::vector<Tensor> inputs = model.inputs, results;
    inputs[1] = Tensor::of<int64_t>({}, std::span<const int64_t>(&steps, 1));
    const int64_t before = allocations;
    const Status status = session->run_into(inputs, results);
    EXPECT_TRUE(status) << status.error().str();
    return allocations - before;
  };
  run(1);  // the process' threads and code
  const int64_t second = run(1);
  EXPECT_EQ(run(kTokens - 1), second);
  EXPECT_GE(second, 2 * kLayers) << "each layer has two caches";
}

}  // namespace
}  // namespace tenon::compiler
