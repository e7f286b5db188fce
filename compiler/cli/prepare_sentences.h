// The part of tenon prepare that makes tokens of sentences.
#pragma once

#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace tenon::cli {

struct SentenceFlags {
  std::string vocabulary;  // file; empty: there are no sentences
  std::string names = "input_ids,attention_mask,token_type_ids";
  bool keep_case = false;
};

// The lines of text files, of which empty ones are left out, as i64 tensors (sentences, tokens) in one .npz: the
// tokens' ids, which of them are there, and zeros, under three names; fewer names, fewer tensors. `length`: of each
// sentence, cut or filled; 0: the longest one's.
Status write_sentences(const std::vector<std::string>& files, const SentenceFlags& flags, int64_t length,
                       const std::string& output);

}  // namespace tenon::cli
