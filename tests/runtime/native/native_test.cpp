// Native libraries: loading and calls of a library in C.
#include "runtime/native/native.h"
#include "support/function_ref.h"

#include <gtest/gtest.h>

#include "tests/runtime/native/sample.h"

namespace tenon::runtime {
namespace {

TEST(NativeLibrary, CallsAKernel) {
  const NativeCode code = sample::native_code();
  const auto library = NativeLibrary::load(code);
  ASSERT_TRUE(library) << library.error().str();
  EXPECT_NE(library->level(), "a level of the future");
  for (unsigned threads : {1u, 2u, 3u}) {
    ThreadPool pool(threads);
    for (int64_t count : {0, 1, 1000}) {
      const auto results = library->call("add", std::vector{sample::count_up(count)}, pool);
      ASSERT_TRUE(results) << results.error().str();
      for (int64_t i = 0; i < count; ++i) EXPECT_EQ((*results)[0].data<int32_t>()[static_cast<size_t>(i)], 101 + i);
    }
    Tensor bad = sample::count_up(1000);
    for (size_t at : {900u, 500u, 510u}) bad.data<int32_t>()[at] = 13;
    EXPECT_EQ(library->call("add", std::vector{bad}, pool).error().str(),
              "@add, by hand: error: the index 500 is not in 0 .. 999");
    EXPECT_HAS(library->call("greedy", {}, pool).error().str(), "@greedy: error: not enough memory for");
    EXPECT_HAS(library->call("sub", {}, pool).error().str(), "there is no native kernel 'sub'");
    EXPECT_HAS(library->call("add", {}, pool).error().str(), "@add: error: takes 1 parameters, 0 are given");
  }
}

TEST(NativeLibrary, SaysWhyItCannotBeLoaded) {
  auto message = [](FunctionRef<void(NativeCode&)> damage, std::string_view level = {}) {
    NativeCode code = sample::native_code();
    damage(code);
    auto library = NativeLibrary::load(code, level);
    return library ? "loaded" : library.error().str();
  };
  EXPECT_HAS(message([](NativeCode& c) { c.triple = "pdp11-dec-unix"; }), "is for pdp11-dec-unix, this processor is a");
  EXPECT_HAS(message([](NativeCode& c) { c.object.resize(100); }), "cannot be loaded");
  EXPECT_HAS(message([](NativeCode& c) { c.kernels.pop_back(); }), "has 2 kernels, 1 are named");
  EXPECT_HAS(message([](NativeCode& c) { c.kernels[0].name = "sub"; }),
             "kernel 0 of the native code is 'add', not 'sub'");
  EXPECT_HAS(message([](NativeCode&) {}, "x86-64-v9"), "x86-64-v9 is not one of them that this processor has");
  EXPECT_EQ(message([](NativeCode&) {}), "loaded");
}

}  // namespace
}  // namespace tenon::runtime
