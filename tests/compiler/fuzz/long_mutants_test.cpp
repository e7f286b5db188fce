// Damaged texts of long and of deeply nested programs: the compiler ends within 5 s of CPU time and 1 GB each, with a
// located error or with a module that verifies. TENON_MUTANTS: the number of texts.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <string>
#include <vector>

#include "compiler/fuzz/mutate.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/pipeline/compile_speed.h"
#include "tests/rounds.h"
#include "tests/seed.h"

namespace tenon::compiler::fuzz {
namespace {

constexpr size_t kOperators = TENON_MUTANTS < 1000 ? 1000 : 10'000;
constexpr int kSeconds = 5;
constexpr rlim_t kBytes = rlim_t{1} << 30;

// Ends the process where one text takes longer; the name of the test and its seed are printed before.
void start_clock() {
  const itimerval limit{{0, 0}, {kSanitized ? 10 * kSeconds : kSeconds, 0}};
  ASSERT_EQ(setitimer(ITIMER_VIRTUAL, &limit, nullptr), 0);
}

// Bounds the address space of this process; a sanitizer's shadow is larger.
void limit_memory() {
  if (kSanitized) return;
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  limit.rlim_cur = kBytes;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

constexpr std::string_view kHeader = "#[version = \"1\"]\ntype List[A] { Nil, Cons(A, List[A]) }\n";
constexpr std::string_view kMain = "def @main(%x: Tensor[(4,), f32], %c: Tensor[(), bool]) -> Tensor[(4,), f32] {\n";

// `open` as often as `close` around "%x".
std::string nested(int depth, std::string_view open, std::string_view close) {
  std::string text = fmt::format("{}{}", kHeader, kMain);
  for (int i = 0; i < depth; ++i) text += open;
  text += "%x";
  for (int i = 0; i < depth; ++i) text += close;
  return text + "\n}\n";
}

std::vector<std::string> texts() {
  std::vector<std::string> texts;
  for (const SpeedShape shape : {SpeedShape::kMixed, SpeedShape::kLine, SpeedShape::kCalls, SpeedShape::kTypes})
    texts.push_back(speed_module(kOperators, shape));
  for (const int depth : {20, 60, 95}) {
    texts.push_back(nested(depth, "relu(", ")"));
    texts.push_back(nested(depth, "(%x + ", ")"));
    texts.push_back(nested(depth, "if (%c) { ", " } else { %x }"));
    texts.push_back(nested(depth, "(fn (%y: Tensor[(4,), f32]) { ", " + %y })(%x)"));
    texts.push_back(nested(depth, "if (%c) { let %x = ", "; %x + %x } else { %x }"));
    texts.push_back(nested(depth, "match Cons(%x, Nil) { Nil => %x, Cons(%z, _) => ", " }"));
    texts.push_back(nested(depth, "read(ref(", "))"));
    texts.push_back(nested(depth, "((", ", %c), %x).0.0"));
  }
  return texts;
}

// Reads the text and runs the passes of a compilation.
Expected<Module> compile(Context& context, const std::string& text) {
  auto module = parse(context, text, {}, "mutant.tn");
  if (!module) return module;
  auto passes = standard_passes();
  passes.insert(passes.end(), kernel_passes().begin(), kernel_passes().end());
  return run_passes(context, std::move(*module), passes);
}

TEST(LongMutants, EndSoonWithAModuleOrALocation) {
  limit_memory();
  const auto seed = test_seed(1);
  const std::vector<std::string> originals = texts();
  for (const std::string& text : originals) {
    Context context;
    start_clock();
    const auto module = compile(context, text);
    ASSERT_TRUE(module) << module.error().str() << text.substr(0, 400);
  }
  int64_t accepted = 0, rejected = 0;
  for (int64_t i = 0; i < rounds(TENON_MUTANTS); ++i) {
    Random random(seed * 1'000'003 + static_cast<uint64_t>(i));
    const std::string text =
        mutate(originals[static_cast<size_t>(random.between(0, std::ssize(originals) - 1))], random);
    SCOPED_TRACE(fmt::format("mutant {}", i));
    Context context;
    start_clock();
    const auto module = compile(context, text);
    if (module) {
      ++accepted;
      const Status status = verify(context, *module);
      ASSERT_TRUE(status) << status.error().str();
    } else {
      ++rejected;
      ASSERT_EQ(module.error().fault, Fault::kInput) << module.error().str();
      ASSERT_NE(module.error().where, "") << module.error().str();
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_GT(rejected, 0);
}

}  // namespace
}  // namespace tenon::compiler::fuzz
