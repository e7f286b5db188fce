// The default schedule of loops whose sizes are unknown.
#include "compiler/kernels/schedule.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "compiler/loop/in_place.h"
#include "compiler/loop/tree.h"
#include "tests/compiler/loop/must_parse.h"

namespace tenon::compiler::kernels {
namespace {

constexpr std::string_view kRows =
    R"(loop @rows[n](%x: Tensor[(40, n), f32]) -> (%y: Tensor[(40, n), f32]) {
  for i in (40) { for j in (n) {
    stage y(i in (40) at (i), j in (n) at (j)) { %y[i, j] = exp(%x[i, j]); }
  } }
}
)";

TEST(DefaultSchedule, OnlyTheLastVectorOfARowOfUnknownSizeIsMasked) {
  TypeContext context;
  const Scheduled scheduled = schedule(context, loop::must_parse(context, kRows));
  std::map<std::string, size_t> guards;
  loop::for_each_statement(scheduled.function.body, [&](const loop::Stmt& stmt) {
    if (const auto* stage = std::get_if<loop::Stage>(&stmt.form))
      guards[std::string(context.name(stage->name))] = stage->where.size();
  });
  EXPECT_EQ(guards, (std::map<std::string, size_t>{{"y", 0}, {"y_tail", 1}}));
}

// The stages of full vectors and of the tail replace their own elements alone.
TEST(DefaultSchedule, ACutRowIsStillComputedInTheMemoryOfItsArgument) {
  TypeContext context;
  const Scheduled scheduled = schedule(context, loop::must_parse(context, kRows));
  EXPECT_EQ(loop::find_in_place(context, scheduled.function), (std::vector<runtime::InPlace>{{0, 0}}));
}

}  // namespace
}  // namespace tenon::compiler::kernels
