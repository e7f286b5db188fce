// Graphs of calls of well-known dynamic models, by which policies are compared: the same trees, lengths and words on
// every machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/batch/order.h"

namespace tenon::runtime {

struct CallFamily {
  std::string_view name, description;
  std::vector<CallGraph> graphs;  // a mini-batch of 8 instances each
};

// A binary tree of random words: node i has the children left[i] and right[i], which are smaller; the last node is the
// root. A leaf has its word.
struct WordTree {
  static constexpr uint32_t kLeaf = UINT32_MAX;
  struct Node {
    uint32_t left = kLeaf, right = kLeaf, word = 0;
  };
  std::vector<Node> nodes;
};
// The first trees of an endless list: with 2 to 52 leaves, 19 in the mean, and words below 5000.
std::vector<WordTree> word_trees(size_t count);

// tree_cell: TreeLSTMs with an output at the root; tree_2type: with two kinds of inner cells; tree_out_all: with an
// output at each node; bilstm: bidirectional taggers; lattice: LSTMs over characters with cells of words that join them
// (Zhang and Yang, "Chinese NER using lattice LSTM").
std::vector<CallFamily> call_families();

}  // namespace tenon::runtime
