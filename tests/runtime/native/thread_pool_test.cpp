#include "runtime/native/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace tenon::runtime {
namespace {

TEST(ThreadPool, RunsEachIndexOnce) {
  for (unsigned threads : {1u, 2u, 5u}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
      EXPECT_EQ(pool.run(count, [&](Arena&, int64_t i) { return ++seen[static_cast<size_t>(i)], true; }), -1);
      for (auto& calls : seen) EXPECT_EQ(calls, 1);
    }
  }
}

TEST(ThreadPool, TheSmallestFailingIndexIsReportedWhateverTheThreads) {
  for (unsigned threads : {1u, 2u, 4u}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) {
      std::atomic<int64_t> ran = 0;
      EXPECT_EQ(pool.run(1000, [&](Arena&, int64_t i) { return ++ran, i < 37 || i % 3 != 0; }), 39);
      EXPECT_GE(ran, 40);
      EXPECT_LT(ran, 1000) << "no index after a failure begins";
    }
  }
}

TEST(ThreadPool, CallsInsideACallAndFromOtherThreadsRunInTheirOwnThread) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum = 0;
  auto outer = [&] {
    EXPECT_EQ(pool.run(10,
                       [&](Arena&, int64_t i) {
                         const auto self = std::this_thread::get_id();
                         return pool.run(10, [&](Arena&, int64_t k) {
                           EXPECT_EQ(std::this_thread::get_id(), self);
                           sum += i * 10 + k;
                           return true;
                         }) == -1;
                       }),
              -1);
  };
  {
    std::jthread a(outer), b(outer);
    outer();
  }
  EXPECT_EQ(sum, 3 * 4950);
}

TEST(ThreadPool, HasAsManyThreadsAsItsProcessorsAreUsable) {
  cpu_set_t all, first;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  EXPECT_EQ(usable_processors(), static_cast<unsigned>(CPU_COUNT(&all)));
  CPU_ZERO(&first);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&first) == 0; ++i) {
    if (CPU_ISSET(i, &all)) CPU_SET(i, &first);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(first), &first), 0);  // as taskset does
  EXPECT_EQ(ThreadPool().threads(), 1u);
  ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
}

TEST(Arena, MemoryIsAStackThatStays) {
  Arena::Account account;
  Arena arena(account);
  void* a = arena.allocate(100);
  void* b = arena.allocate(1 << 23);
  void* c = arena.allocate(0);
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ((std::set<void*>{a, b, c}.size()), 3u);
  for (void* block : {a, b, c}) EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
  std::memset(a, 1, 100), std::memset(b, 2, 1 << 23);
  arena.release(b);
  EXPECT_EQ(arena.allocate(1 << 22), b);
  const size_t position = arena.position();
  void* d = arena.allocate(5000);
  arena.reset(position);
  EXPECT_EQ(arena.allocate(5000), d);
  EXPECT_EQ(arena.allocate(-1), nullptr);
  EXPECT_EQ(arena.allocate(int64_t{1} << 47), nullptr);
}

TEST(ThreadPool, TheProcessHasOnePool) {
  EXPECT_EQ(&ThreadPool::of_process(), &ThreadPool::of_process());
  EXPECT_EQ(ThreadPool::of_process().threads(), usable_processors());
}

}  // namespace
}  // namespace tenon::runtime
