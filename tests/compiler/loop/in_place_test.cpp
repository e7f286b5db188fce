// Results that may be computed in the memory of a parameter, and those that must not.
#include "compiler/loop/in_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/compiler/loop/must_parse.h"

namespace tenon::compiler::loop {
namespace {

using runtime::InPlace;
using testing::ElementsAre;
using testing::IsEmpty;

// y = value, one stage of two axes; `loops`: around it.
std::vector<InPlace> pairs_of(const std::string& value, const std::string& loops = "for i in (n) { for j in (8) {",
                              const std::string& columns = "8", const std::string& at = "i, j") {
  TypeContext context;
  return find_in_place(context, must_parse(context, "loop @f[n](%a: Tensor[(n, " + columns +
                                                        "), f32], %b: Tensor[(n, 8), f32], %c: Tensor[(n, 8), i32]) -> "
                                                        "(%y: Tensor[(n, 8), f32]) {\n" +
                                                        loops + "stage s(i in (n) at (i), j in (8) at (j)) { %y[" + at +
                                                        "] = " + value + "; } } }\n}"));
}

TEST(InPlace, EachElementIsReplacedAfterItsUse) {
  EXPECT_THAT(pairs_of("exp(%a[i, j])"), ElementsAre(InPlace{0, 0}));
  EXPECT_THAT(pairs_of("%a[i, j] * %a[i, j] + %b[i, j]"), ElementsAre(InPlace{0, 0}, InPlace{0, 1}));
  EXPECT_THAT(pairs_of("exp(%a[i, j])", "for i in (n) parallel { for j in (8) vector {"), ElementsAre(InPlace{0, 0}));
}

TEST(InPlace, WhatIsReadAtOtherPointsStays) {
  EXPECT_THAT(pairs_of("%a[i, 7 - j]"), IsEmpty()) << "another element";
  EXPECT_THAT(pairs_of("%a[i, j] + %a[i, 0]"), IsEmpty()) << "an element that other points read too";
  EXPECT_THAT(pairs_of("%a[i, 0] + %b[i, j]", "for i in (n) { for j in (8) {", "1"), ElementsAre(InPlace{0, 1}))
      << "a parameter of another shape";
  EXPECT_THAT(pairs_of("f32(%c[i, j])"), IsEmpty()) << "a parameter of another dtype";
  EXPECT_THAT(pairs_of("f32(1.0)"), IsEmpty()) << "a parameter that nothing reads gains nothing";
}

TEST(InPlace, PointsThatAreVisitedTwiceReadTheirOwnResult) {
  TypeContext context;
  const auto of = [&](const std::string& text) { return find_in_place(context, must_parse(context, text)); };
  EXPECT_THAT(of(R"(loop @overlapping(%a: Tensor[(12,), f32]) -> (%y: Tensor[(12,), f32]) {
    for t in (2) { for k in (8) { stage s(i in (12) at (4*t + k)) { %y[i] = exp(%a[i]); } } }
  })"),
              IsEmpty())
      << "the last tile begins inside of the first one";
  EXPECT_THAT(of(R"(loop @tiles(%a: Tensor[(16,), f32]) -> (%y: Tensor[(16,), f32]) {
    for t in (2) { for k in (8) { stage s(i in (16) at (8*t + k)) { %y[i] = exp(%a[i]); } } }
  })"),
              ElementsAre(InPlace{0, 0}));
}

TEST(InPlace, StagesOfDisjointBlocksReplaceTheirOwnElements) {
  TypeContext context;
  const auto of = [&](const std::string& tail) {
    return find_in_place(context, must_parse(context, R"(loop @f[n](%a: Tensor[(n,), f32]) -> (%y: Tensor[(n,), f32]) {
    for t in (n // 8) { for k in (8) { stage s(i in (n) at (8*t + k)) { %y[i] = exp(%a[i]); } } }
    )" + tail + "\n}"));
  };
  EXPECT_THAT(of("for k in (n % 8) { stage s_tail(i in (n) at (8*(n // 8) + k)) { %y[i] = exp(%a[i]); } }"),
              ElementsAre(InPlace{0, 0}));
  EXPECT_THAT(of("for k in (n // 2) { stage s_tail(i in (n) at (n - n // 2 + k)) { %y[i] = exp(%a[i]); } }"), IsEmpty())
      << "the second stage computes elements of the first one again";
  EXPECT_THAT(of("for k in (n % 8) { stage s_tail(i in (n) at (8*(n // 8) + k)) { %y[i] = exp(%a[n - 1 - i]); } }"),
              IsEmpty())
      << "the tail reads elements that the full blocks have replaced";
}

TEST(InPlace, OneStatementReadsAndWrites) {
  TypeContext context;
  const auto of = [&](const std::string& text) { return find_in_place(context, must_parse(context, text)); };
  EXPECT_THAT(of(R"(loop @sum(%a: Tensor[(8,), f32]) -> (%y: Tensor[(8,), f32]) {
    for i in (8) { stage copy(i in (8) at (i)) { %y[i] = %a[i]; } }
    for i in (8) { stage more(i in (8) at (i)) { %y[i] = %y[i] + %a[i]; } }
  })"),
              IsEmpty())
      << "the parameter is read after the result is written";
  EXPECT_THAT(of(R"(loop @two(%a: Tensor[(8,), f32]) -> (%y: Tensor[(8,), f32], %z: Tensor[(8,), f32]) {
    for i in (8) { stage both(i in (8) at (i)) { %y[i] = exp(%a[i]); %z[i] = tanh(%a[i]); } }
  })"),
              ElementsAre(InPlace{1, 0}))
      << "the second store is the last one that reads the element";
  EXPECT_THAT(
      of(R"(loop @adam(%w: Tensor[(8,), f32], %m: Tensor[(8,), f32]) -> (%y: Tensor[(8,), f32], %z: Tensor[(8,), f32]) {
    for i in (8) { stage both(i in (8) at (i)) { %y[i] = %w[i] - %m[i]; %z[i] = %m[i] + f32(1); } }
  })"),
      ElementsAre(InPlace{0, 0}, InPlace{1, 1}));
  EXPECT_THAT(
      of(R"(loop @stages(%w: Tensor[(8,), f32], %m: Tensor[(8,), f32]) -> (%y: Tensor[(8,), f32], %z: Tensor[(8,), f32]) {
    for i in (8) { stage first(i in (8) at (i)) { %y[i] = %w[i] - %m[7 - i]; } }
    for i in (8) { stage second(i in (8) at (i)) { %z[i] = %m[i] + %y[i]; } }
  })"),
      ElementsAre(InPlace{0, 0}, InPlace{1, 1}))
      << "the loop before has read all that it needs, and the one after reads the result";
  EXPECT_THAT(of(R"(loop @rows(%m: Tensor[(8, 4), f32]) -> (%y: Tensor[(8, 4), f32], %z: Tensor[(8, 4), f32]) {
    for i in (8) {
      for j in (4) { stage first(i in (8) at (i), j in (4) at (j)) { %y[i, j] = %m[7 - i, j]; } }
      for j in (4) { stage second(i in (8) at (i), j in (4) at (j)) { %z[i, j] = %m[i, j]; } }
    }
  })"),
              IsEmpty())
      << "the loops take turns";
  EXPECT_THAT(of(R"(loop @tiles(%m: Tensor[(16,), f32]) -> (%y: Tensor[(16,), f32]) {
    for t in (4) {
      for k in (4) { stage s(given t_ in (4) at (t), i in (16) at (4*t + k)) { %y[i] = %m[i] + f32(1); } }
    }
  })"),
              ElementsAre(InPlace{0, 0}));
  EXPECT_THAT(of(R"(loop @overlapping(%m: Tensor[(16,), f32]) -> (%y: Tensor[(16,), f32]) {
    for t in (3) {
      for k in (8) { stage s(given t_ in (3) at (t), i in (16) at (4*t + k)) { %y[i] = %m[i] + f32(1); } }
    }
  })"),
              IsEmpty())
      << "a given axis does not make two visits of a point different";
  EXPECT_THAT(of(R"(loop @rows(%a: Tensor[(8, 4), f32]) -> (%y: Tensor[(8, 4), f32]) {
    for i in (8) { for j in (4) { for k in (4) {
      stage add(i in (8) at (i), j in (4) at (j), reduce k in (4) at (k)) {
        init { %y[i, j] = f32(0.0); }
        %y[i, j] = %y[i, j] + %a[i, j];
      }
    } } }
  })"),
              IsEmpty())
      << "a reduction writes its result more than once";
}

}  // namespace
}  // namespace tenon::compiler::loop
