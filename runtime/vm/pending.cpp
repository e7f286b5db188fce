#include "runtime/vm/pending.h"

#include <algorithm>
#include <utility>

#include "runtime/executable/instructions.h"

namespace tenon::runtime {
namespace {

const Tensor& batch_of(Object& object) {
  return static_cast<const TensorObject*>(Pending::value(object).object)->tensor;
}

// The bytes of the row that is the result, and their offset in the batch.
struct Row {
  size_t offset = 0, bytes = 0;
};
Row row_of(Object& object) {
  const Tensor& batch = batch_of(object);
  const size_t bytes = batch.bytes().size() / static_cast<size_t>(batch.shape()[0]);
  return {static_cast<size_t>(Pending::row(object)) * bytes, bytes};
}

}  // namespace

Word settled(const Word& pending, Heap& heap, BufferPool& buffers) {
  Object& object = *pending.object;
  if (Pending::row(object) == Pending::kWhole) {
    Heap::retain(Pending::value(object));
    return Pending::value(object);
  }
  const Tensor& batch = batch_of(object);
  const Row row = row_of(object);
  if (batch.shape().size() == 1) {
    Word word(Tag::kScalar, static_cast<uint8_t>(batch.dtype()));
    __builtin_memcpy(&word.bits, batch.bytes().data() + row.offset, row.bytes);
    return word;
  }
  Shape shape = heap.shape();
  shape.assign(batch.shape().begin() + 1, batch.shape().end());
  if (row.offset % kArenaAlignment == 0)
    return heap.tensor(Tensor::in(batch.storage().part(row.offset, row.bytes), batch.dtype(), std::move(shape)), false);
  Storage copy = buffers.take(row.bytes);
  if (!copy.memory) return {};
  std::ranges::copy(batch.bytes().subspan(row.offset, row.bytes), copy.memory.get());
  return heap.tensor(Tensor::in(std::move(copy), batch.dtype(), std::move(shape)), true);
}

Tensor settled_tensor(const Word& pending) {
  Object& object = *pending.object;
  const Word& value = Pending::value(object);
  if (Pending::row(object) != Pending::kWhole) {
    const Tensor& batch = batch_of(object);
    const Row row = row_of(object);
    Tensor tensor = Tensor::for_overwrite(batch.dtype(), Shape(batch.shape().begin() + 1, batch.shape().end()));
    std::ranges::copy(batch.bytes().subspan(row.offset, row.bytes), tensor.bytes().begin());
    return tensor;
  }
  if (value.tag == Tag::kTensor) return static_cast<const TensorObject*>(value.object)->tensor;
  Tensor tensor = Tensor::for_overwrite(static_cast<DType>(value.dtype), {});
  __builtin_memcpy(tensor.bytes().data(), &value.bits, tensor.bytes().size());
  return tensor;
}

}  // namespace tenon::runtime
