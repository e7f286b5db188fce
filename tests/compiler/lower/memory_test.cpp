// Memory of lowered code: kills after last uses, and arena slots that the loader accepts.
#include "compiler/lower/memory.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "runtime/executable/verify_arena.h"
#include "support/random.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using runtime::ArenaSlot;
using runtime::CallKernel;
using runtime::CallNative;
using runtime::CallProgram;
using runtime::Kill;
using runtime::LoadConstant;
using runtime::Operation;
using runtime::Register;
using runtime::Registers;
using runtime::Return;

runtime::Function function(uint32_t registers, std::vector<Operation> operations) {
  runtime::Function f{.name = "f", .registers = registers};
  for (Operation& operation : operations) f.code.push_back({std::move(operation), "layer"});
  return f;
}
CallNative native(Registers args, Registers results) { return {0, 0, std::move(args), std::move(results)}; }

std::vector<Operation> operations(const runtime::Function& f) {
  std::vector<Operation> found;
  for (const runtime::Instruction& instruction : f.code) found.push_back(instruction.operation);
  return found;
}
// Places the results; `bytes`: by register, the most bytes of the result.
FrameMemory plan(runtime::Function& f, const std::map<Register, uint64_t>& bytes,
                 std::span<const runtime::NativeCode> natives = {}) {
  for (runtime::Instruction& instruction : f.code) {
    auto* native_call = std::get_if<CallNative>(&instruction.operation);
    if (!native_call) continue;
    for (const Register r : native_call->results)
      native_call->slots.push_back({0, bytes.contains(r) ? bytes.at(r) : 0});
  }
  return place_results(f, natives);
}
const CallNative& call(const runtime::Function& f, size_t i) { return std::get<CallNative>(f.code[i].operation); }

TEST(InsertKills, FollowTheLastUse) {
  runtime::Function f = function(5, {LoadConstant{1, 0}, native({0, 1}, {2}), native({2, 1}, {3, 4}), Return{{3}}});
  insert_kills(f);
  EXPECT_EQ(operations(f), (std::vector<Operation>{LoadConstant{1, 0}, native({0, 1}, {2}), Kill{{0}},
                                                   native({2, 1}, {3, 4}), Kill{{1, 2, 4}}, Return{{3}}}))
      << "register 4 is never read, register 3 is returned";
  EXPECT_EQ(f.code[1].layer, "layer");
  EXPECT_EQ(f.code[2].layer, "");
}

TEST(InsertKills, AParameterThatNothingReadsIsEmptiedAtOnce) {
  runtime::Function f = function(3, {native({0}, {2}), Return{{2}}});
  insert_kills(f);
  EXPECT_EQ(operations(f), (std::vector<Operation>{native({0}, {2}), Kill{{0, 1}}, Return{{2}}}));
}

TEST(PlaceResults, AChainReusesTwoSlots) {
  runtime::Function f = function(
      6, {native({0}, {1}), native({1}, {2}), native({2}, {3}), native({3}, {4}), native({4}, {5}), Return{{5}}});
  insert_kills(f);
  const FrameMemory memory = plan(f, {{1, 100}, {2, 100}, {3, 100}, {4, 100}, {5, 100}});
  EXPECT_EQ(f.arena_bytes, 256u);
  const std::vector<uint64_t> offsets = {0, 128, 0, 128};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(call(f, 2 * i).slots, (std::vector<ArenaSlot>{{offsets[i], 128}})) << "call " << i;
  }
  EXPECT_TRUE(call(f, 8).slots.empty()) << "a result that escapes";
  EXPECT_EQ(runtime::check_arena(f, {}), "");
  EXPECT_EQ(str(memory),
            "4 results in an arena of 256 bytes (256 live at once, 512 without reuse); 1 outside, 100 bytes");
}

TEST(PlaceResults, AViewExtendsTheLiveRange) {
  const auto offset = [](Operation between) {
    runtime::Function f =
        function(5, {native({0}, {1}), std::move(between), native({0}, {3}), native({2, 3}, {4}), Return{{4}}});
    insert_kills(f);
    plan(f, {{1, 64}, {2, 64}, {3, 64}, {4, 64}});
    EXPECT_EQ(runtime::check_arena(f, {}), "");
    for (const runtime::Instruction& instruction : f.code) {
      const auto* native_call = std::get_if<CallNative>(&instruction.operation);
      if (native_call && native_call->results == Registers{3}) return native_call->slots[0].offset;
    }
    return UINT64_MAX;
  };
  EXPECT_EQ(offset(CallKernel{"reshape", {}, {1}, {2}}), 64u) << "a kernel may return its argument";
  EXPECT_EQ(offset(CallProgram{0, {1}, {2}}), 0u) << "a program makes a tensor of its own";
}

TEST(PlaceResults, EmptyAndUnknownSizesStayOutside) {
  runtime::Function f =
      function(6, {native({0}, {1, 2, 3}), native({1, 2, 3}, {4}), CallKernel{"k", {}, {4}, {5}}, Return{{0}}});
  insert_kills(f);
  const FrameMemory memory = plan(f, {{1, 0}, {3, 10}, {4, 64}, {5, 7}});
  EXPECT_EQ(call(f, 0).slots, (std::vector<ArenaSlot>{{}, {}, {0, 64}}));
  EXPECT_EQ(memory.placed, 2u);
  EXPECT_EQ(memory.arena, 128);
  EXPECT_EQ(memory.outside, 3u);
  EXPECT_EQ(memory.outside_bytes, 0) << "what a reference kernel makes is not known";
}

// The code of kernels whose first result may be in place of the given parameters.
std::vector<runtime::NativeCode> in_place_of(const std::vector<uint32_t>& params) {
  runtime::NativeKernel kernel{.name = "k", .signature = {}};
  for (const uint32_t param : params) kernel.signature.in_place.push_back({0, param});
  runtime::NativeCode code{.triple = "x86_64", .levels = {}, .object = {}, .kernels = {kernel}};
  return {code};
}

TEST(PlaceResults, AChainIsInOneSlotWhereItsKernelsAllow) {
  runtime::Function f =
      function(5, {native({0}, {1}), native({1}, {2}), native({2}, {3}), native({3}, {4}), Return{{4}}});
  insert_kills(f);
  const auto natives = in_place_of({0});
  EXPECT_EQ(
      str(plan(f, {{1, 100}, {2, 100}, {3, 100}, {4, 100}}, natives)),
      "3 results, 2 of them in place in an arena of 128 bytes (128 live at once, 384 without reuse); 1 outside, 100 "
      "bytes");
  EXPECT_EQ(runtime::check_arena(f, natives), "");
  EXPECT_EQ(runtime::check_arena(f, {}), "instruction 2: the arena slot of result 0 is in use") << "another kernel";
  const auto planned = planned_results(f, natives);
  EXPECT_FALSE(planned[0].in_place);
  EXPECT_TRUE(planned[1].in_place && planned[2].in_place);
}

TEST(PlaceResults, NothingIsInPlaceOfWhatIsReadOtherwise) {
  const auto second_is_in_place = [](Registers args, Registers later, const std::vector<uint32_t>& params,
                                     uint64_t bytes) {
    runtime::Function f =
        function(5, {native({0}, {1}), native(std::move(args), {2}), native(std::move(later), {3}), Return{{3}}});
    insert_kills(f);
    const auto natives = in_place_of(params);
    plan(f, {{1, 64}, {2, bytes}}, natives);
    EXPECT_EQ(runtime::check_arena(f, natives), "");
    return planned_results(f, natives).at(1).in_place;
  };
  EXPECT_TRUE(second_is_in_place({1, 0}, {2}, {0}, 64));
  EXPECT_TRUE(second_is_in_place({0, 1}, {2}, {1}, 64)) << "the second argument";
  EXPECT_TRUE(second_is_in_place({1, 1}, {2}, {0, 1}, 64)) << "both arguments are read element by element";
  EXPECT_FALSE(second_is_in_place({1, 0}, {2, 1}, {0}, 64)) << "a later call reads the argument";
  EXPECT_FALSE(second_is_in_place({1, 1}, {2}, {0}, 64)) << "the other parameter is read otherwise";
  EXPECT_FALSE(second_is_in_place({1, 0}, {2}, {1}, 64)) << "another parameter";
  EXPECT_FALSE(second_is_in_place({1, 0}, {2}, {0}, 128)) << "another size";
}

TEST(PlaceResults, WithoutNativeCallsThereIsNoArena) {
  runtime::Function f = function(2, {CallKernel{"k", {}, {0}, {1}}, Return{{1}}});
  insert_kills(f);
  EXPECT_EQ(str(plan(f, {{1, 12}})),
            "0 results in an arena of 0 bytes (0 live at once, 0 without reuse); 1 outside, 0 bytes");
  EXPECT_EQ(f.arena_bytes, 0u);
  EXPECT_EQ(runtime::check_arena(f, {}), "");
}

TEST(PlaceResults, ThePlanOfCodeHasReasons) {
  runtime::Function f = function(6, {native({0}, {1}), native({1}, {2}), native({2}, {3}),
                                     CallKernel{"k", {}, {3}, {4}}, native({4}, {5}), Return{{5}}});
  insert_kills(f);
  plan(f, {{1, 64}, {3, 64}, {5, 64}});
  const std::vector<PlannedResult> planned = planned_results(f, {});
  ASSERT_EQ(planned.size(), 5u);
  EXPECT_EQ(planned[0].slot.bytes, 64u);
  EXPECT_EQ(planned[1].slot.bytes, 0u);
  EXPECT_EQ(planned[1].outside, Outside::kUnbounded);
  EXPECT_EQ(planned[2].slot.bytes, 64u);
  EXPECT_EQ(planned[3].outside, Outside::kOtherKernel);
  EXPECT_EQ(planned[4].outside, Outside::kEscapes);
  EXPECT_EQ(frame_memory(f, {}).peak, 64) << "the two are never live at once";
}

// A function is entered again through a call that waits, through another function, or through a closure; a loop of tail
// calls leaves its frame.
TEST(FindReentered, FollowsCallsThatWait) {
  std::vector<runtime::Function> functions;
  functions.push_back(function(1, {runtime::CallFunction{1, {0}, {0}}, Return{{0}}}));
  functions.push_back(function(1, {runtime::TailCall{1, {0}}}));
  functions.push_back(function(1, {runtime::CallFunction{3, {0}, {0}}, Return{{0}}}));
  functions.push_back(function(1, {runtime::TailCall{2, {0}}}));
  functions.push_back(function(2, {runtime::MakeClosure{1, 5, {}}, Return{{1}}}));
  functions.push_back(function(1, {runtime::CallClosure{0, {0}, {0}}, Return{{0}}}));
  EXPECT_EQ(find_reentered(functions), (std::vector<bool>{false, false, true, false, false, true}));
}

// Executes the code on names of results instead of tensors: a native call overwrites all results whose memory it takes,
// and no read may find an overwritten one. Each reference kernel returns its first argument.
// No slot of a result may have the memory of an argument that its kernel reads otherwise than element by element.
std::string run_on_names(const runtime::Function& f, const runtime::NativeCode& code) {
  std::vector<int> held(f.registers, -1);  // by register: the result, or -1
  std::set<int> overwritten;
  std::vector<std::tuple<uint64_t, uint64_t, int>> memory;  // offset, end and result
  int next = 0;
  const auto read = [&](const Registers& registers) {
    for (const Register r : registers) {
      if (overwritten.contains(held[r])) return false;
    }
    return true;
  };
  for (size_t i = 0; i < f.code.size(); ++i) {
    const Operation& operation = f.code[i].operation;
    const std::string where = "instruction " + std::to_string(i);
    if (const auto* native_call = std::get_if<CallNative>(&operation)) {
      if (!read(native_call->args)) return where + " reads an overwritten result";
      for (size_t k = 0; k < native_call->results.size(); ++k) {
        const int result = next++;
        const ArenaSlot slot = native_call->slots.empty() ? ArenaSlot() : native_call->slots[k];
        if (slot.offset + slot.bytes > f.arena_bytes) return where + " writes outside of the arena";
        const auto& in_place = code.kernels[native_call->kernel].signature.in_place;
        for (const auto& [offset, end, other] : memory) {
          if (offset >= slot.offset + slot.bytes || slot.offset >= end) continue;
          for (size_t p = 0; p < native_call->args.size() && !overwritten.contains(other); ++p) {
            const runtime::InPlace pair{static_cast<uint32_t>(k), static_cast<uint32_t>(p)};
            if (held[native_call->args[p]] == other && std::ranges::find(in_place, pair) == in_place.end())
              return where + " overwrites what it reads";
          }
          overwritten.insert(other);
        }
        if (slot.bytes != 0) memory.emplace_back(slot.offset, slot.offset + slot.bytes, result);
        held[native_call->results[k]] = result;
      }
      if (!read(native_call->results)) return where + " has results that overlap";
    } else if (const auto* kernel = std::get_if<CallKernel>(&operation)) {
      if (!read(kernel->args)) return where + " reads an overwritten result";
      for (const Register r : kernel->results) held[r] = held[kernel->args[0]];
    } else if (const auto* kill = std::get_if<Kill>(&operation)) {
      for (const Register r : kill->registers) held[r] = -1;
    } else if (const auto* values = std::get_if<Return>(&operation)) {
      if (!read(values->values)) return where + " returns an overwritten result";
      for (const Register r : values->values) {
        for (const auto& [offset, end, result] : memory) {
          if (result == held[r]) return where + " returns a result in the arena";
        }
      }
    }
  }
  return "";
}

TEST(PlaceResults, RandomCodeNeverReadsAnOverwrittenResult) {
  Random random(test_seed(23));
  std::vector<runtime::NativeCode> natives = in_place_of({});
  for (const std::vector<uint32_t>& params : {std::vector<uint32_t>{0}, {1}, {0, 1}})
    natives[0].kernels.push_back(in_place_of(params)[0].kernels[0]);
  size_t in_place = 0;
  int64_t placed = 0, arena = 0, total = 0;
  for (int64_t round = 0; round < rounds(500); ++round) {
    runtime::Function f{.name = "f"};
    std::map<Register, uint64_t> bytes;
    Register next = 2;  // two parameters
    const auto any = [&] {
      const auto last = static_cast<int64_t>(next) - 1;
      return static_cast<Register>(random.between(std::max<int64_t>(0, last - 6), last));
    };
    for (int64_t i = random.between(1, 30); i > 0; --i) {
      const Registers args{any(), any()};
      const bool view = random.chance(25);
      Registers results;
      for (int64_t k = view ? 1 : random.between(1, 2); k > 0; --k) {
        results.push_back(next);
        if (random.chance(90)) bytes[next] = static_cast<uint64_t>(random.between(0, 4) * 250);
        ++next;
      }
      if (view) f.code.push_back({CallKernel{"view", {}, args, results}, ""});
      else f.code.push_back({CallNative{0, static_cast<uint32_t>(random.between(0, 3)), args, results}, ""});
    }
    f.code.push_back({Return{{any(), any()}}, ""});
    f.registers = next;
    insert_kills(f);
    const FrameMemory memory = plan(f, bytes, natives);
    ASSERT_EQ(runtime::check_arena(f, natives), "") << "round " << round;
    ASSERT_EQ(run_on_names(f, natives[0]), "") << "round " << round;
    in_place += memory.in_place;
    ASSERT_EQ(static_cast<uint64_t>(memory.arena), f.arena_bytes);
    placed += static_cast<int64_t>(memory.placed), arena += memory.arena, total += memory.total;
  }
  EXPECT_GT(placed, rounds(500));
  EXPECT_GT(static_cast<int64_t>(in_place), rounds(100));
  EXPECT_LT(arena, total / 2) << "memory is reused";
}

}  // namespace
}  // namespace tenon::compiler
