// Logs of training steps: what their reader accepts and refuses, and replays that are exact to the last digit.
#include "runtime/remat/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/remat/best.h"
#include "runtime/remat/simulate.h"
#include "support/file.h"
#include "tests/cli/hostile/mutate.h"
#include "tests/rounds.h"
#include "tests/runtime/remat/naive.h"
#include "tests/seed.h"

namespace tenon::runtime::remat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path kData = std::filesystem::path(TENON_SOURCE_DIR) / "tests/runtime/remat/data";

constexpr std::string_view kSmall = R"({"INSTRUCTION":"RELEASE","NAME":"old"}
{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}
{"INSTRUCTION":"CONSTANT","NAME":"x"}
{"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":"8"}

{"INSTRUCTION":"CALL","NAME":"f","ARGS":["x"],"RESULT":["y","z"],"TIME":"100"}
{"INSTRUCTION":"MEMORY","NAME":"y","MEMORY":"16"}
{"INSTRUCTION":"ALIAS","NAME":"y","ALIAS":"-1"}
{"INSTRUCTION":"MEMORY","NAME":"z","MEMORY":"0"}
{"INSTRUCTION":"ALIAS","NAME":"z","ALIAS":"0"}
{"INSTRUCTION":"ANNOTATE","ANNOTATION":"BACKWARD"}
{"INSTRUCTION":"MUTATE","NAME":"add_","ARGS":["y","x"],"MUTATE":[0],"TIME":"10"}
{"INSTRUCTION":"COPY","DST":"w","SRC":"y"}
{"INSTRUCTION":"COPY_FROM","DST":"z","SRC":"w"}
{"INSTRUCTION":"RELEASE","NAME":"w"}
{"INSTRUCTION":"RELEASE","NAME":"gone"}
)";

std::string line(std::string_view text) { return std::string(kSmall) + std::string(text) + "\n"; }

// The message where the text is read, "" where it is accepted.
std::string problem(std::string_view text) {
  const auto log = parse_log(text, "step.log");
  return log ? "" : log.error().str();
}

TEST(StepLog, ReadsEveryInstruction) {
  const auto log = parse_log(kSmall, "step.log");
  ASSERT_TRUE(log) << log.error().str();
  EXPECT_EQ(log->constant_bytes(), 8);
  EXPECT_EQ(log->cost(), 110);
  EXPECT_EQ(log->ignored_releases, 1);
  ASSERT_EQ(log->calls.size(), 2U);
  EXPECT_EQ(log->calls[0].name, "f");
  EXPECT_EQ(log->calls[0].results[1].view_of, 0U);
  EXPECT_THAT(log->calls[1].args, ElementsAre(1, 0));
  EXPECT_THAT(log->bytes, ElementsAre(8, 16, 8, 16));
  // x, y after its mutation, which z is another name of.
  EXPECT_THAT(log->results, ElementsAre(0, 3));
  const Replay replay = undisturbed(*log);
  EXPECT_EQ(replay.clock, 111);
  EXPECT_EQ(replay.peak, 40);  // x, y, and y's copy while it is mutated
}

TEST(StepLog, ALogWithoutStartIsAStep) {
  const std::string_view text = kSmall.substr(kSmall.find("{\"INSTRUCTION\":\"CONSTANT"));
  EXPECT_THAT(problem(text), HasSubstr("step.log:14: error: no tensor is called \"gone\" here"));
  EXPECT_EQ(problem(text.substr(0, text.find("{\"INSTRUCTION\":\"RELEASE\",\"NAME\":\"gone"))), "");
}

TEST(StepLog, MistakesNameTheirLine) {
  const auto expect = [](const std::string& text, const std::string& message) {
    EXPECT_THAT(problem(text), HasSubstr(message)) << text.substr(0, 2000);
  };
  const std::string where = "step.log:17: error: ";
  expect("", "step.log: error: the log has no CALL, must have one at least");
  expect(line("{"), where + "not valid JSON: ");
  expect(line("[1]"), where + "the line is a JSON array, must be an object");
  expect(line("{}"), where + "the line has no INSTRUCTION");
  expect(line(R"({"INSTRUCTION":3})"), where + "INSTRUCTION is 3, must be a string");
  expect(line(R"({"INSTRUCTION":"JUMP"})"), where + "INSTRUCTION is \"JUMP\", must be one of ANNOTATE, CONSTANT");
  expect(line(R"({"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"})"), where + "the step starts a second time");
  expect(line(R"({"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":"1"})"),
         where + "MEMORY does not follow the line of its CONSTANT or CALL");
  expect(line(R"({"INSTRUCTION":"CONSTANT","NAME":"k"})"), where + "the log ends here, expected MEMORY of \"k\"");
  const std::string constant = R"({"INSTRUCTION":"CONSTANT","NAME":"k"})" + std::string("\n");
  const std::string next = "step.log:18: error: ";
  expect(line(constant + R"({"INSTRUCTION":"ALIAS","NAME":"k","ALIAS":"0"})"),
         next + "expected MEMORY of \"k\", got ALIAS");
  expect(line(constant + R"({"INSTRUCTION":"MEMORY","NAME":"l","MEMORY":"0"})"),
         next + "expected MEMORY of \"k\", got that of \"l\"");
  expect(line(constant + R"({"INSTRUCTION":"MEMORY","NAME":"k","MEMORY":"-4"})"),
         next + "MEMORY is \"-4\", must be an integer from 0 to 9007199254740992");
  expect(line(constant + R"({"INSTRUCTION":"MEMORY","NAME":"k","MEMORY":18446744073709551615})"),
         next + "MEMORY is 18446744073709551615, must be");
  expect(line(constant + R"({"INSTRUCTION":"MEMORY","NAME":"k","MEMORY":9007199254740992})"),
         next + "the bytes of the log are more than 9007199254740992 in sum");
  const auto call = [](const std::string& args, const std::string& results, const std::string& time) {
    return line(R"({"INSTRUCTION":"CALL","NAME":"g","ARGS":)" + args + R"(,"RESULT":)" + results + R"(,"TIME":)" +
                time + "}");
  };
  expect(call("[\"nobody\"]", "[\"r\"]", "1"), where + "no tensor is called \"nobody\" here");
  expect(call("[\"r\"]", "[\"r\"]", "1"), where + "no tensor is called \"r\" here");  // a cycle
  expect(call("[\"w\"]", "[\"r\"]", "1"), where + "\"w\" was released in line 15");
  expect(call("\"x\"", "[\"r\"]", "1"), where + "ARGS is \"x\", must be a list");
  expect(call("[7]", "[\"r\"]", "1"), where + "ARGS is 7, must be a list of strings");
  expect(call("[]", "[]", "1"), where + "RESULT is empty, must have one name at least");
  expect(call("[]", "[\"r\"]", "-1"), where + "TIME is -1, must be an integer from 0");
  expect(call("[]", "[\"r\"]", "1.5"), where + "TIME is 1.5, must be an integer from 0");
  expect(call("[]", "[\"r\"]", "9007199254740992"),
         where + "the times of the log are more than 9007199254740992 in sum");
  const auto result = [&](const std::string& name, const std::string& alias) {
    return call("[\"x\"]", "[\"" + name + "\"]", "1") + R"({"INSTRUCTION":"MEMORY","NAME":")" + name +
           R"(","MEMORY":"1"})" + "\n" + R"({"INSTRUCTION":"ALIAS","NAME":")" + name + R"(","ALIAS":")" + alias +
           "\"}\n";
  };
  EXPECT_EQ(problem(result("r", "0")), "");
  expect(result("r", "1"), "step.log:19: error: ALIAS is \"1\", must be an integer from -1 to 0");
  expect(result("y", "-1"), "step.log:19: error: \"y\" is defined a second time");
  const auto mutate = [](const std::string& indices) {
    return line(R"({"INSTRUCTION":"MUTATE","NAME":"g","ARGS":["x","y"],"TIME":"1","MUTATE":)" + indices + "}");
  };
  EXPECT_EQ(problem(mutate("[1,0]")), "");
  expect(mutate("[]"), where + "MUTATE is empty, must have one index at least");
  expect(mutate("[2]"), where + "MUTATE is 2, must be an integer from 0 to 1");
  expect(mutate("[0,0]"), where + "MUTATE names argument 0 twice");
  expect(line(R"({"INSTRUCTION":"RELEASE","NAME":"w"})"), where + "\"w\" was released in line 15");
  expect(line(R"({"INSTRUCTION":"COPY","DST":"y","SRC":"x"})"), where + "\"y\" is defined a second time");
  expect(line(R"({"INSTRUCTION":"COPY_FROM","DST":"v","SRC":"x"})"), where + "no tensor is called \"v\" here");
  // A list of lists is not printed, which would recur as deep as it is nested.
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  expect(call("[" + deep + "]", "[\"r\"]", "1"), where + "ARGS is a JSON array, must be a list of strings");
  expect(call(std::string(1'000'000, '['), "[\"r\"]", "1"), where + "not valid JSON: ");
  EXPECT_THAT(problem(line("{\"INSTRUCTION\":\"\x1b[2J\"}")), testing::Not(HasSubstr("\x1b")));
  EXPECT_FALSE(read_log((kData / "nowhere.log").string()));
}

// The clocks that the authors' simulator computed (uwsampl/dtr-prototype, eager eviction) for logs of our own.
TEST(StepLog, ReplaysAreExact) {
  const auto reference = nlohmann::json::parse(std::ifstream(kData / "reference.json"));
  int compared = 0;
  for (const auto& [name, step] : reference.items()) {
    const auto log = read_log((kData / (name + ".log")).string());
    ASSERT_TRUE(log) << log.error().str();
    const Replay base = undisturbed(*log);
    EXPECT_EQ(base.clock, step["clock"].get<int64_t>()) << name;
    EXPECT_EQ(base.peak, step["peak_bytes"].get<int64_t>()) << name;
    EXPECT_EQ(log->constant_bytes(), step["constant_bytes"].get<int64_t>()) << name;
    for (const auto& [policy, rows] : step["policies"].items()) {
      for (const auto& [ratio, row] : rows.items()) {
        const std::string what = name + ", " + policy + " at " + ratio;
        CoreOptions options = options_for(*log, base, std::stod(ratio), 2);
        EXPECT_EQ(options.budget, row["budget"].get<int64_t>()) << what;
        options.policy = *find_policy(policy);
        const Replay result = replay(*log, options);
        ++compared;
        if (row.contains("clock")) {
          EXPECT_FALSE(result.failure) << what << ": " << result.problem;
          EXPECT_EQ(result.clock, row["clock"].get<int64_t>()) << what;
          EXPECT_LE(result.peak, options.budget) << what;
        } else {
          EXPECT_EQ(result.failure, row["fails"] == "memory" ? Failure::kMemory : Failure::kExtraCost) << what;
        }
      }
    }
  }
  EXPECT_GT(compared, 100);
}

// Random steps against a replay that follows the rules by recursion and sets, and keeps no sums.
TEST(StepLog, ReplaysEqualANaiveOne) {
  Random random(test_seed(47));
  int succeeded = 0;
  for (int64_t round = 0; round < rounds(400); ++round) {
    const StepLog log = random_step(random);
    const Replay base = undisturbed(log);
    ASSERT_EQ(base.clock, log.cost() + 1);
    for (const Policy policy : kPolicies) {
      CoreOptions options = options_for(log, base, static_cast<double>(random.between(40, 100)) / 100, 10);
      options.policy = policy;
      const Replay result = replay(log, options);
      const std::string what = fmt::format("round {}, {}, budget {}", round, name(policy), options.budget);
      const auto expected = naive_clock(log, options);
      ASSERT_EQ(!result.failure, expected.has_value()) << what << ": " << result.problem;
      if (expected) {
        ASSERT_EQ(result.clock, *expected) << what;
      }
      succeeded += expected.has_value();
      for (const Release release : {Release::kPrompt, Release::kForget, Release::kBanish}) {
        options.release = release;
        const Replay other = replay(log, options);
        ASSERT_LE(other.peak, options.budget) << what;
        ASSERT_TRUE(other.failure || other.events == log.events.size()) << what;
      }
    }
  }
  EXPECT_GT(succeeded, rounds(400));
}

// A chain that is read again and again with memory for three of it: its storages are evicted so often that the
// union-find structure of their classes is compacted several times.
TEST(StepLog, ClassesAreTheSameAfterCompaction) {
  Random random(test_seed(49));
  StepLog log;
  const auto call = [&](std::vector<uint32_t> args, int64_t bytes, int64_t cost) {
    log.events.push_back({StepLog::Kind::kCall, static_cast<uint32_t>(log.calls.size())});
    log.calls.push_back({"f", std::move(args), {{bytes, std::nullopt}}, cost});
    log.bytes.push_back(bytes);
    return static_cast<uint32_t>(log.bytes.size() - 1);
  };
  std::vector<uint32_t> chain = {call({}, 10, 3)};
  while (chain.size() < 60) chain.push_back(call({chain.back()}, 10, random.between(1, 20)));
  for (int i = 0; i < 900; ++i) {
    const uint32_t result = call({chain[static_cast<size_t>(random.between(0, 59))]}, 0, random.between(1, 5));
    log.events.push_back({StepLog::Kind::kRelease, result});
  }
  const CoreOptions options{.budget = 30, .policy = Policy::kEq};
  const Replay result = replay(log, options);
  EXPECT_FALSE(result.failure);
  EXPECT_GT(result.evictions, int64_t{4} * static_cast<int64_t>(log.calls.size()) + 2000);
  EXPECT_EQ(result.clock, naive_clock(log, options));
}

TEST(StepLog, DamagedLogsAreRefusedOrReplayed) {
  const auto text = read_text(kData / "unet.log");
  ASSERT_TRUE(text);
  const std::string good = std::string(kSmall) + text->substr(text->find('\n') + 1, 6000);
  test::Random random(test_seed(48));
  int refused = 0;
  for (int64_t i = 0; i < rounds(4000); ++i) {
    const std::string bad = random() % 2 ? test::mutate_text(good, random) : test::mutate_bytes(good, random);
    const auto log = parse_log(bad, "bad.log");
    if (!log) {
      ++refused;
      EXPECT_FALSE(log.error().what.empty());
      continue;
    }
    const Replay base = undisturbed(*log);
    EXPECT_FALSE(base.failure);
    for (const Policy policy : kPolicies) {
      CoreOptions options = options_for(*log, base, 0.6, 2);
      options.policy = policy;
      options.release = i % 2 ? Release::kEvict : Release::kBanish;
      EXPECT_LE(replay(*log, options).peak, std::max(options.budget, int64_t{0}));
    }
  }
  EXPECT_GT(refused, rounds(4000) / 4);
}

TEST(StepLog, TheBestReplayIsNoSlowerThanAnyPolicy) {
  const auto log = read_log((kData / "unet.log").string());
  ASSERT_TRUE(log);
  const Replay base = undisturbed(*log);
  double least_sum = 0, best_sum = 0;
  for (const double ratio : {0.9, 0.7, 0.5, 0.4}) {
    CoreOptions options = options_for(*log, base, ratio, 2);
    const Best best = best_replay(*log, options, rounds(20));
    ASSERT_FALSE(best.replay.failure) << ratio;
    EXPECT_LE(best.replay.peak, options.budget);
    EXPECT_FALSE(best.found_by.empty());
    int64_t least = INT64_MAX;
    for (const Policy policy : kPolicies) {
      options.policy = policy;
      const Replay result = replay(*log, options);
      if (!result.failure) least = std::min(least, result.clock);
    }
    EXPECT_LE(best.replay.clock, least) << ratio;
    least_sum += static_cast<double>(least - base.clock);
    best_sum += static_cast<double>(best.replay.clock - base.clock);
    // The search is a function of its arguments.
    EXPECT_EQ(best_replay(*log, options, rounds(20)).replay.clock, best.replay.clock);
  }
  EXPECT_LE(best_sum, 0.8 * least_sum);
}

}  // namespace
}  // namespace tenon::runtime::remat
