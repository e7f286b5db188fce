// Library functions: opening, lookup and calls.
#include "runtime/native/functions.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <vector>

#include "tests/runtime/native/sample.h"

namespace tenon::runtime {
namespace {

TEST(Functions, AreThoseOfOpenedLibraries) {
  EXPECT_HAS(
      find_function("halve").error().str(),
      "the library function 'halve' does not exist\n  help: open the shared object that has it: --library FILE.so");
  ASSERT_TRUE(open_functions(TENON_FUNCTIONS_SAMPLE));
  ASSERT_TRUE(open_functions(TENON_FUNCTIONS_SAMPLE)) << "opening it again has no effect";
  const auto halve = find_function("halve"), sort = find_function("sort.rows"), fails = find_function("fails");
  ASSERT_TRUE(halve && sort && fails);
  EXPECT_HAS(find_function("third").error().str(), "no opened library has it");
  ThreadPool pool(2);
  std::vector<Tensor> x{Tensor::of<float>({2, 3}, std::vector<float>{5, 3, 4, 1, 9, 8})},
      y{Tensor(DType::kF32, {2, 3})};
  ASSERT_TRUE(call_function(**halve, x, y, pool));
  EXPECT_EQ(y[0], Tensor::of<float>({2, 3}, std::vector<float>{2.5, 1.5, 2, 0.5, 4.5, 4}));
  ASSERT_TRUE(call_function(**sort, x, y, pool));
  EXPECT_EQ(y[0], Tensor::of<float>({2, 3}, std::vector<float>{3, 4, 5, 1, 8, 9}));
  const std::string file = TENON_FUNCTIONS_SAMPLE;
  EXPECT_EQ(call_function(**fails, x, y, pool).error().str(),
            "library function 'fails' of " + file + ": error: the library function failed");
  x[0].data<float>()[4] = 13;
  EXPECT_EQ(call_function(**halve, x, y, pool).error().str(),
            "library function 'halve' of " + file + ": halving: error: the index 4 is not in 0 .. 5");
  x[0] = Tensor(DType::kI32, {2, 3});
  EXPECT_HAS(call_function(**halve, x, y, pool).error().str(), "it takes f32");
}

TEST(Functions, OnlyLibrariesOfFunctionsOpen) {
  EXPECT_HAS(open_functions("nowhere.so").error().str(), "nowhere.so: error: the library cannot be opened: ");
  EXPECT_HAS(open_functions("libm.so.6").error().str(), "the library cannot be opened") << "no folder is searched";
  Dl_info info{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::set_terminate), &info), 0);  // libstdc++
  EXPECT_HAS(open_functions(info.dli_fname).error().str(),
             "it is not a library of functions: it does not export tn_library_get");
}

}  // namespace
}  // namespace tenon::runtime
