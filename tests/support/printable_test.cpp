#include "support/printable.h"

#include <gmock/gmock.h>

#include <string>

#include "support/diagnostic.h"

namespace tenon {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Printable, NamesAreOnOneLineAndHarmless) {
  EXPECT_EQ(printable("/stem/Conv_0 \"x\" 'y' \\n"), "/stem/Conv_0 \"x\" 'y' \\n");
  EXPECT_EQ(printable("gr\u00fc\u00df \u4f60\u597d \U0001f600"), "gr\u00fc\u00df \u4f60\u597d \U0001f600");
  EXPECT_EQ(printable("a\x1b]0;pwn\x07\nerror: fake\r\t"), "a\\x1b]0;pwn\\x07\\nerror: fake\\r\\t");
  EXPECT_EQ(printable(std::string("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m")
      << "the control sequence introducer in one character";
  EXPECT_EQ(printable("\u202eabc\u2066\u2028"), "\\u202eabc\\u2066\\u2028");
}

TEST(Printable, BytesThatAreNotUtf8AreEscaped) {
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
  EXPECT_EQ(printable("\xe4\xbd"), "\\xe4\\xbd") << "it ends early";
}

TEST(Printable, LongNamesAreCutInTheirMiddle) {
  EXPECT_EQ(printable(std::string(kLongestName, 'a')), std::string(kLongestName, 'a'));
  const std::string cut = printable("begin" + std::string(3'000'000, 'x') + "end");
  EXPECT_LT(cut.size(), kLongestName + 40);
  EXPECT_TRUE(cut.starts_with("beginx") && cut.ends_with("xend")) << cut;
  EXPECT_THAT(cut, HasSubstr(" bytes)... "));
  std::string umlauts;
  for (int i = 0; i < 1000; ++i) umlauts += "\u00fc";
  for (size_t longest = 90; longest < 100; ++longest)
    EXPECT_THAT(printable(umlauts, longest), Not(HasSubstr("\\x"))) << "a character is not divided";
}

TEST(Printable, MessagesKeepTheirLinesAndForgeNone) {
  EXPECT_EQ(printable_text("a\tb\n\x1b[1m\n"), "a\tb\n\\x1b[1m\n");
  EXPECT_EQ(printable_lines("what\n  it is\n\nerror: fake"), "what\n  it is\n\n  error: fake");
  EXPECT_LT(printable_lines(std::string(6'000'000, '\n')).size(), 10'000u);
}

TEST(Printable, PagesShowWhatATextHas) {
  EXPECT_EQ(html_text("<b title=\"x\">&\x1b"), "&lt;b title=&quot;x&quot;&gt;&amp;\\x1b");
}

TEST(Diagnostic, IsPrintedWithoutControlCharacters) {
  const Diagnostic hostile{
      .what = "no input is named 'x\x1b[2J\nerror: fake'", .where = "m\n.onnx", .help = "it has 'y\r\nerror: fake'"};
  EXPECT_EQ(hostile.str(),
            "m\\n.onnx: error: no input is named 'x\\x1b[2J\n  error: fake'\n  help: it has 'y\\r\n  error: fake'");
  EXPECT_LT(
      (Diagnostic{.what = std::string(3'000'000, 'x'), .where = std::string(3'000'000, 'y'), .help = ""}).str().size(),
      10'000u);
}

}  // namespace
}  // namespace tenon
