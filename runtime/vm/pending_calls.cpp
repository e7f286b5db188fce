#include "runtime/vm/pending_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "support/try.h"

namespace tenon::runtime {
namespace {

bool same_memory(const Tensor& a, const Tensor& b) {
  const auto x = a.memory(), y = b.memory();
  return !x.owner_before(y) && !y.owner_before(x);
}

// Whether a function is one native kernel whose results are scalars.
bool computes_scalars(const Executable& executable, const Function& function) {
  size_t kernels = 0;
  for (const Instruction& instruction : function.code) {
    const Operation& operation = instruction.operation;
    if (const auto* call = std::get_if<CallNative>(&operation)) {
      if (executable.natives[call->code].is_for_gpu()) return false;
      const Signature& signature = executable.natives[call->code].kernels[call->kernel].signature;
      if (++kernels > 1 || !std::ranges::all_of(signature.results, &std::vector<Size>::empty, &SignatureBuffer::axes))
        return false;
    } else if (!std::holds_alternative<Kill>(operation) && !std::holds_alternative<Return>(operation)) {
      return false;
    }
  }
  return kernels == 1;
}

}  // namespace

PendingCalls::PendingCalls(RunState& run, Execute execute)
    : run_(run), execute_(std::move(execute)), unit_of_(run.executable.functions.size(), kNone) {
  for (uint32_t i = 0; i < run.executable.units.size(); ++i) {
    const Unit& unit = run.executable.units[i];
    unit_of_[unit.function] = i;
    has_shared_.push_back(std::ranges::find(unit.own, false) != unit.own.end());
    is_scalar_.push_back(computes_scalars(run.executable, run.executable.functions[unit.function]));
    most_rows_.push_back(run.session.launching[unit.function] ? INT64_MAX : kMostRows);
  }
  types_.resize(run.executable.units.size());
}

bool PendingCalls::runs_at_once(uint32_t function, std::span<const uint32_t> args) const {
  if (!is_scalar_[unit_of_[function]]) return false;
  const Word* const base = run_.frames.registers();
  return std::ranges::all_of(args, [&](uint32_t arg) { return base[register_of(arg)].tag == Tag::kScalar; });
}

Expected<Word> PendingCalls::add(uint32_t instance, uint32_t function, std::span<const uint32_t> args) {
  Node node{.unit = unit_of_[function],
            .instance = instance,
            .type = 0,
            .first_operand = static_cast<uint32_t>(operands_.size()),
            .first_result = static_cast<uint32_t>(results_.size())};
  Word* const base = run_.frames.registers();
  for (const uint32_t arg : args) {
    if (base[register_of(arg)].tag == Tag::kEmpty) return run_.frames.is_empty(arg);
  }
  const auto count = static_cast<uint32_t>(unit(node).own_results.size());
  Object* tuple = nullptr;
  if (count > 1 && !(tuple = run_.heap.make(Tag::kCell, kTupleType, count))) return run_.no_memory();
  const Word whole = tuple ? Word(Tag::kCell, 0, tuple) : Word();
  for (uint32_t i = 0; i < count; ++i) {
    Object* const object = run_.heap.make(Tag::kPending, static_cast<uint32_t>(nodes_.size()), Pending::kWords);
    if (!object) {
      for (; results_.size() > node.first_result; results_.pop_back())
        run_.heap.release(Word(Tag::kPending, 0, results_.back()));
      run_.heap.release(whole);
      return run_.no_memory();
    }
    results_.push_back(object);
    ++object->count;  // the node's, and that of the word
    if (tuple) tuple->words()[i] = Word(Tag::kPending, 0, object);
  }
  for (const uint32_t arg : args) operands_.push_back(take(base, arg));
  node.type = type_of(node.unit, operands_of(node));
  nodes_.push_back(node);
  return tuple ? whole : Word(Tag::kPending, 0, results_.back());
}

// Most units have no shared operands but constants, which are in their code.
uint32_t PendingCalls::type_of(uint32_t unit, std::span<const Word> operands) {
  std::vector<uint32_t>& firsts = types_[unit];
  for (const uint32_t first : firsts) {
    if (!has_shared_[unit] || same_shared(nodes_[first], unit, operands)) return nodes_[first].type;
  }
  firsts.push_back(static_cast<uint32_t>(nodes_.size()));
  return type_count_++;
}

// Instances have objects of their own for an input that they share, but one buffer.
bool PendingCalls::same_shared(const Node& a, uint32_t unit, std::span<const Word> operands) {
  const std::vector<bool>& own = run_.executable.units[unit].own;
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i]) continue;
    const Word &x = operands_of(a)[i], &y = operands[i];
    if (x.tag != y.tag || x.dtype != y.dtype) return false;
    if (x.tag != Tag::kTensor) {
      if (x.bits != y.bits) return false;
      continue;
    }
    const Tensor &one = static_cast<const TensorObject*>(x.object)->tensor,
                 &other = static_cast<const TensorObject*>(y.object)->tensor;
    if (one.bytes().data() != other.bytes().data() || one.dtype() != other.dtype() || one.shape() != other.shape())
      return false;
  }
  return true;
}

void PendingCalls::make_graph() {
  graph_.clear();
  graph_.type_count = type_count_;
  for (const Node& node : nodes_) {
    reads_.clear();
    for (const Word& operand : operands_of(node)) {
      if (operand.tag == Tag::kPending && !Pending::is_executed(*operand.object)) reads_.push_back(operand.object->id);
    }
    graph_.add(node.type, reads_);
  }
}

Expected<std::vector<PendingCalls::Failure>> PendingCalls::flush(BatchPolicy policy) {
  make_graph();
  const BatchOrder order = batch_order(graph_, policy);
  counts_.nodes += nodes_.size();
  ++counts_.flushes;
  uint32_t begin = 0;
  for (const uint32_t end : order.ends) {
    Status status = run_step(std::span(order.nodes).subspan(begin, end - begin));
    if (!status) {
      clear();
      return std::unexpected(std::move(status.error()));
    }
    begin = end;
  }
  std::vector<Failure> failures;
  for (uint32_t i = 0; i < failed_.size(); ++i) {
    if (failed_[i]) failures.push_back({i, std::move(failed_[i]->second)});
  }
  clear();
  return failures;
}

void PendingCalls::clear() {
  for (const Word& word : operands_) run_.heap.release(word);
  for (Object* object : results_) {
    if (!Pending::is_executed(*object)) Pending::fail(*object);
    run_.heap.release(Word(Tag::kPending, 0, object));
  }
  operands_.clear();
  results_.clear();
  nodes_.clear();
  failed_.clear();
  for (auto& firsts : types_) firsts.clear();
  type_count_ = 0;
}

void PendingCalls::fail(uint32_t node, Diagnostic diagnostic) {
  const uint32_t instance = nodes_[node].instance;
  if (failed_.size() <= instance) failed_.resize(instance + 1);
  auto& failure = failed_[instance];
  if (!failure || node < failure->first) failure.emplace(node, std::move(diagnostic));
  for (Object* object : results_of(nodes_[node])) Pending::fail(*object);
}

// The nodes have been executed.
void PendingCalls::finish(std::span<const uint32_t> nodes) {
  for (const uint32_t i : nodes) {
    for (Word& word : operands_of(nodes_[i])) run_.heap.release(std::exchange(word, Word()));
  }
}

PendingCalls::Rows PendingCalls::rows(const Word& operand) const {
  const Word* word = &operand;
  int64_t row = Pending::kWhole;
  if (operand.tag == Tag::kPending) {
    word = &Pending::value(*operand.object);
    row = Pending::row(*operand.object);
  }
  if (word->tag != Tag::kTensor) {
    const auto dtype = static_cast<DType>(word->dtype);
    return {nullptr, reinterpret_cast<const std::byte*>(&word->bits), static_cast<size_t>(bytes(dtype)), dtype, {}};
  }
  const Tensor& tensor = static_cast<const TensorObject*>(word->object)->tensor;
  Rows found{&tensor, tensor.bytes().data(), tensor.bytes().size(), tensor.dtype(), tensor.shape()};
  if (row == Pending::kWhole) return found;
  found.bytes /= static_cast<size_t>(tensor.shape()[0]);
  found.data += static_cast<size_t>(row) * found.bytes;
  found.shape = found.shape.subspan(1);
  return found;
}

bool PendingCalls::same_shapes(const Node& a, const Node& b) {
  const auto one = operands_of(a), other = operands_of(b);
  for (size_t i = 0; i < one.size(); ++i) {
    if (!unit(a).own[i]) continue;
    const Rows x = rows(one[i]), y = rows(other[i]);
    if (x.shape.data() == y.shape.data() && x.dtype == y.dtype) continue;  // rows of one batch
    const bool is_sequence = !unit(a).sequences.empty() && unit(a).sequences[i];
    const size_t joined = is_sequence ? 1 : unit(a).joined_axes;
    if (x.dtype != y.dtype || std::min(x.shape.size(), y.shape.size()) < joined) return false;
    if (!std::ranges::equal(x.shape.subspan(joined), y.shape.subspan(joined))) return false;
  }
  return true;
}

// The nodes are of one type. Those of equal shapes, but for the axes of their rows, are one batch.
Status PendingCalls::run_step(std::span<const uint32_t> nodes) {
  std::vector<uint32_t> ready;
  for (const uint32_t i : nodes) {
    const auto operands = operands_of(nodes_[i]);
    const bool lost = std::ranges::any_of(
        operands, [](const Word& word) { return word.tag == Tag::kPending && Pending::has_failed(*word.object); });
    if (!lost) ready.push_back(i);
    else
      for (Object* object : results_of(nodes_[i])) Pending::fail(*object);
  }
  while (!ready.empty()) {
    group_.clear();
    other_.clear();
    for (const uint32_t i : ready) (same_shapes(nodes_[ready[0]], nodes_[i]) ? group_ : other_).push_back(i);
    ready.swap(other_);
    TENON_TRY(run_.check_stop());
    TENON_TRY(run_group(group_));
  }
  finish(nodes);
  return {};
}

size_t PendingCalls::own_bytes(const Node& node) {
  size_t bytes = 0;
  for (size_t i = 0; i < unit(node).own.size(); ++i) {
    if (unit(node).own[i]) bytes += rows(operands_of(node)[i]).bytes;
  }
  return bytes;
}

int64_t PendingCalls::row_count(const Node& node) {
  const auto own = std::ranges::find(unit(node).own, true) - unit(node).own.begin();
  const Rows first = rows(operands_of(node)[own]);
  const size_t joined = unit(node).joined_axes;
  return first.shape.size() < joined ? 0 : element_count(first.shape.first(joined));
}

int64_t PendingCalls::length_of(const Node& node) {
  int64_t length = -1;
  for (size_t i = 0; i < unit(node).own.size(); ++i) {
    if (!unit(node).sequences[i]) continue;
    const Rows operand = rows(operands_of(node)[i]);
    if (operand.shape.empty() || (length >= 0 && length != operand.shape[0])) return -1;
    length = operand.shape[0];
  }
  return length;
}

Status PendingCalls::run_group(std::span<const uint32_t> nodes) {
  if (unit(nodes_[nodes[0]]).joined_axes > 0) {
    // As many calls as have this many rows.
    while (!nodes.empty()) {
      size_t count = 0;
      for (int64_t all = 0; count < nodes.size(); ++count) {
        all += row_count(nodes_[nodes[count]]);
        if (count > 0 && all > most_rows_[nodes_[nodes[0]].unit]) break;
      }
      TENON_TRY(run_part(nodes.first(count)));
      nodes = nodes.subspan(count);
    }
    return {};
  }
  if (!unit(nodes_[nodes[0]]).sequences.empty()) return run_sequences(nodes);
  return run_part(nodes);
}

// Calls over sequences are copied to the length of the longest: those of about equal lengths are one part, so that what
// is copied stays within a multiple of the sequences.
Status PendingCalls::run_sequences(std::span<const uint32_t> nodes) {
  std::vector<std::pair<int64_t, uint32_t>> by_length;
  for (const uint32_t i : nodes) by_length.emplace_back(length_of(nodes_[i]), i);
  std::ranges::stable_sort(by_length, {}, &std::pair<int64_t, uint32_t>::first);
  std::vector<uint32_t> part;
  int64_t steps = 0;
  for (const auto& [length, i] : by_length) {
    const int64_t count = std::ssize(part) + 1;
    if (count > 1 && length > 0 && length > kMostPadding * (steps + length) / count) {
      TENON_TRY(run_part(part));
      part.clear();
      steps = 0;
    }
    part.push_back(i);
    steps += length;
  }
  return run_part(part);
}

Status PendingCalls::run_part(std::span<const uint32_t> nodes) {
  const Unit& unit = this->unit(nodes_[nodes[0]]);
  // What is large is not copied: a call of its own, or each of its rows.
  const Node& first = nodes_[nodes[0]];
  int64_t parts = 1;
  if (unit.joined_axes > 0) parts = std::max<int64_t>(1, row_count(first));
  if (!unit.sequences.empty()) parts = std::max<int64_t>(1, length_of(first));
  const bool joins =
      (unit.joined_axes > 0 || unit.batched) && own_bytes(first) <= kMostOwnBytes * static_cast<size_t>(parts);
  if (nodes.size() > 1 && joins) {
    if (run_batch(nodes)) {
      ++counts_.calls;
      return {};
    }
    TENON_TRY(run_.check_stop());
  }
  for (const uint32_t i : nodes) {
    ++counts_.calls;
    if (Status status = run_one(i); !status) {
      TENON_TRY(run_.check_stop());
      fail(i, std::move(status.error()));
    }
  }
  return {};
}

Expected<std::span<const Word>> PendingCalls::fields(const Word& result, const Unit& unit) const {
  const size_t count = unit.own_results.size();
  std::span<const Word> words(&result, 1);
  if (count > 1) {
    const bool fits = result.tag == Tag::kCell && result.object->id == kTupleType && result.object->length == count;
    if (!fits) return error(fmt::format("a unit returns {}, must return a tuple of {}", describe(result.tag), count));
    words = {result.object->words(), count};
  }
  for (const Word& word : words) {
    if (word.tag == Tag::kTensor || (word.tag == Tag::kScalar && word.dtype != kUnknownSize)) continue;
    return error(fmt::format("a unit has {} as result, must have tensors", describe(word.tag)));
  }
  return words;
}

Status PendingCalls::run_one(uint32_t index) {
  const Node& node = nodes_[index];
  args_.clear();
  for (const Word& operand : operands_of(node)) {
    if (operand.tag != Tag::kPending) {
      Heap::retain(operand);
      args_.push_back(operand);
      continue;
    }
    args_.push_back(settled(operand, run_.heap, run_.session.buffers));
    if (args_.back().tag != Tag::kEmpty) continue;
    for (const Word& word : args_) run_.heap.release(word);
    return run_.no_memory();
  }
  TENON_TRY_ASSIGN(result, execute_(run_.session.code[unit(node).function], args_));
  auto words = fields(*result, unit(node));
  if (words) {
    size_t i = 0;
    for (Object* object : results_of(node)) {
      Heap::retain((*words)[i]);
      Pending::set(*object, (*words)[i++], Pending::kWhole);
    }
  }
  run_.heap.release(*result);
  if (!words) return std::unexpected(std::move(words.error()));
  return {};
}

// The operand of all nodes, with one more, leading axis, or with the rows of all nodes along the last of its joined
// axes: the memory where their elements follow each other, else a copy.
Expected<Word> PendingCalls::gather(std::span<const uint32_t> nodes, size_t operand) {
  const Rows first = rows(operands_of(nodes_[nodes[0]])[operand]);
  const size_t joined = unit(nodes_[nodes[0]]).joined_axes;
  Shape shape = run_.heap.shape();
  size_t bytes = 0;
  int64_t count = 0;
  bool adjacent = first.tensor != nullptr;
  for (const uint32_t i : nodes) {
    const Rows row = rows(operands_of(nodes_[i])[operand]);
    if (row.shape.size() < joined || element_count(row.shape.first(joined)) != row_count(nodes_[i]))
      return error("the operands of a unit whose calls are joined by rows differ in their rows");
    adjacent = adjacent && row.tensor && row.data == first.data + bytes && same_memory(*row.tensor, *first.tensor);
    bytes += row.bytes;
    count += joined > 0 ? element_count(row.shape.first(joined)) : 1;
  }
  if (joined > 0) shape.assign(joined - 1, 1);
  shape.push_back(count);
  shape.insert(shape.end(), first.shape.begin() + static_cast<ptrdiff_t>(joined), first.shape.end());
  Word word;
  if (adjacent && reinterpret_cast<uintptr_t>(first.data) % kArenaAlignment == 0) {
    const auto offset = static_cast<size_t>(first.data - first.tensor->bytes().data());
    counts_.bytes_in_place += bytes;
    word =
        run_.heap.tensor(Tensor::in(first.tensor->storage().part(offset, bytes), first.dtype, std::move(shape)), false);
    if (word.tag == Tag::kEmpty) return run_.no_memory();
    return word;
  }
  counts_.bytes_gathered += bytes;
  Storage storage = run_.session.buffers.take(bytes);
  if (!storage.memory) return run_.no_memory();
  std::byte* to = storage.memory.get();
  for (const uint32_t i : nodes) {
    const Rows row = rows(operands_of(nodes_[i])[operand]);
    __builtin_memcpy(to, row.data, row.bytes);
    to += row.bytes;
  }
  word = run_.heap.tensor(Tensor::in(std::move(storage), first.dtype, std::move(shape)), true);
  if (word.tag == Tag::kEmpty) return run_.no_memory();
  return word;
}

// The operand of all nodes with one more, leading axis, and the steps of the longest sequence; those after the end of
// another one are zeros.
Expected<Word> PendingCalls::gather_sequences(std::span<const uint32_t> nodes, size_t operand) {
  const Rows first = rows(operands_of(nodes_[nodes[0]])[operand]);
  int64_t longest = 0;
  for (const uint32_t i : nodes) {
    if (length_of(nodes_[i]) < 0) return error("the operands of a call over a sequence differ in its length");
    longest = std::max(longest, length_of(nodes_[i]));
  }
  Shape shape = run_.heap.shape();
  shape.assign(first.shape.begin(), first.shape.end());
  shape[0] = longest;
  const auto size = checked_bytes(first.dtype, shape);
  if (!size) return run_.no_memory();
  const auto row_bytes = static_cast<size_t>(*size);
  shape.insert(shape.begin(), std::ssize(nodes));
  Storage storage = run_.session.buffers.take(nodes.size() * row_bytes);
  if (!storage.memory) return run_.no_memory();
  std::byte* to = storage.memory.get();
  for (const uint32_t i : nodes) {
    const Rows row = rows(operands_of(nodes_[i])[operand]);
    if (row.bytes > row_bytes) return error("the operands of calls over sequences differ in a step");
    __builtin_memcpy(to, row.data, row.bytes);
    __builtin_memset(to + row.bytes, 0, row_bytes - row.bytes);
    to += row_bytes;
  }
  counts_.bytes_gathered += nodes.size() * row_bytes;
  const Word word = run_.heap.tensor(Tensor::in(std::move(storage), first.dtype, std::move(shape)), true);
  if (word.tag == Tag::kEmpty) return run_.no_memory();
  return word;
}

// The lengths of the nodes' sequences, i64.
Expected<Word> PendingCalls::gather_lengths(std::span<const uint32_t> nodes) {
  Storage storage = run_.session.buffers.take(nodes.size() * sizeof(int64_t));
  if (!storage.memory) return run_.no_memory();
  std::byte* to = storage.memory.get();
  for (const uint32_t i : nodes) {
    const int64_t length = length_of(nodes_[i]);
    __builtin_memcpy(to, &length, sizeof(length));
    to += sizeof(length);
  }
  Shape shape = run_.heap.shape();
  shape.assign(1, std::ssize(nodes));
  const Word word = run_.heap.tensor(Tensor::in(std::move(storage), DType::kI64, std::move(shape)), true);
  if (word.tag == Tag::kEmpty) return run_.no_memory();
  return word;
}

// Gives each node its rows of a result that the rows of all nodes have.
Status PendingCalls::take_rows(std::span<const uint32_t> nodes, const Word& result) {
  const Unit& unit = this->unit(nodes_[nodes[0]]);
  const auto own = static_cast<size_t>(std::ranges::find(unit.own, true) - unit.own.begin());
  const size_t joined = unit.joined_axes;
  int64_t count = 0;
  for (const uint32_t i : nodes) count += row_count(nodes_[i]);
  auto words = fields(result, unit);
  std::vector<std::pair<Object*, Word>> made;
  for (size_t k = 0; words && k < unit.own_results.size(); ++k) {
    const Word& word = (*words)[k];
    const Tensor* const all =
        word.tag == Tag::kTensor ? &static_cast<const TensorObject*>(word.object)->tensor : nullptr;
    if (!all || all->shape().size() < joined || element_count(std::span(all->shape()).first(joined)) != count) {
      words = error(fmt::format("result {} of calls with {} rows has other rows", k, count));
      break;
    }
    const size_t row_bytes = count == 0 ? 0 : all->bytes().size() / static_cast<size_t>(count);
    size_t offset = 0;
    for (const uint32_t i : nodes) {
      const Rows operand = rows(operands_of(nodes_[i])[own]);
      Shape shape = run_.heap.shape();
      shape.assign(operand.shape.begin(), operand.shape.begin() + static_cast<ptrdiff_t>(joined));
      shape.insert(shape.end(), all->shape().begin() + static_cast<ptrdiff_t>(joined), all->shape().end());
      const size_t bytes = static_cast<size_t>(row_count(nodes_[i])) * row_bytes;
      const Word part = part_of(*all, offset, bytes, std::move(shape));
      if (part.tag == Tag::kEmpty) words = run_.no_memory();
      if (!words) break;
      made.emplace_back(results_of(nodes_[i])[k], part);
      offset += bytes;
    }
  }
  for (const auto& [object, part] : made) {
    if (words) Pending::set(*object, part, Pending::kWhole);
    else run_.heap.release(part);
  }
  run_.heap.release(result);
  if (!words) return std::unexpected(std::move(words.error()));
  return {};
}

// A tensor in the memory of another one, or a copy where it is not aligned there; empty without memory.
Word PendingCalls::part_of(const Tensor& all, size_t offset, size_t bytes, Shape shape) {
  if (reinterpret_cast<uintptr_t>(all.bytes().data() + offset) % kArenaAlignment == 0)
    return run_.heap.tensor(Tensor::in(all.storage().part(offset, bytes), all.dtype(), std::move(shape)), false);
  Storage copy = run_.session.buffers.take(bytes);
  if (!copy.memory) return {};
  std::ranges::copy(all.bytes().subspan(offset, bytes), copy.memory.get());
  return run_.heap.tensor(Tensor::in(std::move(copy), all.dtype(), std::move(shape)), true);
}

Status PendingCalls::run_batch(std::span<const uint32_t> nodes) {
  const Node& first = nodes_[nodes[0]];
  const Unit& unit = this->unit(first);
  args_.clear();
  const size_t count = unit.own.size();
  for (size_t i = 0; i < count + (unit.sequences.empty() ? 0 : 1); ++i) {
    const Word operand = i < count ? operands_of(first)[i] : Word();
    Expected<Word> arg = operand;
    if (i == count) arg = gather_lengths(nodes);
    else if (!unit.sequences.empty() && unit.sequences[i]) arg = gather_sequences(nodes, i);
    else if (unit.own[i]) arg = gather(nodes, i);
    else if (operand.tag == Tag::kPending) arg = settled(operand, run_.heap, run_.session.buffers);
    else Heap::retain(operand);
    if (arg && arg->tag == Tag::kEmpty) arg = run_.no_memory();
    if (!arg) {
      for (const Word& word : args_) run_.heap.release(word);
      return std::unexpected(std::move(arg.error()));
    }
    args_.push_back(*arg);
  }
  TENON_TRY_ASSIGN(result, execute_(run_.session.code[unit.batched.value_or(unit.function)], args_));
  return unit.joined_axes > 0 ? take_rows(nodes, *result) : take_batch(nodes, *result);
}

// Gives each node its row of the result of a batched function, or, of a sequence, as many steps of it as the node has.
Status PendingCalls::take_batch(std::span<const uint32_t> nodes, const Word& result) {
  const Unit& unit = this->unit(nodes_[nodes[0]]);
  const auto count = static_cast<int64_t>(nodes.size());
  auto words = fields(result, unit);
  const auto tensor_of = [&](size_t k) -> const Tensor* {
    const Word& word = (*words)[k];
    return word.tag == Tag::kTensor ? &static_cast<const TensorObject*>(word.object)->tensor : nullptr;
  };
  const auto is_sequence = [&](size_t k) { return !unit.sequence_results.empty() && unit.sequence_results[k]; };
  int64_t longest = 0;
  if (!unit.sequences.empty()) {
    for (const uint32_t i : nodes) longest = std::max(longest, length_of(nodes_[i]));
  }
  for (size_t k = 0; words && k < unit.own_results.size(); ++k) {
    if (!unit.own_results[k]) continue;
    const Tensor* const all = tensor_of(k);
    if (!all || all->shape().empty() || all->shape()[0] != count)
      words = error(fmt::format("result {} of a batch of {} calls has another leading size", k, count));
    else if (is_sequence(k) && (all->shape().size() < 2 || all->shape()[1] < longest))
      words = error(fmt::format("result {} of a batch of sequences has fewer than {} steps", k, longest));
  }
  made_.clear();
  for (size_t row = 0; words && row < nodes.size(); ++row) {
    for (size_t k = 0; words && k < unit.own_results.size(); ++k) {
      Object* const object = results_of(nodes_[nodes[row]])[k];
      if (is_sequence(k)) {
        const Word part = steps_of(*tensor_of(k), row, length_of(nodes_[nodes[row]]));
        if (part.tag == Tag::kEmpty) words = run_.no_memory();
        else made_.emplace_back(object, part, Pending::kWhole);
      } else {
        Heap::retain((*words)[k]);
        made_.emplace_back(object, (*words)[k], unit.own_results[k] ? static_cast<int64_t>(row) : Pending::kWhole);
      }
    }
  }
  for (const auto& [object, word, row] : made_) {
    if (words) Pending::set(*object, word, row);
    else run_.heap.release(word);
  }
  run_.heap.release(result);
  if (!words) return std::unexpected(std::move(words.error()));
  return {};
}

// The first steps of a row of a batch's sequences; empty without memory.
Word PendingCalls::steps_of(const Tensor& all, size_t row, int64_t length) {
  const std::span<const int64_t> sizes(all.shape());
  const size_t row_bytes = all.bytes().size() / static_cast<size_t>(sizes[0]),
               bytes = sizes[1] == 0 ? 0 : row_bytes / static_cast<size_t>(sizes[1]) * static_cast<size_t>(length);
  Shape shape = run_.heap.shape();
  shape.assign(sizes.begin() + 1, sizes.end());
  shape[0] = length;
  return part_of(all, row * row_bytes, bytes, std::move(shape));
}

}  // namespace tenon::runtime
