// Calls of units that instances have put off, and their execution in batches.
//
// Semantics: an instance's call of a unit (Executable::units) becomes a node, and its results pending words. `flush`
// executes all nodes: a policy (runtime/batch/order.h) says in which order, and the nodes of a step with the same
// shapes are one call of the unit's batched function, on operands whose rows are gathered; nodes of a unit whose rows
// are independent (Unit::joined_axes) are one call of it, whatever their numbers of rows are, and nodes of a unit over
// sequences (Unit::sequences) one call, whatever their lengths are. The results are those of
// the calls one by one, to the bit, as the batched function's definition says. A batch that fails is repeated call by
// call, so that an instance fails for its own reasons alone. (Lazy execution with depths that follow from operands:
// Fegade et al., "ACRoBat: optimizing auto-batching of dynamic deep learning at compile time", section 3.)
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/batch/order.h"
#include "runtime/vm/pending.h"
#include "runtime/vm/run_state.h"

namespace tenon::runtime {

class PendingCalls {
 public:
  // Executes a function on words that it takes over; its result, which the caller owns.
  using Execute = std::function<Expected<Word>(const Words& function, std::span<const Word> args)>;
  struct Failure {
    uint32_t instance = 0;
    Diagnostic diagnostic;
  };

  PendingCalls(RunState& run, Execute execute);
  PendingCalls(const PendingCalls&) = delete;
  PendingCalls& operator=(const PendingCalls&) = delete;
  ~PendingCalls() { clear(); }

  // Whether a call of the function is put off.
  bool is_unit(uint32_t function) const { return unit_of_[function] != kNone; }
  // Whether a call of a unit, with arguments in registers of the last frame, takes less time than a node: one kernel
  // from scalars to scalars, of which none is pending.
  bool runs_at_once(uint32_t function, std::span<const uint32_t> args) const;
  bool is_full() const { return nodes_.size() >= kMaxNodes; }
  bool empty() const { return nodes_.empty(); }
  // Puts a call off, whose arguments are in registers of the last frame; its result, which the caller owns. The calls
  // of one instance are added in their order.
  Expected<Word> add(uint32_t instance, uint32_t function, std::span<const uint32_t> args);
  // Executes all calls but those that need the result of one that failed. The failures, the first one of each instance.
  // An error ends all instances.
  Expected<std::vector<Failure>> flush(BatchPolicy policy);
  // Forgets all calls.
  void clear();
  std::span<const Word> operands() const { return operands_; }
  // Since the last take_counts().
  BatchCounts take_counts() { return std::exchange(counts_, {}); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Of a call's own operands: larger ones take longer to be copied to a batch than the batch saves, as a whole text of
  // which a step reads one character.
  static constexpr size_t kMostOwnBytes = size_t{1} << 16;
  // Of a call of several by rows: results of more rows leave the caches before the next kernel reads them. Calls of a
  // unit that an accelerator computes have no such limit, as each of them may have rows of padding.
  static constexpr int64_t kMostRows = 512;
  // Of a call of several over sequences: the steps that are copied, by those of the sequences.
  static constexpr int64_t kMostPadding = 4;
  static constexpr size_t kMaxNodes = size_t{1} << 18;  // which bounds the memory of calls that nothing waits for

  struct Node {
    uint32_t unit = 0, instance = 0;
    uint32_t type = 0;                             // nodes of one type have the same unit and shared operands
    uint32_t first_operand = 0, first_result = 0;  // in operands_, results_
  };
  // Where an operand's elements are.
  struct Rows {
    const Tensor* tensor = nullptr;  // that has them in its memory; nullptr: a word has them
    const std::byte* data = nullptr;
    size_t bytes = 0;
    DType dtype = DType::kF32;
    std::span<const int64_t> shape = {};
  };

  const Unit& unit(const Node& node) const { return run_.executable.units[node.unit]; }
  std::span<Word> operands_of(const Node& node) {
    return std::span(operands_).subspan(node.first_operand, unit(node).own.size());
  }
  std::span<Object*> results_of(const Node& node) {
    return std::span(results_).subspan(node.first_result, unit(node).own_results.size());
  }
  uint32_t type_of(uint32_t unit, std::span<const Word> operands);
  bool same_shared(const Node& a, uint32_t unit, std::span<const Word> operands);
  Rows rows(const Word& operand) const;
  bool same_shapes(const Node& a, const Node& b);
  size_t own_bytes(const Node& node);
  void make_graph();

  Status run_step(std::span<const uint32_t> nodes);
  int64_t row_count(const Node& node);  // of a unit with joined axes
  int64_t length_of(const Node& node);  // of a unit over sequences; -1: its operands differ in it
  Status run_group(std::span<const uint32_t> nodes);
  Status run_sequences(std::span<const uint32_t> nodes);
  Status run_part(std::span<const uint32_t> nodes);
  Status run_one(uint32_t node);
  // Whether the batch was executed; an error is that of the batch alone.
  Status run_batch(std::span<const uint32_t> nodes);
  Expected<Word> gather(std::span<const uint32_t> nodes, size_t operand);
  Expected<Word> gather_sequences(std::span<const uint32_t> nodes, size_t operand);
  Expected<Word> gather_lengths(std::span<const uint32_t> nodes);
  Status take_batch(std::span<const uint32_t> nodes, const Word& result);
  Status take_rows(std::span<const uint32_t> nodes, const Word& result);
  Word part_of(const Tensor& all, size_t offset, size_t bytes, Shape shape);
  Word steps_of(const Tensor& all, size_t row, int64_t length);
  // The words of a unit's result, which the caller does not own.
  Expected<std::span<const Word>> fields(const Word& result, const Unit& unit) const;
  void finish(std::span<const uint32_t> nodes);
  void fail(uint32_t node, Diagnostic diagnostic);

  RunState& run_;
  Execute execute_;
  std::vector<uint32_t> unit_of_;             // by function
  std::vector<std::vector<uint32_t>> types_;  // by unit: the first node of each of its types
  std::vector<bool> has_shared_;              // by unit
  std::vector<bool> is_scalar_;               // by unit: it is one native kernel whose results are scalars
  std::vector<int64_t> most_rows_;            // by unit: of a call of several by rows
  uint32_t type_count_ = 0;
  std::vector<Node> nodes_;
  std::vector<Word> operands_;
  std::vector<Object*> results_;
  CallGraph graph_;
  std::vector<std::tuple<Object*, Word, int64_t>> made_;  // of a batch: each result's value and row
  std::vector<uint32_t> group_, other_, reads_;
  std::vector<Word> args_;
  std::vector<std::optional<std::pair<uint32_t, Diagnostic>>> failed_;  // by instance: its first node that failed
  BatchCounts counts_;
};

}  // namespace tenon::runtime
