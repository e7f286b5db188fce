// Loop functions with one operation each, for all operations and types, and their operands.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>

#include "compiler/loop/expr.h"
#include "runtime/dtype.h"
#include "tests/compiler/backends/llvm/native.h"

namespace tenon::compiler::native {

using loop::BinaryOp;
using loop::UnaryOp;
using runtime::Tensor;

inline constexpr DType kTypes[] = {DType::kBool, DType::kI8,  DType::kU8,  DType::kI16, DType::kU16, DType::kI32,
                                   DType::kI64,  DType::kF32, DType::kF64, DType::kU32, DType::kU64};

// Equal bit for bit, except that all NaNs are equal.
inline ::testing::AssertionResult same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return ::testing::AssertionFailure() << "shapes differ";
  auto compare = [&]<class T>(T) {
    const auto x = a.data<T>(), y = b.data<T>();
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i]) && std::isnan(y[i])) continue;
      if (std::memcmp(&x[i], &y[i], sizeof(T)) != 0)
        return ::testing::AssertionFailure() << fmt::format("element {}: {} and {}", i, x[i], y[i]);
    }
    return ::testing::AssertionSuccess();
  };
  if (a.dtype() == DType::kF32) return compare(float{});
  if (a.dtype() == DType::kF64) return compare(double{});
  for (size_t i = 0; i < a.bytes().size(); ++i) {
    if (a.bytes()[i] != b.bytes()[i])
      return ::testing::AssertionFailure() << "element " << i / static_cast<size_t>(runtime::bytes(a.dtype()));
  }
  return ::testing::AssertionSuccess();
}

// Values at the limits of the type, and random ones.
inline Tensor interesting(DType dtype, int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  Tensor tensor(dtype, {count});
  auto fill = [&]<class T>(T) {
    const std::vector<T> edges = [] {
      using Limits = std::numeric_limits<T>;
      if constexpr (std::is_floating_point_v<T>) {
        return std::vector<T>{0,
                              T(-0.0),
                              1,
                              -1,
                              T(0.5),
                              T(1.5),
                              T(2.5),
                              T(-2.5),
                              T(1e9),
                              Limits::max(),
                              Limits::lowest(),
                              Limits::min(),
                              Limits::denorm_min(),
                              Limits::infinity(),
                              -Limits::infinity(),
                              Limits::quiet_NaN(),
                              T(-3e-39),
                              T(127.99),
                              T(-128.99),
                              T(-0.99)};
      } else {
        return std::vector<T>{0,
                              1,
                              static_cast<T>(-1),
                              Limits::min(),
                              Limits::max(),
                              static_cast<T>(2),
                              static_cast<T>(7),
                              static_cast<T>(-7),
                              static_cast<T>(8),
                              static_cast<T>(31)};
      }
    }();
    for (T& value : tensor.data<T>()) {
      if (random() % 2 == 0) value = edges[random() % edges.size()];
      else if constexpr (std::is_floating_point_v<T>)
        value = static_cast<T>(std::ldexp(double(random() % 2000) - 1000, -3));
      else value = static_cast<T>(random());
    }
  };
  runtime::with_dtype<loop::kComputedTypes>(dtype, fill);
  return tensor;
}

// z_k[i] = expressions[k] of x[i] and y[i], in a serial loop or in vectors of eight.
inline std::string elementwise(std::string_view name, DType dtype,
                               const std::vector<std::pair<std::string, DType>>& expressions, bool vector) {
  std::string results, body;
  for (size_t k = 0; k < expressions.size(); ++k) {
    const auto& [expression, to] = expressions[k];
    results += fmt::format("{}%z{}: Tensor[(n,), {}]", k == 0 ? "" : ", ", k, runtime::name(to));
    body += vector
                ? fmt::format(
                      "for i0 in ((n + 7) // 8) {{ for i1 in (8) vector {{ stage s{0}(i in (n) at (8*i0 + i1)) "
                      "where (8*i0 + i1) below (n) {{ %z{0}[i] = {1}; }} }} }}\n",
                      k, expression)
                : fmt::format("for i in (n) {{ stage s{0}(i in (n) at (i)) {{ %z{0}[i] = {1}; }} }}\n", k, expression);
  }
  const auto type = runtime::name(dtype);
  return fmt::format("loop @{0}[n](%x: Tensor[(n,), {1}], %y: Tensor[(n,), {1}]) -> ({2}) {{\n{3}}}\n", name, type,
                     results, body);
}

inline std::string call(BinaryOp op, std::string_view a, std::string_view b) {
  if (loop::precedence(op) > 0) return fmt::format("{} {} {}", a, loop::name(op), b);
  return fmt::format("{}({}, {})", loop::name(op), a, b);
}

struct Cases {
  std::vector<loop::Function> functions;
  std::vector<std::vector<Tensor>> params;  // of each
};

// Every operation of every type whose results are equal bit for bit on all processors: all but functions that are
// approximated by the back end, and, unless `library`, those of the C library.
inline Cases operations(TypeContext& context, bool library = true) {
  Cases cases;
  auto add = [&](const std::string& name, DType dtype, const std::vector<std::pair<std::string, DType>>& expressions,
                 Tensor y) {
    for (bool vector : {false, true}) {
      cases.functions.push_back(
          must_parse(context, elementwise(name + (vector ? "_v" : ""), dtype, expressions, vector)));
      cases.params.push_back({interesting(dtype, 203, cases.functions.size()), y});
    }
  };
  for (DType dtype : kTypes) {
    std::vector<std::pair<std::string, DType>> expressions;
    for (UnaryOp op : loop::unary_ops()) {
      const bool approximated = op == UnaryOp::kExp || op == UnaryOp::kLog || op == UnaryOp::kTanh ||
                                op == UnaryOp::kErf || op == UnaryOp::kAtan || op == UnaryOp::kSin ||
                                op == UnaryOp::kCos;
      if (loop::is_supported(op, dtype) && (!approximated || (dtype == DType::kF64 && library)))
        expressions.emplace_back(fmt::format("{}(%x[i])", loop::name(op)), dtype);
    }
    for (BinaryOp op : loop::binary_ops()) {
      const bool compares = op == BinaryOp::kEqual || op == BinaryOp::kLess || op == BinaryOp::kLessEqual;
      const bool divides = (op == BinaryOp::kDivide || op == BinaryOp::kRemainder) && !loop::is_float(dtype);
      const bool approximated = op == BinaryOp::kPower && loop::is_float(dtype);
      if (loop::is_supported(op, dtype) && !divides && (!approximated || (dtype == DType::kF64 && library)))
        expressions.emplace_back(call(op, "%x[i]", "%y[i]"), compares ? DType::kBool : dtype);
    }
    for (DType to : kTypes) {
      const bool may_fail = loop::is_float(dtype) && !loop::is_float(to) && to != DType::kBool;
      if (to != dtype && !may_fail) expressions.emplace_back(fmt::format("{}(%x[i])", runtime::name(to)), to);
    }
    add(fmt::format("ops_{}", runtime::name(dtype)), dtype, expressions, interesting(dtype, 203, 99));
    if (loop::is_float(dtype) || dtype == DType::kBool) continue;
    Tensor divisors = interesting(dtype, 203, 98);
    for (auto& byte : divisors.bytes()) byte |= std::byte{1};
    add(fmt::format("division_{}", runtime::name(dtype)), dtype,
        {{"%x[i] / %y[i]", dtype},
         {"rem(%x[i], %y[i])", dtype},
         {fmt::format("%x[i] / {}(3)", runtime::name(dtype)), dtype}},
        divisors);
  }
  return cases;
}

inline constexpr std::string_view kDots[] = {"u8 i8 16", "u8 i8 8",  "u8 i8 4", "i8 i8 4",
                                             "u8 u8 4",  "i8 u8 16", "i8 i8 3"};

// z[m, n] of x[m, 4*k] and y[k, n, 4], by an instruction of as many lanes, on contiguous blocks or on strided ones.
inline std::string dot_program(int index, std::string_view types, bool strided) {
  std::istringstream in{std::string(types)};
  std::string left, right;
  int lanes = 0;
  in >> left >> right >> lanes;
  return fmt::format(R"(
    loop @dot{0}[m](%x: Tensor[(m, 20), {1}], %y: Tensor[(5, {4}, {7}), {2}]) -> (%z: Tensor[(m, {5}), i32]) {{
      intrinsic @dot(%a: Tensor[(4,), {1}], %b: Tensor[({3}, 4), {2}]) -> (%c: Tensor[({3},), i32]) {{
        for j in ({3}) {{ for k in (4) {{ stage dot(j in ({3}) at (j), reduce k in (4) at (k)) {{
          %c[j] = %c[j] + i32(%a[k]) * i32(%b[j, k]); }} }} }}
      }}
      for i in (m) parallel {{
        for j in ({5}) {{ stage zero(i in (m) at (i), j in ({5}) at (j)) {{ %z[i, j] = i32(-1); }} }}
        for j in (2) {{ for k in (5) {{ stage sum(i in (m) at (i), j in (2) at (j), reduce k in (5) at (k)) {{
          intrinsic dot(%x[i, 4*k : 4], %y[k, {6}*j : {3}, 0 : 4]) -> (%z[i, {3}*j : {3}]);
        }} }} }}
      }}
    }})",
                     index, left, right, lanes, strided ? 3 * lanes : 2 * lanes, 2 * lanes, strided ? 2 * lanes : lanes,
                     strided ? 5 : 4);
}

// Dot products of packed int8x4, accumulated: of a vector and a scalar, either of which may be the left operand.
inline std::string packed_dot_program(int index, int lanes, bool left, BinaryOp op) {
  const std::string_view x = left ? "%x[k, j]" : "%y[k]", y = left ? "%y[k]" : "%x[k, j]";
  return fmt::format(R"(
    loop @packed{0}(%x: Tensor[(5, {1}), i32], %y: Tensor[(5,), i32]) -> (%z: Tensor[({1},), i32]) {{
      for j in ({1}) vector {{ stage zero(j in ({1}) at (j)) {{ %z[j] = i32(7); }} }}
      for k in (5) {{ for j in ({1}) vector {{
        stage sum(j in ({1}) at (j), reduce k in (5) at (k)) {{ %z[j] = %z[j] + {2}; }}
      }} }}
    }})",
                     index, lanes, call(op, x, y));
}

inline void add_dots(TypeContext& context, Cases& cases) {
  for (const int lanes : {1, 2, 3, 4, 7, 8, 16, 23, 32, 48}) {
    for (const bool left : {false, true}) {
      for (const BinaryOp op : {BinaryOp::kByteDot, BinaryOp::kByteDotSaturating, BinaryOp::kInt16Dot}) {
        cases.functions.push_back(
            must_parse(context, packed_dot_program(static_cast<int>(cases.functions.size()), lanes, left, op)));
        cases.params.push_back(
            {interesting(DType::kI32, 5 * lanes, 1).reshaped({5, lanes}), interesting(DType::kI32, 5, 2)});
      }
    }
  }
  for (std::string_view types : kDots) {
    for (bool strided : {false, true}) {
      cases.functions.push_back(
          must_parse(context, dot_program(static_cast<int>(cases.functions.size()), types, strided)));
      const loop::Function& function = cases.functions.back();
      std::vector<Tensor> params;
      for (loop::BufferId id : function.params) {
        runtime::Shape shape;
        for (const auto& axis : function.buffer(id).axes) shape.push_back(axis.extent.constant().value_or(7));
        const DType dtype = function.buffer(id).dtype;
        params.push_back(interesting(dtype, runtime::element_count(shape), params.size()).reshaped(shape));
      }
      cases.params.push_back(params);
    }
  }
}

}  // namespace tenon::compiler::native
