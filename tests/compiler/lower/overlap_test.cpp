// Accelerator programs beside native kernels: where they start, and where they are waited for.
#include "compiler/lower/overlap.h"

#include <gtest/gtest.h>

namespace tenon::compiler {
namespace {

using runtime::Branch;
using runtime::CallFunction;
using runtime::CallKernel;
using runtime::CallNative;
using runtime::CallProgram;
using runtime::Move;
using runtime::Operation;
using runtime::Registers;
using runtime::Return;
using runtime::StartNative;
using runtime::StartProgram;

constexpr uint32_t kGpu = 1;
constexpr uint64_t kAccelerators[] = {5, 5, 6};  // of programs 0, 1 and 2

CallNative cpu_kernel(Registers args, Registers results) { return {0, 0, std::move(args), std::move(results)}; }

std::vector<Operation> overlapped(std::vector<Operation> operations) {
  runtime::Function f{.name = "f", .registers = 10};
  for (Operation& operation : operations) f.code.push_back({std::move(operation), "layer"});
  overlap_devices(f, kGpu, kAccelerators);
  std::vector<Operation> found;
  for (const runtime::Instruction& instruction : f.code) {
    found.push_back(instruction.operation);
    EXPECT_EQ(instruction.layer, "layer");
  }
  return found;
}
using Code = std::vector<Operation>;

TEST(Overlap, KernelsOfAnotherBranchRunBesideTheProgram) {
  EXPECT_EQ(overlapped({cpu_kernel({0}, {1}), cpu_kernel({0}, {2}), CallProgram{0, {1}, {3}}, cpu_kernel({2}, {4}),
                        cpu_kernel({3, 4}, {5}), Return{{5}}}),
            (Code{cpu_kernel({0}, {1}), StartProgram{0, {1}}, cpu_kernel({0}, {2}), cpu_kernel({2}, {4}),
                  CallProgram{0, {1}, {3}}, cpu_kernel({3, 4}, {5}), Return{{5}}}))
      << "it starts when register 1 is there, and ends when register 3 is read";
}

TEST(Overlap, WhatDependsOnTheResultsWaits) {
  EXPECT_EQ(overlapped({CallProgram{0, {0}, {1}}, cpu_kernel({1}, {2}), cpu_kernel({2}, {3}), cpu_kernel({0}, {4}),
                        cpu_kernel({4}, {5}), Return{{3, 5}}}),
            (Code{StartProgram{0, {0}}, cpu_kernel({0}, {4}), cpu_kernel({4}, {5}), CallProgram{0, {0}, {1}},
                  cpu_kernel({1}, {2}), cpu_kernel({2}, {3}), Return{{3, 5}}}));
  const Code reused{CallProgram{0, {0}, {1}}, cpu_kernel({1}, {2}), cpu_kernel({0}, {1}), Return{{1, 2}}};
  EXPECT_EQ(overlapped(reused), reused) << "the second kernel writes a register that the first reads";
}

TEST(Overlap, NothingMovesWithoutAKernelToRunBeside) {
  const Code chain{cpu_kernel({0}, {1}), CallProgram{0, {1}, {2}}, cpu_kernel({2}, {3}), Return{{3}}};
  EXPECT_EQ(overlapped(chain), chain);
  const Code moves{CallProgram{0, {0}, {2}}, Move{3, 0}, CallKernel{"reshape", {}, {3}, {4}}, Return{{2, 4}}};
  EXPECT_EQ(overlapped(moves), moves) << "these take no time";
}

// One program after another: each has the device.
TEST(Overlap, ProgramsDoNotOverlapEachOther) {
  EXPECT_EQ(overlapped({CallProgram{0, {0}, {1}}, cpu_kernel({0}, {2}), CallProgram{1, {0}, {3}}, cpu_kernel({0}, {4}),
                        Return{{1, 2, 3, 4}}}),
            (Code{StartProgram{0, {0}}, cpu_kernel({0}, {2}), CallProgram{0, {0}, {1}}, StartProgram{1, {0}},
                  cpu_kernel({0}, {4}), CallProgram{1, {0}, {3}}, Return{{1, 2, 3, 4}}}));
  const Code calls{CallProgram{0, {0}, {1}}, CallFunction{0, {0}, {2}}, cpu_kernel({0}, {3}), Return{{1, 2, 3}}};
  EXPECT_EQ(overlapped(calls), calls) << "a function may run a program";
}

TEST(Overlap, ProgramsOfSeveralAcceleratorsRunAtOnce) {
  const CallProgram first{0, {0}, {1}}, second{2, {0}, {2}}, third{1, {0}, {3}};
  EXPECT_EQ(overlapped({first, second, Return{{1, 2}}}),
            (Code{StartProgram{2, {0}}, StartProgram{0, {0}}, first, second, Return{{1, 2}}}));
  EXPECT_EQ(overlapped({first, second, third, Return{{1, 2, 3}}}),
            (Code{StartProgram{2, {0}}, StartProgram{0, {0}}, first, third, second, Return{{1, 2, 3}}}))
      << "programs of one accelerator one after another, beside that of the other one";
  const Code chain{first, CallProgram{2, {1}, {2}}, Return{{2}}};
  EXPECT_EQ(overlapped(chain), chain);
}

// Registers are reused in functions that are called: what is read and written stays in its order.
TEST(Overlap, RegistersKeepTheirValues) {
  const Code reused{CallProgram{0, {0}, {1}}, cpu_kernel({2}, {0}), Return{{0, 1}}};
  EXPECT_EQ(overlapped(reused), reused) << "the kernel writes what the program reads";
  const Code twice{CallProgram{0, {0}, {1}}, cpu_kernel({2}, {1}), Return{{1}}};
  EXPECT_EQ(overlapped(twice), twice) << "the kernel writes what the program writes";
  const Code before{cpu_kernel({2}, {0}), CallProgram{0, {0}, {1}}, Return{{1}}};
  EXPECT_EQ(overlapped(before), before) << "the kernel makes the program's input";
}

TEST(Overlap, AGpuRunsBesideTheCpuAndTheAccelerator) {
  const CallNative gpu{kGpu, 3, {0}, {1}}, dependent{kGpu, 4, {1}, {2}};
  EXPECT_EQ(overlapped({gpu, dependent, cpu_kernel({0}, {5}), Return{{2, 5}}}),
            (Code{gpu, StartNative{kGpu, 4, {1}}, cpu_kernel({0}, {5}), dependent, Return{{2, 5}}}))
      << "one kernel after another has the GPU";
  const CallProgram program{0, {0}, {6}};
  EXPECT_EQ(overlapped({gpu, program, Return{{1, 6}}}),
            (Code{StartNative{kGpu, 3, {0}}, StartProgram{0, {0}}, program, gpu, Return{{1, 6}}}))
      << "both run at once";
}

TEST(Overlap, JumpsLeadToTheirBlocks) {
  EXPECT_EQ(overlapped({Branch{0, 4}, CallProgram{0, {1}, {2}}, cpu_kernel({1}, {3}), Return{{2, 3}},
                        CallProgram{0, {1}, {2}}, cpu_kernel({1}, {3}), Return{{3, 2}}}),
            (Code{Branch{0, 5}, StartProgram{0, {1}}, cpu_kernel({1}, {3}), CallProgram{0, {1}, {2}}, Return{{2, 3}},
                  StartProgram{0, {1}}, cpu_kernel({1}, {3}), CallProgram{0, {1}, {2}}, Return{{3, 2}}}));
}

}  // namespace
}  // namespace tenon::compiler
