// Sessions of executables with native code.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "runtime/vm/session.h"
#include "tests/runtime/native/sample.h"

namespace tenon::runtime {
namespace {

TEST(NativeCalls, RunFromALoadedExecutable) {
  const Executable e = sample::native_executable();
  const auto bytes = serialize(e);
  ASSERT_TRUE(bytes) << bytes.error().str();
  const auto loaded = deserialize(*bytes, "memory");
  ASSERT_TRUE(loaded) << loaded.error().str();
  EXPECT_EQ(*loaded, e);
  auto damaged = *bytes;
  damaged.back() ^= std::byte{1};  // the last section is the native code
  EXPECT_HAS(deserialize(damaged, "memory").error().str(), "does not match its SHA-256");

  auto session = Session::create(*loaded, {.threads = 2});
  ASSERT_TRUE(session) << session.error().str();
  const auto results = session->run(std::vector{sample::count_up(50)});
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ((*results)[0].data<int32_t>()[49], 150);
  ASSERT_EQ(session->profile().calls.size(), 1u);
  EXPECT_EQ(session->profile().calls[0].name, "add");
  EXPECT_EQ(session->profile().calls[0].layer, "add_1");
  EXPECT_EQ(session->profile().calls[0].device, "cpu");

  Tensor bad = sample::count_up(50);
  bad.data<int32_t>()[20] = 13;
  EXPECT_HAS(session->run(std::vector{bad}).error().str(),
             "natives: function 'main', instruction 0 (add_1): @add, by hand: error: the index 20 is not in 0 .. 49");
  EXPECT_HAS(Session::create(*loaded, {.native = false}).error().str(),
             "natives: error: the executable has native code, which was forbidden");
  EXPECT_HAS(Session::create(*loaded, {.native_level = "x86-64-v9"}).error().str(), "x86-64-v9");
}

TEST(NativeCalls, ResultsAreStoredInTheirArenaSlots) {
  Executable e = sample::planned_executable();
  e = deserialize(serialize(e).value(), "memory").value();
  EXPECT_EQ(e, sample::planned_executable());
  std::vector<const void*> addresses;
  auto session = Session::create(e, {.threads = 2, .hook = [&](const Step& step) -> Status {
                                       if (!step.results.empty()) addresses.push_back(step.results[0].bytes().data());
                                       return {};
                                     }});
  ASSERT_TRUE(session) << session.error().str();
  const auto first = session->run(std::vector{sample::count_up(50)});
  ASSERT_TRUE(first) << first.error().str();
  EXPECT_EQ(session->profile().memory.arena_bytes, 1024u) << "two frames";
  EXPECT_EQ(session->profile().memory.allocations, 2u) << "results that escape a frame";
  EXPECT_EQ(session->profile().memory.peak_bytes, 512u + 200 + 200);
  const auto second = session->run(std::vector{sample::count_up(50)});
  ASSERT_TRUE(second) << second.error().str();
  for (const auto* results : {&*first, &*second}) {
    for (int i = 0; i < 50; ++i) EXPECT_EQ((*results)[0].data<int32_t>()[static_cast<size_t>(i)], 106 + i);
  }
  ASSERT_EQ(addresses.size(), 12u);
  EXPECT_EQ(addresses[0], addresses[3]) << "the next frame reuses the arena";
  EXPECT_EQ(addresses[0], addresses[6]) << "so does the next run";
  EXPECT_EQ(static_cast<const std::byte*>(addresses[1]) - static_cast<const std::byte*>(addresses[0]), 256);

  auto call = [](Executable & changed, size_t i) -> auto& {
    return std::get<CallNative>(changed.functions[1].code[i].operation);
  };
  Executable small = sample::planned_executable();
  call(small, 0).slots = {{0, 64}};
  auto own = Session::create(small, {.threads = 1});
  EXPECT_EQ(own->run(std::vector{sample::count_up(50)}).value(), *first)
      << "a result that is too large for its slot has memory of its own";
  EXPECT_EQ(own->profile().memory.allocations, 4u);
}

TEST(NativeCalls, SessionsInSeveralThreadsShareThePoolOfTheProcess) {
  const Executable e = sample::planned_executable();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&e] {
      auto session = Session::create(e, {});
      for (int run = 0; run < 50; ++run) {
        const auto result = session->run(std::vector{sample::count_up(50)});
        EXPECT_TRUE(result && (*result)[0].data<int32_t>()[49] == 155);
      }
    });
  }
}

// Runs of one session at the same time have arenas and call frames of their own.
TEST(NativeCalls, ThreadsShareASession) {
  const Executable e = sample::planned_executable();
  auto session = Session::create(e, {.threads = 2});
  ASSERT_TRUE(session) << session.error().str();
  constexpr int kThreads = 8, kRuns = 1000;
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kRuns; ++i) {
          Tensor x = sample::count_up(50);
          x.data<int32_t>()[0] = 10000 * (t + 1) + i;
          const auto results = session->run(std::vector{x});
          right += results && (*results)[0].data<int32_t>()[0] == 10000 * (t + 1) + i + 6 &&
                   (*results)[0].data<int32_t>()[49] == 155;
        }
      });
    }
  }
  EXPECT_EQ(right, kThreads * kRuns);
}

}  // namespace
}  // namespace tenon::runtime
