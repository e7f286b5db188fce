// A TreeLSTM as a recursion over a tree: with the weights of a model of ONNX that computes the same as a loop over an
// array of parents, it equals ONNX Runtime's results, as that model does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ir/text.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/npy.h"
#include "runtime/vm/session.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

constexpr std::string_view kChildSumTreeLstm = R"(#[version = "1", side = "weights.npz"]
const $iou: Tensor[(128, 192), f32] = side;  // of a node and its children's sum to input gate, output gate, candidate
const $iou_bias: Tensor[(192,), f32] = side;
const $forget: Tensor[(128, 64), f32] = side;  // of a node and one child to the child's forget gate
const $forget_bias: Tensor[(64,), f32] = side;

type Tree { Node(Tensor[(1, 64), f32], Forest) }
type Forest { More(Tree, Forest), None }

// The trees below a node, from the index `from` on: the parent of each node has a larger index.
def @forest[n](
  %x: Tensor[(n, 64), f32], %parent: Tensor[(n,), i64], %node: Tensor[(), i64], %from: Tensor[(), i64]
) -> Forest {
  if (%from < %node) {
    let %others = @forest(%x, %parent, %node, %from + 1i64);
    if (gather(%parent, %from) == %node) {
      More(Node(reshape(gather(%x, %from), shape=[1, 64]), @forest(%x, %parent, %from, 0i64)), %others)
    } else {
      %others
    }
  } else {
    None
  }
}

// The memory and the output of a tree.
def @read(%tree: Tree) -> (Tensor[(1, 64), f32], Tensor[(1, 64), f32]) {
  match %tree {
    Node(%x, %children) => {
      let %sums = @read_all(%x, %children);
      let %gates = split(matmul(concat(%x, %sums.1, axis=1), $iou) + $iou_bias, sizes=[64, 64, 64], axis=1);
      let %memory = sigmoid(%gates.0) * tanh(%gates.2) + %sums.0;
      (%memory, sigmoid(%gates.1) * tanh(%memory))
    },
  }
}

// The sums over a node's children: of what is kept of their memories, and of their outputs.
def @read_all(%x: Tensor[(1, 64), f32], %forest: Forest) -> (Tensor[(1, 64), f32], Tensor[(1, 64), f32]) {
  match %forest {
    More(%tree, %others) => {
      let %child = @read(%tree);
      let %sums = @read_all(%x, %others);
      let %kept = sigmoid(matmul(concat(%x, %child.1, axis=1), $forget) + $forget_bias) * %child.0;
      (%kept + %sums.0, %child.1 + %sums.1)
    },
    None => (broadcast_to(0.0f32, shape=[1, 64]), broadcast_to(0.0f32, shape=[1, 64])),
  }
}

def @main[n](%x: Tensor[(n, 64), f32], %parent: Tensor[(n,), i64]) -> Tensor[(1, 64), f32] {
  @read_all(broadcast_to(0.0f32, shape=[1, 64]), @forest(%x, %parent, gather(shape_of(%x), 0i64), 0i64)).1
}
)";

class ChildSumTreeLstm : public testing::Test {
 protected:
  void SetUp() override {
    auto onnx = read_model(TENON_SOURCE_DIR "/tests/models/tree_lstm.onnx", {});
    ASSERT_TRUE(onnx) << onnx.error().str();
    onnx_.emplace(std::move(*onnx));
    for (auto [name, target] : {std::pair("x", &x_), std::pair("steps", &steps_), std::pair("roots", &roots_)}) {
      auto array = runtime::load_npz(TENON_SOURCE_DIR "/tests/models/tree_lstm.npz", name);
      ASSERT_TRUE(array) << array.error().str();
      *target = std::move(*array);
    }
  }

  // The only constant of ONNX's model that has these sizes.
  Tensor weight(const runtime::Shape& shape) const {
    const auto has_shape = [&](const Tensor& constant) { return constant.shape() == shape; };
    const std::vector<Tensor>& all = onnx_->module.constants;
    EXPECT_EQ(std::ranges::count_if(all, has_shape), 1);
    return *std::ranges::find_if(all, has_shape);
  }
  Expected<Model> recursive_model() const {
    const auto side = runtime::to_npz({{"iou", weight({128, 192})},
                                       {"iou_bias", weight({192})},
                                       {"forget", weight({128, 64})},
                                       {"forget_bias", weight({64})}});
    Model model{.context = std::make_unique<Context>(), .module = {}, .entry = {}, .name = "tree_lstm"};
    TENON_TRY_ASSIGN(module, parse(*model.context, kChildSumTreeLstm, side));
    model.module = std::move(*module);
    model.entry = model.context->symbol("main");
    return model;
  }

  // The first nodes and their parents: a tree whose root is the last node.
  std::vector<Tensor> tree(int64_t count) const {
    Tensor x(DType::kF32, {count, kWidth}), parent(DType::kI64, {count});
    std::ranges::copy(x_.data<float>().first(static_cast<size_t>(count * kWidth)), x.data<float>().begin());
    for (int64_t node = 0; node < count; ++node) {
      const int64_t after = node + steps_.data<int64_t>()[static_cast<size_t>(node)];
      parent.data<int64_t>()[static_cast<size_t>(node)] = node + 1 < count ? std::min(after, count - 1) : count;
    }
    return {std::move(x), std::move(parent)};
  }
  void expect_roots(Model model) {
    auto compiled = compile(model, {.accelerators = {}});
    ASSERT_TRUE(compiled) << compiled.error().str();
    auto session = runtime::Session::create(compiled->executable, {});
    ASSERT_TRUE(session) << session.error().str();
    for (int64_t count = 1; count <= kNodes; ++count) {
      const auto found = session->run(tree(count));
      ASSERT_TRUE(found) << found.error().str();
      const auto root = (*found)[0].data<float>();
      const auto expected = roots_.data<float>().subspan(static_cast<size_t>((count - 1) * kWidth), kWidth);
      ASSERT_EQ(root.size(), expected.size());
      for (size_t i = 0; i < root.size(); ++i) ASSERT_NEAR(root[i], expected[i], 1e-5) << count << " nodes";
    }
  }

  static constexpr int64_t kWidth = 64, kNodes = 128;
  std::optional<Model> onnx_;
  Tensor x_, steps_, roots_;
};

TEST_F(ChildSumTreeLstm, ItsRecursionOverATreeEqualsOnnxRuntime) {
  auto model = recursive_model();
  ASSERT_TRUE(model) << model.error().str();
  expect_roots(std::move(*model));
}

TEST_F(ChildSumTreeLstm, ItsLoopOverAnArrayOfParentsEqualsOnnxRuntime) { expect_roots(std::move(*onnx_)); }

}  // namespace
}  // namespace tenon::compiler
