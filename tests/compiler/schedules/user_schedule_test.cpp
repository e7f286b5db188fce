#include "compiler/schedules/user_schedule.h"

#include <gtest/gtest.h>

namespace tenon::compiler::schedules {
namespace {

TEST(UserSchedule, AFileHasStepsForSeveralKernels) {
  const auto read = parse_schedules(
      "// tiles\n"
      "kernel dense on x86-64-v3\n"
      "  split(dense, i, 4)  \r\n"
      "\n"
      "kernel dense\n"
      "kernel conv\n"
      "mark(conv, i, parallel)\n",
      "my.steps");
  ASSERT_TRUE(read) << read.error().str();
  ASSERT_EQ(read->size(), 3u);
  EXPECT_EQ(read->at(0).kernel, "dense");
  EXPECT_EQ(read->at(0).level, "x86-64-v3");
  ASSERT_EQ(read->at(0).steps.size(), 1u);
  EXPECT_EQ(read->at(0).steps[0].text, "split(dense, i, 4)");
  EXPECT_EQ(read->at(0).steps[0].line, 3);
  EXPECT_TRUE(read->at(1).steps.empty());  // plain loops
  EXPECT_EQ(read->at(2).line, 6);

  const auto kernel_for = [&](const std::vector<std::string>& names, std::string_view level) {
    const UserSchedule* found = find_schedule(*read, names, level);
    return found ? found->line : 0;
  };
  EXPECT_EQ(kernel_for({"relu", "dense"}, "x86-64-v3"), 2);
  EXPECT_EQ(kernel_for({"dense"}, "x86-64-v4"), 5);
  EXPECT_EQ(kernel_for({"conv"}, "x86-64-v4"), 6);
  EXPECT_EQ(kernel_for({"relu"}, "x86-64-v4"), 0);
}

TEST(UserSchedule, WhatIsWrittenIsReadAgain) {
  const std::vector<std::string> steps{"split(dense, i, 4)", "mark(dense, i1, vector)"};
  for (const char* level : {"", "x86-64-v3"}) {
    const auto read = parse_schedules(text_of("dense", level, steps), "my.steps");
    ASSERT_TRUE(read) << read.error().str();
    ASSERT_EQ(read->size(), 1u);
    EXPECT_EQ(read->at(0).level, level);
    ASSERT_EQ(read->at(0).steps.size(), 2u);
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(read->at(0).steps[i].text, steps[i]);
  }
}

TEST(UserSchedule, StepsBeforeAHeadingAreForTheGivenKernel) {
  const auto read = parse_schedules("split(dense, i, 4)\nkernel conv\n", "my.steps", "dense");
  ASSERT_TRUE(read) << read.error().str();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(read->at(0).kernel, "dense");
  EXPECT_EQ(read->at(0).steps.size(), 1u);
}

TEST(UserSchedule, ErrorsNameTheLine) {
  const auto fails = [](std::string_view text, std::string_view where, std::string_view what) {
    const auto read = parse_schedules(text, "my.steps");
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().where, where);
    EXPECT_EQ(read.error().what, what);
  };
  fails("\nsplit(dense, i, 4)\n", "my.steps:2", "the step 'split(dense, i, 4)' is for no kernel");
  fails("kernel\n", "my.steps:1", "'kernel' is no heading");
  fails("kernel dense on\n", "my.steps:1", "'kernel dense on' is no heading");
  fails("kernel dense for x86-64-v3\n", "my.steps:1", "'kernel dense for x86-64-v3' is no heading");
  fails("kernel dense on x86-64-v3 too\n", "my.steps:1", "'kernel dense on x86-64-v3 too' is no heading");
  fails("kernel dense on x86-64-v9\n", "my.steps:1", "there is no level 'x86-64-v9'");
  fails("kernel dense\nkernel a\nkernel dense\n", "my.steps:3", "'kernel dense' is a second schedule of its kernel");
}

}  // namespace
}  // namespace tenon::compiler::schedules
