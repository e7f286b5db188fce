// PTX of bound loop functions.
#include "compiler/backends/llvm/ptx.h"

#include <gtest/gtest.h>

#include <string>

#include "compiler/loop/schedule/bind.h"
#include "tests/compiler/backends/cuda/ptxas.h"
#include "tests/compiler/loop/must_parse.h"

namespace tenon::compiler::native {
namespace {

// A product by tiles in shared memory, a register for each thread's sum, and a tail that only some threads compute.
constexpr std::string_view kTiled =
    R"(loop @tiled(%a: Tensor[(32, 64), f32], %b: Tensor[(64, 48), f32]) -> (%c: Tensor[(32, 48), f32]) {
  for by in (2) block_y {
    for bx in (3) block_x {
      alloc %as: Tensor[(16, 16), f32] in shared {
        alloc %bs: Tensor[(16, 16), f32] in shared {
          alloc %sum: Tensor[(16, 16), f32] in registers {
            for k0 in (4) {
              for y in (16) thread_y { for x in (16) thread_x {
                stage load(given by in (2) at (by), given bx in (3) at (bx), given k0 in (4) at (k0), y in (16) at (y), x in (16) at (x)) {
                  %as[y, x] = %a[16*by + y, 16*k0 + x];
                  %bs[y, x] = %b[16*k0 + y, 16*bx + x];
                }
              } }
              barrier;
              for y in (16) thread_y { for x in (16) thread_x { for k1 in (16) {
                stage dot(y in (16) at (y), x in (16) at (x), reduce k in (64) at (16*k0 + k1), given k1 in (16) at (k1)) {
                  init { %sum[y, x] = f32(0); }
                  %sum[y, x] = %sum[y, x] + %as[y, k1] * %bs[k1, x];
                }
              } } }
              barrier;
            }
            for y in (16) thread_y { for x in (16) thread_x {
              stage store(by in (2) at (by), bx in (3) at (bx), y in (16) at (y), x in (16) at (x)) {
                %c[16*by + y, 16*bx + x] = tanh(%sum[y, x]);
              }
            } }
            for x in (8) thread_x {
              stage first(given by in (2) at (by), given bx in (3) at (bx), x in (8) at (x)) where (by + bx) below (1) { %c[0, x] = f32(1); }
            }
          }
        }
      }
    }
  }
}
)";

Expected<Ptx> ptx_of(TypeContext& context, const loop::Function& function, const std::string& level = "sm_80") {
  auto kernels = loop::kernels_of(context, function);
  if (!kernels) return std::unexpected(kernels.error());
  const PtxFunction functions[] = {{&function, std::move(*kernels)}};
  auto ptx = make_ptx(context, functions, level);
  const Status checked = check_ptx(context, functions, level);
  EXPECT_EQ(checked ? "" : checked.error().str(), ptx ? "" : ptx.error().str());
  return ptx;
}

size_t count(const std::string& text, std::string_view what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(Ptx, HasSharedMemoryBarriersAndIeeeOperations) {
  TypeContext context;
  const loop::Function function = loop::must_parse(context, kTiled);
  const auto ptx = ptx_of(context, function);
  ASSERT_TRUE(ptx) << ptx.error().str();
  EXPECT_EQ(count(ptx->text, ".visible .entry tiled_0("), 1u) << ptx->text;
  EXPECT_EQ(count(ptx->text, ".shared .align 16 .b8"), 2u) << ptx->text;
  EXPECT_EQ(count(ptx->text, ".maxntid 16, 16, 1"), 1u) << ptx->text;
  EXPECT_GE(count(ptx->text, "bar.sync"), 2u);
  EXPECT_GE(count(ptx->text, "ld.shared.f32"), 2u) << "addresses of shared memory are not generic";
  EXPECT_GE(count(ptx->text, "fma.rn.f32"), 1u) << "a product and its sum are rounded once";
  EXPECT_EQ(count(ptx->text, ".ftz"), 0u);
  EXPECT_EQ(count(ptx->text, ".approx"), 0u);
  EXPECT_EQ(count(ptx->text, ".local"), 0u) << "the call's structure and the sums are not in registers";
}

// A row of 16 threads in a warp of two: a tree of sums, which all threads read, and their broadcast.
constexpr std::string_view kRows =
    R"(loop @rows(%x: Tensor[(6, 2, 16), f32]) -> (%y: Tensor[(6, 2, 16), f32]) {
  for b in (6) block_x {
    alloc %part: Tensor[(2, 16), f32] in registers {
      alloc %half: Tensor[(2, 8), f32] in registers {
        alloc %sum: Tensor[(2,), f32] in registers {
          for t in (2) thread_y { for u in (16) thread_x {
            stage load(b in (6) at (b), t in (2) at (t), u in (16) at (u)) { %part[t, u] = %x[b, t, u]; }
          } }
          for t in (2) thread_y { for u in (8) thread_x {
            stage half(t in (2) at (t), u in (8) at (u)) { %half[t, u] = %part[t, u] + %part[t, u + 8]; }
          } }
          for t in (2) thread_y { for k in (4) unroll {
            stage sum(t in (2) at (t), reduce k in (4) at (k)) {
              init { %sum[t] = f32(0); }
              %sum[t] = %sum[t] + %half[t, k];
            }
          } }
          for t in (2) thread_y { for u in (16) thread_x {
            stage store(b in (6) at (b), t in (2) at (t), u in (16) at (u)) { %y[b, t, u] = %part[t, u] / %sum[t]; }
          } }
        }
      }
    }
  }
}
)";

// A warp's row, whose first thread alone adds.
constexpr std::string_view kRow =
    R"(loop @row(%x: Tensor[(6, 32), f32]) -> (%y: Tensor[(6, 32), f32]) {
  for b in (6) block_x {
    alloc %part: Tensor[(32,), f32] in registers {
      alloc %sum: Tensor[(1,), f32] in registers {
        for u in (32) thread_x {
          stage load(b in (6) at (b), u in (32) at (u)) { %part[u] = %x[b, u]; }
        }
        for one in (1) thread_x { for k in (32) unroll {
          stage sum(o in (1) at (one), reduce k in (32) at (k)) {
            init { %sum[o] = f32(0); }
            %sum[o] = %sum[o] + %part[k];
          }
        } }
        for u in (32) thread_x {
          stage store(b in (6) at (b), u in (32) at (u)) { %y[b, u] = %part[u] / %sum[0]; }
        }
      }
    }
  }
}
)";

// shfl.sync with rows of 16 threads: ((32 - 16) << 8) + 31. No thread branches, and none waits for another warp.
TEST(Ptx, RegistersOfOtherThreadsAreShuffled) {
  TypeContext context;
  const loop::Function function = loop::must_parse(context, kRows);
  const auto ptx = ptx_of(context, function);
  ASSERT_TRUE(ptx) << ptx.error().str();
  EXPECT_EQ(count(ptx->text, "shfl.sync.idx.b32"), 6u) << ptx->text;
  EXPECT_EQ(count(ptx->text, ", 4127, -1;"), 6u) << ptx->text;
  EXPECT_EQ(count(ptx->text, "bar.sync"), 0u) << ptx->text;
  EXPECT_EQ(count(ptx->text, "bra"), 0u) << ptx->text;
  EXPECT_EQ(count(ptx->text, ".shared"), 0u) << ptx->text;
  EXPECT_EQ(count(ptx->text, ".local"), 0u) << ptx->text;
  const auto row = ptx_of(context, loop::must_parse(context, kRow));
  ASSERT_TRUE(row) << row.error().str();
  EXPECT_EQ(count(row->text, "shfl.sync.idx.b32"), 33u) << "each part, and the sum, which its thread does not read so";
  EXPECT_EQ(count(row->text, ", 31, -1;"), 33u) << row->text;
  EXPECT_EQ(count(row->text, ".local"), 0u) << row->text;
  const auto ptxas = find_ptxas();
  for (const auto* text : {&ptx->text, &row->text})
    EXPECT_EQ(ptxas ? assemble(*ptxas, *text, "sm_80") : "", "") << *text;
}

TEST(Ptx, IsAssembled) {
  const auto ptxas = find_ptxas();
  if (!ptxas) GTEST_SKIP() << kNoPtxas;
  for (const std::string level : {"sm_80", "sm_90"}) {
    TypeContext context;
    const auto ptx = ptx_of(context, loop::must_parse(context, kTiled), level);
    ASSERT_TRUE(ptx) << ptx.error().str();
    EXPECT_EQ(assemble(*ptxas, ptx->text, level), "") << ptx->text;
  }
}

TEST(Ptx, FaultsAreRecorded) {
  TypeContext context;
  const auto function = loop::bound(
      context,
      loop::must_parse(context,
                       R"(loop @divide[n](%a: Tensor[(n,), i32], %b: Tensor[(n,), i32]) -> (%c: Tensor[(n,), i32]) {
  for i in (n) { stage divide(i in (n) at (i)) { %c[i] = %a[i] / %b[i]; } }
}
)"));
  ASSERT_TRUE(function) << function.error().str();
  const auto ptx = ptx_of(context, *function);
  ASSERT_TRUE(ptx) << ptx.error().str();
  EXPECT_EQ(count(ptx->text, ".visible .global .align 8 .b8 tn_fault_record[24]"), 1u) << ptx->text;
  ASSERT_EQ(ptx->sites.size(), 1u);
  EXPECT_EQ(ptx->sites[0].second, "@divide, stage 'divide'");
}

// Elements that are not adjacent, zeros among them: a copy of each, none of which a thread waits for. The indices,
// which have bounds, and their divisions have 32 bits.
TEST(Ptx, GathersAreAsynchronousCopiesOfElements) {
  constexpr std::string_view kGather =
      R"(loop @gather(%x: Tensor[(64, 9), f32]) -> (%y: Tensor[(64, 8), f32]) {
  for b in (64) block_x {
    alloc %s: Tensor[(8, 2), f32] in shared swizzle(1, 0, 4) {
      for t in (8) thread_x {
        for u in (2) unroll {
          stage copy(b in (64) at (b), t in (8) at (t), u in (2) at (u)) async {
            %s[t, u] = select(index((t * 5 + u) // 3) < index(9), %x[b, (t * 5 + u) // 3], f32(0));
          }
        }
      }
      commit;
      wait(0);
      barrier;
      for t in (8) thread_x {
        stage y(b in (64) at (b), t in (8) at (t)) { %y[b, t] = %s[7 - t, 0] + %s[t, 1]; }
      }
    }
  }
}
)";
  TypeContext context;
  const auto ptx = ptx_of(context, loop::must_parse(context, kGather));
  ASSERT_TRUE(ptx) << ptx.error().str();
  EXPECT_EQ(count(ptx->text, "cp.async.ca.shared.global"), 2u) << ptx->text;
  EXPECT_EQ(count(ptx->text, "ld.global"), 0u) << ptx->text;
  EXPECT_GE(count(ptx->text, "mul.hi.u32") + count(ptx->text, "mul.wide.u32"), 1u) << ptx->text;
  EXPECT_EQ(count(ptx->text, "mul.hi.u64") + count(ptx->text, "mul.hi.s64"), 0u) << ptx->text;
  if (const auto ptxas = find_ptxas()) {
    EXPECT_EQ(assemble(*ptxas, ptx->text, "sm_80"), "");
  }
}

// Words of adjacent elements that are all inside of an image or all outside of it, by conditions on other indices.
TEST(Ptx, WordsWithOneConditionAreAsynchronousCopies) {
  constexpr std::string_view kWindow =
      R"(loop @window(%x: Tensor[(6, 8), f32]) -> (%y: Tensor[(8, 8), f32]) {
  for b in (1) block_x {
    alloc %s: Tensor[(8, 8), f32] in shared {
      for t in (16) thread_x {
        for u in (4) unroll {
          stage copy(h in (8) at (t // 2), c in (8) at (t % 2 * 4 + u)) async {
            %s[h, c] = select(index(1) <= index(h) and index(h) < index(7), %x[h - 1, c], f32(0));
          }
        }
      }
      commit;
      wait(0);
      barrier;
      for t in (16) thread_x {
        for u in (4) {
          stage y(h in (8) at (t // 2), c in (8) at (t % 2 * 4 + u)) { %y[h, c] = %s[7 - h, 7 - c]; }
        }
      }
    }
  }
}
)";
  TypeContext context;
  const auto ptx = ptx_of(context, loop::must_parse(context, kWindow));
  ASSERT_TRUE(ptx) << ptx.error().str();
  EXPECT_EQ(count(ptx->text, "cp.async.cg.shared.global"), 1u) << ptx->text;
  EXPECT_EQ(count(ptx->text, "cp.async.ca.shared.global"), 0u) << ptx->text;
  EXPECT_EQ(count(ptx->text, "ld.global"), 0u) << ptx->text;
}

TEST(Ptx, DotProductsOfBytesAreInstructions) {
  TypeContext context;
  const auto function = loop::bound(
      context,
      loop::must_parse(context,
                       R"(loop @dots[n](%a: Tensor[(n,), i32], %b: Tensor[(n,), i32]) -> (%c: Tensor[(n,), i32]) {
  for i in (n) { stage dots(i in (n) at (i)) { %c[i] = i32(5) + byte_dot(%a[i], %b[i]); } }
}
)"));
  ASSERT_TRUE(function) << function.error().str();
  const auto ptx = ptx_of(context, *function);
  ASSERT_TRUE(ptx) << ptx.error().str();
  EXPECT_EQ(count(ptx->text, "dp4a.u32.s32"), 1u) << ptx->text;
  if (const auto ptxas = find_ptxas()) {
    EXPECT_EQ(assemble(*ptxas, ptx->text, "sm_80"), "");
  }
}

TEST(Ptx, WhatItLacksIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"loop @f(%a: Tensor[(4,), f64]) -> (%c: Tensor[(4,), f64]) { for i in (4) { stage s(i in (4) at (i)) { %c[i] = "
       "sin(%a[i]); } } }",
       "@f: error: GPU code has no function 'sin'"},
      {"loop @f[n](%l: Tensor[(n,), i64], %a: Tensor[(b: n, l(b)), f32]) -> (%c: Tensor[(n,), f32]) { for i in (n) { "
       "stage s(i in (n) at (i)) { %c[i] = f32(1); } } }",
       "@f: error: %a is ragged"},
      {"loop @f(%a: Tensor[(4,), f32]) -> (%c: Tensor[(4,), f32]) { descending order(i in (4), size (i)); for i in (4) "
       "{ "
       "stage s(i in (4) at (order(i))) { %c[i] = %a[i]; } } }",
       "@f: error: the sizes are those of the table 'order'"},
      {"loop @f(%a: Tensor[(4,), f64]) -> (%c: Tensor[(4,), f64]) { for i in (4) { alloc %s: Tensor[(60000,), f64] { "
       "alloc %t: Tensor[(60000,), f64] { alloc %u: Tensor[(60000,), f64] { stage s(i in (4) at (i)) { %u[i] = %a[i]; "
       "%t[i] = %u[i]; %s[i] = %t[i]; %c[i] = %s[i]; } } } } } }",
       "@f: error: GPU code has no function 'a thread's heap'"},
  };
  for (const auto& [text, message] : cases) {
    TypeContext context;
    const auto function = loop::bound(context, loop::must_parse(context, text));
    ASSERT_TRUE(function) << function.error().str();
    const auto ptx = ptx_of(context, *function);
    ASSERT_FALSE(ptx);
    EXPECT_NE(ptx.error().str().find(message), std::string::npos) << ptx.error().str();
  }
  TypeContext context;
  const auto ptx = make_ptx(context, {}, "sm_20");
  ASSERT_FALSE(ptx);
  EXPECT_NE(ptx.error().str().find("'sm_20' is not a GPU that code is generated for"), std::string::npos);
}

}  // namespace
}  // namespace tenon::compiler::native
