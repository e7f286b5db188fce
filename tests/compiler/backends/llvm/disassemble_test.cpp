// The machine code of kernels as text, from sound and from damaged objects.
#include "compiler/backends/llvm/disassemble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/compiler/backends/llvm/operations.h"
#include "tests/seed.h"

namespace tenon::compiler::native {
namespace {

using testing::HasSubstr;

runtime::NativeCode doubles(const std::string& triple) {
  TypeContext context;
  const loop::Function function =
      must_parse(context, elementwise("twice", DType::kF32, {{"%x[i] + %x[i]", DType::kF32}}, true));
  const loop::Function* functions[] = {&function};
  auto code = compile(context, functions, {.triple = triple});
  EXPECT_TRUE(code) << code.error().str();
  return code ? std::move(*code) : runtime::NativeCode{};
}

std::string text_of(const std::vector<MachineFunction>& functions) {
  std::string text;
  for (const MachineFunction& function : functions) {
    text += function.symbol + ":\n";
    for (const MachineInstruction& instruction : function.instructions) text += instruction.text + "\n";
  }
  return text;
}

TEST(Disassemble, EachLevelOfAKernelHasItsCode) {
  const runtime::NativeCode code = doubles("");
  const auto functions = disassemble(code.object, code.triple, "twice");
  ASSERT_TRUE(functions) << functions.error().str();
  const std::string text = text_of(*functions);
  for (const std::string& level : code.levels) EXPECT_THAT(text, HasSubstr("twice." + level + ":\n"));
  EXPECT_THAT(text, HasSubstr("ret"));
  EXPECT_EQ(text.find("(unknown)"), std::string::npos) << text;
  EXPECT_TRUE(disassemble(code.object, code.triple, "twic")->empty());
}

TEST(Disassemble, CodeOfOtherProcessorsIsRead) {
  for (const char* triple :
       {"aarch64-unknown-linux-gnu", "armv7-unknown-linux-gnueabihf", "riscv64-unknown-linux-gnu"}) {
    const runtime::NativeCode code = doubles(triple);
    const auto functions = disassemble(code.object, code.triple, "twice");
    ASSERT_TRUE(functions) << functions.error().str();
    ASSERT_FALSE(functions->empty()) << triple;
    EXPECT_EQ(text_of(*functions).find("(unknown)"), std::string::npos) << triple << text_of(*functions);
  }
}

TEST(Disassemble, DamagedObjectsAreErrors) {
  const runtime::NativeCode code = doubles("");
  EXPECT_THAT(disassemble({}, code.triple, "twice").error().str(), HasSubstr("it is no ELF object"));
  EXPECT_THAT(disassemble(std::span(code.object).first(40), code.triple, "twice").error().str(),
              HasSubstr("it has no header"));
  EXPECT_THAT(disassemble(std::span(code.object).first(code.object.size() - 1), code.triple, "twice").error().str(),
              HasSubstr("the native code is damaged: its table of sections is outside of it"));
  EXPECT_THAT(disassemble(code.object, "pdp11-unknown-none", "twice").error().str(),
              HasSubstr("there is no disassembler for pdp11-unknown-none"));
  // No changed byte crashes; most of those in the tables are errors.
  std::mt19937 random(test_seed(3));
  for (int i = 0; i < 2000; ++i) {
    auto changed = code.object;
    for (int k = 0; k < 3; ++k) {
      const size_t at =
          random() % 2 == 0 ? random() % 64 : changed.size() - 1 - random() % std::min<size_t>(1500, changed.size());
      changed[at] = static_cast<std::byte>(random());
    }
    (void)disassemble(changed, code.triple, "");
  }
}

}  // namespace
}  // namespace tenon::compiler::native
