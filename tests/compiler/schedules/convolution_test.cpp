// The templates of convolutions: whatever their knobs select, the loops compute the algorithm's results on all
// machines.
#include "compiler/schedules/convolution.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "compiler/loop/evaluate.h"
#include "compiler/loop/rearrange.h"
#include "compiler/loop/text.h"
#include "compiler/schedules/transposed_convolution.h"
#include "tests/compiler/loop/must_parse.h"
#include "tests/compiler/schedules/filled.h"

namespace tenon::compiler::schedules {
namespace {

using loop::must_parse;
using runtime::Tensor;

struct Sizes {
  int64_t outputs, channels, in, kernel, stride, padding;
  int64_t out() const { return (in + 2 * padding - kernel) / stride + 1; }
};

// A convolution of square images, whose elements are padded by a stage of their own.
std::string convolution(const Sizes& sizes) {
  const int64_t footprint = (sizes.out() - 1) * sizes.stride + sizes.kernel;
  return fmt::format(
      R"(loop @conv(%x: Tensor[(1, {c}, {in}, {in}), f32], %w: Tensor[({o}, {c}, {k}, {k}), f32]) -> (%y: Tensor[(1, {o}, {out}, {out}), f32]) {{
  alloc %p: Tensor[(1, {c}, {footprint}, {footprint}), f32] {{
    for i in (1) {{ for j in ({c}) {{ for a in ({footprint}) {{ for b in ({footprint}) {{
      stage p(i in (1) at (i), j in ({c}) at (j), a in ({footprint}) at (a), b in ({footprint}) at (b)) {{
        %p[i, j, a, b] = select(index(0) <= index(a - {pad}) and index(a - {pad}) < index({in}) and index(0) <= index(b - {pad}) and index(b - {pad}) < index({in}), %x[i, j, a - {pad}, b - {pad}], f32(0));
      }}
    }} }} }} }}
    alloc %d: Tensor[(1, 1, {o}, {out}, {out}), f32] {{
      for n in (1) {{ for g in (1) {{ for o in ({o}) {{ for oh in ({out}) {{ for ow in ({out}) {{ for c in ({c}) {{ for kh in ({k}) {{ for kw in ({k}) {{
        stage conv(n in (1) at (n), g in (1) at (g), o in ({o}) at (o), oh in ({out}) at (oh), ow in ({out}) at (ow), reduce c in ({c}) at (c), reduce kh in ({k}) at (kh), reduce kw in ({k}) at (kw)) {{
          init {{ %d[n, g, o, oh, ow] = f32(0); }}
          %d[n, g, o, oh, ow] = %d[n, g, o, oh, ow] + %w[o, c, kh, kw] * %p[n, c, {s} * oh{kh}, {s} * ow{kw}];
        }}
      }} }} }} }} }} }} }} }}
      for n in (1) {{ for g in (1) {{ for o in ({o}) {{ for oh in ({out}) {{ for ow in ({out}) {{
        stage y(n in (1) at (n), g in (1) at (g), o in ({o}) at (o), oh in ({out}) at (oh), ow in ({out}) at (ow)) {{
          %y[n, {o} * g + o, oh, ow] = max(%d[n, g, o, oh, ow], f32(0));
        }}
      }} }} }} }} }}
    }}
  }}
}}
)",
      fmt::arg("c", sizes.channels), fmt::arg("in", sizes.in), fmt::arg("o", sizes.outputs),
      fmt::arg("k", sizes.kernel), fmt::arg("out", sizes.out()), fmt::arg("footprint", footprint),
      fmt::arg("pad", sizes.padding), fmt::arg("s", sizes.stride), fmt::arg("kh", sizes.kernel > 1 ? " + kh" : ""),
      fmt::arg("kw", sizes.kernel > 1 ? " + kw" : ""));
}

using Knobs = std::map<std::string, std::string, std::less<>>;

// Schedules the convolution for a machine, with these options of its knobs; returns the steps.
std::vector<std::string> check(std::string_view level, const Sizes& sizes, const Knobs& knobs) {
  TypeContext context;
  const loop::Function algorithm = must_parse(context, convolution(sizes));
  loop::Schedule schedule(context, algorithm, {algorithm.params[1]});
  const auto choose = [&](std::string_view knob, const std::vector<Option>& options) {
    const auto wanted = knobs.find(knob);
    const auto found = wanted == knobs.end() ? std::ranges::min_element(options, {}, &Option::cost)
                                             : std::ranges::find(options, wanted->second, &Option::name);
    EXPECT_NE(found, options.end()) << knob;
    return static_cast<size_t>(found - options.begin());
  };
  const ConvolutionStages stages{context.symbol("conv"), context.symbol("y")};
  const Status status = schedule_convolution(context, schedule, stages, *find_machine(level), choose);
  EXPECT_TRUE(status) << level << status.error().str() << loop::print(context, schedule.function());
  if (!status) return {};
  const std::string text = loop::print(context, schedule.function());
  EXPECT_NE(text.find("in registers"), std::string::npos) << text;

  std::vector<Tensor> params{filled({1, sizes.channels, sizes.in, sizes.in}),
                             filled({sizes.outputs, sizes.channels, sizes.kernel, sizes.kernel})};
  const auto expected = loop::evaluate(context, algorithm, params);
  for (const loop::LoadStep& load : schedule.loads()) {
    const auto packed = loop::rearranged(context, load.load, std::vector{params[1]});
    EXPECT_TRUE(packed) << packed.error().str();
    if (packed) params.push_back(*packed);
  }
  const auto results = loop::evaluate(context, schedule.function(), params);
  EXPECT_TRUE(expected && results) << level << (results ? "" : results.error().str()) << text;
  if (expected && results) {
    EXPECT_EQ(*results, *expected) << level << text;
  }
  return schedule.steps();
}

bool has(const std::vector<std::string>& steps, std::string_view part) {
  return std::ranges::any_of(steps, [&](const std::string& step) { return step.find(part) != std::string::npos; });
}

constexpr std::string_view kLevels[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "armv8-a"};

TEST(ConvolutionTemplate, PixelsOfARowAreLanes) {
  for (const std::string_view level : kLevels) {
    const auto steps = check(level, {18, 3, 13, 3, 1, 1}, {{"lanes", "pixels"}, {"pixels", "row"}});
    EXPECT_TRUE(has(steps, "fill(p)")) << level;
    EXPECT_FALSE(has(steps, "fuse_axes")) << level;
  }
}

TEST(ConvolutionTemplate, PixelsOfAllRowsAreLanesOfAWiderMap) {
  for (const std::string_view level : kLevels) {
    const auto steps = check(level, {18, 3, 9, 3, 1, 1}, {{"lanes", "pixels"}, {"pixels", "flat"}});
    EXPECT_TRUE(has(steps, "layout(p, a0 a1 a2 a3 -> a0 a1 a2*a3)")) << level;
    EXPECT_TRUE(has(steps, "cache_write(conv)")) << level;
  }
}

TEST(ConvolutionTemplate, RemaindersByTheStrideAreSideBySide) {
  for (const std::string_view level : kLevels) {
    const auto even = check(level, {5, 2, 16, 3, 2, 1}, {{"lanes", "pixels"}});
    EXPECT_TRUE(has(even, "layout(p, a0 a1 a2 a3 -> a0 a1 a2%2 a3%2 a2/2 a3/2)")) << level;
    const auto odd = check(level, {5, 2, 17, 5, 3, 2}, {{"lanes", "pixels"}});
    EXPECT_TRUE(has(odd, ", 3, 1)")) << level;
  }
}

TEST(ConvolutionTemplate, ChannelsAreLanesOfTransposedTiles) {
  for (const std::string_view level : kLevels) {
    check(level, {34, 3, 13, 3, 1, 1}, {{"lanes", "channels"}});
    check(level, {34, 3, 13, 3, 2, 1}, {{"lanes", "channels"}});
    const auto rows = check(level, {16, 3, 4, 3, 1, 1}, {{"lanes", "channels"}});
    EXPECT_EQ(has(rows, "fuse_axes(conv, oh, ow)"), level != "x86-64-v2") << level;
  }
}

TEST(ConvolutionTemplate, OnePixelIsTheProductOfItsChannels) {
  for (const std::string_view level : kLevels) {
    const auto pixels = check(level, {18, 5, 7, 1, 1, 0}, {{"lanes", "pixels"}});
    EXPECT_TRUE(has(pixels, "fuse_axes(conv, oh, ow)")) << level;
    const auto in_place = check(level, {18, 5, 7, 1, 1, 0}, {{"lanes", "channels"}, {"input", "in_place"}});
    EXPECT_FALSE(has(in_place, "cache_read(conv, p)")) << level;
    const auto packed = check(level, {18, 5, 7, 1, 1, 1}, {{"lanes", "channels"}, {"input", "packed"}});
    EXPECT_TRUE(has(packed, "fuse_axes(p_conv, c2, c3)")) << level;
  }
}

// The reason why sums over these terms, of this value, are no convolution, or no transposed one.
std::string refusal(std::string_view terms, std::string_view value, bool transposed = false) {
  TypeContext context;
  std::string loops, axes, ends;
  for (const char term : terms) {
    loops += fmt::format("for {} in (5) {{ ", term), axes += fmt::format(", reduce {0} in (5) at ({0})", term);
    ends += " }";
  }
  loop::Schedule schedule(
      context,
      must_parse(
          context,
          fmt::format(
              R"(loop @sums(%x: Tensor[(2, 5), f32], %w: Tensor[(4, 5, 5), f32]) -> (%y: Tensor[(2, 3, 4, 6), f32]) {{
  for n in (2) {{ for g in (3) {{ for o in (4) {{ for p in (6) {{ {}
    stage sum(n in (2) at (n), g in (3) at (g), o in (4) at (o), p in (6) at (p){}) {{
      init {{ %y[n, g, o, p] = f32(0); }}
      %y[n, g, o, p] = %y[n, g, o, p] + {};
    }}
  }} }} }} }}{}
}}
)",
              loops, axes, value, ends)));
  const auto first = [](std::string_view, const std::vector<Option>&) { return size_t{0}; };
  const Symbol sum = context.symbol("sum");
  const Machine& machine = *find_machine("x86-64-v3");
  const Status status = transposed ? schedule_transposed_convolution(context, schedule, {sum, sum}, machine, first)
                                   : schedule_convolution(context, schedule, {sum, sum}, machine, first);
  return status ? "" : status.error().str();
}

TEST(ConvolutionTemplate, OtherSumsAreRefusedWithTheReason) {
  EXPECT_NE(refusal("c", "%x[n, c]")
                .find("the stage 'sum' is not a convolution: its axes are not image, group, output, "
                      "pixels, channel and kernel"),
            std::string::npos);
  EXPECT_NE(refusal("ck", "%x[n, c] * %w[o, c, k]")
                .find("the stage 'sum' is not a convolution: it does not multiply weights and the elements of sliding "
                      "windows"),
            std::string::npos);
  EXPECT_NE(refusal("c", "%x[n, c]", true).find("the stage 'sum' is not a transposed convolution"), std::string::npos);
}

}  // namespace
}  // namespace tenon::compiler::schedules
