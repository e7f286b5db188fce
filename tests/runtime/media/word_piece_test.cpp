// Tokens of sentences: those of Hugging Face's tokenizers 0.23 with the same vocabulary, and files that are none.
#include "runtime/media/word_piece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/media/unicode.h"

namespace tenon::runtime {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kWords =
    "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat un ##able ##believ cafe na ##ive , . ! ' s 北 京 strasse i "
    "##stanbul ᄒ ##ᅡ ##ᆫ ##ᄀ ##ᅮ ##ᆨ a b ##b – ( ) $ 3 ##4 istanbul ";

std::string vocabulary() {
  std::string text = kWords;
  for (char& c : text) c = c == ' ' ? '\n' : c;
  return text;
}
WordPiece must_load(const std::string& text, bool lower = true) {
  auto loaded = WordPiece::load(text, lower, "v");
  EXPECT_TRUE(loaded) << loaded.error().str();
  return loaded ? *std::move(loaded) : WordPiece();
}
std::string fault_of(const std::string& text) {
  const auto loaded = WordPiece::load(text, true, "v");
  return loaded ? "loaded" : loaded.error().str();
}

// The same vocabulary as a tokenizer.json, with other parts than the defaults where they are given.
std::string tokenizer(const std::string& normalizer = R"({"type": "BertNormalizer"})",
                      const std::string& model = R"("type": "WordPiece", "unk_token": "[UNK]")",
                      const std::string& processor = R"({"type": "BertProcessing", "sep": ["[SEP]", 3],
                                                         "cls": ["[CLS]", 2]})") {
  std::string vocab;
  for (size_t at = 0, id = 0; at < kWords.size(); ++id) {
    const size_t end = kWords.find(' ', at);
    vocab += (id ? ", \"" : "\"") + kWords.substr(at, end - at) + "\": " + std::to_string(id);
    at = end + 1;
  }
  return R"({"added_tokens": [{"id": 4, "content": "[MASK]"}, {"id": 3, "content": "[SEP]"}], "normalizer": )" +
         normalizer + R"(, "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": )" + processor +
         R"(, "padding": {"pad_id": 0}, "model": {)" + model + R"(, "vocab": {)" + vocab + "}}}";
}

struct Sentence {
  std::string text;
  std::vector<int64_t> tokens;
};
const std::vector<Sentence>& sentences() {
  static const std::vector<Sentence> all = {{"The cat sat on the mat.", {2, 5, 6, 7, 8, 5, 9, 17, 3}},
                                            {"Unbelievable!", {2, 10, 12, 11, 18, 3}},
                                            {"Café, naïve", {2, 13, 16, 14, 15, 3}},
                                            {"the\tcat\0 \u200bsat\u00a0on"s, {2, 5, 6, 7, 8, 3}},
                                            {"北京cat", {2, 21, 22, 6, 3}},
                                            {"한국", {2, 26, 27, 28, 29, 30, 31, 3}},
                                            {"the [MASK] cat [SEP]", {2, 5, 4, 6, 3, 3}},
                                            {"İstanbul ISTANBUL", {2, 41, 41, 3}},
                                            {std::string(101, 'a'), {2, 1, 3}},
                                            {"ab abb b", {2, 32, 34, 32, 34, 34, 33, 3}},
                                            {"(the–cat's $34)", {2, 36, 5, 35, 6, 19, 20, 38, 39, 40, 37, 3}},
                                            {"", {2, 3}},
                                            {"the cat\ufffd", {2, 5, 6, 3}},
                                            {"[mask]", {2, 1, 1, 1, 3}},
                                            {"zebra cat", {2, 1, 6, 3}},
                                            {"a\x07"
                                             "b",
                                             {2, 32, 34, 3}},
                                            {"ＣＡＴ", {2, 1, 3}}};
  return all;
}

TEST(WordPiece, TokensAreThoseOfTheReference) {
  for (const std::string& text : {vocabulary(), tokenizer()}) {
    const WordPiece tokens = must_load(text);
    for (const Sentence& sentence : sentences())
      EXPECT_EQ(tokens.encode(sentence.text), sentence.tokens) << sentence.text;
  }
}

TEST(WordPiece, CapitalsAndAccentsAreKeptWhereTheModelReadsThem) {
  for (const WordPiece& tokens :
       {must_load(vocabulary(), false), must_load(tokenizer(R"({"type": "BertNormalizer", "lowercase": false})"))}) {
    EXPECT_THAT(tokens.encode("The cat"), ElementsAre(2, 1, 6, 3));
    EXPECT_THAT(tokens.encode("café"), ElementsAre(2, 1, 3));
  }
  const WordPiece lower = must_load(tokenizer(R"({"type": "BertNormalizer", "strip_accents": false})"));
  EXPECT_THAT(lower.encode("THE Café"), ElementsAre(2, 5, 1, 3));
}

TEST(WordPiece, SentencesAreCutBetweenTheTokensAroundThem) {
  const WordPiece tokens = must_load(vocabulary());
  EXPECT_THAT(tokens.encode("the cat sat on the mat", 5), ElementsAre(2, 5, 6, 7, 3));
  EXPECT_THAT(tokens.encode("the cat", 2), ElementsAre(2, 3));
  EXPECT_EQ(tokens.around(), 2u);
  EXPECT_EQ(tokens.padding(), 0);
}

TEST(WordPiece, ATemplateMayHaveSeveralTokensOnEachSide) {
  const std::string model = R"("type": "WordPiece", "unk_token": "[UNK]", "max_input_chars_per_word": 3)";
  const WordPiece tokens = must_load(tokenizer(R"({"type": "BertNormalizer"})", model, R"({"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "x"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "y"}}],
      "special_tokens": {"x": {"ids": [7, 8]}, "y": {"ids": [9]}}})"));
  EXPECT_THAT(tokens.encode("cat cafe"), ElementsAre(7, 8, 6, 1, 9)) << "words of four letters are too long";
  EXPECT_EQ(tokens.around(), 3u);
}

TEST(WordPiece, WhatIsWrongIsNamed) {
  EXPECT_THAT(fault_of("the\ncat\n"), HasSubstr("v: error: the vocabulary has no token [UNK]"));
  EXPECT_THAT(fault_of("{\"model\""), HasSubstr("its JSON is damaged"));
  EXPECT_THAT(fault_of("{}"), HasSubstr("its model is 'none', only WordPiece is supported"));
  EXPECT_THAT(fault_of(R"({"model": {"type": "BPE"}})"), HasSubstr("its model is 'BPE', only WordPiece is supported"));
  EXPECT_THAT(fault_of(R"({"model": {"type": "WordPiece"}})"), HasSubstr("its model has no vocabulary"));
  EXPECT_THAT(fault_of(R"({"model": {"type": "WordPiece", "vocab": {"a": "b"}}})"),
              HasSubstr("the id of the token 'a' is no integer"));
  EXPECT_THAT(fault_of(R"({"model": {"type": "WordPiece", "vocab": {"a": 1}}})"),
              HasSubstr("the vocabulary has no token [UNK]"));
  EXPECT_THAT(fault_of(tokenizer(R"({"type": "NFC"})")), HasSubstr("its normalizer is 'NFC'"));
  EXPECT_THAT(fault_of(tokenizer("null")), HasSubstr("its normalizer is 'none'"));
  const std::string model = R"("type": "WordPiece", "unk_token": "[UNK]")", normal = R"({"type": "BertNormalizer"})";
  EXPECT_THAT(fault_of(tokenizer(normal, model, R"({"type": "ByteLevel"})")),
              HasSubstr("its post_processor is 'ByteLevel'"));
  EXPECT_THAT(fault_of(tokenizer(normal, model, R"({"type": "BertProcessing"})")), HasSubstr("has no id of 'cls'"));
  EXPECT_THAT(fault_of(tokenizer(normal, model, R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {}}]})")),
              HasSubstr("has no ids of ''"));
  const std::string good = tokenizer();
  for (size_t length = 1; length < good.size(); length += 7)
    EXPECT_THAT(fault_of(good.substr(0, length)), HasSubstr("its JSON is damaged"));
}

TEST(Unicode, BytesThatAreNoTextAreReplaced) {
  EXPECT_EQ(decode_utf8("aé€😀"), U"aé€😀");
  EXPECT_EQ(encode_utf8(U"aé€😀"), "aé€😀");
  // A lone continuation, an overlong form, a surrogate, a value above the last, a cut character.
  EXPECT_EQ(decode_utf8("\x80"), U"\xfffd");
  EXPECT_EQ(decode_utf8("\xc0\x80"), U"\xfffd\xfffd");
  EXPECT_EQ(decode_utf8("\xed\xa0\x80"), U"\xfffd\xfffd\xfffd");
  EXPECT_EQ(decode_utf8("\xf4\x90\x80\x80"), U"\xfffd\xfffd\xfffd\xfffd");
  EXPECT_EQ(decode_utf8("\xe2\x82"), U"\xfffd\xfffd");
}

TEST(Unicode, LettersLoseCaseAndAccents) {
  EXPECT_EQ(lowered(U"ÀΣЖ\u0130"), U"àσжi\u0307");
  EXPECT_EQ(stripped(U"ÀéẤñåŻΆЙ"), U"AeAnaZΑИ");
  EXPECT_EQ(stripped(U"e\u0301豈"), U"e豈");
  EXPECT_EQ(stripped(U"각"), U"\u1100\u1161\u11a8");
}

}  // namespace
}  // namespace tenon::runtime
