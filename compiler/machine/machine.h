// Processors as data: one record for each instruction-set level, which schedules and back ends read. A template of
// compiler/kernels reads the fields and never the name, so another machine is another record.
//
// Throughputs are those of current cores (Zen 4, Golden Cove, Neoverse N1; uops.info and the vendors' optimization
// guides); they rank schedules, and measurements (compiler/tune) override the ranking.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tenon::compiler {

struct Machine {
  enum class Family : uint8_t { kX86, kArm, kNvidia, kOther };

  std::string_view name;           // of the level: "x86-64-v3"
  std::string_view cpu, features;  // LLVM's names
  Family family = Family::kOther;

  int64_t vector_bytes = 16, registers = 16;  // vector registers
  bool fma = false;                           // fused multiply-add
  bool dot = false;                           // dot products of bytes: of u8 and i8 on x86, of two of a kind on AArch64
  bool byte_pairs = false;                    // sums of two products of u8 and i8, which saturate to i16
  bool int16_pairs = false;                   // sums of two products of i16 in 32 bits
  bool masks = false;                         // masked loads and stores of vectors
  bool half = false;                          // conversions of f16 to and from f32

  double multiply_adds = 1, loads = 1;  // of vectors, per cycle; without `fma`, multiplications and additions together
  double latency = 4;                   // cycles from one sum to the next
  int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20;  // data caches of a core
  double l2_loads = 24;                             // bytes that L1 gets from L2, per cycle
  // Of a GPU: its multiprocessors, their shared memory that one block may use, and the most threads of a block. A
  // vector is a half warp's, whose registers are so many that tiles of 32 leave most of them to other warps; `loads`
  // are those of shared memory; a tile's copies that fit l1_bytes fit the shared memory that every block may have.
  int64_t multiprocessors = 0, shared_bytes = 0, threads = 0;

  // Of a GPU: the types of factors whose products a user allows to be added in an unspecified order, with the bound of
  // the instruction that does so (compiler/loop/instructions.h). `tf32`: f32 factors, rounded to 11 significant bits.
  struct Inexact {
    bool f16 = false, bf16 = false, tf32 = false;
  };
  Inexact inexact = {};

  bool wide() const { return vector_bytes == 64; }
  // Whether the level is useful only for functions with dot products.
  bool for_dots() const { return dot && family == Family::kX86; }
  // Whether templates give equal loops for both machines. `has_dots`: the loops compute dot products of bytes.
  bool has_equal_schedules(const Machine& other, bool has_dots) const {
    return vector_bytes == other.vector_bytes && registers == other.registers && fma == other.fma &&
           (dot == other.dot || !has_dots) && multiply_adds == other.multiply_adds && loads == other.loads &&
           latency == other.latency && l1_bytes == other.l1_bytes && l2_bytes == other.l2_bytes &&
           l2_loads == other.l2_loads;
  }
};

// LLVM's names of the processors that have levels; the last stands for all others.
inline constexpr std::string_view kCpuArchitectures[] = {"x86_64", "aarch64", "arm", "riscv64", "generic"};

// The levels of an architecture by LLVM's name (of kCpuArchitectures, or nvptx64), the best first; one level with the
// least that every processor has, "generic", for any other architecture.
std::span<const Machine> machines_of(std::string_view architecture);
// The record of a level; nullptr where there is none of that name.
const Machine* find_machine(std::string_view name);

}  // namespace tenon::compiler
