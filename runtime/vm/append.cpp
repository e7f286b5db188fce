#include "runtime/vm/append.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "support/try.h"

namespace tenon::runtime {
namespace {

constexpr uint64_t kMostRoom = uint64_t{1} << 30;  // of a file's promise, beyond the double of what is needed

// The shape of the result, whose elements are those of the first operand and then those of the second. False where they
// are not.
bool append_shape(const Tensor& first, const Tensor& second, uint32_t axis, Shape& shape) {
  const Shape &before = first.shape(), &tail = second.shape();
  if (axis >= before.size() || tail.size() != before.size() || first.dtype() != second.dtype()) return false;
  for (size_t i = 0; i < before.size(); ++i) {
    if (i != axis && (before[i] != tail[i] || (i < axis && before[i] != 1))) return false;
  }
  shape.assign(before.begin(), before.end());
  shape[axis] += tail[axis];
  return true;
}

// The bytes of the result.
Expected<uint64_t> appended_bytes(const Tensor& first, const Tensor& second, uint32_t axis, Shape& shape) {
  const bool fits = append_shape(first, second, axis, shape);
  const auto bytes = fits ? checked_bytes(second.dtype(), shape) : std::nullopt;
  if (bytes) return static_cast<uint64_t>(*bytes);
  return error(fmt::format("{} cannot be appended to {} along axis {}", describe(second), describe(first), axis));
}

// Whether nothing else holds the tensor or its memory, which has at least that many bytes.
bool has_room(const TensorObject& tensor, uint64_t bytes) {
  return tensor.count == 1 && tensor.room.bytes >= bytes && tensor.room.memory.use_count() == 2;
}

}  // namespace

Status append(RunState& run, CallOperands& operands, const CallSite& site, const Append& call, bool is_last_use) {
  for (const Register r : {call.first, call.second}) {
    if (run.frames.at(r).tag != Tag::kTensor) return run.frames.is_not(r, "a tensor with axes");
  }
  const int64_t begin = run.records_calls() ? run.session.now() : 0;
  Word word = run.frames.at(call.first);
  auto& first = *static_cast<TensorObject*>(word.object);
  const Tensor& second = static_cast<const TensorObject*>(run.frames.at(call.second).object)->tensor;
  Shape shape = run.heap.shape();
  TENON_TRY_ASSIGN(bytes, appended_bytes(first.tensor, second, call.axis, shape));
  const uint64_t needed = *bytes;
  const std::span<const std::byte> old = std::as_const(first.tensor).bytes(), more = second.bytes();
  const bool in_place = is_last_use && has_room(first, needed);
  Storage room = first.room;
  if (!in_place) {
    const uint64_t most = std::max(kMostRoom, 2 * needed);
    room = run.session.buffers.take(call.capacity >= needed ? std::min(call.capacity, most) : 2 * needed);
    if (!room.memory) return run.no_memory();
    std::copy(old.begin(), old.end(), room.memory.get());
  }
  std::copy(more.begin(), more.end(), room.memory.get() + old.size());
  Tensor result = Tensor::in(room, second.dtype(), std::move(shape));
  if (run.session.options.hook) operands.args = {first.tensor, second}, operands.results = {result};
  if (in_place) {
    run.heap.drop(std::exchange(first.tensor, std::move(result)));
    Heap::retain(word);
  } else {
    word = run.heap.tensor(std::move(result), std::move(room));
    if (word.tag == Tag::kEmpty) return run.no_memory();
    run.frames.record_peak();
  }
  run.frames.write(call.to, word);
  operands.record(site, "append", begin);
  return {};
}

Status append(CallOperands& operands, const CallSite& site, uint32_t axis) {
  return operands.timed(site, "append", "cpu", [&]() -> Status {
    const Tensor &first = operands.args[0], &second = operands.args[1];
    Shape shape = operands.memory.shape();
    TENON_TRY_ASSIGN(bytes, appended_bytes(first, second, axis, shape));
    Storage storage = operands.memory.storage(0, *bytes);
    if (!storage.memory) return error("not enough memory for the tensor that becomes longer");
    const std::span<const std::byte> before = first.bytes(), more = second.bytes();
    std::copy(more.begin(), more.end(), std::copy(before.begin(), before.end(), storage.memory.get()));
    operands.made.clear();
    operands.made.push_back(Tensor::in(std::move(storage), second.dtype(), std::move(shape)));
    return {};
  });
}

}  // namespace tenon::runtime
