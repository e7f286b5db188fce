#include "tests/compiler/passes/networks.h"

#include <algorithm>
#include <cmath>

namespace tenon::compiler {

runtime::Tensor random_tensor(std::mt19937& random, runtime::Shape shape, float lo, float hi) {
  runtime::Tensor tensor(DType::kF32, std::move(shape));
  std::uniform_real_distribution<float> values(lo, hi);
  for (float& value : tensor.data<float>()) value = values(random);
  return tensor;
}

namespace {

class ResNet {
 public:
  ResNet(Context& context, uint32_t seed, bool early)
      : context_(context), builder_(context, module_, function_), random_(seed), early_(early) {}

  Module build(int64_t size, int64_t width) {
    const std::vector<int64_t> shape{1, 3, size, size};
    Atom x = builder_.param(context_.tensor(shape, DType::kF32), "x");
    x = relu(norm(conv(x, 3, width, 7, 2), width));
    x = *builder_.apply("max_pool2d", {x},
                        {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"padding", Ints{1, 1, 1, 1}}});
    int64_t from = width;
    for (int stage = 0; stage < 4; ++stage) {
      const int64_t to = width << stage;
      for (int block = 0; block < 2; ++block) {
        x = this->block(x, from, to, stage > 0 && block == 0 ? 2 : 1);
        from = to;
      }
    }
    if (early_) x = relu(norm(x, from));
    x = *builder_.apply("flatten", {*builder_.apply("global_avg_pool", {x})});
    x = *builder_.apply("dense", {x, weights({1000, from}, from)});
    builder_.finish(*builder_.apply("bias_add", {x, builder_.constant(random_tensor(random_, {1000}))}));
    module_.globals.emplace(context_.symbol("main"), std::move(function_));
    return std::move(module_);
  }

 private:
  using Ints = std::vector<int64_t>;

  Atom weights(runtime::Shape shape, int64_t inputs) {
    const float bound = std::sqrt(3.0f / static_cast<float>(inputs));
    return builder_.constant(random_tensor(random_, std::move(shape), -bound, bound));
  }
  Atom conv(Atom x, int64_t from, int64_t to, int64_t kernel, int64_t stride) {
    const int64_t pad = kernel / 2;
    return *builder_.apply("conv2d", {x, weights({to, from, kernel, kernel}, from * kernel * kernel)},
                           {{"strides", Ints{stride, stride}}, {"padding", Ints{pad, pad, pad, pad}}});
  }
  Atom norm(Atom x, int64_t channels) {
    const auto vector = [&](float lo, float hi) {
      return builder_.constant(random_tensor(random_, {channels}, lo, hi));
    };
    return *builder_.apply("batch_norm",
                           {x, vector(0.5f, 1.5f), vector(-0.5f, 0.5f), vector(-0.5f, 0.5f), vector(0.5f, 2)});
  }
  Atom relu(Atom x) { return *builder_.apply("relu", {x}); }

  Atom block(Atom x, int64_t from, int64_t to, int64_t stride) {
    Atom shortcut = x;
    if (early_) {
      const Atom active = relu(norm(x, from));
      if (from != to) shortcut = conv(active, from, to, 1, stride);
      const Atom inner = relu(norm(conv(active, from, to, 3, stride), to));
      return *builder_.apply("add", {conv(inner, to, to, 3, 1), shortcut});
    }
    const Atom inner = relu(norm(conv(x, from, to, 3, stride), to));
    const Atom outer = norm(conv(inner, to, to, 3, 1), to);
    if (from != to) shortcut = norm(conv(x, from, to, 1, stride), to);
    return relu(*builder_.apply("add", {outer, shortcut}));
  }

  Context& context_;
  Module module_;
  Function function_;
  Builder builder_;
  std::mt19937 random_;
  bool early_;
};

}  // namespace

Module resnet18(Context& context, uint32_t seed, int64_t size, int64_t width, bool early) {
  return ResNet(context, seed, early).build(size, width);
}

Module random_graph(Context& context, uint32_t seed, int operators) {
  std::mt19937 random(seed);
  Module module;
  Function function;
  Builder b(context, module, function);
  const std::vector<int64_t> map{1, 2, 3, 3}, vector{1, 2, 1, 1};
  Atoms maps{b.param(context.tensor(map, DType::kF32), "x")},
      vectors{b.param(context.tensor(vector, DType::kF32), "v")};
  const auto pick = [&](const Atoms& from) {
    return from[from.size() - 1 - random() % std::min<size_t>(from.size(), 5)];
  };
  for (int i = 0; i < operators; ++i) {
    switch (random() % 10) {
      case 0: maps.push_back(*b.apply("conv2d", {pick(maps), b.constant(random_tensor(random, {2, 2, 1, 1}))})); break;
      case 1: maps.push_back(*b.apply("relu", {pick(maps)})); break;
      case 2: maps.push_back(*b.apply("sigmoid", {pick(maps)})); break;
      case 3:
      case 4: maps.push_back(*b.apply("add", {pick(maps), pick(maps)})); break;
      case 5: maps.push_back(*b.apply("multiply", {pick(maps), pick(vectors)})); break;
      case 6: maps.push_back(*b.apply("transpose", {pick(maps)}, {{"axes", std::vector<int64_t>{0, 1, 3, 2}}})); break;
      case 7: vectors.push_back(*b.apply("global_avg_pool", {pick(maps)})); break;
      case 8: vectors.push_back(*b.apply("tanh", {pick(vectors)})); break;
      case 9: vectors.push_back(*b.apply("add", {pick(vectors), pick(vectors)})); break;
    }
  }
  b.finish(*b.tuple({pick(maps), pick(maps), pick(vectors)}));
  module.globals.emplace(context.symbol("main"), std::move(function));
  return module;
}

}  // namespace tenon::compiler
