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

TEST(Liveness, EveryOperationHasItsReadsAndWrites) {
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
  };
  ASSERT_EQ(cases.size(), std::variant_size_v<Operation>);
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

TEST(Liveness, TheLastUseOfARegisterIsItsLastReadOrWrite) {
  const Function f = function(5, {native({0}, {1}), native({1, 0}, {2, 3}), native({2}, {1}), Return{{1}}});
  EXPECT_EQ(last_uses(f), (std::vector<uint32_t>{1, 3, 2, 1, 0}));
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
  EXPECT_EQ(between(CallFunction{0, {1}, {2}}), "0.0-2 2.0-3*");
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
