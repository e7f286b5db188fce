// Values as text and as JSON and back: random values of random types, values a million deep, and texts with mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/fuzz/generator.h"
#include "compiler/fuzz/inputs.h"
#include "compiler/ir/run_value_reader.h"
#include "compiler/ir/text.h"
#include "support/json.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler {
namespace {

using testing::HasSubstr;
using Format = RunValueReader::Format;

constexpr char kTypes[] = R"(#[version = "1"]
type List[A] { Cons(A, List[A]), Nil }
type Tree { Leaf(Tensor[(1,), i64]), Node(Tree, Tree) }
def @list(%x: List[Tensor[(), i64]]) { %x }
def @tree(%x: Tree) { %x }
def @pair[n](%x: (Tensor[(n, 2), f32], Tensor[(), bool])) { %x }
def @one(%x: (Tensor[(), f16],)) { %x }
def @empty[n](%x: Tensor[(n, 3), f32]) { %x }
def @rows[n, m](%x: Tensor[(n, m), i8]) { %x }
def @function(%x: (fn(Tree) -> Tree, Tree)) { %x }
)";

class Reading : public testing::Test {
 protected:
  Reading() : module(*parse(context, kTypes)) {}

  Expected<RunValue> read(std::string_view function, std::string_view text, Format format = Format::kText) {
    const Function& f = *module.function(context.symbol(function));
    return RunValueReader(context, module).read(f.type(f.params[0]), text, {"values.txt", 7, 1}, format);
  }
  std::string whole(const RunValue& value) {
    return runtime::value_text(
        value, [&](const RunValue& part) { return view(context, part); }, runtime::kWhole);
  }
  std::string json(const RunValue& value) {
    Json out;
    runtime::write_json(out, value, [&](const RunValue& part) { return view(context, part); });
    return out.str(true);
  }
  // The text of the value, read from `text`.
  std::string reread(std::string_view function, std::string_view text, Format format = Format::kText) {
    const auto value = read(function, text, format);
    return value ? whole(*value) : value.error().str();
  }

  Context context;
  Module module;
};

TEST_F(Reading, TextsOfPeopleMayLeaveOutWhatTheTypeSays) {
  EXPECT_EQ(reread("list", "Cons(3, Cons(-4i64, Nil))"), "Cons(3i64, Cons(-4i64, Nil))");
  EXPECT_EQ(reread("tree", " Node( Leaf([3]),Leaf(Tensor[(1,), i64] [4]) ) "),
            "Node(Leaf(Tensor[(1,), i64] [3]), Leaf(Tensor[(1,), i64] [4]))");
  EXPECT_EQ(reread("pair", "([[1, 2],\n[3, inf], [-nan, -0]], true)"),
            "(Tensor[(3, 2), f32] [[1, 2], [3, inf], [nan, -0]], true)");
  EXPECT_EQ(reread("one", "(0.1)"), "(0.099975586f16,)");
  EXPECT_EQ(reread("empty", "[]"), "Tensor[(0, 3), f32] [[]]");
  EXPECT_EQ(reread("rows", "Tensor[(0, 3), i8] [[]]"), "Tensor[(0, 3), i8] [[]]");
  EXPECT_EQ(reread("rows", "[[], []]"), "Tensor[(2, 0), i8] [[]]");
}

TEST_F(Reading, TextsOfJsonMayHaveListsForTensorsAndTextsForValues) {
  EXPECT_EQ(reread("pair", R"([[[1, 2], ["inf", null]], false])", Format::kJson),
            "(Tensor[(2, 2), f32] [[1, 2], [inf, nan]], false)");
  EXPECT_EQ(reread("pair", R"([{"data": [1, 2], "shape": [1, 2], "dtype": "f32"}, {"data": [true], "shape": []}])",
                   Format::kJson),
            "(Tensor[(1, 2), f32] [[1, 2]], true)");
  EXPECT_EQ(
      reread("tree", R"j({"constructor": "Node", "fields": ["Leaf([3])", {"constructor": "Leaf", "fields": [[4]]}]})j",
             Format::kJson),
      "Node(Leaf(Tensor[(1,), i64] [3]), Leaf(Tensor[(1,), i64] [4]))");
  EXPECT_EQ(reread("list", R"({"constructor": "Nil"})", Format::kJson), "Nil");
}

struct Wrong {
  const char *function, *text, *where, *what, *help = "";
};

TEST_F(Reading, AMistakeInATextHasItsLocationAndTheExpectedType) {
  const Wrong mistakes[] = {
      {"list", "Cons(3, Nul)", "values.txt:7:9", "expected List[Tensor[(), i64]], found 'Nul'", "did you mean Nil?"},
      {"list", "7", "values.txt:7:1", "expected List[Tensor[(), i64]], found '7'", "the constructors are Cons, Nil"},
      {"list", "Cons(3i32, Nil)", "values.txt:7:6", "expected Tensor[(), i64], found '3i32'"},
      {"list", "Cons(3.5, Nil)", "values.txt:7:6", "expected Tensor[(), i64], found '3.5'"},
      {"list", "Cons(99999999999999999999, Nil)", "values.txt:7:6", "expected Tensor[(), i64], found '9999"},
      {"list", "Cons(3, Nil, Nil)", "values.txt:7:12", "expected ')': Cons has 2 fields, found ','"},
      {"list", "Cons(3)", "values.txt:7:7", "expected ',': Cons has 2 fields, found ')'"},
      {"list", "Cons(3, Nil", "values.txt:7:12", "expected ')': Cons has 2 fields, found the end"},
      {"list", "Cons(3, Nil) Nil", "values.txt:7:14", "expected the end of the List[Tensor[(), i64]], found 'Nil'"},
      {"list", "Cons(3, ...", "values.txt:7:9", "expected List[Tensor[(), i64]], found '...'",
       "the text is abbreviated; --instances prints values in full"},
      {"list", "", "values.txt:7:1", "expected List[Tensor[(), i64]], found the end"},
      {"tree", "Node(Leaf([3, 4]), Leaf([3]))", "values.txt:7:11",
       "expected Tensor[(1,), i64]: found a tensor of sizes (2,)"},
      {"tree", "Node(\n  Leaf([3]),\n  Leaf(3))", "values.txt:9:8", "expected Tensor[(1,), i64], found '3'"},
      {"pair", "([[1, 2], [3]], true)", "values.txt:7:13",
       "lists beside each other must have equal lengths, one has 2, another 1"},
      {"pair", "(Tensor[(2, 2), f32] [[1, 2]], true)", "values.txt:7:2",
       "expected elements of sizes (2, 2), found sizes (1, 2)"},
      {"pair", "(Tensor[(1, 2), f64] [[1, 2]], true)", "values.txt:7:17", "f32], found 'f64'"},
      {"pair", "(Tensor[(1, -2), f32] [[1, 2]], true)", "values.txt:7:13", "with its sizes as (2, 3), found '-2'"},
      {"pair", "([[1, 2]], maybe)", "values.txt:7:12", "expected Tensor[(), bool], found 'maybe'"},
      {"pair", "[1]", "values.txt:7:1", "expected (Tensor["},
      {"rows", "[]", "values.txt:7:1", "the sizes of the tensor are not known",
       "a tensor without elements states them, as Tensor[(0, 3), i8] []"},
      {"rows", "[[300]]", "values.txt:7:3", "found '300'"},
      {"rows", "Tensor[(281474976710656, 1099511627776), i8] []", "values.txt:7:8", "with its sizes as (2, 3)"},
      {"function", "(a function, Leaf([1]))", "values.txt:7:2", "a value of fn(Tree) -> Tree cannot be given",
       "write a function that makes it"},
  };
  for (const Wrong& wrong : mistakes) {
    const auto value = read(wrong.function, wrong.text);
    ASSERT_FALSE(value) << wrong.text;
    EXPECT_EQ(value.error().where, wrong.where) << wrong.text << ": " << value.error().str();
    EXPECT_THAT(value.error().what, HasSubstr(wrong.what)) << wrong.text;
    EXPECT_THAT(value.error().help, HasSubstr(wrong.help)) << wrong.text;
  }
}

TEST_F(Reading, AMistakeInJsonHasItsLocationAndTheExpectedType) {
  const Wrong mistakes[] = {
      {"list", R"({"constructor": "Nul"})", "values.txt:7:17", "expected List[Tensor[(), i64]], found 'Nul'",
       "did you mean Nil?"},
      {"list", R"({"fields": []})", "values.txt:7:2", "expected \"constructor\" and then \"fields\" of List"},
      {"list", R"({"constructor": "Cons"})", "values.txt:7:23", "expected \"constructor\" and \"fields\" of List"},
      {"list", R"({"constructor": "Cons", "fields": [3]})", "values.txt:7:37", "expected 2 fields of List"},
      {"list", R"({"constructor": "Nil", "fields": [3]})", "values.txt:7:35", "expected 0 fields of List"},
      {"list", "[3]", "values.txt:7:1", "expected List[Tensor[(), i64]], found '['"},
      {"list", R"({"constructor": "Cons", "fields": [3.5, "Nil"]})", "values.txt:7:36",
       "expected Tensor[(), i64], found '3.5'"},
      {"list", R"j("Cons(3, Nul)")j", "values.txt:7:10", "expected List[Tensor[(), i64]], found 'Nul'"},
      {"list", R"({"constructor": )", "values.txt:7:16", "expected List[Tensor[(), i64]] in JSON: "},
      {"tree", R"({"constructor": "Leaf", "fields": [{"dtype": "i32", "shape": [1], "data": [3]}]})", "values.txt:7:46",
       "expected Tensor[(1,), i64], found 'i32'"},
      {"tree", R"({"constructor": "Leaf", "fields": [{"shape": [2], "data": [3]}]})", "values.txt:7:62",
       "expected Tensor[(1,), i64]: expected 2 elements of sizes (2,), found 1"},
      {"tree", R"({"constructor": "Leaf", "fields": [{"shape": [-1]}]})", "values.txt:7:47",
       "expected the sizes of Tensor[(1,), i64], found '-1'"},
      {"tree", R"({"constructor": "Leaf", "fields": [{"size": 3}]})", "values.txt:7:37",
       "expected \"dtype\", \"shape\" or \"data\" of Tensor[(1,), i64], found 'size'"},
      {"tree", R"({"constructor": "Leaf", "fields": [[3, 4]]})", "values.txt:7:41",
       "expected Tensor[(1,), i64]: found a tensor of sizes (2,)"},
      {"pair", R"([[[1, 2], [3]], true])", "values.txt:7:13", "one has 2, another 1"},
      {"function", R"j([1, "Leaf([1])"])j", "values.txt:7:2", "a value of fn(Tree) -> Tree cannot be given"},
  };
  for (const Wrong& wrong : mistakes) {
    const auto value = read(wrong.function, wrong.text, Format::kJson);
    ASSERT_FALSE(value) << wrong.text;
    EXPECT_EQ(value.error().where, wrong.where) << wrong.text << ": " << value.error().str();
    EXPECT_THAT(value.error().what, HasSubstr(wrong.what)) << wrong.text;
    EXPECT_THAT(value.error().help, HasSubstr(wrong.help)) << wrong.text;
  }
}

TEST_F(Reading, AListAMillionLongAndATreeAMillionDeepComeBack) {
  const size_t depth = static_cast<size_t>(rounds(1'000'000));
  std::string list, list_end = "Nil", tree, tree_end = "Leaf(Tensor[(1,), i64] [0])";
  for (size_t i = 0; i < depth; ++i) {
    list += "Cons(1i64, ", list_end += ")";
    tree += "Node(", tree_end += ", Leaf(Tensor[(1,), i64] [1]))";
  }
  EXPECT_TRUE(reread("list", list + list_end) == list + list_end);
  EXPECT_TRUE(reread("tree", tree + tree_end) == tree + tree_end);
  EXPECT_FALSE(read("tree", tree + "Leaf([0]" + tree_end));
  // In JSON, the deepest levels are a text.
  const auto value = read("list", list + list_end);
  ASSERT_TRUE(value);
  EXPECT_TRUE(reread("list", json(*value), Format::kJson) == list + list_end);
  std::string nested, nested_end = R"("Nil")";
  for (size_t i = 0; i < depth; ++i) nested += R"({"constructor":"Cons","fields":[1,)", nested_end += "]}";
  EXPECT_TRUE(reread("list", nested + nested_end, Format::kJson) == list + list_end);
}

TEST(ValueReader, RandomValuesOfRandomTypesComeBackBitForBit) {
  size_t values = 0;
  for (int64_t i = 0; i < rounds(400); ++i) {
    const uint64_t seed = test_seed(41) + static_cast<uint64_t>(i);
    Context context;
    const Module module = fuzz::random_module(context, seed, {.size = 3});
    const Function& main = *module.function(context.symbol("main"));
    Random random(seed);
    const auto inputs = fuzz::random_inputs(context, module, main, random);
    if (!inputs) continue;
    const auto view_of = [&](const RunValue& part) { return view(context, part); };
    RunValueReader reader(context, module);
    for (size_t k = 0; k < inputs->size(); ++k) {
      const Type type = main.type(main.params[k]);
      const std::string text = runtime::value_text((*inputs)[k], view_of, runtime::kWhole);
      const std::string lines = runtime::value_text((*inputs)[k], view_of, {SIZE_MAX, INT64_MAX, false});
      Json json;
      runtime::write_json(json, (*inputs)[k], view_of);
      for (const auto& [form, format] :
           {std::pair(text, Format::kText), {lines, Format::kText}, {json.str(), Format::kJson}}) {
        const auto again = reader.read(type, form, {"value"}, format);
        ASSERT_TRUE(again) << "seed " << seed << ": " << again.error().str() << "\n" << form;
        EXPECT_EQ(runtime::value_text(*again, view_of, runtime::kWhole), text) << "seed " << seed;
      }
      ++values;
    }
  }
  EXPECT_GT(values, static_cast<size_t>(rounds(400)));
}

template <class T>
void expect_all_bits_come_back() {
  Context context;
  const Module module;
  RunValueReader reader(context, module);
  Random random(test_seed(42));
  constexpr size_t kCount = 4096;
  runtime::Tensor tensor(runtime::dtype_of<T>, {kCount / 64, 64});
  for (std::byte& byte : tensor.bytes()) byte = static_cast<std::byte>(random.next());
  if constexpr (std::is_same_v<T, bool>) {
    for (std::byte& byte : tensor.bytes()) byte &= std::byte{1};
  }
  // A narrow type in its canonical bits, and every NaN as one.
  for (T& x : tensor.data<T>()) {
    if constexpr (runtime::is_real<T>) {
      x = T(static_cast<double>(x));
      if (static_cast<double>(x) != static_cast<double>(x)) x = T(0.0);
    } else if constexpr (!std::is_integral_v<T>) {
      x = T(static_cast<int32_t>(x));
    }
  }
  const auto view_of = [&](const RunValue& part) { return view(context, part); };
  const RunValue value(tensor);
  Json json;
  runtime::write_json(json, value, view_of);
  const auto text =
      reader.read(context.type_of(tensor), runtime::value_text(value, view_of, runtime::kWhole), {"v"}, Format::kText);
  ASSERT_TRUE(text) << text.error().str();
  EXPECT_TRUE(text->tensor() == tensor) << runtime::name(tensor.dtype());
  const auto back = reader.read(context.type_of(tensor), json.str(true), {"v"}, Format::kJson);
  ASSERT_TRUE(back) << back.error().str();
  EXPECT_TRUE(back->tensor() == tensor) << runtime::name(tensor.dtype());
}

TEST(ValueReader, EveryBitOfEveryDtypeComesBack) {
  for (const DType dtype : runtime::all_dtypes())
    runtime::with_dtype<runtime::kAnyDType>(dtype, [&]<class T>(T) { expect_all_bits_come_back<T>(); });
}

}  // namespace
}  // namespace tenon::compiler
