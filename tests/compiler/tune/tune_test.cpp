// Tuning: records outlive everything but damage, which they report; every candidate computes the same bits.
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

namespace tenon::compiler::tune {
namespace {

using kernels::Choice;

std::string level() { return std::string(runtime::host_levels().front()); }

struct Fixture : ::testing::Test {
  runtime::TemporaryDirectory scratch;
  std::string path(const std::string& name) const { return scratch.path() + "/" + name; }
  static std::string refusal(const std::string& file, bool writes = false) {
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
  EXPECT_EQ((*found)->choice, (Choice{{"tile", "4x1"}}));
  EXPECT_EQ((*found)->default_seconds, 3e-6);
  const auto trials = records->trials("conv", "v3");
  ASSERT_TRUE(trials);
  ASSERT_EQ(trials->size(), 2u);
  EXPECT_EQ(trials->front().ratio, 0.25);
  const auto best = records->best({"v3", "v2"});
  ASSERT_TRUE(best);
  EXPECT_EQ(best->at("conv"), (Choice{{"tile", "4x1"}}));
  EXPECT_EQ(best->at("it's"), (Choice{{"tile", "9x1"}}));
  EXPECT_FALSE(records->put("conv", "v3", {}, {})) << "it was opened to be read";
}

TEST_F(RecordsTest, ALevelSharesThoseOfItsTwin) {
  auto records = Records::open(path("r"));
  ASSERT_TRUE(records) << records.error().str();
  ASSERT_TRUE(records->put("conv", "x86-64-v4+vnni", {{{"tile", "2x2"}}, 1e-6, 2e-6}, {}));
  ASSERT_TRUE(records->put("conv", "x86-64-v2", {{{"tile", "1x1"}}, 1e-6, 2e-6}, {}));
  const auto choice = [&](const std::string& level) {
    return kernels::str((*read_level_choices(path("r"), level))("conv"));
  };
  EXPECT_EQ(choice("x86-64-v4+vnni"), "tile=2x2");
  EXPECT_EQ(choice("x86-64-v4"), "tile=2x2");
  EXPECT_EQ(choice("x86-64-v3"), "");
  EXPECT_EQ(choice("x86-64-v2"), "tile=1x1");
}

TEST_F(RecordsTest, SeveralWriteAtATime) {
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

TEST_F(RecordsTest, ThatAreNoneOrDamagedAreRefused) {
  EXPECT_TRUE(has(refusal(path("none")), "there is no such file of records"));
  EXPECT_TRUE(has(refusal(scratch.path()), "this is a directory"));
  std::ofstream(path("empty")).close();
  EXPECT_TRUE(has(refusal(path("empty")), "the file has no records"));
  std::ofstream(path("text"))
      << "conv2d: tile=2x2, and so on, for as long as a SQLite file's header is, and longer still: "
         "one hundred bytes and more of it";
  EXPECT_TRUE(has(refusal(path("text")), "this is no file of records"));
  EXPECT_TRUE(has(refusal(path("text"), true), "this is no file of records"));
  {
    auto records = Records::open(path("good"));
    ASSERT_TRUE(records) << records.error().str();
    for (int i = 0; i < 60; ++i)
      ASSERT_TRUE(records->put("op" + std::to_string(i), "v3", {{{"tile", "2x2"}}, 1, 2}, {{{{"a", "b"}}, 1}}));
  }
  const auto good = read_file(path("good"));
  ASSERT_TRUE(good);
  const auto changed = [&](const std::string& name, size_t from, size_t count, uint8_t value) {
    auto bytes = *good;
    for (size_t i = from; i < std::min(from + count, bytes.size()); ++i) bytes[i] = std::byte{value};
    EXPECT_TRUE(write_file(path(name), bytes));
    return path(name);
  };
  // Places of SQLite's header: user_version ends at 63, application_id at 71.
  EXPECT_TRUE(has(refusal(changed("newer", 63, 1, 9)), "the records have version 9, this program reads 1"));
  EXPECT_TRUE(has(refusal(changed("other", 71, 1, 9)), "another program"));
  {
    sqlite3* file = nullptr;
    ASSERT_EQ(sqlite3_open(changed("view", 0, 0, 0).c_str(), &file), SQLITE_OK);
    const char* const endless =
        "DROP TABLE record; CREATE VIEW record AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) "
        "SELECT n AS operator, 'v3' AS level, 'a=b' AS choice, 1.0 AS seconds, 1.0 AS default_seconds FROM r";
    EXPECT_EQ(sqlite3_exec(file, endless, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(file);
    EXPECT_TRUE(has(refusal(path("view")), "it has views, indices or triggers"));
    EXPECT_TRUE(has(refusal(path("view"), true), "it has views, indices or triggers"));
  }
  // Whatever else is damaged is found, or does not matter; nothing crashes.
  for (size_t at = 100; at < good->size(); at += 1511) {
    auto records = Records::open_to_read(changed("bad", at, 700, 0xa5));
    if (!records) continue;
    const auto best = records->best({"v3"});
    EXPECT_TRUE(best || has(best.error().str(), "damaged")) << best.error().str();
  }
  EXPECT_TRUE(has(refusal(changed("tables", 100, 3000, 0xa5)), "the file of records is damaged"));
}

struct Parsed {
  Context context;
  Module module;
  std::vector<Task> tasks;
  explicit Parsed(const std::string& body, const std::string& params) {
    auto parsed = parse(context, "#[version = \"1\"]\ndef @main(" + params + ") { " + body + " }\n");
    EXPECT_TRUE(parsed) << parsed.error().str();
    module = std::move(*parsed);
    auto found = find_tasks(context, module, context.symbol("main"));
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
      auto candidates = find_candidates(model.context, model.module, task);
      ASSERT_TRUE(candidates) << candidates.error().str();
      ASSERT_GT(candidates->size(), 1u) << task.key;
      std::vector<Choice> choices;
      for (size_t i = 0; i < candidates->size(); i += std::max<size_t>(1, candidates->size() / kTried))
        choices.push_back((*candidates)[i].choice);
      Bench bench(model.context, model.module, task, level());
      const Status same = bench.add(choices);
      EXPECT_TRUE(same) << same.error().str();
    }
  }
}

TEST_F(Tune, GoesOnWhereItEnded) {
  Parsed model(kOperators[0][0], kOperators[0][1]);
  ASSERT_EQ(model.tasks.size(), 1u);
  EXPECT_EQ(model.tasks[0].key, "conv2d(Tensor[(1, 5, 9, 9), f32], Tensor[(33, 5, 3, 3), f32], padding=[1, 1, 1, 1])");
  auto records = Records::open(path("r"));
  ASSERT_TRUE(records) << records.error().str();
  const auto tune_with = [&](int64_t trials) {
    auto all =
        tune(model.context, model.module, model.context.symbol("main"), *records, {.trials = trials, .level = level()});
    EXPECT_TRUE(all) << all.error().str();
    return all->at(0);
  };
  EXPECT_EQ(tune_with(3).measured, 2u) << "and the default";
  EXPECT_EQ(tune_with(3).measured, 0u);
  const Tuned more = tune_with(5);
  EXPECT_EQ(more.measured, 2u);
  ASSERT_TRUE(more.record);
  EXPECT_LE(more.record->seconds, more.record->default_seconds);
  EXPECT_EQ(records->trials(more.key, level())->size(), 5u);
  const auto choices = read_choices(path("r"), {level()});
  ASSERT_TRUE(choices) << choices.error().str();
  EXPECT_EQ((*choices)(more.key), more.record->choice);
  EXPECT_TRUE((*choices)("conv2d()").empty());
}

// What one level was measured to do best changes the code of that level alone, and no result.
TEST_F(Tune, ALevelMayHaveLoopsOfItsOwn) {
  const auto known = native::levels_of({});
  ASSERT_TRUE(known);
  std::vector<std::string> here;
  std::ranges::copy_if(*known, std::back_inserter(here), [](const std::string& one) {
    return std::ranges::find(runtime::host_levels(), one) != runtime::host_levels().end();
  });
  if (here.size() < 2) GTEST_SKIP() << "this processor has one level";
  const std::string best = here.front(), least = here.back();
  Parsed model(kOperators[2][0], kOperators[2][1]);
  const Task& task = model.tasks.at(0);
  const auto candidates = find_candidates(model.context, model.module, task);
  ASSERT_TRUE(candidates && candidates->size() > 1);
  const kernels::Choices own = [&](const std::string& key) {
    return key == task.key ? candidates->at(1).choice : kernels::Choice();
  };
  const auto compiled = [&](const CpuOptions& options) {
    NativeKernels natives(model.context, model.module, options);
    EXPECT_TRUE(natives.group("k", task.group));
    auto code = natives.compile();
    EXPECT_TRUE(code) << code.error().str();
    return code ? std::move(code->value()) : runtime::NativeCode();
  };
  const auto all = [&](std::vector<std::string> levels, kernels::Choices choices, bool tuned) {
    CpuOptions options{.levels = std::move(levels), .choices = std::move(choices)};
    if (tuned) options.level_choices = {{least, own}};
    return compiled(options);
  };
  EXPECT_EQ(all({least}, {}, true), all({least}, own, false));
  EXPECT_EQ(all({best}, {}, true), all({best}, {}, false));
  const runtime::NativeCode plain = all({best, least}, {}, false), tuned = all({best, least}, {}, true);
  EXPECT_NE(plain.object, tuned.object);
  std::mt19937 random(3);
  std::vector<runtime::Tensor> params;
  for (const runtime::Shape& shape : {runtime::Shape{3, 37, 65}, runtime::Shape{65, 70}})
    params.push_back(random_tensor(random, runtime::DType::kF32, shape));
  runtime::ThreadPool pool(2);
  for (const std::string& level : {best, least}) {
    const auto a = runtime::NativeLibrary::load(plain, level), b = runtime::NativeLibrary::load(tuned, level);
    ASSERT_TRUE(a && b);
    const auto wanted = a->call(0, params, pool), found = b->call(0, params, pool);
    ASSERT_TRUE(wanted && found);
    EXPECT_EQ(*wanted, *found) << level;
  }
}

TEST_F(Tune, AChoiceThatIsNoneIsLeftOut) {
  const auto text = [](const auto& op, const std::string& choice) {
    Parsed model(op[0], op[1]);
    auto kernel = kernels::make_kernel(model.context, model.module, "kernel", model.tasks.at(0).group,
                                       [&](const std::string&) { return kernels::parse_choice(choice); });
    EXPECT_TRUE(kernel) << kernel.error().str();
    return loop::print(model.context, kernel->function);
  };
  const auto &part = kOperators[2], &whole = kOperators[3];  // whose columns are whole vectors
  EXPECT_EQ(text(part, "tile=99x9 colour=blue =  x"), text(part, ""));
  EXPECT_NE(text(part, "tile=3x1"), text(part, ""));
  EXPECT_EQ(text(part, "weights=in_place"), text(part, "")) << "there is no choice";
  EXPECT_TRUE(has(text(whole, "weights=packed"), "%packed"));
  EXPECT_FALSE(has(text(whole, ""), "%packed"));
}

}  // namespace
}  // namespace tenon::compiler::tune
