// The text form: what is printed is read back equal, and a mistake is shown where it is.
#include "compiler/ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "compiler/ir/verifier.h"

namespace tenon::compiler {
namespace {

using testing::HasSubstr;

constexpr std::string_view kModel = R"(#[version = "1"]
const $0: Tensor[(4, 3, 3, 3), f32] = side(0);
const $1: Tensor[(4,), f32] = [0.5, -1.25, inf, 3];
const $2: Tensor[(), i64] = [-9223372036854775808];
#[target = "accel", composite = "accel.\"conv2d\""]
def @block[n](%x: Tensor[(n, 3, 8, 8), f32], %w: Tensor[(4, 3, 3, 3), f32]) -> Tensor[(n, 4, 4, 4), f32] {
  let %y = conv2d(%x, %w, strides=[2, 2], padding=[1, 1, 0, 0]);
  relu(bias_add(%y, $1))
}
def @main[m](%a: Tensor[(2*m, 3, 8, 8), f32]) -> (Tensor[(2*m, 64), f32], Tensor[(), i64]) {
  let %r = (flatten(@block(%a, $0)), $2);
  let %first: Tensor[(2*m, 64), f32] = %r.0;
  (clip(%first, min=-1, max=6.5), %r.1)
}
)";

Expected<Module> read(Context& context, std::string text) {
  std::vector<std::byte> side(4 * 3 * 3 * 3 * 4, std::byte{7});
  const std::string mark = "#[version = \"1\"]";
  if (const size_t at = text.find(mark); at != std::string::npos && text.find("side(") != std::string::npos) {
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(checksum(side)));
    text.replace(
        at, mark.size(),
        "#[version = \"1\", side_bytes = " + std::to_string(side.size()) + ", side_checksum = \"" + hex + "\"]");
    return parse(context, text, side, "m.tn");
  }
  return parse(context, text, {}, "m.tn");
}

TEST(Text, RoundTripKeepsTypesAttributesConstantsAndMarks) {
  Context context;
  auto module = read(context, std::string(kModel));
  ASSERT_TRUE(module) << module.error().str();
  ASSERT_TRUE(verify(context, *module)) << verify(context, *module).error().str();
  const Text text = print(context, *module);
  auto again = parse(context, text.text, text.side, "again.tn");
  ASSERT_TRUE(again) << again.error().str() << text.text;
  EXPECT_TRUE(equal(*module, *again)) << text.text;
  EXPECT_EQ(print(context, *again).text, text.text);
  EXPECT_EQ(module->function(context.symbol("block"))->composite, "accel.\"conv2d\"");
}

TEST(Text, ModulesThatDifferAreNotEqual) {
  Context context;
  auto module = read(context, std::string(kModel));
  ASSERT_TRUE(module);
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"padding=[1, 1, 0, 0]", "padding=[0, 0, 1, 1]"},
                                                        {"-1.25", "-1.5"},
                                                        {"max=6.5", "max=6"},
                                                        {"accel\"", "llvm\""},
                                                        {"%r.1)", "$2)"}}) {
    std::string text(kModel);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    auto other = read(context, text.replace(at, from.size(), to));
    ASSERT_TRUE(other) << other.error().str();
    EXPECT_FALSE(equal(*module, *other)) << from;
  }
}

TEST(Text, FilesKeepLargeConstantsBeside) {
  Context context;
  auto module = read(context, std::string(kModel));
  ASSERT_TRUE(module);
  const auto path = std::filesystem::path(testing::TempDir()) / "text_test.tn";
  ASSERT_TRUE(save(context, *module, path));
  auto again = load(context, path);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_TRUE(equal(*module, *again));
}

struct Mistake {
  std::string name, from, to, place, what;
};
void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class TextMistake : public testing::TestWithParam<Mistake> {};

TEST_P(TextMistake, IsShownWithPlaceAndCaret) {
  Context context;
  std::string text(kModel);
  const size_t at = text.find(GetParam().from);
  ASSERT_NE(at, std::string::npos);
  auto module = read(context, text.replace(at, GetParam().from.size(), GetParam().to));
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().where, GetParam().place);
  EXPECT_THAT(module.error().what, HasSubstr(GetParam().what));
  EXPECT_THAT(module.error().what, HasSubstr("^"));
}

INSTANTIATE_TEST_SUITE_P(
    All, TextMistake,
    testing::Values(
        Mistake{"version", "\"1\"]", "\"2\"]", "m.tn:1:1", "version"},
        Mistake{"operator", "relu(", "rulu(", "m.tn:8:3", "there is no operator 'rulu'"},
        Mistake{"attribute", "strides=", "stride=", "m.tn:7:12", "conv2d has no attribute 'stride'"},
        Mistake{"attribute_kind", "strides=[2, 2]", "strides=\"a\"", "m.tn:7:12",
                "must be a list of integers, found a string"},
        Mistake{"attribute_missing", "min=-1, ", "", "m.tn:13:4", "clip needs the attribute 'min'"},
        Mistake{"shape", "%w: Tensor[(4, 3, 3, 3)", "%w: Tensor[(4, 2, 3, 3)", "m.tn:7:12",
                "w takes 2 x 1 group input channels, x has 3"},
        Mistake{"argument", "@block(%a, $0)", "@block(%a, $1)", "m.tn:11:21",
                "argument 1 must be Tensor[(4, 3, 3, 3), f32], found Tensor[(4,), f32]"},
        Mistake{"annotation", "%first: Tensor[(2*m, 64)", "%first: Tensor[(m, 64)", "m.tn:12:7", "is declared"},
        Mistake{"result", "-> Tensor[(n, 4, 4, 4), f32]", "-> Tensor[(n, 4, 4, 5), f32]", "m.tn:8:3",
                "the function returns"},
        Mistake{"variable", "flatten(", "flatten(%q, ", "m.tn:11:21", "the variable is not defined, found 'q'"},
        Mistake{"constant", "$0)),", "$9)),", "m.tn:11:32", "the constant is not defined"},
        Mistake{"function", "@block(%a", "@blok(%a", "m.tn:11:21", "there is no function @blok"},
        Mistake{"twice", "%first:", "%r:", "m.tn:12:7", "%r is defined twice"},
        Mistake{"field", "%r.1)", "%r.2)", "m.tn:13:35", "there is no field 2"},
        Mistake{"dim", "Tensor[(2*m, 3", "Tensor[(2*k, 3", "m.tn:10:28", "the dim variable is not declared"},
        Mistake{"dtype", "%x: Tensor[(n, 3, 8, 8), f32]", "%x: Tensor[(n, 3, 8, 8), f33]", "m.tn:6:40", "f33"},
        Mistake{"values", "[0.5, -1.25, inf, 3]", "[0.5]", "m.tn:3:31", "1 values for Tensor[(4,), f32]"},
        Mistake{"value", "i64] = [-9223372036854775808]", "u8] = [256]", "m.tn:4:28", "a value is none of u8"},
        Mistake{"range", "-9223372036854775808", "-9223372036854775809", "m.tn:4:31", "more than 64 bits"},
        Mistake{"side", "side(0)", "side(4)", "m.tn:2:44", "lie beyond the side file of 432"},
        Mistake{"end", "  (clip(%first, min=-1, max=6.5), %r.1)\n}\n", "", "m.tn:13:1", "expected '}', found the end"},
        Mistake{"byte", "relu(", "re\x01u(", "m.tn:8:5", "unexpected byte 0x01"},
        Mistake{"mark", "target =", "tarjet =", "m.tn:5:1", "no mark 'tarjet'"}),
    [](const auto& info) { return info.param.name; });

TEST(Text, NestingHasALimit) {
  Context context;
  std::string text = "#[version = \"1\"]\ndef @main(%x: Tensor[(1,), f32]) -> Tensor[(1,), f32] {\n  ";
  for (int i = 0; i < 100000; ++i) text += "relu(";
  auto module = parse(context, text, {}, "deep.tn");
  ASSERT_FALSE(module);
  EXPECT_THAT(module.error().what, HasSubstr("expected '}'"));
  text += "%x" + std::string(100000, ')') + "\n}\n";
  module = parse(context, text, {}, "deep.tn");
  ASSERT_FALSE(module);
  EXPECT_THAT(module.error().what, HasSubstr("nested too deeply"));
}

TEST(Text, ASideFileOfAnotherModuleIsRefused) {
  Context context;
  auto module = read(context, std::string(kModel));
  ASSERT_TRUE(module);
  Text text = print(context, *module);
  text.side[5] = std::byte{9};
  auto again = parse(context, text.text, text.side, "m.tn");
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().what, HasSubstr("checksum"));
  text.side.pop_back();
  again = parse(context, text.text, text.side, "m.tn");
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().what, HasSubstr("must have 432 bytes, it has 431"));
}

// Any change of one byte gives a module or an error with a place, never a crash.
TEST(Text, ChangedBytesNeverCrash) {
  Context context;
  uint32_t state = 1;
  for (int i = 0; i < 3000; ++i) {
    std::string text(kModel);
    for (int k = 0; k < 3; ++k) {
      state = state * 1664525 + 1013904223;
      const size_t at = (state >> 8) % text.size();
      state = state * 1664525 + 1013904223;
      if (state >> 31) text.erase(at, (state >> 8) % 9);
      else text[at] = kModel[(state >> 8) % kModel.size()];
    }
    if (auto module = read(context, text)) {
      EXPECT_TRUE(verify(context, *module) ||
                  verify(context, *module).error().what.find("calls itself") != std::string::npos)
          << text << verify(context, *module).error().str();
    } else {
      EXPECT_FALSE(module.error().where.empty()) << text;
    }
  }
}

}  // namespace
}  // namespace tenon::compiler
