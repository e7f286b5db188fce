#include "runtime/batch/families.h"

#include <algorithm>
#include <cmath>

namespace tenon::runtime {
namespace {

constexpr size_t kInstances = 8, kFirstBatch = 2, kBatches = 4;

// Knuth's MMIX generator, whose upper half is used.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}
  double uniform() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 32) / 4294967296.0;
  }
  // About normal: a sum of twelve.
  double normal(double mean, double deviation) {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return mean + deviation * (sum - 6);
  }
  size_t length(double mean, double deviation, double least, double most) {
    return static_cast<size_t>(std::clamp(std::nearbyint(normal(mean, deviation)), least, most));
  }

 private:
  uint64_t state_;
};

// A tree has at most 52 leaves, so its depth is small.
uint32_t grow(Draws& draws, size_t leaves, WordTree& tree) {  // NOLINT(misc-no-recursion)
  WordTree::Node node;
  if (leaves == 1) {
    node.word = static_cast<uint32_t>(draws.uniform() * 5000);
  } else {
    const size_t left = 1 + static_cast<size_t>(draws.uniform() * static_cast<double>(leaves - 1));
    node.left = grow(draws, left, tree);
    node.right = grow(draws, leaves - left, tree);
  }
  tree.nodes.push_back(node);
  return static_cast<uint32_t>(tree.nodes.size() - 1);
}

uint32_t add(CallGraph& graph, uint32_t type, std::initializer_list<uint32_t> reads = {}) {
  return graph.add(type, std::span(reads.begin(), reads.size()));
}

enum class Outputs : uint8_t { kRoot, kAll };
// Types in the order of their names: E(mbed), I(nner cell) of one kind or two, L(eaf cell), O(utput).
CallGraph trees(std::span<const WordTree> batch, uint32_t kinds, Outputs outputs) {
  const uint32_t embed = 0, inner = 1, leaf = 1 + kinds, output = 2 + kinds;
  CallGraph graph{.type_count = 3 + kinds, .types = {}, .reads = {}, .reads_end = {}};
  for (const WordTree& tree : batch) {
    std::vector<uint32_t> call(tree.nodes.size()), words(tree.nodes.size());  // by node of the tree
    for (size_t i = 0; i < tree.nodes.size(); ++i) {
      const WordTree::Node& node = tree.nodes[i];
      if (node.left == WordTree::kLeaf) {
        words[i] = node.word;
        call[i] = add(graph, leaf, {add(graph, embed)});
      } else {
        words[i] = words[node.left] + words[node.right];
        call[i] = add(graph, inner + words[i] % kinds, {call[node.left], call[node.right]});
      }
      if (outputs == Outputs::kAll) add(graph, output, {call[i]});
    }
    if (outputs == Outputs::kRoot) add(graph, output, {call.back()});
  }
  return graph;
}

// B(ackward), E(mbed), F(orward), O(utput).
CallGraph taggers(std::span<const size_t> lengths) {
  CallGraph graph{.type_count = 4, .types = {}, .reads = {}, .reads_end = {}};
  for (const size_t length : lengths) {
    std::vector<uint32_t> words(length), forward(length), backward(length);
    for (uint32_t& word : words) word = add(graph, 1);
    for (size_t i = 0; i < length; ++i)
      forward[i] = i == 0 ? add(graph, 2, {words[i]}) : add(graph, 2, {words[i], forward[i - 1]});
    for (size_t i = length; i-- > 0;)
      backward[i] = i + 1 == length ? add(graph, 0, {words[i]}) : add(graph, 0, {words[i], backward[i + 1]});
    for (size_t i = 0; i < length; ++i) add(graph, 3, {forward[i], backward[i]});
  }
  return graph;
}

// C(haracter's cell), E(mbed), EW: embedding of a word, O(utput), W(ord's cell).
CallGraph lattices(std::span<const size_t> lengths, Draws draws) {
  constexpr double kWordBegins = 0.3;
  CallGraph graph{.type_count = 5, .types = {}, .reads = {}, .reads_end = {}};
  for (const size_t length : lengths) {
    std::vector<std::vector<uint32_t>> words(length);  // by the character at which they end
    uint32_t before = 0;
    for (size_t i = 0; i < length; ++i) {
      std::vector<uint32_t> reads{add(graph, 1)};
      if (i > 0) reads.push_back(before);
      reads.insert(reads.end(), words[i].begin(), words[i].end());
      before = graph.add(0, reads);
      add(graph, 3, {before});
      if (draws.uniform() >= kWordBegins) continue;
      const size_t end = i + 1 + static_cast<size_t>(draws.uniform() * 3);
      if (end < length) words[end].push_back(add(graph, 4, {before, add(graph, 2)}));
    }
  }
  return graph;
}

}  // namespace

std::vector<WordTree> word_trees(size_t count) {
  Draws draws(1);
  std::vector<WordTree> trees(count);
  for (WordTree& tree : trees) grow(draws, draws.length(19, 9, 2, 52), tree);
  return trees;
}

std::vector<CallFamily> call_families() {
  const std::vector<WordTree> all = word_trees(kInstances * (kFirstBatch + kBatches));
  std::vector<size_t> lengths(all.size());
  Draws draws(2);
  for (size_t& length : lengths) length = draws.length(25, 12, 3, 80);
  std::vector<CallFamily> families{{"tree_cell", "TreeLSTM, output at the root", {}},
                                   {"tree_2type", "TreeLSTM with two kinds of inner cells", {}},
                                   {"tree_out_all", "TreeLSTM, output at each node", {}},
                                   {"bilstm", "bidirectional LSTM", {}},
                                   {"lattice", "lattice LSTM", {}}};
  for (size_t batch = kFirstBatch; batch < kFirstBatch + kBatches; ++batch) {
    const auto of_trees = std::span(all).subspan(batch * kInstances, kInstances);
    const auto of_lengths = std::span(lengths).subspan(batch * kInstances, kInstances);
    families[0].graphs.push_back(trees(of_trees, 1, Outputs::kRoot));
    families[1].graphs.push_back(trees(of_trees, 2, Outputs::kRoot));
    families[2].graphs.push_back(trees(of_trees, 1, Outputs::kAll));
    families[3].graphs.push_back(taggers(of_lengths));
    families[4].graphs.push_back(lattices(of_lengths, Draws(100 + batch)));
  }
  return families;
}

}  // namespace tenon::runtime
