// The machines.
#include <algorithm>

#include "compiler/machine/machine.h"

namespace tenon::compiler {
namespace {

using enum Machine::Family;

constexpr Machine kX86Levels[] = {
    {.name = "x86-64-v4+vnni",
     .cpu = "x86-64-v4",
     .features = "+avx512vnni",
     .family = kX86,
     .vector_bytes = 64,
     .registers = 32,
     .fma = true,
     .dot = true,
     .byte_pairs = true,
     .int16_pairs = true,
     .masks = true,
     .half = true,
     .multiply_adds = 2,
     .loads = 2,
     .l2_loads = 48},
    {.name = "x86-64-v4",
     .cpu = "x86-64-v4",
     .features = "",
     .family = kX86,
     .vector_bytes = 64,
     .registers = 32,
     .fma = true,
     .byte_pairs = true,
     .int16_pairs = true,
     .masks = true,
     .half = true,
     .multiply_adds = 2,
     .loads = 2,
     .l2_loads = 48},
    {.name = "x86-64-v3+vnni",
     .cpu = "x86-64-v3",
     .features = "+avxvnni",
     .family = kX86,
     .vector_bytes = 32,
     .fma = true,
     .dot = true,
     .byte_pairs = true,
     .int16_pairs = true,
     .masks = true,
     .half = true,
     .multiply_adds = 2,
     .loads = 2,
     .latency = 5},
    {.name = "x86-64-v3",
     .cpu = "x86-64-v3",
     .features = "",
     .family = kX86,
     .vector_bytes = 32,
     .fma = true,
     .byte_pairs = true,
     .int16_pairs = true,
     .masks = true,
     .half = true,
     .multiply_adds = 2,
     .loads = 2,
     .latency = 5},
    {.name = "x86-64-v2", .cpu = "x86-64-v2", .features = "", .family = kX86, .byte_pairs = true, .int16_pairs = true},
};

constexpr Machine kArm64Levels[] = {
    {.name = "armv8.2-a+dotprod",
     .cpu = "generic",
     .features = "+v8.2a,+neon,+dotprod",
     .family = kArm,
     .registers = 32,
     .fma = true,
     .dot = true,
     .half = true,
     .multiply_adds = 2,
     .loads = 2},
    {.name = "armv8-a",
     .cpu = "generic",
     .features = "+v8a,+neon",
     .family = kArm,
     .registers = 32,
     .fma = true,
     .half = true,
     .multiply_adds = 2,
     .loads = 2},
};

constexpr Machine kArm32Levels[] = {
    {.name = "armv7-a+neon", .cpu = "generic", .features = "+armv7-a,+vfp3,+neon", .family = kArm},
    {.name = "armv7-a", .cpu = "generic", .features = "+armv7-a,+vfp3d16,-neon", .family = kArm, .registers = 8},
};

// The vector extension's registers hold 16 bytes or more; code for 16 runs on all. Its operations on one register take
// a cycle on current cores (SpacemiT X60, SiFive P670: the vendors' instruction tables).
constexpr Machine kRiscV64Levels[] = {
    {.name = "rv64gcv",
     .cpu = "generic-rv64",
     .features = "+m,+a,+f,+d,+c,+v",
     .registers = 32,
     .fma = true,
     .masks = true},
    {.name = "rv64gc", .cpu = "generic-rv64", .features = "+m,+a,+f,+d,+c", .registers = 8, .fma = true},
};

// Compute capabilities; a vector is a warp's 32 lanes of 4 bytes. Code for the lower one runs on all later GPUs: the
// driver compiles its PTX. (CUDA C++ Programming Guide, table of technical specifications.)
constexpr Machine kNvidiaLevels[] = {
    {.name = "sm_90",
     .cpu = "sm_90",
     .features = "+ptx78",
     .family = kNvidia,
     .vector_bytes = 64,
     .registers = 32,
     .fma = true,
     .dot = true,
     .masks = true,
     .half = true,
     .multiply_adds = 4,
     .loads = 1,
     .l2_bytes = 50 << 20,
     .multiprocessors = 132,
     .shared_bytes = 227 << 10,
     .threads = 1024},
    {.name = "sm_80",
     .cpu = "sm_80",
     .features = "+ptx70",
     .family = kNvidia,
     .vector_bytes = 64,
     .registers = 32,
     .fma = true,
     .dot = true,
     .masks = true,
     .half = true,
     .multiply_adds = 2,
     .loads = 1,
     .l2_bytes = 40 << 20,
     .multiprocessors = 108,
     .shared_bytes = 163 << 10,
     .threads = 1024},
};

constexpr Machine kGeneric[] = {{.name = "generic", .cpu = "generic", .features = ""}};

}  // namespace

std::span<const Machine> machines_of(std::string_view architecture) {
  if (architecture == "x86_64") return kX86Levels;
  if (architecture == "aarch64") return kArm64Levels;
  if (architecture == "arm") return kArm32Levels;
  if (architecture == "riscv64") return kRiscV64Levels;
  if (architecture == "nvptx64") return kNvidiaLevels;
  return kGeneric;
}

const Machine* find_machine(std::string_view name) {
  auto find = [&](std::string_view architecture) -> const Machine* {
    const auto machines = machines_of(architecture);
    const auto found = std::ranges::find(machines, name, &Machine::name);
    return found == machines.end() ? nullptr : &*found;
  };
  for (const std::string_view architecture : kCpuArchitectures) {
    if (const Machine* machine = find(architecture)) return machine;
  }
  return find("nvptx64");
}

}  // namespace tenon::compiler
