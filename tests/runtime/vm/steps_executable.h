// Executables whose calls are units, with kernels that count their calls, for tests of instances that run together.
#pragma once

#include <algorithm>
#include <atomic>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/vm/list_executable.h"

namespace tenon::runtime {

inline constexpr float kTooLarge = 100;

// How often the kernels of a test were called, and with how many rows at most.
struct KernelCount {
  std::atomic<int> calls = 0;
  std::atomic<int64_t> most_rows = 0;
};

// step: each element plus one, an error above kTooLarge. done: whether the first element of each row is 3 or more.
inline KernelLookup step_kernels(KernelCount& count) {
  return [&count](std::string_view name) -> CpuKernel {
    if (name == "step") {
      return [&count](const Attrs&, std::span<const Tensor> args) -> Expected<std::vector<Tensor>> {
        ++count.calls;
        if (args[0].shape().size() > 1) count.most_rows = std::max(count.most_rows.load(), args[0].shape()[0]);
        Tensor result = args[0].clone();
        for (float& x : result.data<float>()) {
          if (x > kTooLarge) return error("an element is too large");
          x += 1;
        }
        return std::vector{std::move(result)};
      };
    }
    return [](const Attrs&, std::span<const Tensor> args) -> Expected<std::vector<Tensor>> {
      Shape shape = args[0].shape();
      const auto width = static_cast<size_t>(shape.back());
      shape.pop_back();
      Tensor result(DType::kBool, shape);
      for (size_t i = 0; i < result.data<bool>().size(); ++i)
        result.data<bool>()[i] = args[0].data<float>()[i * width] >= 3;
      return std::vector{std::move(result)};
    };
  };
}

inline Function unit_function(std::string name, std::string kernel) {
  return {.name = std::move(name),
          .params = {any("x")},
          .results = {any("result")},
          .registers = 2,
          .code = {{CallKernel{std::move(kernel), {}, {0}, {1}}, "layer"}, {Return{{1}}, ""}}};
}

// main(n, x) = x after n steps, each of which is a unit.
inline Executable steps_executable() {
  Executable e;
  e.name = "steps";
  e.constants = {number(0), number(1)};
  e.functions.push_back({.name = "main",
                         .params = {{"n", DType::kI64, {}}, {"x", DType::kF32, {kAnySize}}},
                         .results = {{"y", DType::kF32, {kAnySize}}},
                         .registers = 5,
                         .code = {{LoadConstant{2, 0}, ""},
                                  {LoadConstant{3, 1}, ""},
                                  {ScalarCompute{ScalarOp::kGreaterEqual, DType::kI64, 4, 2, 0}, ""},
                                  {Branch{4, 5}, ""},
                                  {Return{{1}}, ""},
                                  {CallFunction{1, {1}, {1}}, ""},
                                  {ScalarCompute{ScalarOp::kAdd, DType::kI64, 2, 2, 3}, ""},
                                  {Jump{2}, ""}}});
  e.functions.push_back(unit_function("unit", "step"));
  e.functions.push_back(unit_function("unit.batched", "step"));
  e.units = {{.function = 1, .batched = 2, .own = {true}, .own_results = {true}}};
  return e;
}

// main(x) = x after as many steps as it needs to reach 3: whether it has is a unit too.
inline Executable until_executable() {
  Executable e;
  e.name = "until";
  e.functions.push_back({.name = "main",
                         .params = {{"x", DType::kF32, {kAnySize}}},
                         .results = {{"y", DType::kF32, {kAnySize}}},
                         .registers = 2,
                         .code = {{CallFunction{3, {0}, {1}}, ""},
                                  {Branch{1, 3}, ""},
                                  {Return{{0}}, ""},
                                  {CallFunction{1, {0}, {0}}, ""},
                                  {Jump{0}, ""}}});
  e.functions.push_back(unit_function("unit", "step"));
  e.functions.push_back(unit_function("unit.batched", "step"));
  e.functions.push_back(unit_function("done", "done"));
  e.functions.push_back(unit_function("done.batched", "done"));
  e.units = {{.function = 1, .batched = 2, .own = {true}, .own_results = {true}},
             {.function = 3, .batched = 4, .own = {true}, .own_results = {true}}};
  return e;
}

inline Tensor row_of(std::vector<float> values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, std::span<const float>(values));
}
inline std::vector<Value> steps(int64_t n, std::vector<float> x) { return {number(n), row_of(std::move(x))}; }

}  // namespace tenon::runtime
