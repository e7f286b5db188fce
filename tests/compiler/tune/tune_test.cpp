// Tuning: records are kept and combined, damaged files are rejected, and all candidates compute the same bits.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

#include "compiler/backends/llvm/compile.h"
#include "compiler/ir/text.h"
#include "compiler/kernels/kernels.h"
#include "compiler/loop/text.h"
#include "compiler/lower/native.h"
#include "compiler/tune/measure.h"
#include "compiler/tune/records.h"
#include "compiler/tune/search.h"
#include "runtime/native/native.h"
#include "runtime/temporary.h"
#include "support/file.h"
#include "tests/random_tensor.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler::tune {
namespace {

using kernels::KnobSettings;

std::string level() { return std::string(runtime::host_levels().front()); }
const Machine& host_machine() { return *find_machine(level()); }

struct Fixture : ::testing::Test {
  runtime::TemporaryDirectory scratch;
  std::string path(const std::string& name) const { return scratch.path() + "/" + name; }
  static std::string open_error(const std::string& file, bool writes = false) {
    const auto records = writes ? Records::open(file) : Records::open_to_read(file);
    return records ? "opened" : records.error().str();
  }
  static bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
};
using RecordsTest = Fixture;
using Tune = Fixture;

TEST_F(RecordsTest, KeepTheBestAndEveryTrial) {
  {
    auto records = Records::open(path("r"));
    ASSERT_TRUE(records) << records.error().str();
    EXPECT_FALSE(records->find("conv", "v3")->has_value());
    ASSERT_TRUE(records->put("conv", "v3", {{{"tile", "2x2"}}, 1e-6, 2e-6}, {{{{"tile", "2x2"}}, 0.5}}));
    ASSERT_TRUE(records->put("conv", "v3", {{{"tile", "4x1"}}, 1e-6, 3e-6}, {{{{"tile", "4x1"}}, 0.25}}));
    ASSERT_TRUE(records->put("conv", "v2", {{{"tile", "1x1"}}, 1e-6, 3e-6}, {}));
    ASSERT_TRUE(records->put("it's", "v2", {{{"tile", "9x1"}}, 1e-6, 3e-6}, {}));
  }
  auto records = Records::open_to_read(path("r"));
  ASSERT_TRUE(records) << records.error().str();
  const auto found = records->find("conv", "v3");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->settings, (KnobSettings{{"tile", "4x1"}}));
  EXPECT_EQ((*found)->default_seconds, 3e-6);
  const auto trials = records->trials("conv", "v3");
  ASSERT_TRUE(trials);
  ASSERT_EQ(trials->size(), 2u);
  EXPECT_EQ(trials->front().ratio, 0.25);
  const auto best = records->best({"v3", "v2"});
  ASSERT_TRUE(best);
  EXPECT_EQ(best->at("conv"), (KnobSettings{{"tile", "4x1"}}));
  EXPECT_EQ(best->at("it's"), (KnobSettings{{"tile", "9x1"}}));
  EXPECT_FALSE(records->put("conv", "v3", {}, {})) << "the file was opened for reading only";
}

TEST_F(RecordsTest, ALevelSharesTheRecordsOfItsTwin) {
  auto records = Records::open(path("r"));
  ASSERT_TRUE(records) << records.error().str();
  ASSERT_TRUE(records->put("conv", "x86-64-v4+vnni", {{{"tile", "2x2"}}, 1e-6, 2e-6}, {}));
  ASSERT_TRUE(records->put("conv", "x86-64-v2", {{{"tile", "1x1"}}, 1e-6, 2e-6}, {}));
  const auto settings = [&](const std::string& level) {
    return kernels::str((*read_level_knobs(path("r"), level))("conv"));
  };
  EXPECT_EQ(settings("x86-64-v4+vnni"), "tile=2x2");
  EXPECT_EQ(settings("x86-64-v4"), "tile=2x2");
  EXPECT_EQ(settings("x86-64-v3"), "");
  EXPECT_EQ(settings("x86-64-v2"), "tile=1x1");
}

TEST_F(RecordsTest, SeveralProcessesCanWriteAtATime) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        auto records = Records::open(path("r"));
        ASSERT_TRUE(records) << records.error().str();
        const Status done = records->put("op" + std::to_string(t * 5 + i), "v3", {{{"tile", "2x2"}}, 1, 2}, {});
        ASSERT_TRUE(done) << done.error().str();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Records::open_to_read(path("r"))->best({"v3"})->size(), 20u);
}

TEST_F(RecordsTest, FilesThatAreNotRecordsOrDamagedAreRejected) {
  EXPECT_TRUE(has(open_error(path("none")), "the file of records does not exist"));
  EXPECT_TRUE(has(open_error(scratch.path()), "this is a directory"));
  std::ofstream(path("empty")).close();
  EXPECT_TRUE(has(open_error(path("empty")), "the file has no records"));
  std::ofstream(path("text"))
      << "conv2d: tile=2x2, and so on, for as long as a SQLite file's header is, and longer still: "
         "one hundred bytes and more of it";
  EXPECT_TRUE(has(open_error(path("text")), "this is not a file of records"));
  EXPECT_TRUE(has(open_error(path("text"), true), "this is not a file of records"));
  {
    auto records = Records::open(path("good"));
    ASSERT_TRUE(records) << records.error().str();
    for (int i = 0; i < 60; ++i)
      ASSERT_TRUE(records->put("op" + std::to_string(i), "v3", {{{"tile", "2x2"}}, 1, 2}, {{{{"a", "b"}}, 1}}));
  }
  const auto valid = read_file(path("good"));
  ASSERT_TRUE(valid);
  const auto changed = [&](const std::string& name, size_t from, size_t count, uint8_t value) {
    auto bytes = *valid;
    for (size_t i = from; i < std::min(from + count, bytes.size()); ++i) bytes[i] = std::byte{value};
    EXPECT_TRUE(write_file(path(name), bytes));
    return path(name);
  };
  // Offsets in SQLite's header: user_version ends at 63, application_id at 71.
  EXPECT_TRUE(has(open_error(changed("newer", 63, 1, 9)), "the records have version 9, this program reads 1"));
  EXPECT_TRUE(has(open_error(changed("other", 71, 1, 9)), "another program"));
  {
    sqlite3* file = nullptr;
    ASSERT_EQ(sqlite3_open(changed("view", 0, 0, 0).c_str(), &file), SQLITE_OK);
    const char* const endless =
        "DROP TABLE record; CREATE VIEW record AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) "
        "SELECT n AS operator, 'v3' AS level, 'a=b' AS choice, 1.0 AS seconds, 1.0 AS default_seconds FROM r";
    EXPECT_EQ(sqlite3_exec(file, endless, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(file);
    EXPECT_TRUE(has(open_error(path("view")), "it has views, indices or triggers"));
    EXPECT_TRUE(has(open_error(path("view"), true), "it has views, indices or triggers"));
  }
  // Any other damage is reported or harmless; nothing crashes.
  for (size_t at = 100; at < valid->size(); at += 1511) {
    auto records = Records::open_to_read(changed("bad", at, 700, 0xa5));
    if (!records) continue;
    const auto best = records->best({"v3"});
    EXPECT_TRUE(best || has(best.error().str(), "damaged")) << best.error().str();
  }
  EXPECT_TRUE(has(open_error(changed("tables", 100, 3000, 0xa5)), "the file of records is damaged"));
}

struct Parsed {
  Context context;
  Module module;
  std::vector<Task> tasks;
  explicit Parsed(const std::string& body, const std::string& params) {
    auto parsed = parse(context, "#[version = \"1\"]\ndef @main(" + params + ") { " + body + " }\n");
    EXPECT_TRUE(parsed) << parsed.error().str();
    module = std::move(*parsed);
    auto found = find_tasks(context, module, context.symbol("main"), host_machine());
    EXPECT_TRUE(found) << found.error().str();
    tasks = std::move(*found);
  }
};

const char* const kOperators[][2] = {
    {"conv2d(%x, %w, padding=[1, 1, 1, 1])", "%x: Tensor[(1, 5, 9, 9), f32], %w: Tensor[(33, 5, 3, 3), f32]"},
    {"conv2d(%x, %w, strides=[2, 2], groups=2)", "%x: Tensor[(2, 6, 11, 35), f32], %w: Tensor[(8, 3, 3, 2), f32]"},
    {"matmul(%x, %w)", "%x: Tensor[(3, 37, 65), f32], %w: Tensor[(65, 70), f32]"},
    {"matmul(%x, %w)", "%x: Tensor[(2, 9, 40), f32], %w: Tensor[(2, 40, 48), f32]"},
    {"dense(%x, %w)", "%x: Tensor[(30, 19), f32], %w: Tensor[(50, 19), f32]"},
    {"conv2d(%x, %w)", "%x: Tensor[(1, 8, 8, 8), i8], %w: Tensor[(16, 8, 1, 1), i8]"},
};

constexpr auto kTried = static_cast<size_t>(rounds(12));

TEST_F(Tune, EveryCandidateComputesTheSameBits) {
  for (const auto& [body, params] : kOperators) {
    Parsed model(body, params);
    for (const Task& task : model.tasks) {
      auto candidates = find_candidates(model.context, model.module, task, host_machine());
      ASSERT_TRUE(candidates) << candidates.error().str();
      ASSERT_GT(candidates->size(), 1u) << task.key;
      std::vector<KnobSettings> settings_list;
      for (size_t i = 0; i < candidates->size(); i += std::max<size_t>(1, candidates->size() / kTried))
        settings_list.push_back((*candidates)[i].settings);
      Bench bench(model.context, model.module, task, host_machine());
      const Status status = bench.add(settings_list);
      EXPECT_TRUE(status) << status.error().str();
    }
  }
}

TEST_F(Tune, ContinuesAnEarlierSearch) {
  Parsed model(kOperators[0][0], kOperators[0][1]);
  ASSERT_EQ(model.tasks.size(), 1u);
  EXPECT_EQ(model.tasks[0].key, "conv2d(Tensor[(1, 5, 9, 9), f32], Tensor[(33, 5, 3, 3), f32], padding=[1, 1, 1, 1])");
  auto records = Records::open(path("r"));
  ASSERT_TRUE(records) << records.error().str();
  const auto tune_with = [&](int64_t trials) {
    auto results =
        tune(model.context, model.module, model.context.symbol("main"), *records, {.trials = trials, .level = level()});
    EXPECT_TRUE(results) << results.error().str();
    return results->at(0);
  };
  EXPECT_EQ(tune_with(3).measured, 2u) << "and the default";
  EXPECT_EQ(tune_with(3).measured, 0u);
  const Tuned resumed = tune_with(5);
  EXPECT_EQ(resumed.measured, 2u);
  ASSERT_TRUE(resumed.record);
  EXPECT_LE(resumed.record->seconds, resumed.record->default_seconds);
  EXPECT_EQ(records->trials(resumed.key, level())->size(), 5u);
  const auto knobs = read_knobs(path("r"), {level()});
  ASSERT_TRUE(knobs) << knobs.error().str();
  EXPECT_EQ((*knobs)(resumed.key), resumed.record->settings);
  EXPECT_TRUE((*knobs)("conv2d()").empty());
}

// The record of one level changes the code of this level only, and no result.
TEST_F(Tune, ALevelMayHaveLoopsOfItsOwn) {
  const auto supported = native::levels_of({});
  ASSERT_TRUE(supported);
  std::vector<std::string> host_levels;
  std::ranges::copy_if(*supported, std::back_inserter(host_levels), [](const std::string& name) {
    return std::ranges::find(runtime::host_levels(), name) != runtime::host_levels().end();
  });
  if (host_levels.size() < 2) GTEST_SKIP() << "this processor has one level";
  const std::string best = host_levels.front(), lowest = host_levels.back();
  Parsed model(kOperators[2][0], kOperators[2][1]);
  const Task& task = model.tasks.at(0);
  const auto candidates = find_candidates(model.context, model.module, task, *find_machine(lowest));
  ASSERT_TRUE(candidates && candidates->size() > 1);
  const kernels::KnobLookup tuned_knobs = [&](const std::string& key) {
    return key == task.key ? candidates->at(1).settings : kernels::KnobSettings();
  };
  const auto compiled = [&](const CpuOptions& options) {
    NativeKernels natives(model.context, model.module, options);
    EXPECT_TRUE(natives.group("k", task.group));
    auto code = natives.compile();
    EXPECT_TRUE(code) << code.error().str();
    return code ? std::move(code->value()) : runtime::NativeCode();
  };
  const auto code_of = [&](std::vector<std::string> levels, kernels::KnobLookup knobs, bool tuned) {
    CpuOptions options{.levels = std::move(levels), .knobs = std::move(knobs)};
    if (tuned) options.level_knobs = {{lowest, tuned_knobs}};
    return compiled(options);
  };
  EXPECT_EQ(code_of({lowest}, {}, true), code_of({lowest}, tuned_knobs, false));
  EXPECT_EQ(code_of({best}, {}, true), code_of({best}, {}, false));
  const runtime::NativeCode plain = code_of({best, lowest}, {}, false), tuned = code_of({best, lowest}, {}, true);
  EXPECT_NE(plain.object, tuned.object);
  std::mt19937 random(test_seed(3));
  std::vector<runtime::Tensor> params;
  for (const runtime::Shape& shape : {runtime::Shape{3, 37, 65}, runtime::Shape{65, 70}})
    params.push_back(random_tensor(random, runtime::DType::kF32, shape));
  runtime::ThreadPool pool(2);
  for (const std::string& level : {best, lowest}) {
    const auto a = runtime::NativeLibrary::load(plain, level), b = runtime::NativeLibrary::load(tuned, level);
    ASSERT_TRUE(a && b);
    const auto expected = a->call(0, params, pool), found = b->call(0, params, pool);
    ASSERT_TRUE(expected && found);
    EXPECT_EQ(*expected, *found) << level;
  }
}

TEST_F(Tune, SettingsThatAreNotOptionsAreIgnored) {
  const auto text = [](const auto& op, const std::string& settings) {
    Parsed model(op[0], op[1]);
    auto kernel = kernels::make_kernel(model.context, model.module, "kernel", model.tasks.at(0).group, host_machine(),
                                       [&](const std::string&) { return kernels::parse_knob_settings(settings); });
    EXPECT_TRUE(kernel) << kernel.error().str();
    return loop::print(model.context, kernel->function);
  };
  // The columns of the second operator are a multiple of the vector.
  const auto &partial_vectors = kOperators[2], &full_vectors = kOperators[3];
  EXPECT_EQ(text(partial_vectors, "tile=99x9 colour=blue =  x"), text(partial_vectors, ""));
  EXPECT_NE(text(partial_vectors, "tile=3x1"), text(partial_vectors, ""));
  EXPECT_EQ(text(partial_vectors, "weights=in_place"), text(partial_vectors, "")) << "the knob does not exist";
  constexpr std::string_view kPanels = ", j % 16]";  // the columns of panels
  EXPECT_TRUE(has(text(full_vectors, "weights=packed"), kPanels));
  EXPECT_FALSE(has(text(full_vectors, ""), kPanels));
}

}  // namespace
}  // namespace tenon::compiler::tune
