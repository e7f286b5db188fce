// A native library with kernels in C (native_sample.c), and executables that call its kernel `add`, for the tests of
// runtime/native, runtime/executable and runtime/vm.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "runtime/executable/executable.h"
#include "runtime/native/native.h"
#include "support/file.h"

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

namespace tenon::runtime::sample {

inline NativeCode native_code() {
  using Op = SizeStep::Op;
  const Size n{{Op::kDim, 0}};
  const Signature add{{{"n", 0, 0, 1, {{Op::kConstant, 0}}}}, {{"x", DType::kI32, {n}}}, {{"y", DType::kI32, {n}}}};
  auto object = read_file(TENON_NATIVE_SAMPLE);
  EXPECT_TRUE(object) << object.error().str();
  return {std::string(host_architecture()) + "-unknown-linux-gnu", {"any"}, *object, {{"add", add}, {"greedy", {}}}};
}

// 100, 101, ...
inline Tensor count_up(int64_t count) {
  Tensor x(DType::kI32, {count});
  std::iota(x.data<int32_t>().begin(), x.data<int32_t>().end(), 100);
  return x;
}

// y = x + 1, in one call of kernel `add`.
inline Executable native_executable() {
  Executable e;
  e.name = "natives";
  const Port x{"x", DType::kI32, {50}}, y{"y", DType::kI32, {50}};
  e.functions.push_back(
      {"main", {x}, {y}, 2, {{CallNative{0, 0, {0}, {1}}, "add_1"}, {Kill{{0}}, ""}, {Return{{1}}, ""}}});
  e.natives.push_back(native_code());
  return e;
}

// y = x + 6 in two frames, each of which adds 3 in three calls of `add`, with the first two results in its arena.
inline Executable planned_executable() {
  Executable e;
  e.name = "planned";
  const Port x{"x", DType::kI32, {50}}, y{"y", DType::kI32, {50}};
  e.functions.push_back(
      {.name = "main",
       .params = {x},
       .results = {y},
       .registers = 3,
       .code = {{CallFunction{1, {0}, {1}}, ""}, {CallFunction{1, {1}, {2}}, ""}, {Return{{2}}, ""}}});
  e.functions.push_back({.name = "add_3",
                         .params = {x},
                         .results = {y},
                         .registers = 4,
                         .code = {{CallNative{0, 0, {0}, {1}, {{0, 256}}}, "first"},
                                  {CallNative{0, 0, {1}, {2}, {{256, 256}}}, "second"},
                                  {Kill{{1}}, ""},
                                  {CallNative{0, 0, {2}, {3}}, "third"},
                                  {Return{{3}}, ""}},
                         .arena_bytes = 512});
  e.natives.push_back(native_code());
  return e;
}

}  // namespace tenon::runtime::sample
