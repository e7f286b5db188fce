// The GPU's interface on a driver of the tests, and its errors.
#include "runtime/device/cuda/gpu.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/native/kernel.h"

namespace tenon::runtime::cuda {
namespace {

Gpu must_open() {
  auto gpu = Gpu::open(0, TENON_FAKE_DRIVER);
  EXPECT_TRUE(gpu) << gpu.error().str();
  return std::move(*gpu);
}

const std::string kPtx = ".version 7.0";

// A function of the library that stands for the driver.
template <class F>
F fake(const char* name) {
  return reinterpret_cast<F>(dlsym(dlopen(TENON_FAKE_DRIVER, RTLD_NOW | RTLD_NOLOAD), name));
}

TEST(CudaGpu, WithoutADriverTheErrorSaysWhatToDo) {
  const auto gpu = Gpu::open(0, "no_such_driver.so.1");
  ASSERT_FALSE(gpu);
  EXPECT_NE(gpu.error().what.find("there is no CUDA driver: no_such_driver.so.1"), std::string::npos);
  EXPECT_NE(gpu.error().help.find("cuda:emulated"), std::string::npos);
  const auto other = Gpu::open(0, "libc.so.6");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().what.find("libc.so.6 has no function cuInit"), std::string::npos) << other.error().str();
}

TEST(CudaGpu, UnsuitableGpusAreRefused) {
  const auto absent = Gpu::open(1, TENON_FAKE_DRIVER);
  ASSERT_FALSE(absent);
  EXPECT_NE(absent.error().str().find("there is no GPU 1: the driver has 1"), std::string::npos);
  setenv("FAKE_CAPABILITY", "75", 1);
  const auto old = Gpu::open(0, TENON_FAKE_DRIVER);
  unsetenv("FAKE_CAPABILITY");
  ASSERT_FALSE(old);
  EXPECT_NE(old.error().str().find("Fake GPU has compute capability 7.5, at least 8.0 is required"), std::string::npos);
}

TEST(CudaGpu, LaunchesKernelsInOrder) {
  Gpu gpu = must_open();
  EXPECT_EQ(gpu.name(), "Fake GPU");
  EXPECT_EQ(gpu.capability(), 90);
  const auto code = gpu.load(kPtx, {});
  ASSERT_TRUE(code) << code.error().str();
  std::vector<int32_t> values{1, 2, 3};
  const auto memory = gpu.allocate(12);
  ASSERT_TRUE(memory) << memory.error().str();
  ASSERT_TRUE(gpu.upload(*memory, std::as_bytes(std::span(values))));
  ASSERT_TRUE(gpu.begin_interval());
  const uint64_t arguments[] = {memory->address, 3};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(gpu.launch(**code, "add_one", {1, 1, 1}, {32, 1, 1}, arguments));
  EXPECT_TRUE(gpu.launch(**code, "add_one", {0, 1, 1}, {32, 1, 1}, arguments)) << "no blocks";
  ASSERT_TRUE(gpu.end_interval());
  ASSERT_TRUE(gpu.download(std::as_writable_bytes(std::span(values)), *memory));
  EXPECT_EQ(values, (std::vector<int32_t>{3, 4, 5}));
  EXPECT_EQ(*gpu.interval_seconds(), 1.5e-3);
  const Status wide = gpu.launch(**code, "add_one", {1, 70000, 1}, {32, 1, 1}, arguments);
  ASSERT_FALSE(wide);
  EXPECT_NE(wide.error().what.find("has 70000 blocks along y, at most 65535"), std::string::npos) << wide.error().str();
  const Status unknown = gpu.launch(**code, "other", {1, 1, 1}, {32, 1, 1}, {});
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().what.find("the code has no kernel other: CUDA_ERROR_NOT_FOUND"), std::string::npos);
}

TEST(CudaGpu, MemoryIsPooledUntilItIsNeeded) {
  Gpu gpu = must_open();
  const auto first = gpu.allocate(300000);
  ASSERT_TRUE(first);
  gpu.release(*first);
  EXPECT_EQ(gpu.pooled_bytes(), 524288u);
  const auto again = gpu.allocate(400000);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->address, first->address);
  gpu.release(*again);
  const auto large = gpu.allocate(1 << 20);  // the pool is given back
  ASSERT_TRUE(large) << large.error().str();
  EXPECT_EQ(gpu.pooled_bytes(), 0u);
  const auto full = gpu.allocate(1000);
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().what.find("the GPU's memory is full: 1024 bytes are needed, 1048576 of 1048576 are in use"),
            std::string::npos)
      << full.error().str();
  gpu.release(*large);
}

// The driver makes a copy as late as it may, so a chunk that is used again too early has wrong data.
TEST(CudaGpu, LargeCopiesUsePinnedMemoryOfTwoChunks) {
  { const Gpu gpu = must_open(); }  // opens the library
  const auto set_memory = fake<void (*)(size_t)>("fake_set_memory");
  const auto set_pinned = fake<void (*)(bool)>("fake_set_pinned");
  const auto pinned_bytes = fake<size_t (*)()>("fake_pinned_bytes");
  set_memory(64 << 20);
  for (const bool has_pinned : {true, false}) {
    set_pinned(has_pinned);
    Gpu gpu = must_open();
    for (const size_t bytes : {PinnedCopies::kLeastBytes - 1, PinnedCopies::kLeastBytes, PinnedCopies::kChunkBytes,
                               3 * PinnedCopies::kChunkBytes + 7}) {
      std::vector<std::byte> values(bytes), found(bytes);
      for (size_t i = 0; i < bytes; ++i) values[i] = static_cast<std::byte>(i * 31 + (i >> 20));
      const auto memory = gpu.allocate(bytes);
      ASSERT_TRUE(memory) << memory.error().str();
      const std::vector<std::byte> expected = values;
      ASSERT_TRUE(gpu.upload(*memory, values));
      std::ranges::fill(values, std::byte{0});
      ASSERT_TRUE(gpu.download(found, *memory));
      EXPECT_EQ(found, expected) << bytes;
      EXPECT_EQ(pinned_bytes(), has_pinned && bytes >= PinnedCopies::kLeastBytes ? 2 * PinnedCopies::kChunkBytes : 0);
      gpu.release(*memory);
    }
    const Gpu moved = std::move(gpu);
    EXPECT_EQ(pinned_bytes(), has_pinned ? 2 * PinnedCopies::kChunkBytes : 0);
  }
  EXPECT_EQ(pinned_bytes(), 0u) << "a GPU that is closed has no memory";
  set_pinned(true);
  set_memory(1 << 20);
}

TEST(CudaGpu, FaultsOfKernelsHaveTheirSite) {
  Gpu gpu = must_open();
  const auto code = gpu.load(kPtx, {{TN_FAULT_DIVISION, "@f, stage 'divide'"}});
  ASSERT_TRUE(code);
  ASSERT_TRUE(gpu.launch(**code, "faulty", {1, 1, 1}, {1, 1, 1}, {}));
  const Status fault = gpu.wait();
  ASSERT_FALSE(fault);
  EXPECT_EQ(fault.error().str(), "@f, stage 'divide': error: an integer is divided by 0");
  EXPECT_TRUE(gpu.wait()) << "the fault is reported once";
  ASSERT_TRUE(gpu.launch(**code, "trap", {1, 1, 1}, {1, 1, 1}, {}));
  const Status trap = gpu.wait();
  ASSERT_FALSE(trap);
  EXPECT_NE(trap.error().what.find("the GPU stopped: CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos);
  const auto bad = gpu.load("nonsense", {});
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().what.find("does not accept the PTX: CUDA_ERROR_INVALID_PTX: a text: line 1: no version"),
            std::string::npos)
      << bad.error().str();
}

}  // namespace
}  // namespace tenon::runtime::cuda
