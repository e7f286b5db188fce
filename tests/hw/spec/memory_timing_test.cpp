#include "hw/spec/memory_timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::spec {
namespace {

using testing::HasSubstr;

TEST(MemoryTiming, ItsTextIsReadBack) {
  const MemoryTiming slow{200, 180, 8};
  EXPECT_EQ(to_string(slow), "200/180/8");
  EXPECT_EQ(parse_memory_timing("--memory", to_string(slow)).value(), slow);
  EXPECT_EQ(parse_memory_timing("--memory", "200/180").value(), (MemoryTiming{200, 180, 16}));
  EXPECT_EQ(to_string(MemoryTiming{}), "60/40/16");
}

TEST(MemoryTiming, AWrongPartIsNamed) {
  const auto message = [](std::string_view text) {
    const auto memory = parse_memory_timing("--memory", text);
    if (memory) return std::string("accepted");
    EXPECT_EQ(memory.error().fault, Fault::kUsage);
    return memory.error().str();
  };
  EXPECT_THAT(message("200"), HasSubstr("--memory is '200', expected READ/WRITE or READ/WRITE/OUTSTANDING"));
  EXPECT_THAT(message("1/2/3/4"), HasSubstr("as 60/40: latencies in cycles, and bursts"));
  EXPECT_THAT(message("0/40"), HasSubstr("the read latency of --memory is '0', must be an integer from 1 to 100000"));
  EXPECT_THAT(message("60/x"), HasSubstr("the write latency of --memory is 'x'"));
  EXPECT_THAT(message("60/40/2000"),
              HasSubstr("the number of bursts of --memory is '2000', must be an integer from 1 to 1024"));
}

}  // namespace
}  // namespace tenon::spec
