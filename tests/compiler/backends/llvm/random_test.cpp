// Random loop functions under random schedules, as native code: their results are the evaluator's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/loop/evaluate.h"
#include "compiler/loop/schedule/schedule.h"
#include "tests/compiler/backends/llvm/native.h"
#include "tests/compiler/loop/random_loops.h"
#include "tests/rounds.h"

namespace tenon::compiler::native {
namespace {

using runtime::Tensor;

TEST(Native, RandomSchedulesOfRandomProgramsGiveTheEvaluatorsResults) {
  constexpr auto kPrograms = static_cast<uint64_t>(rounds(2000));
  constexpr uint64_t kLibrary = 100;  // functions of one library
  runtime::ThreadPool pool(2);
  for (uint64_t begin = 0; begin < kPrograms; begin += kLibrary) {
    TypeContext context;
    struct Program {
      loop::Function function;
      std::vector<Tensor> params;
      std::vector<Tensor> expected;
      std::string text;
    };
    std::vector<Program> programs;
    for (uint64_t seed = begin; seed < begin + kLibrary; ++seed) {
      loop::Random random(seed);
      std::string text = random_program(random);
      text.replace(text.find("@p["), 2, fmt::format("@p{}", seed));
      loop::Function program = must_parse(context, text);
      const auto n = static_cast<int64_t>(1 + random.below(6));
      const int64_t m = *program.buffer(program.params[1]).axes[0].extent.constant();
      std::vector<Tensor> params{Tensor(DType::kI32, {n, m}), Tensor(DType::kI32, {m, m})};
      for (Tensor& param : params)
        for (int32_t& value : param.data<int32_t>()) value = static_cast<int32_t>(random.below(2000)) - 1000;
      auto expected = evaluate(context, program, params);
      ASSERT_TRUE(expected) << expected.error().str() << text;
      loop::Schedule schedule(context, program);
      for (int step = 0; step < 12; ++step) {
        for (const std::string& text : random_steps(context, schedule.function(), random)) (void)schedule.apply(text);
      }
      programs.push_back({schedule.function(), std::move(params), std::move(*expected),
                          fmt::format("seed {}\n{}\n{}", seed, text, print(context, schedule.function()))});
    }
    std::vector<const loop::Function*> functions;
    for (const Program& program : programs) functions.push_back(&program.function);
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

}  // namespace
}  // namespace tenon::compiler::native
