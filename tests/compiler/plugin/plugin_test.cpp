// A target of a plugin computes what the interpreter does, in every block of a program, and what goes wrong in a plugin
// is a diagnostic that names it, after which the model is compiled without it.
#include "compiler/plugin/plugin.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <thread>

#include "compiler/ir/interpreter.h"
#include "compiler/ir/text.h"
#include "compiler/partition/match.h"
#include "compiler/partition/partition.h"
#include "compiler/partition/pattern_text.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/plugin/check.h"
#include "compiler/plugin/child.h"
#include "compiler/plugin/samples.h"
#include "runtime/library/library.h"
#include "runtime/temporary.h"
#include "runtime/vm/session.h"
#include "support/file.h"
#include "tests/rounds.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;
using testing::HasSubstr;

// Layers in both arms of an `if`, in a recursive function, and two with one constant.
constexpr std::string_view kProgram = R"(
#[version = "1"]

def @again(%n: Tensor[(), i64], %x: Tensor[(1, 2, 2, 3), f32]) -> Tensor[(1, 2, 2, 3), f32] {
  if (%n == 0i64) { %x } else { @again(%n - 1i64, relu(%x) - 0.25f32) }
}

def @main(%x: Tensor[(1, 2, 2, 3), f32], %n: Tensor[(), i64]) -> Tensor[(1, 2, 2, 3), f32] {
  let %a = multiply(%x * %x, 0.5f32);
  let %b = relu(%x) + %a - 2f32;
  let %c = if (%n < 2i64) { relu(%b) } else { multiply(relu(%b), 0.5f32) };
  @again(%n, %c)
}
)";

class Plugin : public testing::Test {
 protected:
  void TearDown() override { unsetenv("TENON_TEST_PLUGIN"); }

  static void behave(const char* how) { setenv("TENON_TEST_PLUGIN", how, 1); }
  static Expected<TargetRecord> open(const plugin::Limits& limits = {}) { return plugin::open(TENON_RELUS, limits); }

  Expected<Compilation> compile_program(const CompileOptions& options) {
    const std::string file = folder_.path() + "/program.tn";
    EXPECT_TRUE(write_file(file, program_));
    auto model = load_model(file, {});
    if (!model) return std::unexpected(model.error());
    model_ = std::make_unique<Model>(std::move(*model));
    return compile(*model_, options);
  }
  Expected<Compilation> compile_with_plugin(bool skip = false, const plugin::Limits& limits = {},
                                            std::optional<Costs> costs = {}) {
    auto record = open(limits);
    if (!record) return std::unexpected(record.error());
    return compile_program(
        {.accelerators = {}, .added_targets = {*record}, .skip_failed_targets = skip, .costs = std::move(costs)});
  }

  Status run(const runtime::Executable& executable, int64_t n, Tensor& result) {
    const Tensor x = Tensor::of<float>({1, 2, 2, 3}, std::array<float, 12>{-1, 2, -3, 4, -5, 6, 7, -8, 9, -10, 11, 12});
    const Tensor count = Tensor::of<int64_t>({}, std::array{n});
    auto session = runtime::Session::create(executable, {});
    if (!session) return std::unexpected(session.error());
    auto results = session->run(std::vector{x, count});
    if (!results) return std::unexpected(results.error());
    result = (*results)[0];
    const auto wanted = interpret(*model_->context, model_->module, model_->entry, std::vector{x, count});
    EXPECT_TRUE(wanted && *results == *wanted) << "n = " << n;
    return {};
  }
  // What the executable computes is what the interpreter does.
  void expect_right(const runtime::Executable& executable) {
    ASSERT_TRUE(runtime::use_library(TENON_RELUS));
    Tensor result;
    for (const int64_t n : {0, 1, 2, 3}) {
      const Status ran = run(executable, n, result);
      EXPECT_TRUE(ran) << ran.error().str();
    }
  }
  static size_t kernel_calls(const runtime::Executable& executable) {
    size_t calls = 0;
    for (const runtime::Function& function : executable.functions) {
      for (const runtime::Instruction& instruction : function.code) {
        const auto* call = std::get_if<runtime::CallKernel>(&instruction.operation);
        calls += call && call->kernel.starts_with("relus.") ? 1 : 0;
      }
    }
    return calls;
  }

  static Costs costs() {
    Costs costs{.source = "costs.json", .gmacs_f32 = 1, .gmacs_i8 = 1, .gbytes = 1, .call_ns = 1000, .devices = {}};
    costs.devices["relus"] = {.launch_ns = 1};
    return costs;
  }

  // The executable of @main(%x, %n) with this body, compiled with the plugin that behaves so.
  void expect_calls(const char* behavior, std::string_view body, size_t calls) {
    behave(behavior);
    program_ = fmt::format(
        "#[version = \"1\"]\n\ndef @main(%x: Tensor[(1, 2, 2, 3), f32], %n: Tensor[(), i64]) {{\n{}\n}}\n", body);
    const auto compiled = compile_with_plugin();
    ASSERT_TRUE(compiled) << compiled.error().str();
    EXPECT_EQ(kernel_calls(compiled->executable), calls) << body;
    expect_right(compiled->executable);
  }

  runtime::TemporaryDirectory folder_;
  std::string program_{kProgram};
  std::unique_ptr<Model> model_;
};

TEST_F(Plugin, ComputesLayersInEveryBlock) {
  const auto compiled = compile_with_plugin();
  ASSERT_TRUE(compiled) << compiled.error().str();
  EXPECT_EQ(kernel_calls(compiled->executable), 6u);
  expect_right(compiled->executable);
}

TEST_F(Plugin, IsNotNeededAfterCompilation) {
  const auto compiled = compile_with_plugin();
  ASSERT_TRUE(compiled) << compiled.error().str();
  const std::string file = folder_.path() + "/program.tnx";
  ASSERT_TRUE(runtime::save(compiled->executable, file));
  behave("NULL");  // the compiler's half is gone
  const auto loaded = runtime::load(file);
  ASSERT_TRUE(loaded) << loaded.error().str();
  expect_right(*loaded);
}

TEST_F(Plugin, ConstantsAndArtifactsAreStoredOnce) {
  const auto compiled = compile_with_plugin();
  ASSERT_TRUE(compiled) << compiled.error().str();
  size_t factors = 0, artifacts = 0;
  for (const Tensor& constant : compiled->executable.constants) {
    if (constant.dtype() == DType::kU8) ++artifacts;
    else if (constant.dtype() == DType::kF32 && constant.data<float>()[0] == 0.5f) ++factors;
  }
  EXPECT_EQ(factors, 1u);    // of two layers
  EXPECT_EQ(artifacts, 2u);  // "r" and "m", of six layers
}

TEST_F(Plugin, RegionsOfSeveralLayersAreOneCallWhereItSupportsThem) {
  behave("regions");
  const auto compiled = compile_with_plugin();
  ASSERT_TRUE(compiled) << compiled.error().str();
  EXPECT_EQ(kernel_calls(compiled->executable), 5u);
  expect_right(compiled->executable);
}

TEST_F(Plugin, ValuesCrossTheBoundaryInItsLayouts) {
  behave("layout");
  const auto compiled = compile_with_plugin();
  ASSERT_TRUE(compiled) << compiled.error().str();
  EXPECT_THAT(print(*model_->context, compiled->partitioned).text, HasSubstr("to=\"NHWC\""));
  expect_right(compiled->executable);
}

TEST_F(Plugin, RowsHavePaths) { expect_calls("paths", "multiply(sqrt(relu(%x)), 0.5f32)", 1); }

TEST_F(Plugin, RowsHaveTuplesAndTheirFields) {
  expect_calls("tuples", "let %s = split(%x, sizes=[1, 1], axis=1);\nadd(%s.0, %s.1)", 1);
}

// Each field crosses the boundary in a layout of its own, of a tuple that is used as a whole, too.
TEST_F(Plugin, ResultsMayBeTuples) {
  expect_calls("several results", "split(%x, sizes=[1, 2], axis=3)", 1);
  expect_calls("several results", "let %s = split(%x, sizes=[1, 2], axis=3);\nadd(%s.0, %s.1)", 1);
  expect_calls("several results",
               "let %y = relu(%x);\nlet %s = split(%y, sizes=[1, 2], axis=3);\n(%y - 1f32, %s.0, %s.1)", 1);
}

TEST_F(Plugin, IsAskedOnceAboutEqualRegions) {
  behave("list");
  testing::internal::CaptureStderr();
  const auto compiled = compile_with_plugin();
  std::istringstream lines(testing::internal::GetCapturedStderr());
  ASSERT_TRUE(compiled) << compiled.error().str();
  std::multiset<std::string> questions;
  for (std::string line; std::getline(lines, line);) questions.insert(line);
  EXPECT_EQ(questions.count("boundary: relu"), 1u);
  EXPECT_EQ(questions.count("accepts: relu multiply"), 1u);
  for (const std::string& question : questions) EXPECT_EQ(questions.count(question), 1u) << question;
}

// A process without room for a pipe, which no call in a child goes without, later has some.
TEST_F(Plugin, IsAskedAgainWhereThereWasNoAnswer) {
  const auto record = open();
  ASSERT_TRUE(record) << record.error().str();
  const Target target = record->make({});
  const auto placed = [&] {
    Context context;
    auto module = parse(context, program_);
    EXPECT_TRUE(module) << module.error().str();
    const auto placements = partition(context, *module, context.symbol("main"), std::span(&target, 1));
    EXPECT_TRUE(placements) << placements.error().str();
    return std::ranges::count(*placements, "relus", &Placement::target);
  };
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = files.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto without_answers = placed();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_EQ(without_answers, 0);
  EXPECT_GT(placed(), 0);
}

TEST(PluginChild, LimitsAreThoseOfStepsOfForeignCode) {
  using namespace std::chrono_literals;
  const plugin::Limits limits{.time = 1s, .memory = uint64_t{64} << 20};
  const auto call = [&](FunctionRef<void(plugin::ChildOutput&)> function) {
    return plugin::call_in_child(function, limits);
  };
  const auto answer = call([](plugin::ChildOutput& output) {
    output.own_step("the model");
    std::this_thread::sleep_for(1500ms);
    const std::vector<char> large(size_t{256} << 20, 'x');
    output.step("the kernel a.run");
    output.own_step("the model");
    std::this_thread::sleep_for(1500ms);
    output.answer(std::string_view(large.data(), 1));
  });
  ASSERT_TRUE(answer) << answer.error().str();
  EXPECT_EQ(*answer, "x");
  const auto late = call([](plugin::ChildOutput& output) {
    output.own_step("the model");
    output.step("the kernel a.run");
    pause();
  });
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().what, "the kernel a.run did not return within 1 s");
  EXPECT_EQ(late.error().where, "the kernel a.run");
  const auto crash = call([](plugin::ChildOutput& output) {
    output.step("the kernel a.run");
    output.own_step("the model");
    std::raise(SIGSEGV);
  });
  ASSERT_FALSE(crash);
  EXPECT_THAT(crash.error().what, HasSubstr("the model crashed by signal 11"));
  EXPECT_EQ(crash.error().where, "the model");
  if (TENON_SANITIZED) return;
  const auto large = call([](plugin::ChildOutput& output) {
    output.own_step("the model");
    output.step("the kernel a.run");
    const std::vector<char> memory(size_t{256} << 20, 'x');
    output.answer(std::string_view(memory.data(), 1));
  });
  ASSERT_FALSE(large);
  EXPECT_THAT(large.error().what, HasSubstr("the kernel a.run threw an exception: "));
}

TEST_F(Plugin, IsAssignedByItsCost) {
  const auto compiled = compile_with_plugin(false, {}, costs());
  ASSERT_TRUE(compiled) << compiled.error().str();
  EXPECT_GT(kernel_calls(compiled->executable), 0u);
  Costs expensive = costs();
  expensive.devices["relus"].launch_ns = 1e9;
  const auto without = compile_with_plugin(false, {}, expensive);
  ASSERT_TRUE(without) << without.error().str();
  EXPECT_EQ(kernel_calls(without->executable), 0u);
}

TEST_F(Plugin, WhatItPrintsIsNoResultOfTheCommand) {
  behave("print in accepts");
  testing::internal::CaptureStdout();
  const auto compiled = compile_with_plugin();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_TRUE(compiled) << compiled.error().str();
}

TEST_F(Plugin, TargetsHaveDifferentNames) {
  const auto record = open();
  ASSERT_TRUE(record) << record.error().str();
  const auto twice = compile_program({.accelerators = {}, .added_targets = {*record, *record}});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().what, "two targets are called 'relus'");
  // With two accelerators, accel is the name of none, but of their kind.
  TargetRecord accel = *record;
  accel.name = "accel";
  const auto kind = compile_program({.accelerators = {}, .added_targets = {accel}});
  ASSERT_FALSE(kind);
  EXPECT_EQ(kind.error().what, "two targets are called 'accel'");
}

// What is wrong before anything is compiled.
struct Wrong {
  const char* behavior;
  const char* what;
};
class WrongPlugin : public Plugin, public testing::WithParamInterface<Wrong> {};
TEST_P(WrongPlugin, IsNotOpened) {
  behave(GetParam().behavior);
  // This process may have opened the file itself.
  const std::string copy = folder_.path() + "/relus.so";
  std::filesystem::copy_file(TENON_RELUS, copy);
  const auto record = plugin::open(copy);
  ASSERT_FALSE(record);
  EXPECT_THAT(record.error().what, HasSubstr(GetParam().what));
  EXPECT_EQ(record.error().where, copy);
  EXPECT_FALSE(record.error().help.empty());
}
INSTANTIATE_TEST_SUITE_P(
    All, WrongPlugin,
    testing::Values(
        Wrong{"crash when opened", "opening the file crashed by signal 11"},
        Wrong{"NULL", "tn_target_get returned NULL"},
        Wrong{"newer version", "it has version 2 of compiler/plugin/target.h, this compiler has 1"},
        Wrong{"everything", "the pattern of relus.all, 'relu(_) | _', matches values that no operator computes"},
        Wrong{"branches", "the pattern of relus.branch, 'if(_, relu(_), _)', has an if, and a region is operators of"},
        Wrong{"functions", "the pattern of relus.function, 'relu(fn(relu(_)))', has a call of a function"},
        Wrong{"tuple root", "the pattern of relus.tuple, '(relu(_), _)', has a tuple as its root"},
        Wrong{"field root", "the pattern of relus.field, 'relu(_) | split(_).0', has a field as its root"},
        Wrong{"wrong pattern", "pattern of relus.relu:1:9: "}, Wrong{"two of a name", "two rows are called relus.relu"},
        Wrong{"no rows", "it has 0 rows, must have 1 to 1000"}, Wrong{"no compile", "it has no function compile"},
        Wrong{"another name", "its target is 'others', and by its name the file is that of 'relus'"},
        Wrong{"no name", "its target is '', must be small letters, digits and underscores"}));

TEST_F(Plugin, OtherFilesAreNoPlugins) {
  const auto library = plugin::open(TENON_SAMPLE_LIBRARY);
  ASSERT_FALSE(library);
  EXPECT_THAT(library.error().what, HasSubstr("it does not export tn_target_get"));
  const std::string text = folder_.path() + "/text.so";
  ASSERT_TRUE(write_file(text, "no shared object"));
  const auto file = plugin::open(text);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().what, HasSubstr("it cannot be opened: "));
  const auto missing = plugin::open(folder_.path() + "/none.so");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().what, HasSubstr("none.so"));
}

// What goes wrong while a model is compiled; with costs where `costs` says so.
struct Failing {
  const char* behavior;
  std::string what;
  bool costs = false;
};
class FailingPlugin : public Plugin, public testing::WithParamInterface<Failing> {};
TEST_P(FailingPlugin, IsADiagnosticAndLeftOut) {
  behave(GetParam().behavior);
  const bool hangs = GetParam().what.contains("did not return");
  const plugin::Limits limits{.time = std::chrono::milliseconds(hangs ? 500 : 60'000), .memory = uint64_t{256} << 20};
  const std::optional<Costs> figures = GetParam().costs ? std::optional(costs()) : std::nullopt;
  if (TENON_SANITIZED && std::string_view(GetParam().behavior).starts_with("take memory")) GTEST_SKIP();
  const auto refused = compile_with_plugin(false, limits, figures);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("the plugin relus: "));
  EXPECT_THAT(refused.error().what, HasSubstr(GetParam().what));
  EXPECT_EQ(refused.error().where, TENON_RELUS);
  const auto compiled = compile_with_plugin(true, limits, figures);
  ASSERT_TRUE(compiled) << compiled.error().str();
  EXPECT_THAT(compiled->notes, HasSubstr("the model is compiled without the target relus"));
  EXPECT_THAT(compiled->notes, HasSubstr(GetParam().what));
  EXPECT_EQ(kernel_calls(compiled->executable), 0u);
  expect_right(compiled->executable);
}
INSTANTIATE_TEST_SUITE_P(
    All, FailingPlugin,
    testing::Values(
        Failing{"crash in accepts", "accepts crashed by signal 11"},
        Failing{"throw in accepts", "accepts threw an exception: no such layer"},
        Failing{"exit in accepts", "accepts ended its process with exit code "},
        Failing{"wait in accepts", "accepts did not return within 0.5 s"},
        Failing{"close all in accepts", "accepts did not return within 0.5 s"},
        Failing{"leave a process in accepts", "accepts crashed by signal 11"},
        Failing{"take memory in accepts", "accepts crashed by signal 6, Aborted, after it had taken the 256 MiB"},
        Failing{"unknown layout",
                "boundary: the layout of param 0: 'XYZ' has 0 of the axes NCDHW, and the value has 4"},
        Failing{"crash in compile", "compile crashed by signal 8"},
        Failing{"fail in compile", "compile failed: too many layers"},
        Failing{"NULL in compile", "compile returned NULL for 100 bytes"},
        Failing{"too much in compile", "compile returned 1152921504606846976 bytes, must be at most 268435456"},
        Failing{"no constant", "at run time, which is no constant"},
        Failing{"NaN", "cost says that relus.relu takes nan seconds, must be from 0 to 1000", true},
        Failing{"negative", "takes -1e-06 seconds", true}, Failing{"a year", "takes 31536000 seconds", true},
        Failing{"1e300", "takes 1e+300 seconds", true}, Failing{"no cost", "cost failed: the table is empty", true}));

TEST_F(Plugin, ResultsOfWrongTypesAreErrorsOfTheRun) {
  for (const auto& [behavior, found] :
       {std::pair{"wrong size", "f32 (2, 2, 2, 3)"}, std::pair{"wrong type", "i32 (1, 2, 2, 3)"}}) {
    behave(behavior);
    const auto compiled = compile_with_plugin();
    ASSERT_TRUE(compiled) << compiled.error().str();
    ASSERT_TRUE(runtime::use_library(TENON_RELUS));
    Tensor result;
    const Status ran = run(compiled->executable, 0, result);
    ASSERT_FALSE(ran) << behavior;
    EXPECT_THAT(ran.error().what, HasSubstr("result 0 of the kernel relus.run is "));
    EXPECT_THAT(ran.error().what, HasSubstr(found));
  }
}

class PluginCheck : public Plugin {
 protected:
  const int kSamples = static_cast<int>(rounds(20));

  Expected<std::vector<plugin::RowCheck>> check() {
    auto record = open();
    if (!record) return std::unexpected(record.error());
    EXPECT_TRUE(runtime::use_library(TENON_RELUS));
    return plugin::check_rows(record->make({}), {.samples = kSamples, .attempts = 500});
  }
};

TEST_F(PluginCheck, EachRowHasSamples) {
  const auto rows = check();
  ASSERT_TRUE(rows) << rows.error().str();
  ASSERT_EQ(rows->size(), 2u);
  for (const plugin::RowCheck& row : *rows) EXPECT_EQ(row.samples, kSamples) << row.composite << ": " << row.refused;
}

TEST_F(PluginCheck, WrongValuesAndCrashesOfKernelsAreFound) {
  behave("wrong value");
  const auto wrong = check();
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().what, HasSubstr("relus.relu, sample "));
  EXPECT_THAT(wrong.error().what, HasSubstr("element 2 of the result is "));
  EXPECT_THAT(wrong.error().what, HasSubstr("relu(%x)"));
  EXPECT_THAT(wrong.error().help, HasSubstr("tenon plugin check --seed "));
  behave("wrong size");
  const auto size = check();
  ASSERT_FALSE(size);
  EXPECT_THAT(size.error().what, HasSubstr("result 0 of the kernel relus.run is "));
  behave("crash in the kernel");
  const auto crash = check();
  ASSERT_FALSE(crash);
  EXPECT_THAT(crash.error().what, HasSubstr("the kernel crashed by signal 11"));
  behave("crash in compile");
  const auto compile = check();
  ASSERT_FALSE(compile);
  EXPECT_THAT(compile.error().what, HasSubstr("the plugin relus: compile crashed by signal 8"));
}

TEST_F(PluginCheck, PathsHaveSamples) {
  behave("paths");
  const auto rows = check();
  ASSERT_TRUE(rows) << rows.error().str();
  EXPECT_GT(rows->front().samples, 0) << rows->front().refused;
}

TEST_F(PluginCheck, SamplesMatchTheirPattern) {
  for (const char* text : {"path(relu(_), sqrt | negate(_), abs(_))", "add((%s: split).0, (%s: split).1)",
                           "relu(split(_).0)", "add~?(relu(_), const)"}) {
    int matching = 0;
    for (uint64_t seed = 0; seed < 1000 && matching == 0; ++seed) {
      Context context;
      const auto pattern = read_pattern(context, text);
      ASSERT_TRUE(pattern) << pattern.error().str();
      Random random(seed);
      const auto sample = plugin::sample_of(context, *pattern, random);
      if (!sample) continue;
      const Function& function = *sample->module.function(context.symbol("main"));
      const DataFlow flow(context, sample->module, function, function.body);
      const auto found = match(*pattern, flow, function.body.bindings.size() - 1);
      matching += found && found->match ? 1 : 0;
    }
    EXPECT_GT(matching, 0) << text;
  }
}

TEST_F(PluginCheck, RowsWithoutSamplesSayWhy) {
  behave("no samples");
  const auto none = check();
  ASSERT_TRUE(none) << none.error().str();
  EXPECT_EQ(none->front().samples, 0);
  behave("refuse all");
  const auto refused = check();
  ASSERT_TRUE(refused) << refused.error().str();
  EXPECT_EQ(refused->front().samples, 0);
  EXPECT_EQ(refused->front().refused, "relus.relu: relus: it is a bad day");
}

}  // namespace
}  // namespace tenon::compiler
