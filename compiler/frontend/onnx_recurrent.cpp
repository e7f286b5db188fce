// Converters of ONNX's recurrent layers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/frontend/onnx_node.h"

namespace tenon::compiler {
namespace {

// Only the functions that every framework exports.
Status check_activations(NodeImport& node, const std::vector<std::string>& usual) {
  TENON_TAKE(given, node.strings("activations"));
  for (size_t i = 0; i < given->size(); ++i) {
    std::string name = (*given)[i];
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (name == usual[i % usual.size()]) continue;
    return node.fail(fmt::format("the activations [{}] are not supported, only {}", fmt::join(*given, ", "),
                                 fmt::join(usual, ", ")));
  }
  return {};
}

// ONNX's inputs are x, w, r, b, lengths, h, c, p.
template <runtime::reference::Name op, int gates>
Status recurrent(NodeImport& node) {
  constexpr bool kCell = gates == 4;
  TENON_TAKE(x, node.type(0));
  TENON_TAKE(r, node.type(2));
  TENON_TAKE(direction, node.string("direction", "forward"));
  TENON_TAKE(layout, node.integer("layout", 0));
  TENON_TAKE(input_forget, node.integer("input_forget", 0));
  if (node.has("clip")) return node.fail("clipping is not supported");
  if (*layout || *input_forget) return node.fail("layout 1 and input_forget are not supported");
  TENON_TRY(check_activations(node, gates == 1   ? std::vector<std::string>{"tanh"}
                                    : gates == 3 ? std::vector<std::string>{"sigmoid", "tanh"}
                                                 : std::vector<std::string>{"sigmoid", "tanh", "tanh"}));
  const auto shape = r->shape();
  if (x->rank() != 3 || !shape || shape->size() != 3) {
    return node.fail("x must have 3 dims, and r 3 whose sizes are known");
  }
  const int64_t directions = (*shape)[0], hidden = (*shape)[2];
  TENON_TAKE(stated, node.integer("hidden_size", hidden));
  if (*stated != hidden) return node.fail(fmt::format("hidden_size {} is not that of r, {}", *stated, hidden));
  auto zeros = [&](runtime::Shape size) { return node.constant(runtime::Tensor(x->dtype, std::move(size))); };
  if (node.has_input(4)) {
    TENON_TAKE(lengths, node.integers(4, "sequence_lens"));
    for (int64_t length : *lengths) {
      if (x->dims[0].constant() != length) return node.fail("sequences of different lengths are not supported");
    }
  }
  if (node.has_input(7)) return node.fail("peephole weights are not supported");
  Atoms args;
  for (size_t i : {0, 1, 2}) {
    TENON_TAKE(arg, node.input(i));
    args.push_back(*arg);
  }
  TENON_TAKE(bias, node.has_input(3) ? node.input(3) : zeros({directions, 2 * gates * hidden}));
  args.push_back(*bias);
  for (size_t i = 5; i < (kCell ? 7 : 6); ++i) {
    const auto batch = x->dims[1].constant();
    if (!node.has_input(i) && !batch) {
      return node.fail("a first state is left out, and the batch's size is unknown",
                       "bind it with --shapes, or give the state");
    }
    TENON_TAKE(state, node.has_input(i) ? node.input(i) : zeros({directions, *batch, hidden}));
    args.push_back(*state);
  }
  Attrs attrs{{"direction", *direction}};
  if (gates == 3) {
    TENON_TAKE(after, node.integer("linear_before_reset", 0));
    attrs.emplace("reset_after", *after);
  }
  return node.results(node.apply(op.view(), std::move(args), std::move(attrs)));
}

}  // namespace

std::span<const OnnxConverter> onnx_recurrent_converters() {
  static constexpr OnnxConverter kTable[] = {
      {"GRU", 3, 6, recurrent<"gru", 3>},
      {"LSTM", 3, 8, recurrent<"lstm", 4>},
      {"RNN", 3, 6, recurrent<"rnn", 1>},
  };
  return kTable;
}

}  // namespace tenon::compiler
