#include "compiler/loop/instructions.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/loop/text.h"

namespace tenon::compiler::loop {
namespace {

struct Dot {
  std::string_view name, left, right;  // types of the factors
  int lanes;
};
constexpr Dot kDots[] = {{"vnni_dot_16", "u8", "i8", 16},
                         {"vnni_dot_8", "u8", "i8", 8},
                         {"vnni_dot_4", "u8", "i8", 4},
                         {"neon_sdot_4", "i8", "i8", 4},
                         {"neon_udot_4", "u8", "u8", 4}};
constexpr std::string_view kMma = "mma_s8_16x8x32";
constexpr std::string_view kNames[] = {kDots[0].name, kDots[1].name, kDots[2].name, kDots[3].name, kDots[4].name, kMma};
constexpr std::string_view kMmaText =
    R"(loop @mma_s8_16x8x32(%x: Tensor[(2, 32), i8], %y: Tensor[(2, 32), i8]) -> (%z: Tensor[(2, 2), i32]) {
  for r in (2) {
    for c in (2) {
      for k in (32) {
        stage dot(r in (2) at (r), c in (2) at (c), reduce k in (32) at (k)) {
          %z[r, c] = %z[r, c] + i32(%x[r, k]) * i32(%y[c, k]);
        }
      }
    }
  }
})";

}  // namespace

std::span<const std::string_view> instruction_names() { return kNames; }

Expected<Function> instruction(TypeContext& context, std::string_view name) {
  if (name == kMma) return parse(context, kMmaText, name);
  const auto* dot = std::ranges::find(kDots, name, &Dot::name);
  if (dot == std::end(kDots)) {
    std::string names;
    for (std::string_view supported : kNames) names += fmt::format("{}{}", names.empty() ? "" : ", ", supported);
    return error(fmt::format("there is no instruction '{}'", name), {}, fmt::format("the instructions are {}", names));
  }
  const std::string text = fmt::format(
      R"(loop @{0}(%x: Tensor[(4,), {1}], %y: Tensor[({3}, 4), {2}]) -> (%z: Tensor[({3},), i32]) {{
  for j in ({3}) {{
    for k in (4) {{
      stage dot(j in ({3}) at (j), reduce k in (4) at (k)) {{ %z[j] = %z[j] + i32(%x[k]) * i32(%y[j, k]); }}
    }}
  }}
}})",
      dot->name, dot->left, dot->right, dot->lanes);
  return parse(context, text, name);
}

}  // namespace tenon::compiler::loop
