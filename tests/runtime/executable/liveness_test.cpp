// Liveness of the machine's code: registers that instructions use, and live ranges of native kernels' results.
#include "runtime/executable/liveness.h"

#include <gtest/gtest.h>

#include <tuple>

namespace tenon::runtime {
namespace {

Registers reads(const Operation& operation) {
  Registers found;
  for_each_read(operation, [&](Register r) { found.push_back(r); });
  return found;
}
Registers writes(const Operation& operation) {
  Registers found;
  for_each_write(operation, [&](Register r) { found.push_back(r); });
  return found;
}

TEST(Liveness, OperationsHaveTheirReadsAndWrites) {
  const std::vector<std::tuple<Operation, Registers, Registers>> cases = {
      {CallKernel{"add", {}, {1, 2}, {3}}, {1, 2}, {3}},
      {CallProgram{0, {1}, {2, 3}}, {1}, {2, 3}},
      {CallNative{0, 0, {1, 1}, {2}}, {1, 1}, {2}},
      {CallFunction{0, {4}, {5}}, {4}, {5}},
      {Move{1, 2}, {2}, {1}},
      {LoadConstant{7, 0}, {}, {7}},
      {Jump{3}, {}, {}},
      {Branch{6, 3}, {6}, {}},
      {Kill{{1, 2}}, {}, {1, 2}},
      {Return{{8, 9}}, {8, 9}, {}},
      {CallClosure{1, {2, 3}, {4}}, {1, 2, 3}, {4}},
      {TailCall{0, {1, 2}}, {1, 2}, {}},
      {TailCallClosure{3, {1}}, {3, 1}, {}},
      {ScalarCompute{ScalarOp::kAdd, DType::kI64, 1, 2, 3}, {2, 3}, {1}},
      {BindSize{1, 2, 0, {3}, {}, {}}, {2, 3}, {1}},
      {ComputeSize{1, {2}, {}}, {2}, {1}},
      {CheckShape{.tensor = 1, .axes = {}, .sizes = {2}, .known = {3}, .subject = "", .expected = ""}, {1, 2, 3}, {}},
      {CheckSize{.size = 4, .subject = ""}, {4}, {}},
      {Construct{1, 0, 0, {2, 3}}, {2, 3}, {1}},
      {ReadField{1, 2, 0}, {2}, {1}},
      {Switch{5, 0, {1, 2}}, {5}, {}},
      {MakeClosure{1, 0, {2, 3}}, {2, 3}, {1}},
      {MakeReference{1, 2}, {2}, {1}},
      {ReadReference{1, 2}, {2}, {1}},
      {WriteReference{1, 2}, {1, 2}, {}},
      {StartProgram{0, {1, 2}}, {1, 2}, {}},
      {StartNative{0, 0, {1, 2}}, {1, 2}, {}},
      {Append{1, 2, 3, 0, 0}, {2, 3}, {1}},
  };
  for (const auto& [operation, read, written] : cases) {
    EXPECT_EQ(reads(operation), read) << "operation " << operation.index();
    EXPECT_EQ(writes(operation), written) << "operation " << operation.index();
  }
}

Function function(uint32_t registers, std::vector<Operation> operations) {
  Function f{.name = "f", .registers = registers};
  for (Operation& operation : operations) f.code.push_back({std::move(operation), ""});
  return f;
}
CallNative native(Registers args, Registers results) { return {0, 0, std::move(args), std::move(results)}; }

// The registers that are live where each block begins, as "BEGIN: REGISTERS".
std::string live_in(const Function& f) {
  std::string text;
  for (const LiveBlock& block : live_blocks(f)) {
    text += (text.empty() ? "" : "; ") + std::to_string(block.begin) + ":";
    block.live_in.for_each([&](Register r) { text += " " + std::to_string(r); });
  }
  return text;
}

TEST(Liveness, RegistersAreLiveWhereAPathReadsThem) {
  EXPECT_EQ(live_in(function(3, {native({0}, {1}), native({1}, {2}), Return{{2}}})), "0: 0");
  // One arm reads 1, the other 2; the first writes 1 before its end.
  EXPECT_EQ(live_in(function(3, {Branch{0, 3}, native({1}, {1}), Jump{4}, Move{1, 2}, Return{{1}}})),
            "0: 0 1 2; 1: 1; 3: 2; 4: 1");
  // A loop keeps what its next iteration reads.
  EXPECT_EQ(live_in(function(3, {Move{2, 1}, Branch{0, 3}, Jump{0}, Return{{2}}})), "0: 0 1; 2: 0 1; 3: 2");
  EXPECT_EQ(live_in(function(4, {Switch{0, 0, {1, 2}}, Return{{1}}, TailCall{0, {2}}})), "0: 0 1 2; 1: 1; 2: 2");
}

// "CALL.RESULT-LAST", with '*' after a result that escapes.
std::string ranges(const Function& f) {
  std::string text;
  for (const ResultRange& range : result_ranges(f)) {
    text += (text.empty() ? "" : " ") + std::to_string(range.call) + "." + std::to_string(range.result) + "-" +
            std::to_string(range.last_use) + (range.escapes ? "*" : "");
  }
  return text;
}

TEST(Liveness, AResultIsLiveToItsLastRead) {
  EXPECT_EQ(ranges(function(4, {native({0}, {1, 2}), native({1}, {3}), Return{{3}}})), "0.0-1 0.1-0 1.0-2*");
  // A register that is written again has another result.
  EXPECT_EQ(ranges(function(3, {native({0}, {1}), native({0}, {1}), native({1}, {2}), Return{{0}}})),
            "0.0-0 1.0-2 2.0-2");
}

TEST(Liveness, CallsThatMayReturnTheirArgumentsExtendLiveRanges) {
  const auto between = [](Operation operation) {
    return ranges(function(4, {native({0}, {1}), std::move(operation), native({2}, {3}), Return{{3}}}));
  };
  EXPECT_EQ(between(CallKernel{"reshape", {}, {1}, {2}}), "0.0-2 2.0-3*");
  EXPECT_EQ(between(CallFunction{0, {1}, {2}}), "0.0-1* 2.0-3*") << "a function may store its arguments";
  EXPECT_EQ(between(Construct{2, kTupleType, 0, {1}}), "0.0-1* 2.0-3*");
  EXPECT_EQ(between(MakeClosure{2, 0, {1}}), "0.0-1* 2.0-3*");
  EXPECT_EQ(between(WriteReference{2, 1}), "0.0-1* 2.0-3*");
  EXPECT_EQ(between(Move{2, 1}), "0.0-2 2.0-3*");
  EXPECT_EQ(between(CallProgram{0, {1}, {2}}), "0.0-1 2.0-3*") << "a program copies";
  EXPECT_EQ(ranges(function(4, {native({0}, {1}), CallKernel{"k", {}, {1}, {2}}, Return{{2}}})), "0.0-2*");
}

TEST(Liveness, BothPathsToAnInstructionCount) {
  // Register 2 is the first result or the second one, by the branch.
  EXPECT_EQ(ranges(function(
                4, {native({0}, {1}), native({0}, {2}), Branch{0, 4}, Move{2, 1}, native({2}, {3}), Return{{0}}})),
            "0.0-4 1.0-4 4.0-4");
  // After the jump only the path that jumps arrives at the target.
  EXPECT_EQ(ranges(function(
                4, {native({0}, {1}), Branch{0, 4}, Kill{{1}}, Jump{5}, Kill{{1}}, native({0}, {2}), Return{{0}}})),
            "0.0-0 5.0-5");
}

TEST(Liveness, ALoopHasNoKnownRanges) {
  EXPECT_EQ(ranges(function(3, {native({0}, {1}), Branch{0, 0}, Return{{0}}})), "0.0-0*");
}

}  // namespace
}  // namespace tenon::runtime
