// Results of models as text.
#include "runtime/media/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tenon::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor scores_of(const Shape& shape, const std::vector<float>& values) { return Tensor::of<float>(shape, values); }

// (N, T, classes) with 1 at these classes, row by row.
Tensor steps_of(const Shape& shape, const std::vector<size_t>& classes) {
  Tensor scores(DType::kF32, shape);
  for (size_t i = 0; i < classes.size(); ++i)
    scores.data<float>()[i * static_cast<size_t>(shape[2]) + classes[i]] = 0.5f;
  return scores;
}
std::vector<std::string> texts(const Tensor& scores, const std::vector<std::string>& letters,
                               const CtcOptions& options) {
  const auto lines = ctc_lines(scores, letters, options, "s");
  if (!lines) return {lines.error().str()};
  std::vector<std::string> result;
  for (const CtcLine& line : *lines) result.push_back(line.text);
  return result;
}

TEST(Labels, LinesMayEndInAnyWay) {
  EXPECT_THAT(parse_labels("cat\r\ndog\n\nbird"), ElementsAre("cat", "dog", "", "bird"));
  EXPECT_THAT(parse_labels(""), ElementsAre());
}

TEST(Labels, TheBestClassesAreInOrder) {
  const auto rows = top_classes(scores_of({2, 3}, {1, 3, 2, 5, 5, 4}), 2, "s");
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0][0].index, 1);
  EXPECT_EQ((*rows)[0][1].index, 2);
  EXPECT_EQ((*rows)[1][0].index, 0) << "of equal scores the first";
  EXPECT_EQ((*rows)[1][1].score, 5);
  EXPECT_EQ(top_classes(scores_of({1, 2}, {1, 2}), 9, "s")->front().size(), 2u);
}

TEST(Ctc, RepetitionsAndBlanksAreLeftOut) {
  const std::vector<std::string> letters{"a", "é"};
  EXPECT_THAT(texts(steps_of({2, 6, 3}, {0, 1, 1, 0, 1, 2, 2, 2, 0, 0, 2, 0}), letters, {}), ElementsAre("aaé", "éé"));
  // The blank as the last class, and time before the rows.
  EXPECT_THAT(texts(steps_of({3, 2, 3}, {0, 1, 0, 2, 1, 1}), letters, {.blank = -1, .time_first = true}),
              ElementsAre("aé", "éé"));
  EXPECT_THAT(texts(Tensor(DType::kF32, {1, 0, 3}), letters, {}), ElementsAre(""));
  EXPECT_EQ(ctc_lines(steps_of({1, 3, 3}, {0, 1, 2}), letters, {}, "s")->front().score, 0.5);
}

TEST(Ctc, WhatIsWrongIsNamed) {
  const std::vector<std::string> letters{"a", "b"};
  const auto message = [&](const Tensor& scores, const CtcOptions& options = {}) {
    return texts(scores, letters, options)[0];
  };
  EXPECT_THAT(message(Tensor(DType::kF32, {1, 3})), HasSubstr("s: error: scores have the shape (1, 3)"));
  EXPECT_THAT(message(Tensor(DType::kF32, {1, 1, 4})), HasSubstr("4 classes, must have one for each of 2 letters"));
  EXPECT_THAT(message(Tensor(DType::kF32, {1, 1, 4})), HasSubstr("--space"));
  EXPECT_THAT(message(Tensor(DType::kF32, {1, 1, 9})), HasSubstr("that of another model"));
  EXPECT_THAT(message(Tensor(DType::kF32, {1, 1, 3}), {.blank = 3}),
              HasSubstr("the blank is the class 3, there are 3"));
  EXPECT_THAT(message(Tensor(DType::kF32, {1, 1, 3}), {.blank = -4}), HasSubstr("the blank is the class -4"));
  EXPECT_THAT(message(Tensor(DType::kBool, {1, 1, 3})), HasSubstr("scores are bool, must be numbers"));
  EXPECT_THAT(top_classes(Tensor(DType::kF32, {}), 1, "s").error().str(),
              HasSubstr("must have classes along the last"));
}

TEST(Ctc, DistancesCountLetters) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("", "naïve"), 5u);
  EXPECT_EQ(edit_distance("naïve", "naive"), 1u);
  EXPECT_EQ(edit_distance("same", "same"), 0u);
}

}  // namespace
}  // namespace tenon::runtime
