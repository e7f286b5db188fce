// A small encoder as MiniLM's: embeddings, layers of attention with several heads and of gelu, and a mean over the
// tokens. As the text of a module, whose parameters are its weights too.
#pragma once

#include <fmt/format.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tensor.h"

namespace tenon::compiler {

struct Transformer {
  std::string text;
  std::vector<runtime::Tensor> inputs;
};

class TransformerMaker {
 public:
  explicit TransformerMaker(unsigned seed) : random_(seed) {}

  Transformer make(int layers) {
    runtime::Tensor& ids = made_.inputs.emplace_back(DType::kI64, runtime::Shape{1, kTokens});
    for (int64_t& id : ids.data<int64_t>()) id = static_cast<int64_t>(random_() % kWords);
    params_ = fmt::format("%ids: Tensor[(1, {}), i64]", kTokens);
    weight("words", {kWords, kWidth});
    weight("positions", {kTokens, kWidth});
    weight("scale", {});
    let("x0", "add(gather(%words, %ids, axis=0), %positions)");
    for (int i = 0; i < layers; ++i) layer(i);
    made_.text =
        fmt::format("#[version = \"1\"]\ndef @main({}) -> Tensor[(1, {}), f32] {{\n{}  mean(%x{}, axes=[1])\n}}\n",
                    params_, kWidth, body_, layers);
    return std::move(made_);
  }

 private:
  static constexpr int64_t kWords = 50, kTokens = 10, kWidth = 32, kHeads = 4, kInner = 64;

  void layer(int i) {
    for (const char* name : {"q", "k", "v"}) {
      weight(fmt::format("{}{}", name, i), {kWidth, kWidth});
      weight(fmt::format("{}b{}", name, i), {kWidth});
      let(fmt::format("{}h{}", name, i),
          fmt::format("transpose(reshape(add(matmul(%x{1}, %{0}{1}), %{0}b{1}), shape=[1, {2}, {3}, {4}]), axes=[0, 2, "
                      "1, 3])",
                      name, i, kTokens, kHeads, kWidth / kHeads));
    }
    let(fmt::format("p{}", i),
        fmt::format("softmax(multiply(matmul(%qh{0}, transpose(%kh{0}, axes=[0, 1, 3, 2])), %scale))", i));
    let(fmt::format("a{}", i),
        fmt::format("reshape(transpose(matmul(%p{0}, %vh{0}), axes=[0, 2, 1, 3]), shape=[1, {1}, "
                    "{2}])",
                    i, kTokens, kWidth));
    weight(fmt::format("o{}", i), {kWidth, kWidth});
    weight(fmt::format("g{}", i), {kWidth});
    weight(fmt::format("c{}", i), {kWidth});
    let(fmt::format("h{}", i), fmt::format("layer_norm(add(%x{0}, matmul(%a{0}, %o{0})), %g{0}, %c{0}, axis=-1)", i));
    weight(fmt::format("up{}", i), {kWidth, kInner});
    weight(fmt::format("upb{}", i), {kInner});
    weight(fmt::format("down{}", i), {kInner, kWidth});
    let(fmt::format("x{}", i + 1),
        fmt::format("layer_norm(add(%h{0}, matmul(gelu(add(matmul(%h{0}, %up{0}), %upb{0})), %down{0})), %g{0}, %c{0}, "
                    "axis=-1)",
                    i));
  }

  void let(const std::string& name, const std::string& value) {
    body_ += fmt::format("  let %{} = {};\n", name, value);
  }
  void weight(const std::string& name, const runtime::Shape& shape) {
    std::string dims;
    for (const int64_t size : shape) dims += fmt::format("{}, ", size);
    params_ += fmt::format(", %{}: Tensor[({}), f32]", name, dims);
    runtime::Tensor& tensor = made_.inputs.emplace_back(DType::kF32, shape);
    for (float& x : tensor.data<float>()) x = static_cast<float>(static_cast<int>(random_() % 401) - 200) / 1000;
  }

  std::mt19937 random_;
  std::string params_, body_;
  Transformer made_;
};

}  // namespace tenon::compiler
