#include <gtest/gtest.h>

#include <random>

#include "hw/spec/isa.h"
#include "tests/seed.h"

namespace tenon::spec {
namespace {

const Isa& isa() {
  static const Isa isa(*load_config("default"));
  return isa;
}

void expect_error(std::string_view line, std::string_view part) {
  const auto instruction = isa().assemble(line, "prog.s:3");
  ASSERT_FALSE(instruction) << line;
  EXPECT_NE(instruction.error().str().find(part), std::string::npos) << instruction.error().str();
  EXPECT_NE(instruction.error().str().find("prog.s:3"), std::string::npos);
}

TEST(Assembly, PrintsFieldsThatAreNotZeroAndEnginesByName) {
  native::Gemm gemm;
  gemm.wait = bit(Engine::kLdi) | bit(Engine::kLdw);
  gemm.signal = bit(Engine::kRq);
  gemm.first = 1;
  gemm.r0 = 3;
  EXPECT_EQ(isa().disassemble(gemm), "mac wait=ldi,ldw signal=rq first=1 r0=3");
  EXPECT_EQ(isa().disassemble(native::Sync{{}, 6}), "sync engine=st");
}

TEST(Assembly, RoundTripsRandomInstructions) {
  std::mt19937_64 random(test_seed(3));
  int decoded = 0;
  for (int i = 0; i < 3000; ++i) {
    // Random slots that decode are random legal instructions.
    std::vector<Slot> stream = {{random(), random()}, {random(), random()}};
    const Profile profile = i % 2 ? Profile::kBase : Profile::kNative;
    if (profile == Profile::kNative) {  // a mac without reserved bits and without tokens of dw
      stream[0][0] = (stream[0][0] & ~uint64_t{0xffc0007f | 1 << 11 | 1 << 18}) | 6;
      stream[1][1] &= (uint64_t{1} << 52) - 1;
    }
    const auto instruction = isa().decode(stream, 0, profile);
    if (!instruction) continue;
    ++decoded;
    const std::string text = isa().disassemble(*instruction);
    const auto again = isa().assemble(text, "text");
    ASSERT_TRUE(again) << again.error().str();
    EXPECT_EQ(*again, *instruction) << text;
  }
  EXPECT_GT(decoded, 1500);
}

TEST(Assembly, ReadsProgramsWithComments) {
  const auto program = isa().assemble_all("# nothing\n\nmove function=1 rows=2   # a load\n  end\n", "prog.s");
  ASSERT_TRUE(program) << program.error().str();
  ASSERT_EQ(program->size(), 2u);
  EXPECT_EQ(std::get<native::Move>((*program)[0]).rows, 2);
  const auto bad = isa().assemble_all("end\nmvoe\n", "prog.s");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().where, "prog.s:2");
}

TEST(Assembly, BadTextListsTheKnownNames) {
  expect_error("mvoe", "no instruction is called \"mvoe\"");
  expect_error("move colour=3", "move has no field \"colour\"");
  expect_error("move rows=65536", "rows takes 0 .. 65535");
  expect_error("move rows=x", "rows takes 0 .. 65535");
  expect_error("move rows", "rows takes 0 .. 65535");
  expect_error("move rows=1 rows=1", "rows is given twice");
  expect_error("sync wait=ldi,xyz", "or engines as ldi,gemm");
}

}  // namespace
}  // namespace tenon::spec
