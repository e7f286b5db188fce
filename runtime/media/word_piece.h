// Sentences as tokens of models: WordPiece (Wu et al. 2016, "Google's Neural Machine Translation System", section 4.1)
// on text that is normalized and split as BERT's is (Devlin et al. 2019).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::runtime {

class WordPiece {
 public:
  // `text` is a vocabulary, one token a line, or the tokenizer.json of Hugging Face's tokenizers with a model of the
  // type WordPiece. A vocabulary states nothing else: `lower` says whether its models read lower case without accents,
  // and its sentences are between [CLS] and [SEP]. Errors: text that is neither, and parts of a tokenizer that are not
  // supported.
  static Expected<WordPiece> load(std::string_view text, bool lower, std::string_view where);

  // The ids of a sentence's tokens, with those around it. At most `most` are kept, those around it always.
  std::vector<int64_t> encode(std::string_view sentence, size_t most = SIZE_MAX) const;
  int64_t padding() const { return padding_; }                      // the id that fills sentences to equal lengths
  size_t around() const { return before_.size() + after_.size(); }  // tokens that each sentence has

 private:
  friend class WordPieceReader;
  using Ids = std::map<std::string, int64_t, std::less<>>;

  void encode_part(std::string_view text, std::vector<int64_t>& ids) const;
  std::u32string normalized(std::string_view text) const;
  void encode_word(std::u32string_view word, std::vector<int64_t>& ids) const;

  Ids ids_, special_;  // of all tokens; of those that are found in the text as it is
  std::vector<int64_t> before_, after_;
  std::string prefix_ = "##";  // of tokens that continue a word
  int64_t unknown_ = 0, padding_ = 0;
  size_t longest_word_ = 100;  // longer ones are unknown
  bool clean_ = true, ideographs_ = true, strip_ = true, lower_ = true;
};

}  // namespace tenon::runtime
