#include "runtime/media/word_piece.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "runtime/media/unicode.h"
#include "support/try.h"

namespace tenon::runtime {

using nlohmann::json;

// Reads a vocabulary or a tokenizer.json, which are not trusted.
class WordPieceReader {
 public:
  explicit WordPieceReader(std::string_view where) : where_(where) {}

  Expected<WordPiece> vocabulary(std::string_view text, bool lower) {
    for (int64_t id = 0; !text.empty(); ++id) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view token = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (token.ends_with('\r')) token.remove_suffix(1);
      result_.ids_.insert_or_assign(std::string(token), id);
    }
    result_.lower_ = result_.strip_ = lower;
    for (const char* name : {"[UNK]", "[CLS]", "[SEP]"}) {
      if (!id_of(name))
        return fail(fmt::format("the vocabulary has no token {}", name),
                    "a vocabulary has one token a line, as BERT's vocab.txt");
    }
    for (const char* name : {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"}) {
      if (const auto id = id_of(name)) result_.special_.emplace(name, *id);
    }
    result_.unknown_ = *id_of("[UNK]");
    result_.padding_ = id_of("[PAD]").value_or(0);
    result_.before_ = {*id_of("[CLS]")}, result_.after_ = {*id_of("[SEP]")};
    return std::move(result_);
  }

  Expected<WordPiece> tokenizer(std::string_view text) {
    const json file = json::parse(text, nullptr, false);
    if (!file.is_object()) return fail("it is no tokenizer: its JSON is damaged");
    TENON_TRY(read_model(member(file, "model")));
    TENON_TRY(read_added(member(file, "added_tokens")));
    TENON_TRY(read_normalizer(member(file, "normalizer")));
    TENON_TRY(expect_type(member(file, "pre_tokenizer"), "pre_tokenizer", "BertPreTokenizer"));
    TENON_TRY(read_processor(member(file, "post_processor")));
    const json& padding = member(file, "padding");
    const auto pad = id_of("[PAD]");
    result_.padding_ = number(padding, "pad_id").value_or(pad.value_or(0));
    return std::move(result_);
  }

 private:
  std::unexpected<Diagnostic> fail(std::string what, std::string help = {}) const {
    return error(std::move(what), std::string(where_), std::move(help));
  }
  // A member of an object; null where there is none.
  static const json& member(const json& object, const char* name) {
    static const json kNull;
    const auto found = object.is_object() ? object.find(name) : object.end();
    return object.is_object() && found != object.end() ? *found : kNull;
  }
  static std::string string(const json& object, const char* name, std::string fallback = {}) {
    const json& value = member(object, name);
    return value.is_string() ? value.get<std::string>() : fallback;
  }
  static std::optional<int64_t> number(const json& object, const char* name) {
    const json& value = member(object, name);
    return value.is_number_integer() ? std::optional(value.get<int64_t>()) : std::nullopt;
  }
  static bool flag(const json& object, const char* name, bool fallback) {
    const json& value = member(object, name);
    return value.is_boolean() ? value.get<bool>() : fallback;
  }
  std::optional<int64_t> id_of(std::string_view token) const {
    const auto found = result_.ids_.find(token);
    return found == result_.ids_.end() ? std::nullopt : std::optional(found->second);
  }

  Status expect_type(const json& part, std::string_view name, std::string_view type) const {
    const std::string found = string(part, "type", "none");
    if (found == type) return {};
    return fail(fmt::format("its {} is '{}', only {} is supported", name, found, type),
                "encode the sentences with the tokenizers package, and give their ids in an .npz");
  }

  Status read_model(const json& model) {
    TENON_TRY(expect_type(model, "model", "WordPiece"));
    const json& vocabulary = member(model, "vocab");
    if (!vocabulary.is_object()) return fail("its model has no vocabulary");
    for (const auto& [token, id] : vocabulary.items()) {
      if (!id.is_number_integer()) return fail(fmt::format("the id of the token '{}' is no integer", token));
      result_.ids_.insert_or_assign(token, id.get<int64_t>());
    }
    const std::string unknown = string(model, "unk_token", "[UNK]");
    const auto id = id_of(unknown);
    if (!id) return fail(fmt::format("the vocabulary has no token {}", unknown));
    result_.unknown_ = *id;
    result_.prefix_ = string(model, "continuing_subword_prefix", "##");
    result_.longest_word_ =
        static_cast<size_t>(std::max<int64_t>(0, number(model, "max_input_chars_per_word").value_or(100)));
    return {};
  }

  Status read_added(const json& tokens) {
    if (!tokens.is_array()) return {};
    for (const json& token : tokens) {
      const std::string content = string(token, "content");
      const auto id = number(token, "id");
      if (content.empty() || !id) return fail("one of its added tokens has no content, or no id");
      result_.special_.insert_or_assign(content, *id);
      result_.ids_.insert_or_assign(content, *id);
    }
    return {};
  }

  Status read_normalizer(const json& normalizer) {
    TENON_TRY(expect_type(normalizer, "normalizer", "BertNormalizer"));
    result_.clean_ = flag(normalizer, "clean_text", true);
    result_.ideographs_ = flag(normalizer, "handle_chinese_chars", true);
    result_.lower_ = flag(normalizer, "lowercase", true);
    result_.strip_ = flag(normalizer, "strip_accents", result_.lower_);
    return {};
  }

  // The tokens before and after a single sentence.
  Status read_processor(const json& processor) {
    if (processor.is_null()) return {};
    const std::string type = string(processor, "type");
    if (type == "BertProcessing") {
      for (const auto& [name, to] : {std::pair{"cls", &result_.before_}, {"sep", &result_.after_}}) {
        const json& pair = member(processor, name);
        if (!pair.is_array() || pair.size() != 2 || !pair[1].is_number_integer())
          return fail(fmt::format("its post_processor has no id of '{}'", name));
        to->push_back(pair[1].get<int64_t>());
      }
      return {};
    }
    TENON_TRY(expect_type(processor, "post_processor", "TemplateProcessing"));
    bool after = false;
    for (const json& part : member(processor, "single")) {
      if (member(part, "Sequence").is_object()) after = true;
      const json& special = member(part, "SpecialToken");
      if (!special.is_object()) continue;
      const json& ids = member(member(member(processor, "special_tokens"), string(special, "id").c_str()), "ids");
      if (!ids.is_array()) return fail(fmt::format("its post_processor has no ids of '{}'", string(special, "id")));
      for (const json& id : ids) {
        if (!id.is_number_integer()) return fail("an id of its post_processor is no integer");
        (after ? result_.after_ : result_.before_).push_back(id.get<int64_t>());
      }
    }
    return {};
  }

  std::string_view where_;
  WordPiece result_;
};

Expected<WordPiece> WordPiece::load(std::string_view text, bool lower, std::string_view where) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && text[first] == '{';
  WordPieceReader reader(where);
  return is_json ? reader.tokenizer(text) : reader.vocabulary(text, lower);
}

std::vector<int64_t> WordPiece::encode(std::string_view sentence, size_t most) const {
  std::vector<int64_t> ids;
  // Special tokens are found in the text as it is; the first one first, of those that begin there the longest.
  while (!sentence.empty()) {
    size_t at = sentence.size(), length = 0;
    int64_t id = 0;
    for (const auto& [token, number] : special_) {
      const size_t found = sentence.find(token);
      if (found > at || found == std::string_view::npos || (found == at && token.size() <= length)) continue;
      at = found, length = token.size(), id = number;
    }
    encode_part(sentence.substr(0, at), ids);
    if (length) ids.push_back(id);
    sentence.remove_prefix(at + length);
  }
  ids.resize(std::min(ids.size(), most - std::min(most, around())));
  ids.insert(ids.begin(), before_.begin(), before_.end());
  ids.insert(ids.end(), after_.begin(), after_.end());
  return ids;
}

// Without control characters, with a space for each white one and spaces around ideographs, then lower case without
// accents.
std::u32string WordPiece::normalized(std::string_view text) const {
  std::u32string result;
  for (const char32_t code : decode_utf8(text)) {
    if (clean_ && is_space(code) && !(is_removed(code))) {
      result += U' ';
    } else if (clean_ && is_removed(code)) {
      continue;
    } else if (ideographs_ && is_ideograph(code)) {
      result += U' ', result += code, result += U' ';
    } else {
      result += code;
    }
  }
  if (strip_) result = stripped(result);
  return lower_ ? lowered(result) : result;
}

// Words end at spaces, and each punctuation character is one.
void WordPiece::encode_part(std::string_view text, std::vector<int64_t>& ids) const {
  const std::u32string all = normalized(text);
  const std::u32string_view view = all;
  size_t begin = 0;
  for (size_t at = 0; at <= all.size(); ++at) {
    const bool ends = at == all.size() || is_space(all[at]), is_word = !ends && is_punctuation(all[at]);
    if (!ends && !is_word) continue;
    if (at > begin) encode_word(view.substr(begin, at - begin), ids);
    if (is_word) encode_word(view.substr(at, 1), ids);
    begin = at + 1;
  }
}

// The longest token that the word begins with, then the longest that continues it, and so on.
void WordPiece::encode_word(std::u32string_view word, std::vector<int64_t>& ids) const {
  const size_t known = ids.size();
  size_t begin = 0;
  while (begin < word.size() && word.size() <= longest_word_) {
    size_t end = word.size();
    std::string token = (begin ? prefix_ : "") + encode_utf8(word.substr(begin));
    auto found = ids_.find(token);
    while (found == ids_.end() && --end > begin) {
      token.resize(token.size() - encode_utf8(word.substr(end, 1)).size());
      found = ids_.find(token);
    }
    if (end == begin) break;
    ids.push_back(found->second);
    begin = end;
  }
  if (begin == word.size()) return;
  ids.resize(known);
  ids.push_back(unknown_);
}

}  // namespace tenon::runtime
