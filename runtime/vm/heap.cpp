#include "runtime/vm/heap.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace tenon::runtime {
namespace {

constexpr size_t kChunk = size_t{1} << 16, kUnit = 16;

const Tensor kNoTensor;
constexpr size_t kMaxSpares = 4096, kSpareRank = 8;

// The shape of a tensor without a buffer, to be changed.
Shape& spare_shape(Tensor& empty) { return const_cast<Shape&>(empty.shape()); }  // NOLINT: the tensor is not constant

size_t bytes_of(const Object& object) {
  return object.kind == Tag::kTensor ? sizeof(TensorObject) : sizeof(Object) + object.length * sizeof(Word);
}

}  // namespace

std::string_view describe(Tag tag) {
  switch (tag) {
    case Tag::kEmpty: return "nothing";
    case Tag::kScalar:
    case Tag::kTensor: return "a tensor";
    case Tag::kConstructor:
    case Tag::kCell: return "a constructed value";
    case Tag::kFunction:
    case Tag::kClosure: return "a closure";
    case Tag::kReference: return "a reference";
    case Tag::kPending: return "a result that is awaited";
  }
  return "";
}

Heap::~Heap() {
  for (std::byte* chunk : chunks_) std::free(chunk);
}

bool Heap::charge(uint64_t bytes) {
  if (limit_ != 0 && bytes > limit_ - std::min(limit_, bytes_ + tensor_bytes_)) return false;
  bytes_ += bytes;
  return true;
}

void* Heap::allocate(size_t bytes) {
  const size_t units = (bytes + kUnit - 1) / kUnit;
  if (!kPoolsMemory || units >= kClasses) return std::malloc(bytes);
  Object*& idle = idle_[units];
  if (!idle) {
    auto* chunk = static_cast<std::byte*>(std::malloc(kChunk));
    if (!chunk) return nullptr;
    chunks_.push_back(chunk);
    for (size_t at = 0; at + units * kUnit <= kChunk; at += units * kUnit) {
      auto* object = new (chunk + at) Object;
      object->link = std::exchange(idle, object);
    }
  }
  Object* taken = idle;
  idle = taken->link;
  return taken;
}

void Heap::free(Object* object) {
  const size_t bytes = bytes_of(*object), units = (bytes + kUnit - 1) / kUnit;
  bytes_ -= bytes;
  --live_;
  if (!kPoolsMemory || units >= kClasses) return std::free(object);
  object->link = std::exchange(idle_[units], object);
}

Object* Heap::make(Tag kind, uint32_t id, uint32_t length) {
  const size_t bytes = sizeof(Object) + length * sizeof(Word);
  if (!charge(bytes)) return nullptr;
  void* memory = allocate(bytes);
  if (!memory) {
    bytes_ -= bytes;
    return nullptr;
  }
  ++live_;
  auto* object = new (memory) Object{.kind = kind, .id = id, .length = length};
  std::uninitialized_fill_n(object->words(), length, Word());
  return object;
}

Object* Heap::make_reference() {
  Object* object = make(Tag::kReference, static_cast<uint32_t>(references_.size()), 1);
  if (object) references_.push_back(object);
  return object;
}

Word Heap::tensor(Tensor tensor, bool own) {
  if (tensor.shape().empty()) {
    Word word(Tag::kScalar, static_cast<uint8_t>(tensor.dtype()));
    std::ranges::copy(tensor.bytes(), reinterpret_cast<std::byte*>(&word.bits));
    drop(std::move(tensor));
    return word;
  }
  const uint64_t counted = own ? tensor.bytes().size() : 0;
  const Word word = tensor_object(std::move(tensor), counted);
  if (own && word.tag != Tag::kEmpty) ++allocations_;
  return word;
}

Word Heap::tensor(Tensor tensor, Storage room) {
  const Word word = tensor_object(std::move(tensor), room.bytes);
  if (word.tag == Tag::kEmpty) return word;
  ++allocations_;
  static_cast<TensorObject*>(word.object)->room = std::move(room);
  return word;
}

Word Heap::tensor_object(Tensor tensor, uint64_t counted) {
  if (limit_ != 0 && counted > limit_ - std::min(limit_, bytes_ + tensor_bytes_)) return {};
  if (!charge(sizeof(TensorObject))) return {};
  void* memory = allocate(sizeof(TensorObject));
  if (!memory) {
    bytes_ -= sizeof(TensorObject);
    return {};
  }
  ++live_;
  auto* object = new (memory) TensorObject;
  object->kind = Tag::kTensor;
  object->tensor = std::move(tensor);
  object->counted = counted;
  tensor_bytes_ += counted;
  return Word(Tag::kTensor, 0, static_cast<Object*>(object));
}

Tensor Heap::take_spare() {
  if (spares_.empty()) {
    Tensor tensor;
    spare_shape(tensor).reserve(kSpareRank);
    return tensor;
  }
  Tensor tensor = std::move(spares_.back());
  spares_.pop_back();
  return tensor;
}

Tensor Heap::share(const Tensor& tensor) {
  Tensor handle = take_spare();
  handle = tensor;
  return handle;
}

void Heap::drop(Tensor&& handle) {
  handle = kNoTensor;  // the assignment of a copy, which leaves the shape its capacity
  if (spares_.size() < kMaxSpares && handle.shape().capacity() >= kSpareRank) spares_.push_back(std::move(handle));
}

Shape Heap::shape() {
  Tensor tensor = take_spare();
  return std::move(spare_shape(tensor));
}

void Heap::destroy(Object* dead) {
  dead->link = nullptr;
  while (dead) {
    Object* object = dead;
    dead = object->link;
    if (object->kind == Tag::kTensor) {
      auto* tensor = static_cast<TensorObject*>(object);
      if (tensor->node != 0) owner_->released(*tensor);
      tensor_bytes_ -= tensor->counted;
      tensor->room.~Storage();
      drop(std::move(tensor->tensor));
      tensor->tensor.~Tensor();
    }
    for (const Word& word : std::span(object->words(), object->length)) {
      if (!word.is_object() || word.object->count == Object::kImmortal || --word.object->count != 0) continue;
      word.object->link = dead;
      dead = word.object;
    }
    if (object->kind == Tag::kReference) {
      references_[object->id] = references_.back();
      references_[object->id]->id = object->id;
      references_.pop_back();
    }
    free(object);
  }
}

void Heap::collect(std::span<const std::span<const Word>> roots) {
  ++epoch_;
  std::vector<Object*> open;
  const auto trace = [&](std::span<const Word> words) {
    for (const Word& word : words) {
      if (!word.is_object() || word.object->count == Object::kImmortal || word.object->epoch == epoch_) continue;
      word.object->epoch = epoch_;
      if (word.object->length > 0) open.push_back(word.object);
    }
  };
  for (const std::span<const Word> words : roots) trace(words);
  while (!open.empty()) {
    Object* object = open.back();
    open.pop_back();
    trace({object->words(), object->length});
  }
  std::vector<Object*> lost;
  for (Object* reference : references_) {
    if (reference->epoch != epoch_) lost.push_back(reference);
  }
  // They stay until all of them are empty: each may own the others.
  for (Object* reference : lost) ++reference->count;
  for (Object* reference : lost) release(std::exchange(reference->words()[0], Word()));
  for (Object* reference : lost) release(Word(Tag::kReference, 0, reference));
  collect_at_ = std::max<size_t>(1024, 2 * references_.size());
}

}  // namespace tenon::runtime
