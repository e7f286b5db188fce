#include "compiler/loop/instructions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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
// A warp's mma.sync. The 32 bytes of terms are two halves of `half` terms.
struct MatrixProduct {
  std::string_view name, left, right, sums;  // types
  int half;
  std::string_view bound;  // of the relative error
};
constexpr MatrixProduct kMatrixProducts[] = {
    {"mma_s8_16x8x32", "i8", "i8", "i32", 16, ""},
    {"mma_s8_u8_16x8x32", "i8", "u8", "i32", 16, ""},
    {"mma_u8_s8_16x8x32", "u8", "i8", "i32", 16, ""},
    {"mma_u8_16x8x32", "u8", "u8", "i32", 16, ""},
    {"mma_f16_16x8x16", "f16", "f16", "f32", 8, " inexact 3.814697265625e-06"},
    {"mma_bf16_16x8x16", "bf16", "bf16", "f32", 8, " inexact 3.814697265625e-06"},
    {"mma_tf32_16x8x8", "f32", "f32", "f32", 4, " inexact 0.00390625"}};

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kDots) + std::size(kMatrixProducts)> names;
  auto to = std::ranges::transform(kDots, names.begin(), &Dot::name).out;
  std::ranges::transform(kMatrixProducts, to, &MatrixProduct::name);
  return names;
}();

std::string text_of(const MatrixProduct& product) {
  return fmt::format(
      R"(loop @{0}(%x: Tensor[(2, 2, {1}), {2}], %y: Tensor[(2, 2, {1}), {3}]) -> (%z: Tensor[(2, 2), {4}]){5} {{
  for r in (2) {{
    for c in (2) {{
      for h in (2) {{
        for k in ({1}) {{
          stage dot(r in (2) at (r), c in (2) at (c), reduce h in (2) at (h), reduce k in ({1}) at (k)) {{
            %z[r, c] = %z[r, c] + {4}(%x[r, h, k]) * {4}(%y[c, h, k]);
          }}
        }}
      }}
    }}
  }}
}})",
      product.name, product.half, product.left, product.right, product.sums, product.bound);
}

}  // namespace

std::span<const std::string_view> instruction_names() { return kNames; }

Expected<Function> instruction(TypeContext& context, std::string_view name) {
  const auto* product = std::ranges::find(kMatrixProducts, name, &MatrixProduct::name);
  if (product != std::end(kMatrixProducts)) return parse(context, text_of(*product), name);
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
