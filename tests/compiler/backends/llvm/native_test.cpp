// Native code of loop functions: its results, operation by operation, and the functions that it refuses.
#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "compiler/backends/llvm/link.h"
#include "compiler/loop/evaluate.h"
#include "runtime/native/functions.h"
#include "tests/compiler/backends/llvm/operations.h"

namespace tenon::compiler::native {
namespace {

using runtime::Shape;

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

// Compiles one library of all functions, and compares each with the evaluator.
void compare_all(TypeContext& context, const std::vector<loop::Function>& functions,
                 const std::vector<std::vector<Tensor>>& params, const Options& options) {
  std::vector<const loop::Function*> pointers;
  for (const loop::Function& function : functions) pointers.push_back(&function);
  const auto code = compile(context, pointers, options);
  ASSERT_TRUE(code) << code.error().str();
  runtime::ThreadPool pool(2);
  for (const std::string& level : code->levels) {
    const auto host_levels = runtime::host_levels();
    if (std::ranges::find(host_levels, level) == host_levels.end()) continue;
    const auto library = runtime::NativeLibrary::load(*code, level);
    ASSERT_TRUE(library) << library.error().str();
    for (size_t i = 0; i < functions.size(); ++i) {
      const auto expected = evaluate(context, functions[i], params[i]);
      ASSERT_TRUE(expected) << expected.error().str();
      const auto results = library->call(i, params[i], pool);
      ASSERT_TRUE(results) << results.error().str() << print(context, functions[i]);
      for (size_t k = 0; k < expected->size(); ++k)
        EXPECT_TRUE(same((*results)[k], (*expected)[k]))
            << level << ", result " << k << " of " << print(context, functions[i]);
    }
  }
}

// On every level of this machine.
TEST(Native, OperationsGiveTheEvaluatorsBits) {
  TypeContext context;
  const Cases cases = operations(context);
  compare_all(context, cases.functions, cases.params, {});
}

TEST(Native, ConversionsOfFloatsGiveTheEvaluatorsIntegers) {
  TypeContext context;
  std::vector<loop::Function> functions;
  std::vector<std::vector<Tensor>> params;
  for (DType from : {DType::kF32, DType::kF64}) {
    for (DType to : {DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kI64}) {
      // Values around all powers of two if they fit; 0 for all others, which are in neighbouring lanes.
      const std::string fits =
          to == DType::kU8 || to == DType::kU16
              ? fmt::format("{0}(-1) < %x[i] and %x[i] < {0}({1})", runtime::name(from), to == DType::kU8 ? 256 : 65536)
              : fmt::format("{0}({1}) <= %x[i] and %x[i] < {0}({2})", runtime::name(from),
                            -std::ldexp(1.0, 8 * runtime::bytes(to) - 1), std::ldexp(1.0, 8 * runtime::bytes(to) - 1));
      const std::string text = fmt::format("select({}, {}(%x[i]), {}(0))", fits, runtime::name(to), runtime::name(to));
      for (bool vector : {false, true}) {
        functions.push_back(
            must_parse(context, elementwise(fmt::format("to{}", functions.size()), from, {{text, to}}, vector)));
        std::vector<double> values;
        for (int power = 0; power < 66; ++power) {
          for (double around : {-1.0, -0.5, 0.0, 0.5, 1.0})
            for (double sign : {1.0, -1.0}) values.push_back(sign * (std::ldexp(1.0, power) + around));
        }
        values.push_back(NAN);
        Tensor x(from, {static_cast<int64_t>(values.size())});
        for (size_t i = 0; i < values.size(); ++i) {
          if (from == DType::kF32) x.data<float>()[i] = static_cast<float>(values[i]);
          else x.data<double>()[i] = values[i];
        }
        params.push_back({x, x});
      }
    }
  }
  compare_all(context, functions, params, host_options());
}

// The largest error in units of the last place, over a sample of all f32.
double largest_error(std::string_view function, double (*exact)(double)) {
  TypeContext context;
  const loop::Function compiled =
      must_parse(context, elementwise("f", DType::kF32, {{fmt::format("{}(%x[i])", function), DType::kF32}}, true));
  std::vector<float> values;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 9973)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (float x = -20; x < 20; x += 0.00037f) values.push_back(x);
  for (float x : {0.f, -0.f, INFINITY, -INFINITY, 1.f, -1.f, 88.72f, 88.73f, -103.9f, -104.f, 1e-45f})
    values.push_back(x);
  const Tensor x = Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
  const auto results = compile_and_run(context, compiled, std::vector{x, x});
  EXPECT_TRUE(results) << results.error().str();
  double largest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double wanted = exact(static_cast<double>(values[i]));
    const float found = (*results)[0].data<float>()[i], rounded = static_cast<float>(wanted);
    if (std::isnan(rounded) || std::isinf(rounded) || rounded == 0) {
      const bool edge = found == rounded || (std::isnan(rounded) && std::isnan(found)) ||
                        (std::isinf(rounded) && std::fabs(wanted) < 3.41e38 && found > 3.4e38f) ||
                        (rounded == 0 && std::fabs(found) <= 1e-44f);
      EXPECT_TRUE(edge) << function << "(" << values[i] << ") = " << found << ", not " << rounded;
      continue;
    }
    const double unit = std::ldexp(1.0, std::max(std::ilogb(wanted), -126) - 23);
    largest = std::max(largest, std::fabs(static_cast<double>(found) - wanted) / unit);
  }
  return largest;
}

TEST(Native, FunctionsOfFloatsAreAsCloseAsStated) {
  const std::tuple<std::string_view, double (*)(double), double> cases[] = {{"exp", std::exp, 1.2},
                                                                            {"log", std::log, 0.9},
                                                                            {"tanh", std::tanh, 6},
                                                                            {"erf", std::erf, 2},
                                                                            {"atan", std::atan, 3}};
  for (const auto& [name, exact, stated] : cases) {
    const double error = largest_error(name, exact);
    EXPECT_LE(error, stated) << name;
    EXPECT_GE(error, stated / 3) << name << ": the statement can be made tighter";
  }
}

// --- Loops, conditions, indices, buffers ---

struct Program {
  std::string_view text;
  std::vector<Tensor> params;
};

Tensor iota(DType dtype, Shape shape, int step = 1) {
  Tensor tensor(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const auto index = static_cast<size_t>(i);
    const int64_t value = i * step % 23 - 5;
    if (dtype == DType::kF32) tensor.data<float>()[index] = static_cast<float>(value);
    if (dtype == DType::kF64) tensor.data<double>()[index] = static_cast<double>(value);
    if (dtype == DType::kI32) tensor.data<int32_t>()[index] = static_cast<int32_t>(value);
    if (dtype == DType::kI64) tensor.data<int64_t>()[index] = value;
    if (dtype == DType::kI8) tensor.data<int8_t>()[index] = static_cast<int8_t>(value);
    if (dtype == DType::kBool) tensor.data<bool>()[index] = value % 3 == 0;
  }
  return tensor;
}

TEST(Native, ProgramsOfEveryKind) {
  const std::vector<Program> programs = {
      {R"(loop @scan[T](%x: Tensor[(T, 2), f64], %h0: Tensor[(2,), f64], %w: Tensor[(2, 2), f64]) -> (%h: Tensor[(T + 1, 2), f64]) {
        for j in (2) { stage first(j in (2) at (j)) { %h[0, j] = %h0[j]; } }
        alloc %s: Tensor[(T, 2), f64] {
          for t in (T) {
            for j in (2) { for k in (2) { stage sum(t in (T) at (t), j in (2) at (j), reduce k in (2) at (k)) {
              init { %s[t, j] = %x[t, j]; } %s[t, j] = %s[t, j] + %w[j, k] * %h[t, k]; } } }
            for j in (2) { stage step(scan t in (T) at (t), j in (2) at (j)) { %h[t + 1, j] = tanh(%s[t, j]); } }
          }
        } })",
       {iota(DType::kF64, {9, 2}), iota(DType::kF64, {2}), iota(DType::kF64, {2, 2}, 3)}},
      {R"(loop @ragged[n](%lengths: Tensor[(n,), i64], %a: Tensor[(b: n, lengths(b), 20), i32]) -> (%c: Tensor[(n, 20), i32], %d: Tensor[(b: n, lengths(b), 20), i32]) {
        alloc %t: Tensor[(b: n, lengths(b), 20), i32] {
          for b in (n) parallel { for s in (lengths(b)) { for j in (20) vector {
            stage twice(b in (n) at (b), s in (lengths(b)) at (s), j in (20) at (j)) { %t[b, s, j] = %a[b, s, j] * i32(2); } } } }
          for b in (n) { for s in (lengths(b)) { for j in (20) {
            stage sum(b in (n) at (b), reduce s in (lengths(b)) at (s), j in (20) at (j)) {
              init { %c[b, j] = i32(0); } %c[b, j] = %c[b, j] + %t[b, s, j]; } } } }
          for b in (n) { for s0 in ((lengths(b) + 3) // 4) { for s1 in (4) vector { for j in (20) {
            stage back(b in (n) at (b), s in (lengths(b)) at (4*s0 + s1), j in (20) at (j)) where (4*s0 + s1) below (lengths(b)) {
              %d[b, s, j] = %t[b, lengths(b) - 1 - s, j] - i32(1); } } } } }
        } })",
       {Tensor::of<int64_t>({5}, std::vector<int64_t>{1, 2, 7, 4, 3}), iota(DType::kI32, {17, 20})}},
      {R"(loop @attention[n](%lengths: Tensor[(n,), i32]) -> (%s: Tensor[(b: n, 3, lengths(b), lengths(b)), i64]) {
        for b in (n) { for h in (3) { for i in (lengths(b)) { for j in (lengths(b)) {
          stage s(b in (n) at (b), h in (3) at (h), i in (lengths(b)) at (i), j in (lengths(b)) at (j)) {
            %s[b, h, i, j] = index(1000*b + 100*h + 10*i + j); } } } } } })",
       {Tensor::of<int32_t>({4}, std::vector<int32_t>{3, 0, 1, 5})}},
      {R"(loop @mixed[n, m](%x: Tensor[(n,), i32], %at: Tensor[(m,), i8]) -> (%y: Tensor[(m,), i32], %z: Tensor[(n,), i64]) {
        for i in (m) { stage gather(i in (m) at (i)) { %y[i] = (let p in (n) = %at[i]; %x[p]) + i32(-1); } }
        for i0 in ((n + 3) // 4) { for i1 in (4) vector {
          stage shift(i in (n) at (4*i0 + i1)) where (4*i0 + i1) below (n) {
            if (index(i) < index(1) or not(%x[i] == i32(5))) { %z[i] = select(index(1) <= index(i), i64(%x[i - 1]), i64(-7)); }
            else { let q in (n % 3 + 9) = rem(%x[i], i32(2)) { %z[i] = index(q + min(i, n // 2)); } } } } } })",
       {Tensor::of<int32_t>({6}, std::vector<int32_t>{4, 5, 6, 5, 8, 9}),
        Tensor::of<int8_t>({2}, std::vector<int8_t>{5, 0})}},
      // Gathers with computed indices in lanes; a condition whose right operand must not be loaded in all lanes.
      {R"(loop @lanes[n](%x: Tensor[(n,), i32], %at: Tensor[(33,), i64]) -> (%y: Tensor[(33,), i32], %z: Tensor[(33,), bool]) {
        for i in (33) vector { stage g(i in (33) at (i)) { %y[i] = (let p in (n) = %at[i] + index(5); %x[p] + i32(index(p // 2))); } }
        for i in (33) vector { stage c(i in (33) at (i)) {
          %z[i] = index(i) < index(n) and i32(0) < %x[i] or (index(0) < index(i - 3) and %at[i - 3] / i64(2) == i64(1)); } } })",
       {iota(DType::kI32, {25}, 7), iota(DType::kI64, {33})}},
      // Reversed, strided, transposed and repeated elements of lanes; more lanes than an iteration computes.
      {R"(loop @strides(%x: Tensor[(200, 6), f32]) -> (%y: Tensor[(200,), f32], %z: Tensor[(6, 200), f32], %v: Tensor[(150,), f32]) {
        for i in (200) vector { stage a(i in (200) at (i)) { %y[i] = %x[199 - i, 2] + %x[i // 7, 5]; } }
        for j in (6) unroll { for i in (200) vector { stage b(j in (6) at (j), i in (200) at (199 - i)) { %z[j, i] = %x[i, j]; } } }
        for i in (150) vector { stage c(i in (150) at (i)) { %v[i] = %x[(i + 3) // 4, i % 4] * f32(0.1); } } })",
       {iota(DType::kF32, {200, 6})}},
      // Booleans are bytes in memory and bits in lanes, with a stride of two as well.
      {R"(loop @flags(%x: Tensor[(40,), bool]) -> (%y: Tensor[(20,), bool], %z: Tensor[(16,), i32]) {
        for i in (20) vector { stage a(i in (20) at (i)) { %y[i] = %x[2*i + 1] or index(i) < index(4); } }
        for i in (16) vector { stage b(i in (16) at (i)) { %z[i] = select(%x[2*i], i32(3), i32(5)); } } })",
       {iota(DType::kBool, {40})}},
      {R"(loop @fused[n](%x: Tensor[(n, 5), i32]) -> (%y: Tensor[(n, 5), i32]) {
        for f in (5*n) parallel { stage a(i in (n) at (f // 5), j in (5) at (f % 5)) { %y[i, j] = %x[i, 4 - j] + i32(index(i * j)); } } })",
       {iota(DType::kI32, {7, 5})}},
      {R"(loop @scope(%x: Tensor[(12, 4), i32]) -> (%y: Tensor[(12, 4), i32]) {
        for i in (12) parallel { alloc %t: Tensor[(4,), i32] { for j in (4) unroll { stage a(i in (12) at (i), j in (4) at (j)) { %t[j] = %x[i, j] * %x[i, j]; } }
          for j in (4) unroll { stage b(i in (12) at (i), j in (4) at (j)) { %y[i, j] = %t[3 - j]; } } } } })",
       {iota(DType::kI32, {12, 4})}},
      {R"(loop @heap[n](%x: Tensor[(n, 300), f64]) -> (%y: Tensor[(n, 300), f64]) {
        for i in (n) parallel { alloc %t: Tensor[(n, 300), f64] { for j in (300) vector { stage a(i in (n) at (i), j in (300) at (j)) { %t[i, j] = sqrt(abs(%x[i, j])); } }
          for j in (300) { stage b(i in (n) at (i), j in (300) at (j)) { %y[i, j] = %t[i, 299 - j] / f64(3); } } } } })",
       {iota(DType::kF64, {70, 300})}},
      {R"(loop @scalar(%x: Tensor[(), f32]) -> (%y: Tensor[(), f32]) { stage s() { %y[] = %x[] + f32(1); } })",
       {iota(DType::kF32, {})}},
      {R"(loop @none[n](%x: Tensor[(n, 0), f32]) -> (%y: Tensor[(n, 0), f32]) {
        for i in (n) parallel { for j in (0) { stage s(i in (n) at (i), j in (0) at (j)) { %y[i, j] = %x[i, j]; } } } })",
       {Tensor(DType::kF32, {3, 0})}},
  };
  TypeContext context;
  std::vector<loop::Function> functions;
  std::vector<std::vector<Tensor>> params;
  for (const Program& program : programs) {
    functions.push_back(must_parse(context, program.text));
    params.push_back(program.params);
  }
  compare_all(context, functions, params, {});
}

// --- Instructions ---

TEST(Native, InstructionsGiveTheResultsOfTheirDeclaration) {
  TypeContext context;
  Cases cases;
  add_dots(context, cases);
  compare_all(context, cases.functions, cases.params, {});
}

TEST(Native, ADotProductIsOneInstructionOfTheProcessor) {
  TypeContext context;
  const loop::Function x86 = must_parse(context, dot_program(0, "u8 i8 16", false));
  const loop::Function arm = must_parse(context, dot_program(1, "i8 i8 4", false));
  // Whether the code contains a matching 32-bit word at a multiple of `step` bytes.
  auto has = [&](const loop::Function& function, const Options& options, size_t step, uint32_t mask, uint32_t wanted) {
    const loop::Function* functions[] = {&function};
    const auto code = compile(context, functions, options);
    EXPECT_TRUE(code) << code.error().str();
    for (size_t offset = 0; offset + 4 <= code->object.size(); offset += step) {
      uint32_t word;
      std::memcpy(&word, code->object.data() + offset, 4);
      if ((word & mask) == wanted) return true;
    }
    return false;
  };
  // vpdpbusd of zmm: EVEX, map 0F38, 66, W0, 512 bits, opcode 50; sdot of vectors or by element.
  EXPECT_TRUE(has(x86, {.levels = {"x86-64-v4+vnni"}}, 1, 0xff608700, 0x50400500));
  EXPECT_FALSE(has(x86, {.levels = {"x86-64-v4"}}, 1, 0xff608700, 0x50400500));
  // vpdpbusd of ymm in VEX: three bytes of prefix.
  EXPECT_TRUE(has(x86, {.levels = {"x86-64-v3+vnni"}}, 1, 0xff071fff, 0x500502c4));
  EXPECT_FALSE(has(x86, {.levels = {"x86-64-v3"}}, 1, 0xff071fff, 0x500502c4));
  for (const auto& [level, has_dot] : {std::pair("armv8.2-a+dotprod", true), std::pair("armv8-a", false)}) {
    const Options options{.triple = "aarch64-linux-gnu", .levels = {level}};
    EXPECT_EQ(has(arm, options, 4, 0xffe0fc00, 0x4e809400) || has(arm, options, 4, 0xffc0f400, 0x4f80e000), has_dot);
  }
}

// --- Faults of programs ---

TEST(Native, ReportsFaultsWithTheirLocation) {
  const std::string head = "loop @f[n](%x: Tensor[(n,), i32]) -> (%y: Tensor[(n,), i32]) { ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"for i in (n) {M} {{ stage s(i in (n) at (i)) {{ %y[i] = i32(7) / (%x[i] - i32(3)); }} }}",
       "@f, stage 's': error: an integer is divided by 0"},
      {"for i in (n) {M} {{ stage s(i in (n) at (i)) {{ %y[i] = rem(%x[i], i32(0)); }} }}",
       "@f, stage 's': error: an integer is divided by 0"},
      {"for i in (n) {M} {{ stage s(i in (n) at (i)) {{ %y[i] = i32(f32(%x[i]) * f32(1000000000)); }} }}",
       "@f, stage 's': error: 3000000000 does not fit into i32"},
      {"for i in (n) {M} {{ stage s(i in (n) at (i)) {{ %y[i] = (let p in (n) = %x[i] * i32(5) + i32(2); %x[p]); }} }}",
       "@f, stage 's': error: the index 17 is not in 0 .. 16"},
      {"for i in (n) {M} {{ stage s(i in (n) at (i)) {{ let p in (2) = %x[i] - i32(1) {{ %y[i] = %x[p]; }} }} }}",
       "@f, stage 's': error: the index 2 is not in 0 .. 1"},
      {"for i in (n // (n - 17)) {{ stage s(i in (n) at (i)) {{ %y[i] = %x[i]; }} }}",
       "@f: error: a size is divided by 0"},
      {"alloc %t: Tensor[(n - 20,), i32] {{ }}", "@f: error: a buffer would have -3 elements"},
      {"alloc %t: Tensor[(n, 1000000000, 1000000000), i32] {{ }}", "@f: error: a buffer would have"},
      {"alloc %t: Tensor[(n, 1000000, 100000), i32] {{ }}", "@f: error: not enough memory for 6800000000000 bytes"},
  };
  Tensor x(DType::kI32, {17});
  for (size_t i = 0; i < 17; ++i) x.data<int32_t>()[i] = 1;
  x.data<int32_t>()[5] = 3, x.data<int32_t>()[11] = 3;  // the first one is reported
  TypeContext context;
  for (const auto& [body, message] : cases) {
    for (const char* kind : {"", "parallel", "vector"}) {
      std::string text = head + fmt::format(fmt::runtime(body), fmt::arg("M", kind)) + " }";
      if (std::string_view(kind) == "vector") {
        if (text.find("vector") == std::string::npos) continue;
        for (size_t found; (found = text.find("(n) vector")) != std::string::npos;) text.replace(found, 3, "(17)");
        for (size_t found; (found = text.find("i in (n) at")) != std::string::npos;)
          text.replace(found, 8, "i in (17)");
      }
      const loop::Function function = must_parse(context, text);
      const auto results = compile_and_run(context, function, std::vector{x});
      ASSERT_FALSE(results) << text;
      EXPECT_HAS(results.error().str(), message);
    }
  }
}

// The error of the first iteration that fails, and the results, do not depend on the number of threads.
TEST(Native, ResultsDoNotDependOnTheNumberOfThreads) {
  TypeContext context;
  const loop::Function function = must_parse(context, R"(
    loop @f[n](%x: Tensor[(n,), i32]) -> (%y: Tensor[(n,), i32]) {
      for i in (n) parallel { stage s(i in (n) at (i)) { %y[i] = (let p in (n) = %x[i]; i32(index(p))) / i32(3); } } })");
  const loop::Function* functions[] = {&function};
  const auto code = compile(context, functions, host_options());
  ASSERT_TRUE(code) << code.error().str();
  const auto library = runtime::NativeLibrary::load(*code);
  ASSERT_TRUE(library) << library.error().str();
  for (unsigned threads : {1u, 2u, 3u, 8u}) {
    runtime::ThreadPool pool(threads);
    for (int round = 0; round < 30; ++round) {
      Tensor x(DType::kI32, {1001});
      for (int bad : {990, 402 + round, 400 + round}) x.data<int32_t>()[static_cast<size_t>(bad)] = -bad;
      EXPECT_EQ(library->call("f", std::vector{x}, pool).error().str(),
                fmt::format("@f, stage 's': error: the index {} is not in 0 .. 1000", -400 - round));
    }
    EXPECT_EQ(*library->call("f", std::vector{Tensor(DType::kI32, {1001})}, pool),
              std::vector{Tensor(DType::kI32, {1001})});
  }
}

// --- Functions of other libraries ---

TEST(Native, CallsFunctionsAsTheEvaluatorDoes) {
  TypeContext context;
  ASSERT_TRUE(runtime::open_functions(TENON_FUNCTIONS_SAMPLE));
  std::vector<loop::Function> functions;
  for (std::string_view text : {R"(
    loop @whole[n](%x: Tensor[(n, 5), f32]) -> (%y: Tensor[(n, 5), f32], %z: Tensor[(5*n,), f32]) {
      alloc %t: Tensor[(n, 5), f32] {
        call sort.rows(%x) -> (%t);
        call halve(%t) -> (%z);
        for i in (n) { for j in (5) unroll { stage s(i in (n) at (i), j in (5) at (j)) { %y[i, j] = %t[i, j] - %x[i, 4 - j]; } } } } })",
                                R"(
    loop @rows[n](%x: Tensor[(n, 8), f32]) -> (%y: Tensor[(n, 8), f32]) {
      for i in (n) parallel {
        alloc %a: Tensor[(8,), f32] in stack {
          alloc %b: Tensor[(2, 4), f32] {
            for j in (8) vector { stage put(i in (n) at (i), j in (8) at (j)) { %a[j] = %x[i, j] + f32(1); } }
            call halve(%a) -> (%b);
            for j in (8) { stage take(i in (n) at (i), j in (8) at (j)) { %y[i, j] = %b[j // 4, j % 4] * %a[j]; } } } } } })"}) {
    functions.push_back(must_parse(context, text));
    const loop::Function again = must_parse(context, print(context, functions.back()));
    EXPECT_TRUE(equal(again, functions.back()));
  }
  std::vector<std::vector<Tensor>> params;
  for (int64_t columns : {5, 8}) {
    Tensor x(DType::kF32, {37, columns});
    std::minstd_rand random(static_cast<unsigned>(columns));
    for (float& value : x.data<float>()) value = static_cast<float>(random() % 2000) / 16 - 50;
    params.push_back({x});
  }
  compare_all(context, functions, params, {});
}

TEST(Native, ErrorsOfExternalFunctionsNameTheCaller) {
  TypeContext context;
  const auto message = [&](std::string_view text, const Tensor& x) {
    const loop::Function function = must_parse(context, text);
    const auto found = compile_and_run(context, function, std::vector{x});
    const auto evaluated = evaluate(context, function, std::vector{x});
    EXPECT_FALSE(evaluated);
    return found ? "it ran" : found.error().str();
  };
  const auto calls = [](std::string_view name) {
    return fmt::format("loop @f[n](%x: Tensor[(n,), f32]) -> (%y: Tensor[(n,), f32]) {{ call {}(%x) -> (%y); }}", name);
  };
  EXPECT_HAS(message(calls("nobody.has"), Tensor(DType::kF32, {4})),
             "@f: error: the library function 'nobody.has' does not exist\n  help: ");
  ASSERT_TRUE(runtime::open_functions(TENON_FUNCTIONS_SAMPLE));
  const std::string file = TENON_FUNCTIONS_SAMPLE;
  Tensor x(DType::kF32, {9});
  EXPECT_EQ(message(calls("fails"), x),
            "@f, library function 'fails' of " + file + ": error: the library function failed");
  x.data<float>()[7] = 13;
  EXPECT_EQ(message(calls("halve"), x),
            "@f, library function 'halve' of " + file + ": halving: error: the index 7 is not in 0 .. 8");
  EXPECT_HAS(message("loop @f(%x: Tensor[(9,), f32]) -> (%y: Tensor[(9,), i32]) { call halve(%x) -> (%y); }", x),
             "it takes f32");
}

// --- What is refused ---

TEST(Native, RefusesWithTheReason) {
  TypeContext context;
  const loop::Function good = must_parse(context,
                                         "loop @g(%x: Tensor[(4,), f32]) -> (%y: Tensor[(4,), f32]) { for i in (4) "
                                         "{ stage s(i in (4) at (i)) { %y[i] = %x[i]; } } }");
  auto message = [&](const std::vector<const loop::Function*>& functions, const Options& options = {}) {
    const auto code = compile(context, functions, options);
    return code ? "compiled" : code.error().str();
  };
  EXPECT_HAS(
      message({&good}, {.triple = "pdp11-dec-unix"}),
      "LLVM has no target for the triple 'pdp11-dec-unix'\n  help: native code supports x86_64-unknown-linux-gnu "
      "(x86_64), aarch64-unknown-linux-gnu (aarch64), armv7-unknown-linux-gnueabihf (armhf)");
  EXPECT_HAS(message({&good}, {.triple = "s390x-linux-gnu"}), "is big-endian");
  EXPECT_HAS(message({&good}, {.triple = "armv6-linux-gnueabihf"}), "is older than ARMv7");
  EXPECT_HAS(message({&good}, {.triple = "aarch64-apple-darwin"}), "is not Linux with ELF files");
  EXPECT_HAS(message({&good}, {.levels = {"x86-64-v9"}}), "has no level 'x86-64-v9'\n  help: the levels are ");
  EXPECT_HAS(message({&good, &good}), "two loop functions have the name @g");
  const loop::Function ragged = must_parse(
      context, "loop @l[n](%x: Tensor[(n,), i32]) -> (%y: Tensor[(i: n, x(i)), f32]) { call fill(%x) -> (%y); }");
  EXPECT_HAS(message({&ragged}), "@l: error: the ragged buffer %y is passed to the library function 'fill'");
  const loop::Function deep =
      must_parse(context, "loop @d[n, m](%a: Tensor[(n, m), i32]) -> (%y: Tensor[(i: n, j: m, a(i, j)), f32]) { }");
  EXPECT_HAS(message({&deep}), "@d: error: axis 2 of %y depends on the index of an axis that is not the first");
  const loop::Function open =
      must_parse(context, "loop @o[n, m](%a: Tensor[(n + m,), i32]) -> (%y: Tensor[(n,), f32]) { }");
  EXPECT_HAS(message({&open}), "@o: error: no parameter's size determines '");
}

// An object for x86-64 is linked in this process, any other one in a child process; later links must still work. A
// fatal error of lld leaks its memory, so the links run in a process that exits without a leak check.
TEST(Native, ReportsErrorsOfTheLinker) {
  TypeContext context;
  const loop::Function function = must_parse(context,
                                             "loop @g(%x: Tensor[(4,), f32]) -> (%y: Tensor[(4,), f32]) { for i in (4) "
                                             "{ stage s(i in (4) at (i)) { %y[i] = %x[i]; } } }");
  const std::vector<const loop::Function*> functions{&function};
  std::vector<char> in_process(64), in_child(64, 'x');
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64, header.e_ident[EI_DATA] = ELFDATA2LSB, header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL, header.e_machine = EM_X86_64, header.e_version = EV_CURRENT;
  header.e_shoff = 1 << 20, header.e_shentsize = sizeof(Elf64_Shdr), header.e_shnum = 5;  // beyond the end of the file
  std::memcpy(in_process.data(), &header, sizeof header);
  for (const auto& object : {in_process, in_child}) {
    const auto refuse = [&] {
      const auto linked = link(object);
      fmt::print(stderr, "{}\n", linked ? "linked" : linked.error().str());
      _exit(compile(context, functions, {}) ? 0 : 1);
    };
    EXPECT_EXIT(refuse(), testing::ExitedWithCode(0), "lld: error: the linker failed: .*kernels.o");
  }
}

// The elements of all rows are one after another, so a loop over them needs the number of all, and no row; another
// storage of the rows does.
TEST(Native, ElementsOfAllRowsNeedNoTableOfRows) {
  TypeContext context;
  constexpr std::string_view kText =
      R"(loop @f[n](%lengths: Tensor[(n,), i64], %x: Tensor[(b: n, lengths(b), 8), i32]) -> (%y: Tensor[(b: n, lengths(b), 8), i32]) {{
    offsets begin(b in (n), size (lengths(b)));
    rows row(b in (n), size (lengths(b)));
    for f in (begin(n)) parallel {{ for j in (8) vector {{
      stage s(b in (n) at (row(f)), s in (lengths(b)) at (f - begin(row(f))), j in (8) at (j)) {{ %y[b, s, j] = %x[b, {}, j]; }}
    }} }} }})";
  const std::vector<Tensor> params{Tensor::of<int64_t>({5}, std::vector<int64_t>{1, 0, 7, 4, 5}),
                                   iota(DType::kI32, {17, 8})};
  runtime::ThreadPool pool(2);
  for (const auto& [index, uses_rows] : {std::pair("s", false), {"lengths(b) - 1 - s", true}}) {
    const loop::Function function = must_parse(context, fmt::format(fmt::runtime(kText), index));
    const auto code = compile(context, std::vector{&function}, host_options());
    ASSERT_TRUE(code) << code.error().str();
    using Kind = runtime::SignatureTable::Kind;
    const auto& tables = code->kernels[0].signature.tables;
    ASSERT_EQ(tables.size(), 2u);
    EXPECT_EQ(tables[0].kind, Kind::kOffsets);
    EXPECT_EQ(tables[1].kind, uses_rows ? Kind::kRows : Kind::kUnused);
    const auto library = runtime::NativeLibrary::load(*code);
    ASSERT_TRUE(library) << library.error().str();
    // One memory for both calls: the second one has the tables of the first.
    runtime::CallMemory memory;
    std::vector<Tensor> results;
    for (int call = 0; call < 2; ++call) {
      const Status status = library->call(0, params, results, memory, pool);
      ASSERT_TRUE(status) << status.error().str();
      EXPECT_EQ(results, *evaluate(context, function, params));
    }
    EXPECT_EQ(memory.num_tables_made, uses_rows ? 2u : 1u);
    EXPECT_EQ(memory.num_tables_reused, memory.num_tables_made);
  }
}

}  // namespace
}  // namespace tenon::compiler::native
