#include "compiler/bench/vm_models.h"

#include <fmt/format.h>

#include "support/random.h"

namespace tenon::compiler::bench {
namespace {

using runtime::DType;
using runtime::Tensor;

std::string matrix(const std::string& rows, int64_t columns) {
  return fmt::format("Tensor[({}, {}), f32]", rows, columns);
}

// Parameters of a function, and arguments for a call of it.
struct Parameters {
  std::string declared, passed;
  void add(const std::string& name, const std::string& type) {
    declared += fmt::format("{}%{}: {}", declared.empty() ? "" : ", ", name, type);
    passed += fmt::format("{}%{}", passed.empty() ? "" : ", ", name);
  }
};

Tensor random_tensor(Random& random, runtime::Shape shape, double scale) {
  Tensor tensor = Tensor::for_overwrite(DType::kF32, std::move(shape));
  for (float& x : tensor.data<float>())
    x = static_cast<float>(scale * static_cast<double>(random.between(-1000, 1000)) / 1000);
  return tensor;
}
Tensor scalar(int64_t value) { return Tensor::of<int64_t>({}, std::span<const int64_t>(&value, 1)); }

}  // namespace

VmModel decoder_model(int64_t layers, int64_t width, int64_t tokens, int64_t steps) {
  Random random(1);
  const std::string token = matrix("1", width);
  VmModel model{.text = {}, .inputs = {random_tensor(random, {1, width}, 1), scalar(steps)}};
  const double scale = 1.0 / static_cast<double>(width);
  Parameters weights, caches;
  std::string body, next, first;
  for (int64_t l = 0; l < layers; ++l) {
    for (const char* name : {"q", "k", "v", "o"}) {
      weights.add(fmt::format("{}w{}", name, l), matrix(std::to_string(width), width));
      model.inputs.push_back(random_tensor(random, {width, width}, scale));
    }
    weights.add(fmt::format("up{}", l), matrix(std::to_string(width), 4 * width));
    weights.add(fmt::format("down{}", l), matrix(std::to_string(4 * width), width));
    model.inputs.push_back(random_tensor(random, {width, 4 * width}, scale));
    model.inputs.push_back(random_tensor(random, {4 * width, width}, scale));
    for (const char* name : {"k", "v"}) {
      caches.add(fmt::format("{}{}", name, l), matrix("n", width));
      body += fmt::format("    let %{0}n{1} = concat(%{0}{1}, matmul(%h{1}, %{0}w{1}), axis=0);\n", name, l);
      next += fmt::format(", %{}n{}", name, l);
      first += fmt::format(", matmul(%x, %{}w{})", name, l);
    }
    body += fmt::format("    let %s{0} = softmax(dense(matmul(%h{0}, %qw{0}), %kn{0}) * {1}f32);\n", l, 1.0 / 16);
    body += fmt::format("    let %a{0} = %h{0} + matmul(matmul(%s{0}, %vn{0}), %ow{0});\n", l);
    body += fmt::format("    let %h{1} = %a{0} + matmul(relu(matmul(%a{0}, %up{0})), %down{0});\n", l, l + 1);
  }
  model.text = fmt::format(R"(#[version = "1"]
def @decode[n in 1..{tokens}](%h0: {token}, %i: Tensor[(), i64], {caches}, {weights}) -> {token} {{
  if (%i < 1i64) {{ %h0 }} else {{
{body}    @decode(tanh(%h{layers}), %i - 1i64{next}, {passed})
  }}
}}
def @main(%x: {token}, %i: Tensor[(), i64], {weights}) -> {token} {{ @decode(%x, %i{first}, {passed}) }}
)",
                           fmt::arg("tokens", tokens), fmt::arg("token", token), fmt::arg("caches", caches.declared),
                           fmt::arg("weights", weights.declared), fmt::arg("body", body), fmt::arg("layers", layers),
                           fmt::arg("next", next), fmt::arg("passed", weights.passed), fmt::arg("first", first));
  return model;
}

VmModel lstm_model(int64_t steps, int64_t hidden, bool hoisted) {
  Random random(1);
  const double scale = 1.0 / static_cast<double>(hidden);
  VmModel model{
      .text = {},
      .inputs = {random_tensor(random, {steps, hidden}, 1), random_tensor(random, {hidden, 4 * hidden}, scale),
                 random_tensor(random, {hidden, 4 * hidden}, scale), random_tensor(random, {1, 4 * hidden}, scale),
                 Tensor(DType::kF32, {1, hidden}), Tensor(DType::kF32, {1, hidden})}};
  const auto gate = [&](int64_t i, const char* activation) {
    return fmt::format("{}(slice(%g, begin=[0, {}], end=[1, {}], step=[1, 1]))", activation, i * hidden,
                       (i + 1) * hidden);
  };
  model.text = fmt::format(
      R"(#[version = "1"]
def @step(%t: Tensor[(), i64], %p: {sequence}, %wx: {matrix}, %w: {matrix}, %b: {row4}, %h: {row}, %c: {row}) -> ({row}, {row}) {{
  if (%t < {steps}i64) {{
    let %row = reshape(gather(%p, %t, axis=0), shape=[1, {columns}]);
    let %g = {input} + matmul(%h, %w){bias};
    let %cn = {f} * %c + {i} * {g};
    @step(%t + 1i64, %p, %wx, %w, %b, {o} * tanh(%cn), %cn)
  }} else {{ (%h, %c) }}
}}
def @main(%x: {rows}, %wx: {matrix}, %w: {matrix}, %b: {row4}, %h: {row}, %c: {row}) -> ({row}, {row}) {{
  @step(0i64, {first}, %wx, %w, %b, %h, %c)
}}
)",
      fmt::arg("sequence", matrix(std::to_string(steps), hoisted ? 4 * hidden : hidden)),
      fmt::arg("rows", matrix(std::to_string(steps), hidden)),
      fmt::arg("matrix", matrix(std::to_string(hidden), 4 * hidden)), fmt::arg("row4", matrix("1", 4 * hidden)),
      fmt::arg("row", matrix("1", hidden)), fmt::arg("steps", steps),
      fmt::arg("input", hoisted ? "%row" : "matmul(%row, %wx)"), fmt::arg("columns", hoisted ? 4 * hidden : hidden),
      fmt::arg("bias", hoisted ? "" : " + %b"), fmt::arg("first", hoisted ? "matmul(%x, %wx) + %b" : "%x"),
      fmt::arg("i", gate(0, "sigmoid")), fmt::arg("f", gate(1, "sigmoid")), fmt::arg("g", gate(2, "tanh")),
      fmt::arg("o", gate(3, "sigmoid")));
  return model;
}

VmModel call_model(int64_t calls, int64_t bound) {
  Random random(1);
  VmModel model{.text = {}, .inputs = {Tensor(DType::kI64, {}), random_tensor(random, {4}, 1)}};
  model.inputs[0].data<int64_t>()[0] = calls;
  model.text = fmt::format(R"(#[version = "1"]
def @step{dims}(%i: Tensor[(), i64], %x: Tensor[({n},), f32]) -> Tensor[({n},), f32] {{
  if (%i < 1i64) {{ %x }} else {{ @step(%i - 1i64, relu(%x)) }}
}}
def @main{dims}(%i: Tensor[(), i64], %x: Tensor[({n},), f32]) -> Tensor[({n},), f32] {{ @step(%i, %x) }}
)",
                           fmt::arg("n", bound > 0 ? "n" : "4"),
                           fmt::arg("dims", bound > 0 ? fmt::format("[n in 1..{}]", bound) : ""));
  return model;
}

VmModel dense_model(int64_t m, int64_t bound) {
  constexpr int64_t kSize = 768;
  Random random(1);
  VmModel model{.text = {}, .inputs = {random_tensor(random, {m, kSize}, 1), random_tensor(random, {kSize, kSize}, 1)}};
  const std::string size = bound > 0 ? "m" : std::to_string(m);
  model.text = fmt::format("#[version = \"1\"]\ndef @main{}(%x: {}, %w: {}) -> {} {{ relu(dense(%x, %w)) }}\n",
                           bound > 0 ? fmt::format("[m in 1..{}]", bound) : "", matrix(size, kSize),
                           matrix(std::to_string(kSize), kSize), matrix(size, kSize));
  return model;
}

}  // namespace tenon::compiler::bench
