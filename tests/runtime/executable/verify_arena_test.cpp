// The loader's checks of native calls and of memory plans: every broken rule has its message.
#include "runtime/executable/verify_arena.h"
#include "support/function_ref.h"

#include <gtest/gtest.h>

#include "tests/runtime/native/sample.h"

namespace tenon::runtime {
namespace {

TEST(Executable, NativeCallsAreVerified) {
  auto message = [](FunctionRef<void(Executable&)> damage) {
    Executable e = sample::native_executable();
    damage(e);
    const auto status = verify(e, "m.tnx");
    return status ? "verified" : status.error().str();
  };
  auto call = [](Executable & e) -> auto& { return std::get<CallNative>(e.functions[0].code[0].operation); };
  EXPECT_HAS(message([&](Executable& e) { call(e).code = 1; }), "instruction 0: native code 1 of 1");
  EXPECT_HAS(message([&](Executable& e) { call(e).kernel = 2; }), "instruction 0: native kernel 2 of 2");
  EXPECT_HAS(message([&](Executable& e) { call(e).args = {}; }), "instruction 0: 0 arguments, must be 1");
  EXPECT_HAS(message([&](Executable& e) { call(e).kernel = 1; }), "instruction 0: 1 arguments, must be 0");
  EXPECT_HAS(message([&](Executable& e) { call(e).args = {7}; }), "instruction 0: register 7 of 2");
  EXPECT_HAS(message([&](Executable& e) { e.natives[0].kernels[0].signature.dims[0].param = 4; }),
             "native kernel 'add': error: dim 'n' is the size of a parameter that does not exist");
  EXPECT_EQ(message([](Executable&) {}), "verified");
  auto started = [&](StartNative start) {
    return message([&](Executable& e) {
      auto& code = e.functions[0].code;
      code.insert(code.begin(), {start, ""});
    });
  };
  EXPECT_HAS(started({1, 0, {0}}), "instruction 0: native code 1 of 1");
  EXPECT_HAS(started({0, 2, {0}}), "instruction 0: native kernel 2 of 2");
  EXPECT_HAS(started({0, 0, {0, 0}}), "instruction 0: 2 arguments, must be 1");
  EXPECT_HAS(started({0, 0, {7}}), "instruction 0: register 7 of 2");
  EXPECT_EQ(started({0, 0, {0}}), "verified");
}

TEST(VerifyArena, FindsEveryBrokenRule) {
  auto message = [](FunctionRef<void(Function&)> damage) {
    Executable e = sample::planned_executable();
    damage(e.functions[1]);
    const auto status = verify(e, "m.tnx");
    return status ? "verified" : status.error().str();
  };
  auto slots = [](Function & f, size_t i) -> auto& { return std::get<CallNative>(f.code[i].operation).slots; };
  EXPECT_HAS(message([&](Function& f) { slots(f, 0) = {{0, 256}, {0, 256}}; }), "2 arena slots, must be 1");
  EXPECT_HAS(message([&](Function& f) { slots(f, 1)[0].offset = 192; }), "the arena slot of result 0 is in use");
  EXPECT_HAS(message([&](Function& f) { slots(f, 1)[0].offset = 0; }),
             "instruction 1: the arena slot of result 0 is in use");
  EXPECT_HAS(message([&](Function& f) { slots(f, 1)[0].offset = 320; }),
             "the arena slot of result 0 is 256 bytes at 320 in an arena of 512");
  EXPECT_HAS(message([&](Function& f) { slots(f, 1)[0].offset = UINT64_MAX - 63; }), "in an arena of 512");
  EXPECT_HAS(message([&](Function& f) { slots(f, 1)[0] = {264, 200}; }), "200 bytes at 264");
  EXPECT_HAS(message([&](Function& f) {
               slots(f, 3) = {{0, 256}};
             }),
             "instruction 3: the arena slot of result 0 may outlive the call");
  EXPECT_HAS(message([&](Function& f) {
               f.code[2].operation = Kill{{1}};
               for (size_t i : {0, 1}) slots(f, i).clear();
             }),
             "it has an arena of 512 bytes, and no result is in it");
  // A view in another register extends the live range; so does a path on which that register has the view.
  auto reuse = [&](std::vector<Instruction> between) {
    return message([&](Function& f) {
      std::vector<Instruction> code{{CallNative{0, 0, {0}, {1}, {{0, 256}}}, ""}};
      code.insert(code.end(), between.begin(), between.end());
      code.push_back({Kill{{1}}, ""});
      code.push_back({CallNative{0, 0, {0}, {2}, {{0, 256}}}, ""});
      code.push_back({CallNative{0, 0, {3}, {3}}, ""});
      code.push_back({Return{{3}}, ""});
      f.code = code;
    });
  };
  const Instruction load{Move{3, 0}, ""};
  EXPECT_EQ(reuse({load}), "verified");
  EXPECT_HAS(reuse({{CallKernel{"reshape", {}, {1}, {3}}, ""}}), "is in use");
  EXPECT_HAS(reuse({{Move{3, 1}, ""}}), "is in use");
  EXPECT_HAS(reuse({load, {Branch{0, 4}, ""}, {Move{3, 1}, ""}}), "is in use");
  EXPECT_HAS(reuse({load, {Branch{0, 5}, ""}, {Move{3, 1}, ""}, {Jump{6}, ""}, {Move{3, 0}, ""}}), "is in use");
  EXPECT_EQ(reuse({load, {Branch{0, 4}, ""}, {Kill{{1}}, ""}}), "verified");
  EXPECT_HAS(reuse({load, {Branch{0, 0}, ""}}), "may outlive the call") << "code jumps back";
}

}  // namespace
}  // namespace tenon::runtime
