// An executable that uses the machine's own instructions, and how tests run it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/vm/session.h"

namespace tenon::runtime {

inline Tensor number(int64_t value) { return Tensor::of<int64_t>({}, std::span<const int64_t>(&value, 1)); }

inline Port any(std::string name) { return {.name = std::move(name), .type = "value"}; }

// main(n, x[m]) = the sum of n * i for i = 1 .. n, twice, and m: a list is built by tail calls, folded by a closure
// that captures n, and summed in a reference.
inline Executable list_executable() {
  Executable e;
  e.name = "lists";
  e.types = {{"List", {{"Cons", 2}, {"Nil", 0}}}};
  e.constants = {number(0), number(1)};
  const auto compute = [](ScalarOp op, Register to, Register a, Register b) {
    return ScalarCompute{op, DType::kI64, to, a, b};
  };
  const Size one{{SizeStep::Op::kConstant, 1}}, zero{{SizeStep::Op::kConstant, 0}}, m{{SizeStep::Op::kDim, 0}};
  e.functions.push_back({.name = "main",
                         .params = {{"n", DType::kI64, {}}, {"x", DType::kF32, {kAnySize}, {"m"}}},
                         .results = {{"sum", DType::kI64, {}}, {"again", DType::kI64, {}}, {"m", DType::kI64, {}}},
                         .registers = 9,
                         .code = {{BindSize{2, 1, 0, {}, one, zero}, ""},
                                  {CheckShape{1, DType::kF32, {m}, {2}, {2}, true, "input 'x'", "f32 (m,)"}, ""},
                                  {CheckSize{2, 0, 1000, "m"}, ""},
                                  {LoadConstant{3, 0}, ""},
                                  {MakeClosure{4, 3, {0}}, "closure"},
                                  {MakeReference{5, 3}, ""},
                                  {Construct{6, 0, 1, {}}, ""},
                                  {CallFunction{1, {0, 6}, {6}}, "build"},
                                  {CallFunction{2, {6, 4, 5}, {7}}, "fold"},
                                  {Kill{{4, 6}}, ""},
                                  {ReadReference{8, 5}, ""},
                                  {Return{{7, 8, 2}}, ""}}});
  e.functions.push_back({.name = "build",
                         .params = {any("n"), any("rest")},
                         .results = {any("list")},
                         .registers = 5,
                         .code = {{LoadConstant{2, 0}, ""},
                                  {compute(ScalarOp::kEqual, 3, 0, 2), ""},
                                  {Branch{3, 4}, ""},
                                  {Return{{1}}, ""},
                                  {LoadConstant{2, 1}, ""},
                                  {compute(ScalarOp::kSubtract, 3, 0, 2), ""},
                                  {Construct{4, 0, 0, {0, 1}}, ""},
                                  {Kill{{0, 1}}, ""},
                                  {TailCall{1, {3, 4}}, ""}}});
  e.functions.push_back({.name = "fold",
                         .params = {any("xs"), any("f"), any("cell")},
                         .results = {any("sum")},
                         .registers = 8,
                         .code = {{Switch{0, 0, {1, 9}}, ""},
                                  {ReadField{3, 0, 0}, ""},
                                  {ReadField{4, 0, 1}, ""},
                                  {Kill{{0}}, ""},
                                  {CallClosure{1, {3}, {5}}, ""},
                                  {ReadReference{6, 2}, ""},
                                  {compute(ScalarOp::kAdd, 7, 5, 6), ""},
                                  {WriteReference{2, 7}, ""},
                                  {TailCall{2, {4, 1, 2}}, ""},
                                  {ReadReference{3, 2}, ""},
                                  {Return{{3}}, ""}}});
  e.functions.push_back({.name = "scale",
                         .params = {any("i")},
                         .results = {any("y")},
                         .registers = 4,
                         .code = {{compute(ScalarOp::kMultiply, 3, 0, 1), ""}, {Return{{3}}, ""}},
                         .captures = 1,
                         .self = true});
  return e;
}

// The results of the entry, which are integers, for a number and a tensor of three elements; or the error.
inline std::string run(const Executable& e, int64_t n, SessionOptions options = {}) {
  if (const Status status = verify(e, "test"); !status) return status.error().str();
  auto session = Session::create(e, std::move(options));
  if (!session) return session.error().str();
  const auto results = session->run(std::vector{number(n), Tensor(DType::kF32, {3})});
  if (!results) return results.error().str();
  std::string text;
  for (const Tensor& result : *results) text += std::to_string(result.data<int64_t>()[0]) + " ";
  return text;
}

}  // namespace tenon::runtime
