// In which order calls that have been put off are joined to batches.
//
// Semantics: nodes are calls, each of one type, that read results of nodes before them. A step runs nodes of one type
// that read no node which is left: one batch. Every order computes the same results; fewer steps are faster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tenon::runtime {

struct CallGraph {
  uint32_t type_count = 0;
  std::vector<uint32_t> types;  // by node, below type_count
  // Node i reads the nodes `reads[reads_end[i - 1]]` up to `reads[reads_end[i]]`, from 0 for the first node; all are
  // smaller than i. A node that is read twice counts once.
  std::vector<uint32_t> reads, reads_end;

  size_t size() const { return types.size(); }
  std::span<const uint32_t> reads_of(size_t node) const {
    const uint32_t begin = node == 0 ? 0 : reads_end[node - 1];
    return std::span(reads).subspan(begin, reads_end[node] - begin);
  }
  uint32_t add(uint32_t type, std::span<const uint32_t> read);  // returns the node
  void clear();
};

// Each step is the range of `nodes` that ends at its element of `ends`.
struct BatchOrder {
  std::vector<uint32_t> nodes, ends;
};

// depth: nodes of one type and of one distance from the first nodes, as TensorFlow Fold has it (Looks et al., "Deep
//   learning with dynamic computation graphs").
// agenda: the ready type whose nodes that are left have the least mean depth, as DyNet has it (Neubig, Goldberg and
//   Dyer, "On-the-fly operation batching in dynamic computation graphs", section 3.2).
// ratio: the ready type of which the greatest part is ready among the nodes that wait for no node of their own type,
//   which is ED-Batch's sufficient condition for a step without loss (Chen et al., "ED-Batch: efficient automatic
//   batching of dynamic neural networks via learned finite state machines", section 2.3), taken greedily.
// height: u[v][a] is the greatest number of nodes of type a on a path from v on. The sum over all types of the greatest
//   u is a lower bound of the steps that are left; the step of a type all of whose highest nodes are ready lessens it
//   by one, so nothing is lost. The type with the greatest part of them runs, then the one with more ready nodes.
enum class BatchPolicy : uint8_t { kDepth, kAgenda, kRatio, kHeight };
inline constexpr std::string_view kBatchPolicies[] = {"depth", "agenda", "ratio", "height"};
std::optional<BatchPolicy> parse_batch_policy(std::string_view name);

// The steps; nodes of a step are in ascending order. Between types that a policy does not distinguish, agenda takes the
// smallest one and the others the greatest.
BatchOrder batch_order(const CallGraph& graph, BatchPolicy policy);

}  // namespace tenon::runtime
