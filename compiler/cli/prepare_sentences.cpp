#include "compiler/cli/prepare_sentences.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/media/labels.h"
#include "runtime/media/word_piece.h"
#include "runtime/npy.h"
#include "support/file.h"
#include "support/output.h"
#include "support/try.h"

namespace tenon::cli {
namespace {

using runtime::Tensor;

Expected<std::vector<std::string>> split_names(const std::string& text) {
  std::vector<std::string> names;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    names.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  const bool repeats =
      names.size() > 1 && (names[0] == names[1] || names.back() == names[0] || names.back() == names[names.size() - 2]);
  if (names.size() > 3 || std::ranges::find(names, "") != names.end() || repeats) {
    return error(fmt::format("--names is '{}', must be one to three different names", text), "tenon prepare",
                 "of the model's inputs for ids, mask and types", Fault::kUsage);
  }
  return names;
}

}  // namespace

Status write_sentences(const std::vector<std::string>& files, const SentenceFlags& flags, int64_t length,
                       const std::string& output) {
  TENON_TRY_ASSIGN(names, split_names(flags.names));
  if (!output.ends_with(".npz"))
    return error(fmt::format("--output is {}, sentences become several tensors", output), "tenon prepare",
                 "give a FILE.npz", Fault::kUsage);
  TENON_TRY_ASSIGN(text, read_text(flags.vocabulary));
  TENON_TRY_ASSIGN(tokenizer, runtime::WordPiece::load(*text, !flags.keep_case, flags.vocabulary));
  if (length > 0 && static_cast<size_t>(length) < tokenizer->around()) {
    return error(fmt::format("--length is {}, each sentence has {} tokens around it", length, tokenizer->around()),
                 "tenon prepare", {}, Fault::kUsage);
  }
  std::vector<std::vector<int64_t>> sentences;
  size_t longest = 0;
  for (const std::string& file : files) {
    TENON_TRY_ASSIGN(lines, read_text(file));
    for (const std::string& line : runtime::parse_labels(*lines)) {
      if (line.find_first_not_of(" \t") == std::string::npos) continue;
      sentences.push_back(tokenizer->encode(line, length > 0 ? static_cast<size_t>(length) : SIZE_MAX));
      longest = std::max(longest, sentences.back().size());
    }
  }
  if (sentences.empty()) return error("there is no sentence", files.front(), "a sentence is a line of text");
  const size_t width = length > 0 ? static_cast<size_t>(length) : longest;
  const runtime::Shape shape{static_cast<int64_t>(sentences.size()), static_cast<int64_t>(width)};
  Tensor ids(runtime::DType::kI64, shape), mask(runtime::DType::kI64, shape);
  std::ranges::fill(ids.data<int64_t>(), tokenizer->padding());
  for (size_t i = 0; i < sentences.size(); ++i) {
    std::ranges::copy(sentences[i], ids.data<int64_t>().subspan(i * width).begin());
    std::ranges::fill(mask.data<int64_t>().subspan(i * width, sentences[i].size()), 1);
  }
  runtime::NamedTensors tensors;
  tensors.emplace((*names)[0], std::move(ids));
  if (names->size() > 1) tensors.emplace((*names)[1], std::move(mask));
  if (names->size() > 2) tensors.emplace((*names)[2], Tensor(runtime::DType::kI64, shape));
  TENON_TRY(runtime::save_npz(output, tensors));
  for (const auto& [name, tensor] : tensors) print_stdout("{}:{}: i64 {}\n", output, name, runtime::to_string(shape));
  return {};
}

}  // namespace tenon::cli
