// Several servers under one name.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "driver/accelerator.h"
#include "driver/remote/farm.h"
#include "driver/remote/pool.h"
#include "driver/serve.h"
#include "support/clock.h"
#include "tests/driver/remote/served.h"
#include "tests/driver/remote/use.h"

namespace tenon::driver::remote {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> parsed(std::string_view text, uint16_t port = 0) {
  const auto sites = parse_farm(text, "list", port);
  if (!sites) return {sites.error().str()};
  std::vector<std::string> list;
  for (const Site& site : *sites)
    list.push_back(site.device.empty() ? site.address : fmt::format("{} {}", site.address, site.device));
  return list;
}

TEST(FarmTest, AListHasServersDevicesRangesAndComments) {
  EXPECT_THAT(parsed("a:1  b:2/board # c:3\n\n d:4,e:5\n"), ElementsAre("a:1", "b:2 board", "d:4", "e:5"));
  EXPECT_THAT(parsed("n[08-10,2]:7/x"), ElementsAre("n08:7 x", "n09:7 x", "n10:7 x", "n2:7 x"));
  EXPECT_THAT(parsed("r[1-2]n[3-4],lone", 9), ElementsAre("r1n3:9", "r1n4:9", "r2n3:9", "r2n4:9", "lone:9"));
}

TEST(FarmTest, WrongListsAreErrors) {
  const std::string help = "\n  help: an entry is HOST:PORT, HOST:PORT/DEVICE or node[01-16]:PORT";
  EXPECT_THAT(parsed("# none\n"), ElementsAre("list: error: the list names no server" + help));
  for (const char* entry : {"n[1-:3", "n[3-1]:1", "n]1[:1", "n[a]:1", "n[]:1", "n[1-9999]:1"}) {
    EXPECT_THAT(parsed(entry),
                ElementsAre(fmt::format("list: error: the entry \"{}\" is no server, or one range of more than 4096{}",
                                        entry, help)));
  }
  EXPECT_THAT(parsed("a:1 b"), ElementsAre("list: error: the server \"b\" has no port\n"
                                           "  help: write HOST:PORT, or give the port of all: ?port=PORT"));
  unsetenv("SLURM_JOB_NODELIST");
  EXPECT_EQ(read_farm("@slurm", 1).error().str(),
            "@slurm: error: SLURM_JOB_NODELIST is not set\n"
            "  help: run this inside a job of Slurm's, or name a file: remote:@FILE");
  setenv("SLURM_JOB_NODELIST", "node[1-2]", 1);
  EXPECT_EQ(read_farm("@slurm", 8461)->back().address, "node2:8461");
  unsetenv("SLURM_JOB_NODELIST");
  EXPECT_FALSE(read_farm("@/nowhere/list", 1));
}

// Three servers; of the second all is held, the third does not answer.
Expected<Devices> listed(const Site& site) {
  if (site.address == "c:3") return error("no route");
  const std::string holder = site.address == "b:2" ? "ann" : "";
  return Devices{{.name = "0", .uri = "behavioral:tiny", .holder = holder},
                 {.name = "1", .uri = "behavioral:tiny", .holder = "bob"}};
}

TEST(FarmTest, FreeDevicesAreTriedAndAFailureNamesEachServersReason) {
  const std::vector<Site> sites = {{"a:1", ""}, {"b:2", ""}, {"c:3", ""}, {"a:1", "0"}, {"a:1", "9"}};
  std::vector<std::string> tried;
  const auto busy = [&](const Site& site) -> Expected<std::unique_ptr<Accelerator>> {
    tried.push_back(site.address + "/" + site.device);
    return error("someone was faster");
  };
  const auto opened = open_free(sites, 0s, "remote:@list", listed, busy);
  ASSERT_FALSE(opened);
  EXPECT_THAT(tried, ElementsAre("a:1/0"));
  EXPECT_EQ(opened.error().str(),
            "remote:@list: error: no device of 5 servers could be taken: a:1/1 is held by bob; b:2/1 is held by bob; "
            "c:3: no route; a:1 has no device \"9\"; a:1/0: someone was faster\n"
            "  help: wait for one with ?wait=SECONDS, or see who holds them: tenon devices --remote");
  // Asked again until the time is over.
  const Stopwatch stopwatch;
  EXPECT_FALSE(open_free(sites, 1s, "remote:@list", listed, busy));
  EXPECT_GE(stopwatch.elapsed(), 1s);
  EXPECT_GT(tried.size(), 3u);
}

TEST(FarmTest, TheListOfAPoolHasServersThatDoNotAnswer) {
  const auto all = list_all({{"b:2", "1"}, {"c:3", ""}}, listed);
  ASSERT_TRUE(all) << all.error().str();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ(all->front().name, "b:2/1");
  EXPECT_EQ(all->back().name, "c:3");
  EXPECT_EQ(all->back().holder, "no route");
  EXPECT_EQ(list_all({{"c:3", ""}}, listed).error().what, "no route");
}

TEST(FarmTest, ClientsOfOneListTakeDifferentDevicesAndTheOneThatBecomesFree) {
  std::vector<Served> servers;
  servers.emplace_back(std::vector<std::string>{"--device", "x=behavioral:tiny?memory=1M"});
  servers.emplace_back(std::vector<std::string>{"--device", "y=behavioral:tiny?memory=1M"});
  const auto file = std::filesystem::path(testing::TempDir()) / fmt::format("farm-{}", ::getpid());
  std::ofstream(file) << "127.0.0.1:1  # nobody\n" << servers[0].address() << "\n" << servers[1].address() << "/y\n";
  const std::string uri = "remote:@" + file.string();
  auto first = open(uri);
  ASSERT_TRUE(first) << first.error().str();
  auto second = open(uri);
  ASSERT_TRUE(second) << second.error().str();
  EXPECT_NE((*first)->info().uri, (*second)->info().uri);
  EXPECT_THAT((*first)->info().uri, HasSubstr("remote:127.0.0.1:"));
  EXPECT_TRUE(use(**first));
  EXPECT_TRUE(use(**second));
  const auto third = open(uri);
  ASSERT_FALSE(third);
  EXPECT_THAT(third.error().what, HasSubstr("no device of 3 servers could be taken: 127.0.0.1:1: "));
  EXPECT_THAT(third.error().what, HasSubstr("is held by "));
  const auto devices = list_served("@" + file.string());
  ASSERT_TRUE(devices) << devices.error().str();
  EXPECT_EQ(devices->size(), 3u);

  std::thread release([&] {
    std::this_thread::sleep_for(500ms);
    first->reset();
  });
  const auto waited = open(uri + "?wait=30");
  release.join();
  ASSERT_TRUE(waited) << waited.error().str();
  EXPECT_TRUE(use(**waited));
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace tenon::driver::remote
