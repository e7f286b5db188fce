// Derived tokens: enough to order every conflict, no more than needed, and never too many at once.
#include "compiler/backends/accel/tokens.h"
#include "tests/seed.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace tenon::compiler::accel {
namespace {

namespace native = spec::native;
using spec::Engine;
using spec::Instruction;

const spec::Config& default_config() {
  static const spec::Config config = spec::load_config("default").value();
  return config;
}

native::Move load(int64_t sram, int64_t vectors, int64_t offset = 0) {
  native::Move move;
  move.function = static_cast<int>(native::MoveFunction::kInp);
  move.base = 2;
  move.offset = offset;
  move.sram_base = sram;
  move.rows = move.source_rows = 1;
  move.vectors = vectors;
  move.x_step = 16;
  move.row_bytes = 16 * vectors;
  return move;
}
native::Move store(int64_t sram, int64_t vectors, int64_t offset) {
  native::Move move = load(sram, vectors, offset);
  move.function = static_cast<int>(native::MoveFunction::kOut);
  return move;
}
native::Gemm gemm(int64_t src, int64_t dst, int64_t x = 1) {
  native::Gemm g;
  g.r0 = g.r1 = g.r2 = g.y = 1;
  g.x = x;
  g.src_base = src;
  g.dst_base = dst;
  g.src_x = g.dst_x = x > 1 ? 1 : 0;
  return g;
}
native::Requantize requantize(int64_t acc, int64_t out) {
  native::Requantize r;
  r.rows = r.cols = 1;
  r.acc_base = acc;
  r.out_base = out;
  return r;
}

struct Masks {
  int64_t wait = 0, signal = 0;
};
Masks masks(const Instruction& instruction) {
  const spec::TokenMasks tokens = spec::tokens_of(instruction);
  return {tokens.wait, tokens.signal};
}

// Every conflicting pair of instructions is ordered by queues and tokens alone, checked by brute force; no token is
// left over; at most kMaxTokens wait at a time.
void expect_ordered(const std::vector<Instruction>& program) {
  const size_t n = program.size();
  std::vector<std::vector<Access>> touched;
  for (const Instruction& instruction : program) touched.push_back(accesses(default_config(), instruction));
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n));  // before[i][j]: j is over when i starts
  std::array<std::array<std::vector<size_t>, spec::kEngines>, spec::kEngines> pushes;
  std::array<std::array<size_t, spec::kEngines>, spec::kEngines> pops{};
  std::array<int, spec::kEngines> last;
  last.fill(-1);
  const auto follow = [&](size_t i, size_t j) {
    before[i][j] = true;
    for (size_t k = 0; k < j; ++k) before[i][k] = before[i][k] || before[j][k];
  };
  for (size_t i = 0; i < n; ++i) {
    const int engine = static_cast<int>(spec::engine_of(program[i]));
    const Masks m = masks(program[i]);
    if (last[engine] >= 0) follow(i, last[engine]);
    for (int p = 0; p < spec::kEngines; ++p) {
      if ((m.wait >> p & 1) == 0) continue;
      ASSERT_LT(pops[p][engine], pushes[p][engine].size()) << "instruction " << i << " waits for a later one";
      follow(i, pushes[p][engine][pops[p][engine]++]);
    }
    for (int c = 0; c < spec::kEngines; ++c) {
      if ((m.signal >> c & 1) == 0) continue;
      pushes[engine][c].push_back(i);
      ASSERT_LE(pushes[engine][c].size() - pops[engine][c], static_cast<size_t>(spec::kMaxTokens));
    }
    last[engine] = static_cast<int>(i);
    for (size_t j = 0; j < i; ++j) {
      for (const Access& a : touched[i]) {
        for (const Access& b : touched[j]) {
          const bool conflict =
              a.memory == b.memory && a.base == b.base && a.begin < b.end && b.begin < a.end && (a.write || b.write);
          ASSERT_TRUE(!conflict || before[i][j]) << "instructions " << j << " and " << i;
        }
      }
    }
  }
  for (int p = 0; p < spec::kEngines; ++p) {
    for (int c = 0; c < spec::kEngines; ++c) EXPECT_EQ(pushes[p][c].size(), pops[p][c]) << "tokens are left over";
  }
}

TEST(AccelTokens, AReadWaitsForTheWriteAndTheNextWriteForTheRead) {
  std::vector<Instruction> program{load(0, 4), gemm(0, 0, 4), load(0, 4)};
  derive_tokens(default_config(), program);
  EXPECT_EQ(masks(program[0]).signal, bit(Engine::kGemm));
  EXPECT_EQ(masks(program[1]).wait, bit(Engine::kLdi));
  EXPECT_EQ(masks(program[1]).signal, bit(Engine::kLdi));
  EXPECT_EQ(masks(program[2]).wait, bit(Engine::kGemm));
  expect_ordered(program);
}

TEST(AccelTokens, DisjointRegionsNeedNoTokens) {
  std::vector<Instruction> program{load(0, 4), gemm(4, 0, 4), load(8, 4), requantize(4, 0)};
  derive_tokens(default_config(), program);
  for (const Instruction& instruction : program) {
    EXPECT_EQ(masks(instruction).wait, 0);
    EXPECT_EQ(masks(instruction).signal, 0);
  }
}

TEST(AccelTokens, WhatAChainOrdersIsNotWaitedForAgain) {
  // the store comes after the load by way of gemm and rq; it overwrites what was loaded.
  std::vector<Instruction> program{load(0, 1), gemm(0, 0), requantize(0, 0), store(0, 1, 0)};
  derive_tokens(default_config(), program);
  EXPECT_EQ(masks(program[3]).wait, bit(Engine::kRq));
  EXPECT_EQ(masks(program[0]).signal, bit(Engine::kGemm));
  expect_ordered(program);
}

TEST(AccelTokens, ALoadOfWhatWasStoredWaitsForTheStore) {
  std::vector<Instruction> program{store(0, 4, 64), load(0, 4, 0), load(4, 4, 112)};
  derive_tokens(default_config(), program);
  EXPECT_EQ(masks(program[0]).signal, bit(Engine::kLdi));
  EXPECT_EQ(masks(program[1]).wait, 0);
  EXPECT_EQ(masks(program[2]).wait, bit(Engine::kSt));
}

TEST(AccelTokens, CountersNeverHoldMoreThanTheyCan) {
  // Stores first, then a load of each: a token each would be too many at once.
  std::vector<Instruction> program;
  for (int i = 0; i < 600; ++i) program.push_back(store(i % 256, 1, i * 16));
  for (int i = 0; i < 600; ++i) program.push_back(load(i, 1, i * 16));
  derive_tokens(default_config(), program);
  expect_ordered(program);
}

TEST(AccelTokens, RandomProgramsAreOrderedAndLeaveNoToken) {
  std::mt19937 random(test_seed(3));
  for (int trial = 0; trial < 30; ++trial) {
    std::vector<Instruction> program;
    for (int i = 0; i < 120; ++i) {
      const auto at = [&] { return static_cast<int64_t>(random() % 12); };
      switch (random() % 4) {
        case 0: program.push_back(load(at(), 1 + at() % 4, at() * 16)); break;
        case 1: program.push_back(gemm(at(), at(), 1 + at() % 3)); break;
        case 2: program.push_back(requantize(at(), at())); break;
        default: program.push_back(store(at(), 1 + at() % 4, at() * 16)); break;
      }
    }
    derive_tokens(default_config(), program);
    expect_ordered(program);
  }
}

TEST(AccelTokens, OnlyTheBytesThatMoveCount) {
  native::Move move = load(0, 4);
  move.left = 16;  // the first vector is padding
  move.row_bytes = 40;
  EXPECT_EQ(dram_bytes(default_config(), move), 40);
  const auto list = accesses(default_config(), move);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1].begin, 0u);
  EXPECT_EQ(list[1].end, 40u);
  move.source_rows = 0;
  EXPECT_EQ(dram_bytes(default_config(), move), 0);
  EXPECT_EQ(accesses(default_config(), move).size(), 1u);
}

// The bytes of DRAM that isa.h names, one after the other, are within the interval, and touch its ends.
TEST(AccelTokens, TheIntervalOfAMoveIsThatOfItsBytes) {
  std::mt19937 random(test_seed(9));
  const auto upto = [&](int n) { return static_cast<int64_t>(random() % (n + 1)); };
  int touching = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    native::Move move = load(0, 1 + upto(6), upto(100));
    move.rows = 1 + upto(3), move.source_rows = upto(4), move.top = upto(2), move.left = upto(40),
    move.valid = upto(16);
    move.x_step = upto(40), move.row_bytes = upto(120), move.y_step = 120 + upto(40);
    int64_t begin = INT64_MAX, end = INT64_MIN;
    for (int64_t y = 0; y < move.rows; ++y) {
      for (int64_t x = 0; x < move.vectors; ++x) {
        for (int64_t j = 0; j < (move.valid == 0 ? 16 : move.valid); ++j) {
          const int64_t k = x * move.x_step - move.left + j;
          if (k < 0 || k >= move.row_bytes || y < move.top || y - move.top >= move.source_rows) continue;
          begin = std::min(begin, move.offset + (y - move.top) * move.y_step + k);
          end = std::max(end, move.offset + (y - move.top) * move.y_step + k + 1);
        }
      }
    }
    const std::vector<Access> list = accesses(default_config(), move);
    ASSERT_EQ(list.size(), begin < end ? 2u : 1u);
    if (begin >= end) continue;
    ++touching;
    EXPECT_EQ(static_cast<int64_t>(list[1].begin), begin);
    EXPECT_EQ(static_cast<int64_t>(list[1].end), end);
  }
  EXPECT_GT(touching, 5000);
}

}  // namespace
}  // namespace tenon::compiler::accel
