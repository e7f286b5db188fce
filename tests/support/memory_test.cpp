#include "support/memory.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

namespace tenon {
namespace {

using testing::HasSubstr;

TEST(Memory, WhatTheMachineCannotHaveIsRefused) {
  EXPECT_GT(usable_memory(), uint64_t{1} << 20);
  EXPECT_TRUE(check_memory(1000, "the file", "f"));
  const Status status = check_memory(UINT64_MAX, "the file", "f");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what, HasSubstr("the file takes 17179869184.0 GiB of memory, "));
  EXPECT_EQ(status.error().where, "f");
  EXPECT_EQ(status.error().fault, Fault::kInput);
}

TEST(Memory, TheLimitOfTheProcessCounts) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_DATA, &before), 0);
  const rlimit low{.rlim_cur = rlim_t{100} << 20, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &low), 0);
  EXPECT_LE(usable_memory(), uint64_t{100} << 20);
  setrlimit(RLIMIT_DATA, &before);
}

}  // namespace
}  // namespace tenon
