// Random loop functions under random schedules, as native code: their results are the evaluator's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/fuzz/random_loops.h"
#include "compiler/loop/evaluate.h"
#include "compiler/loop/schedule/schedule.h"
#include "tests/compiler/backends/llvm/native.h"
#include "tests/rounds.h"

namespace tenon::compiler::native {
namespace {

using runtime::Tensor;

struct ScheduledProgram {
  loop::Function function;
  std::vector<Tensor> params, expected;
  std::string text;
};

// The program under random steps, with the results of the plain one.
ScheduledProgram scheduled(TypeContext& context, std::string text, std::vector<Tensor> params, uint64_t seed,
                           Random& random) {
  text.replace(text.find("@p["), 2, fmt::format("@p{}", seed));
  const loop::Function program = must_parse(context, text);
  auto expected = evaluate(context, program, params);
  EXPECT_TRUE(expected) << expected.error().str() << text;
  loop::Schedule schedule(context, program);
  for (int step = 0; step < 12; ++step) {
    for (const std::string& step_text : loop::random_steps(context, schedule.function(), random))
      (void)schedule.apply(step_text);
  }
  const loop::Function& function = supported(context, schedule.function()) ? schedule.function() : program;
  return {function, std::move(params), expected.value_or(std::vector<Tensor>()),
          fmt::format("seed {}\n{}\n{}", seed, text, print(context, function))};
}

// Compiles libraries of many programs each, and runs them.
template <class Make>
void run_all(Make make) {
  constexpr auto kPrograms = static_cast<uint64_t>(rounds(2000));
  constexpr uint64_t kLibrary = 100;  // functions of one library
  runtime::ThreadPool pool(2);
  for (uint64_t begin = 0; begin < kPrograms; begin += kLibrary) {
    TypeContext context;
    std::vector<ScheduledProgram> programs;
    for (uint64_t seed = begin; seed < begin + kLibrary; ++seed) {
      Random random(seed);
      programs.push_back(make(context, seed, random));
    }
    std::vector<const loop::Function*> functions;
    for (const ScheduledProgram& program : programs) functions.push_back(&program.function);
    const auto code = compile(context, functions, host_options());
    ASSERT_TRUE(code) << code.error().str();
    const auto library = runtime::NativeLibrary::load(*code);
    ASSERT_TRUE(library) << library.error().str();
    for (size_t i = 0; i < programs.size(); ++i) {
      const auto results = library->call(i, programs[i].params, pool);
      ASSERT_TRUE(results) << results.error().str() << "\n" << programs[i].text;
      ASSERT_EQ(*results, programs[i].expected) << programs[i].text;
    }
  }
}

TEST(Native, RandomSchedulesOfRandomProgramsGiveTheEvaluatorsResults) {
  run_all([](TypeContext& context, uint64_t seed, Random& random) {
    const std::string text = loop::random_program(random);
    const loop::Function program = must_parse(context, text);
    const auto n = static_cast<int64_t>(1 + random.below(6));
    const int64_t m = *program.buffer(program.params[1]).axes[0].extent.constant();
    std::vector<Tensor> params{Tensor(DType::kI32, {n, m}), Tensor(DType::kI32, {m, m})};
    for (Tensor& param : params)
      for (int32_t& value : param.data<int32_t>()) value = static_cast<int32_t>(random.below(2000)) - 1000;
    return scheduled(context, text, std::move(params), seed, random);
  });
}

TEST(Native, RandomSchedulesOfRaggedProgramsGiveTheEvaluatorsResults) {
  run_all([](TypeContext& context, uint64_t seed, Random& random) {
    loop::RaggedProgram program = loop::random_ragged_program(random);
    return scheduled(context, program.text, std::move(program.params), seed, random);
  });
}

}  // namespace
}  // namespace tenon::compiler::native
