// Tests of the text form: a printed module is parsed as an equal module, and errors have locations.
#include "compiler/ir/text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "compiler/base/lexer.h"
#include "compiler/ir/builder.h"
#include "compiler/ir/dependencies.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/text/format.h"
#include "compiler/ir/verifier.h"
#include "runtime/npy.h"
#include "support/file.h"

namespace tenon::compiler {
namespace {

using testing::HasSubstr;

constexpr std::string_view kModel = R"(#[version = "1", side = "m.npz"]
const $w: Tensor[(4, 3, 3, 3), f32] = side;
const $1: Tensor[(4,), f32] = [0.5, -1.25, inf, 3];
const $2: Tensor[(), i64] = [-9223372036854775808];
#[target = "accel", composite = "accel.\"conv2d\""]
def @block[n](%x: Tensor[(n, 3, 8, 8), f32], %w: Tensor[(4, 3, 3, 3), f32]) -> Tensor[(n, 4, 4, 4), f32] {
  let %y = conv2d(%x, %w, strides=[2, 2], padding=[1, 1, 0, 0]);
  relu(bias_add(%y, $1))
}
def @main[m](%a: Tensor[(2*m, 3, 8, 8), f32]) -> (Tensor[(2*m, 64), f32], Tensor[(), i64]) {
  let %r = (flatten(@block(%a, $w)), $2);
  let %first: Tensor[(2*m, 64), f32] = %r.0;
  (clip(%first, min=-1, max=6.5), %r.1)
}
)";

std::vector<std::byte> side() {
  std::vector<float> values(4 * 3 * 3 * 3);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 7;
  return runtime::to_npz({{"w", runtime::Tensor::of<float>({4, 3, 3, 3}, values)}});
}

Expected<Module> read(Context& context, std::string_view text) { return parse(context, text, side(), "m.tn"); }

TEST(Text, RoundTripKeepsTypesAttributesConstantsAndAnnotations) {
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

// 0 is the default of `value`, and -0 is another number.
TEST(Text, ANegativeZeroIsNotTheDefaultZero) {
  Context context;
  const std::string_view text =
      "#[version = \"1\"]\n\ndef @main() -> Tensor[(2,), f32] { full(shape=[2], value=-0.0) }\n";
  auto module = parse(context, text);
  ASSERT_TRUE(module) << module.error().str();
  const Text printed = print(context, *module);
  auto again = parse(context, printed.text);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_TRUE(equal(*module, *again)) << printed.text;
}

// The result of a closure, as that of a function, may have a more specific type than the declared one; a match_cast
// that erases its size is another module.
TEST(Text, AClosureMayReturnAMoreSpecificTypeThanDeclared) {
  for (const bool erased : {false, true}) {
    const std::string text = fmt::format(R"(#[version = "1"]
const $0: Tensor[(2,), i64] = [6, 0];
def @main(%x: Tensor[(3,), i64]) -> Tensor[(?,), i64] {{
  let %f: fn(Tensor[(3,), i64]) -> Tensor[(?,), i64] = fn(%y: Tensor[(3,), i64]) -> Tensor[(?,), i64] {{
    {}
  }};
  %f(%x)
}}
)",
                                         erased ? "let %2 = match_cast($0, Tensor[(?,), i64]);\n    %2" : "$0");
    Context context;
    auto module = parse(context, text, {}, "m.tn");
    ASSERT_TRUE(module) << module.error().str();
    ASSERT_TRUE(verify(context, *module));
    const Text printed = print(context, *module);
    EXPECT_EQ(printed.text.find("match_cast") != std::string::npos, erased) << printed.text;
    auto again = parse(context, printed.text, printed.side, "again.tn");
    ASSERT_TRUE(again) << again.error().str();
    EXPECT_TRUE(equal(*module, *again)) << printed.text;
  }
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

TEST(Text, TheBinaryFormIsOneFile) {
  Context context;
  auto module = read(context, kModel);
  ASSERT_TRUE(module);
  const auto path = std::filesystem::path(testing::TempDir()) / "text_test.tnb";
  ASSERT_TRUE(save(context, *module, path));
  auto again = load(context, path);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_TRUE(equal(*module, *again));
  const auto wrong = from_binary(context, side(), "m.tnb");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().str(),
            "m.tnb: error: the archive has no module\n  help: tenon convert writes a module into a .tnb");
}

// A file with a few changed bytes is a module or an error.
TEST(Text, ChangedBytesOfTheOtherFormsNeverCrash) {
  Context context;
  auto module = read(context, kModel);
  ASSERT_TRUE(module);
  const std::vector<std::byte> binary = to_binary(context, *module), beside = side();
  uint32_t state = 3;
  auto next = [&] { return (state = state * 1664525 + 1013904223) >> 8; };
  int valid = 0;
  for (int i = 0; i < 4000; ++i) {
    std::vector<std::byte> bytes = i % 2 ? binary : beside;
    for (uint32_t k = next() % 3 + 1; k > 0; --k) bytes[next() % bytes.size()] = static_cast<std::byte>(next());
    if (next() % 8 == 0) bytes.resize(next() % bytes.size());
    auto changed = i % 2 ? from_binary(context, bytes) : parse(context, kModel, bytes);
    if (!changed) continue;
    ++valid;
    EXPECT_TRUE(verify(context, *changed));
  }
  EXPECT_GT(valid, 100);  // some bytes, as dates, have no effect
}

TEST(Text, LargeConstantsAreInTheSideFile) {
  Context context;
  auto module = read(context, std::string(kModel));
  ASSERT_TRUE(module);
  const auto path = std::filesystem::path(testing::TempDir()) / "text_test.tn";
  ASSERT_TRUE(save(context, *module, path));
  auto again = load(context, path);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_TRUE(equal(*module, *again));
}

struct TextualMistake {
  std::string name, from, to, location, what;
};
void PrintTo(const TextualMistake& mistake, std::ostream* out) { *out << mistake.name; }

class TextMistake : public testing::TestWithParam<TextualMistake> {};

TEST_P(TextMistake, IsReportedWithLocationAndCaret) {
  Context context;
  std::string text(kModel);
  const size_t at = text.find(GetParam().from);
  ASSERT_NE(at, std::string::npos);
  auto module = read(context, text.replace(at, GetParam().from.size(), GetParam().to));
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().where, GetParam().location);
  EXPECT_THAT(module.error().what, HasSubstr(GetParam().what));
  EXPECT_THAT(module.error().what, HasSubstr("^"));
}

INSTANTIATE_TEST_SUITE_P(
    All, TextMistake,
    testing::Values(
        TextualMistake{"version", "\"1\"", "\"2\"", "m.tn:1:1", "version"},
        TextualMistake{"operator", "relu(", "rulu(", "m.tn:8:3", "there is no operator 'rulu'"},
        TextualMistake{"attribute", "strides=", "stride=", "m.tn:7:27", "conv2d has no attribute 'stride'"},
        TextualMistake{"attribute_kind", "strides=[2, 2]", "strides=\"a\"", "m.tn:7:12",
                       "must be a list of integers, found a string"},
        TextualMistake{"attribute_missing", "min=-1, ", "", "m.tn:13:4", "clip requires the attribute 'min'"},
        TextualMistake{"shape", "%w: Tensor[(4, 3, 3, 3)", "%w: Tensor[(4, 2, 3, 3)", "m.tn:7:12",
                       "w expects 2 x 1 group input channels, x has 3"},
        TextualMistake{"argument", "@block(%a, $w)", "@block(%a, $1)", "m.tn:11:21",
                       "argument 1 must be Tensor[(4, 3, 3, 3), f32], found Tensor[(4,), f32]"},
        TextualMistake{"annotation", "%first: Tensor[(2*m, 64)", "%first: Tensor[(m, 64)", "m.tn:12:7", "is declared"},
        TextualMistake{"result", "-> Tensor[(n, 4, 4, 4), f32]", "-> Tensor[(n, 4, 4, 5), f32]", "m.tn:8:3",
                       "the function returns"},
        TextualMistake{"variable", "flatten(", "flatten(%q, ", "m.tn:11:21", "there is no variable %q"},
        TextualMistake{"constant", "$w)),", "$9)),", "m.tn:11:32", "there is no constant $9"},
        TextualMistake{"function", "@block(%a", "@blok(%a", "m.tn:11:21", "there is no function @blok"},
        TextualMistake{"import", "const $w", "import \"a.tn\";\nconst $w", "m.tn:2:8", "cannot import others"},
        TextualMistake{"field", "%r.1)", "%r.2)", "m.tn:13:35", "there is no field 2"},
        TextualMistake{"dim", "Tensor[(2*m, 3", "Tensor[(2*k, 3", "m.tn:10:28", "the dim variable is not declared"},
        TextualMistake{"dtype", "%x: Tensor[(n, 3, 8, 8), f32]", "%x: Tensor[(n, 3, 8, 8), f33]", "m.tn:6:40", "f33"},
        TextualMistake{"values", "[0.5, -1.25, inf, 3]", "[0.5]", "m.tn:3:31",
                       "expected 4 values for Tensor[(4,), f32], found 1"},
        TextualMistake{"value", "i64] = [-9223372036854775808]", "u8] = [256]", "m.tn:4:29",
                       "the value 256 is not representable in u8"},
        TextualMistake{"range", "-9223372036854775808", "-9223372036854775809", "m.tn:4:30",
                       "the value -9223372036854775809 is not representable in i64"},
        TextualMistake{"side", "= side;", "= side(\"v\");", "m.tn:2:39", "the side file has no member \"v\""},
        TextualMistake{"side_type", "$w: Tensor[(4, 3", "$w: Tensor[(3, 4", "m.tn:2:11",
                       "is Tensor[(4, 3, 3, 3), f32], not"},
        TextualMistake{"module_annotation", "side =", "sides =", "m.tn:1:1", "a module has no annotation 'sides'"},
        TextualMistake{"end", "  (clip(%first, min=-1, max=6.5), %r.1)\n}\n", "", "m.tn:13:1",
                       "expected '}', found the end"},
        TextualMistake{"byte", "relu(", "re\x01u(", "m.tn:8:5", "unexpected byte 0x01"},
        TextualMistake{"function_annotation", "target =", "tarjet =", "m.tn:5:1", "no annotation 'tarjet'"}),
    [](const auto& info) { return info.param.name; });

// The function that computes several calls of another one is used wherever that one is.
TEST(Text, AUnitNamesItsBatchedFunction) {
  const std::string batched = "def @f.batched[b](%x: Tensor[(b, 2), f32]) -> Tensor[(b, 2), f32] {\n  relu(%x)\n}\n";
  const std::string unit =
      "#[batched = \"f.batched\"]\ndef @f(%x: Tensor[(2,), f32]) -> Tensor[(2,), f32] {\n  relu(%x)\n}\n";
  Context context;
  auto module = parse(context, "#[version = \"1\"]\n" + batched + unit, {}, "m.tn");
  ASSERT_TRUE(module) << module.error().str();
  const auto reached = reachable_globals(*module, context.symbol("f"));
  EXPECT_NE(std::ranges::find(reached, context.symbol("f.batched")), reached.end());
  const std::string printed = print(context, *module).text;
  EXPECT_THAT(printed, HasSubstr("#[batched = \"f.batched\"]\ndef @f("));
  auto again = parse(context, printed, {}, "m.tn");
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_TRUE(equal(*module, *again));
  const auto alone = parse(context, "#[version = \"1\"]\n" + unit, {}, "m.tn");
  ASSERT_FALSE(alone);
  EXPECT_THAT(alone.error().str(),
              HasSubstr("its batched function @f.batched must be a function of the module with 1 parameters"));
}

// A byte order mark, carriage returns, and characters of several bytes, which have one column each.
TEST(Text, FilesOfOtherEditorsAreRead) {
  Context context;
  const std::string text =
      "\xef\xbb\xbf#[version = \"1\"]\r\n// \xc3\xa4\r\ndef @main(%x: Tensor[(1,), f32]) -> Tensor[(1,), f32] {\r\n"
      "  relu(%x)\r\n}\r\n";
  auto module = parse(context, text, {}, "m.tn");
  ASSERT_TRUE(module) << module.error().str();
  const auto laid_out = format(text);
  ASSERT_TRUE(laid_out) << laid_out.error().str();
  EXPECT_TRUE(laid_out->starts_with("#[version")) << *laid_out;
  EXPECT_EQ(laid_out->find('\r'), std::string::npos);
  const Source source("\xc3\xa4\xe6\x97\xa5 abc\r\n", "m.tn");
  EXPECT_EQ(source.error_at(6, "what").error().what, "what\n  \xc3\xa4\xe6\x97\xa5 abc\n     ^~~");
}

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

TEST(Text, ADamagedSideFileIsAnError) {
  Context context;
  std::vector<std::byte> bytes = side();
  bytes[bytes.size() / 2] ^= std::byte{1};
  auto module = parse(context, kModel, bytes, "m.tn");
  ASSERT_FALSE(module);
  EXPECT_THAT(module.error().what, HasSubstr("the side file: member 'w.npy' is damaged"));
  module = parse(context, kModel, {}, "m.tn");
  ASSERT_FALSE(module);
  EXPECT_THAT(module.error().what, HasSubstr("the side file: not a .npz file"));
}

// The type of a member is compared with the constant's by its header, before its data is inflated.
TEST(Text, AMemberOfAnotherTypeIsNotInflated) {
  Context context;
  const runtime::NamedTensors members{{"w", runtime::Tensor(DType::kU8, {int64_t{1} << 24})}};
  const std::vector<std::byte> bytes = runtime::to_npz(members, true);
  ASSERT_LT(bytes.size(), size_t{1} << 16);
  auto module = parse(context, kModel, bytes, "m.tn");
  ASSERT_FALSE(module);
  EXPECT_THAT(module.error().what, HasSubstr("\"w\" is Tensor[(16777216,), u8], not Tensor[(4, 3, 3, 3), f32]"));
}

// Two modules import a third, whose definitions are there once; constants and spans keep their meanings.
TEST(Text, ModulesImportOthers) {
  Context context;
  const auto folder = std::filesystem::path(testing::TempDir()) / "imports";
  std::filesystem::create_directories(folder / "more");
  const auto write = [&](const char* name, const std::string& text) {
    ASSERT_TRUE(write_file(folder / name, "#[version = \"1\"]\n" + text));
  };
  write("base.tn",
        "type Box[A] { Box(A) }\nconst $k: Tensor[(3,), f32] = [1, 2, 3];\n"
        "def @scale(%x: Tensor[(3,), f32]) -> Tensor[(3,), f32] { %x * $k }\n");
  write("more/left.tn",
        "import \"../base.tn\";\n"
        "def @left(%x: Tensor[(3,), f32]) -> Box[Tensor[(3,), f32]] { Box(@scale(%x)) }\n");
  write("right.tn",
        "import \"base.tn\";\nconst $k: Tensor[(3,), f32] = [10, 10, 10];\n"
        "def @right(%b: Box[Tensor[(3,), f32]]) -> Tensor[(3,), f32] { match %b { Box(%x) => %x + $k } }\n");
  write("main.tn",
        "import \"more/left.tn\";\nimport \"right.tn\";\n"
        "def @main(%x: Tensor[(3,), f32]) -> Tensor[(3,), f32] { @right(@left(%x)) }\n");
  auto module = load(context, folder / "main.tn");
  ASSERT_TRUE(module) << module.error().str();
  EXPECT_TRUE(verify(context, *module));
  EXPECT_EQ(module->globals.size(), 4u);
  const auto x = runtime::Tensor::of<float>({3}, std::array{1.f, 1.f, 1.f});
  const auto result = interpret(context, *module, context.symbol("main"), std::array{x});
  ASSERT_TRUE(result) << result.error().str();
  EXPECT_EQ(result->at(0), runtime::Tensor::of<float>({3}, std::array{11.f, 12.f, 13.f}));
  const Text text = print(context, *module);
  auto again = parse(context, text.text, text.side);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_TRUE(equal(*module, *again));

  const auto fails = [&](const char* name) {
    auto loaded = load(context, folder / name);
    EXPECT_FALSE(loaded);
    return loaded ? "" : loaded.error().str();
  };
  write("other.tn", "def @scale(%x: Tensor[(3,), f32]) -> Tensor[(3,), f32] { %x }\n");
  write("conflict.tn", "import \"base.tn\";\nimport \"other.tn\";\n");
  EXPECT_THAT(fails("conflict.tn"), HasSubstr("conflict.tn:3:8: error: @scale has another definition"));
  write("again.tn", "import \"base.tn\";\ndef @scale(%x: Tensor[(), f32]) -> Tensor[(), f32] { %x }\n");
  EXPECT_THAT(fails("again.tn"), HasSubstr("@scale is defined twice"));
  write("a.tn", "import \"b.tn\";\n");
  write("b.tn", "import \"a.tn\";\n");
  EXPECT_THAT(fails("a.tn"), HasSubstr("imports itself"));
  write("missing.tn", "import \"nowhere.tn\";\n");
  EXPECT_THAT(fails("missing.tn"), HasSubstr("nowhere.tn"));
}

// The report has the first error of each function, without errors that follow from others.
TEST(Text, SeveralMistakesAreReportedInOneRun) {
  Context context;
  auto module = parse(context, R"(#[version = "1"]
def @a(%x: Tensor[(2,), f32]) -> Tensor[(2,), f32] { rulu(%x) }
def @b(%x: Tensor[(2,), f32]) -> Tensor[(2,), f32] { relu(%y) }
def @c(%value: Tensor[(2,), f32]) -> Tensor[(2,), f32] { @a(%valeu) }
def @d(%x: Tensor[(2,), f32]) -> Tensor[(3,), f32] { @a(%x) }
)",
                      {}, "m.tn");
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().str(), R"(m.tn:2:54: error: there is no operator 'rulu'
  def @a(%x: Tensor[(2,), f32]) -> Tensor[(2,), f32] { rulu(%x) }
                                                       ^~~~
  help: did you mean relu?
m.tn:3:59: error: there is no variable %y
  def @b(%x: Tensor[(2,), f32]) -> Tensor[(2,), f32] { relu(%y) }
                                                            ^~
m.tn:4:61: error: there is no variable %valeu
  def @c(%value: Tensor[(2,), f32]) -> Tensor[(2,), f32] { @a(%valeu) }
                                                              ^~~~~~
  help: did you mean %value?
m.tn:5:54: error: the function returns Tensor[(3,), f32], but its result is Tensor[(2,), f32]
  def @d(%x: Tensor[(2,), f32]) -> Tensor[(3,), f32] { @a(%x) }
                                                       ^~)");
  // Errors in headers are reported first, without errors at the uses of their definitions.
  module = parse(context, R"(#[version = "1"]
type List[A] { Cons(A, Lost[A]), Nil }
def @a(%x: Tensor[(2,), f33]) -> Tensor[(2,), f32] { %x
def @b(%x: Tensor[(2,), f32]) -> Tensor[(2,), f32] { @a(%x) }
)",
                 {}, "m.tn");
  ASSERT_FALSE(module);
  EXPECT_THAT(module.error().str(), HasSubstr("m.tn:2:24: error: there is no type Lost"));
  EXPECT_THAT(module.error().str(), HasSubstr("m.tn:3:25: error:"));
  EXPECT_THAT(module.error().str(), testing::Not(HasSubstr("m.tn:4")));
}

// Compressible constants are deflated, others are stored; both round-trip.
TEST(Text, TheBinaryFormDeflatesWhatShrinks) {
  Context context;
  constexpr int64_t kSize = 100'000;
  runtime::Tensor zeros(DType::kI32, {kSize}), noise(DType::kI32, {kSize});
  uint32_t state = 1;
  for (int32_t& value : noise.data<int32_t>()) value = static_cast<int32_t>(state = state * 1664525u + 1013904223u);
  const auto size_of = [&](const runtime::Tensor& tensor) {
    Module module;
    Function function;
    Builder builder(context, module, function);
    builder.finish(*builder.apply("negate", {builder.constant(tensor)}));
    module.globals.emplace(context.symbol("main"), std::move(function));
    const auto bytes = to_binary(context, module);
    auto again = from_binary(context, bytes);
    EXPECT_TRUE(again && equal(module, *again));
    return bytes.size();
  };
  EXPECT_LT(size_of(zeros), 4000u);
  EXPECT_GT(size_of(noise), 4u * kSize);
  EXPECT_LT(size_of(noise), 4u * kSize + 4000);
}

// The results of a function keep their user-visible names.
TEST(Text, ResultsKeepTheirNames) {
  Context context;
  auto module = parse(context, R"(#[version = "1"]
def @one(%x: Tensor[(2,), f32]) { let %y = relu(%x); let %logits = tanh(%y); %logits }
def @two(%x: Tensor[(2,), f32]) { let %a = relu(%x); let %b = tanh(%x); (%a, %b) }
def @three(%x: Tensor[(2,), f32]) { relu(%x) }
)");
  // An inner variable with the name of a result gets another name.
  for (VarInfo& info : module->function(context.symbol("one"))->vars) {
    if (context.name(info.name) == "y") info.name = context.symbol("logits");
  }
  ASSERT_TRUE(module) << module.error().str();
  const std::string text = print(context, *module).text;
  EXPECT_THAT(text, HasSubstr("let %logits: Tensor[(2,), f32] = tanh(relu(%x));\n  %logits\n"));
  EXPECT_THAT(text, HasSubstr("  (%a, %b)\n"));
  EXPECT_THAT(text, HasSubstr("{\n  relu(%x)\n}"));
  auto again = parse(context, text);
  ASSERT_TRUE(again) << again.error().str();
  const Function& parsed = *again->function(context.symbol("one"));
  EXPECT_EQ(context.name(parsed.info(std::get<VarId>(parsed.body.result)).name), "logits");
}

// A text with a few changed bytes is a module or an error with a location.
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
      const Status status = verify(context, *module);
      EXPECT_TRUE(status) << text << status.error().str();
    } else {
      EXPECT_FALSE(module.error().where.empty()) << text;
    }
  }
}

// A text and its formatted form.
struct Layout {
  std::string name, text, formatted;
};
void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.name; }
class TextLayout : public testing::TestWithParam<Layout> {};

TEST_P(TextLayout, IsFormatted) {
  auto formatted = format(GetParam().text);
  ASSERT_TRUE(formatted) << formatted.error().str();
  EXPECT_EQ(*formatted, GetParam().formatted);
  EXPECT_EQ(*format(*formatted), *formatted);
}

INSTANTIATE_TEST_SUITE_P(
    All, TextLayout,
    testing::Values(
        Layout{"spaces", "const $0:Tensor[( 2 , ),f32]=[ 1,-2 ] ;type  T[A]{One( A ),Two,}",
               "const $0: Tensor[(2,), f32] = [1, -2];\ntype T[A] { One(A), Two }\n"},
        Layout{"definition",
               "#[version=\"1\"]\n#[target=\"a\"]\ndef @f[n](%x:Tensor[(2 * n+1,),f32])->Tensor[(2*n+1,),f32]{%x}",
               "#[version = \"1\"]\n\n#[target = \"a\"]\ndef @f[n](%x: Tensor[(2*n + 1,), f32]) -> Tensor[(2*n + 1,), "
               "f32] "
               "{\n  %x\n}\n"},
        Layout{"statements",
               "def @f() -> T { let %a:T=relu( %x )+-%y*2.5f32-(%z/%y).0; write(%c,%a);conv2d(%a,strides = [1,2]) }",
               "def @f() -> T {\n  let %a: T = relu(%x) + -%y * 2.5f32 - (%z / %y).0;\n  write(%c, %a);\n"
               "  conv2d(%a, strides=[1, 2])\n}\n"},
        Layout{
            "control",
            "def @f() -> T { let %y = if(%c){%a}else{let %z = %b;%z}; match(%x,%y){(Nil,_)=>{%a}(_,%q)=>match "
            "%q{A=>%b} } }",
            "def @f() -> T {\n  let %y = if (%c) {\n    %a\n  } else {\n    let %z = %b;\n    %z\n  };\n"
            "  match (%x, %y) {\n    (Nil, _) => { %a },\n    (_, %q) => match %q {\n      A => %b,\n    },\n  }\n}\n"},
        Layout{"closure", "def @f() -> T { @fold(fn(%a:T,%b:T){let %c=%a+%b;%c},%start,%xs) }",
               "def @f() -> T {\n  @fold(fn(%a: T, %b: T) {\n    let %c = %a + %b;\n    %c\n  }, %start, %xs)\n}\n"},
        Layout{"long_call",
               "def @f() -> T { let %x: Tensor[(1, 64, 56, 56), f32] = conv2d(%input_of_the_layer, $weights, "
               "strides=[2, 2], "
               "padding=[1, 1, 1, 1]); %x }",
               "def @f() -> T {\n  let %x: Tensor[(1, 64, 56, 56), f32] = conv2d(\n    %input_of_the_layer, $weights, "
               "strides=[2, 2], padding=[1, 1, 1, 1]\n  );\n  %x\n}\n"},
        Layout{
            "long_sum",
            "def @f() -> T { let %x = @first_function(%a, %b, %c) * %ddddddddddd + @second_function(%a, %b, %c) - "
            "@third_function(%a, %b); %x }",
            "def @f() -> T {\n  let %x = @first_function(%a, %b, %c) * %ddddddddddd\n      + @second_function(%a, %b, "
            "%c)\n      - @third_function(%a, %b);\n  %x\n}\n"},
        Layout{
            "comments",
            "// About\n\n\n// the file\n#[version = \"1\"]   // one\n// of @f\ndef @f() -> T { // opens\n// first\n "
            "let %a = "
            "f(%x, // the head\n %y) ; // after\n\n\n  %a // result\n // end\n}\n// last\n",
            "// About\n\n// the file\n#[version = \"1\"]  // one\n\n// of @f\ndef @f() -> T {  // opens\n  // first\n"
            "  let %a = f(\n    %x,  // the head\n    %y\n  );  // after\n\n  %a  // result\n      // end\n}\n\n// "
            "last\n"}),
    [](const auto& info) { return info.param.name; });

TEST(Format, UnmatchedBracketsAreErrors) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"def @f() { relu(%x }", "m.tn:1:20: error: expected ')', found '}'"},
      {"def @f() {\n", "m.tn:1:10: error: '{' is not closed"},
      {"def @f() }", "m.tn:1:10: error: unexpected '}'"},
      {std::string(5000, '('), "nested too deeply"}};
  for (const auto& [text, message] : cases) {
    auto formatted = format(text, "m.tn");
    ASSERT_FALSE(formatted);
    EXPECT_THAT(formatted.error().str(), HasSubstr(message));
  }
}

// The tokens without commas, followed by all comments: the formatter may swap a comma and a comment.
std::string tokens_of(std::string_view text) {
  const Source source(text, "text");
  std::string tokens, comments;
  const auto source_tokens = tokenize(source, true);
  for (const Token& token : *source_tokens) {
    if (token.kind == Tok::kComment) comments += token.text;
    else if (token.text != ",") tokens += std::string(text.substr(token.offset, token.end - token.offset)) + " ";
  }
  return tokens + comments;
}

// For any text with matching brackets, formatting changes only spaces and commas, and formatting again changes nothing.
TEST(Format, KeepsEveryTokenAndIsIdempotent) {
  const std::string text = std::string(kModel) + R"(
// A list.
type List[A] { Cons(A, List[A]), Nil }  // of anything

def @g[n](%x: Tensor[(n,), f32], %c: Tensor[(), bool]) -> Tensor[(n,), f32] {
  // The first.
  let %f = fn(%a: Tensor[(n,), f32]) { if (%c) { %a } else { %x } };  // a closure

  match Cons(%x, Nil) { Cons(%a, _) => %f(%a) + %x * 2.0f32, Nil => { let %y = %x - %x; %y } }
}
)";
  ASSERT_TRUE(format(text)) << format(text).error().str();
  uint32_t state = 5;
  auto next = [&] { return (state = state * 1664525 + 1013904223) >> 8; };
  int count = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string changed = text;
    for (uint32_t k = next() % 4; k > 0; --k) {
      const size_t at = next() % changed.size();
      switch (next() % 4) {
        case 0: changed.erase(at, next() % 9); break;
        case 1: changed[at] = text[next() % text.size()]; break;
        case 2: changed.insert(at, "\n"); break;
        case 3: changed.insert(at, " // c\n"); break;
      }
    }
    auto once = format(changed);
    if (!once) continue;
    ++count;
    EXPECT_EQ(tokens_of(*once), tokens_of(changed)) << changed;
    const auto twice = format(*once);
    ASSERT_TRUE(twice) << twice.error().str() << *once;
    EXPECT_EQ(*twice, *once) << changed;
  }
  EXPECT_GT(count, 500);
}

}  // namespace
}  // namespace tenon::compiler
