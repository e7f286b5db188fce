// The values of a run: words of 16 bytes, and the objects that they refer to.
//
// Semantics: a word is a register, a field, a captured value, or the content of a reference. A tensor of rank 0 is in
// its word, all other tensors are objects. Objects belong to one run, so their counts are plain integers; constants
// belong to the executable's sessions together, and their counts are never written. Objects are freed without
// recursion. A cycle of objects contains a reference, and all references are on a list, so `collect` finds the cycles.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/tensor.h"

namespace tenon::runtime {

enum class Tag : uint8_t {
  kEmpty,
  kScalar,       // a tensor of rank 0, in place
  kConstructor,  // a constructed value without fields: its type in `bits`
  kFunction,     // a closure without captured values
  kTensor,       // objects from here on
  kCell,         // a constructed value
  kClosure,
  kReference,
  kPending,  // a result of a call that was put off (pending.h)
};
std::string_view describe(Tag tag);  // "a reference"

inline constexpr uint8_t kUnknownSize = 0xff;  // the dtype of a scalar that is an unknown size

struct Object;
struct Word {
  Tag tag = Tag::kEmpty;
  uint8_t dtype = 0;    // kScalar
  uint16_t unused = 0;  // 0
  uint32_t id = 0;      // the constructor in its type, or the function
  union {
    int64_t bits = 0;  // a scalar's bytes, then zeros
    Object* object;
  };

  constexpr Word() = default;
  explicit constexpr Word(Tag kind, uint8_t type = 0, uint32_t index = 0) : tag(kind), dtype(type), id(index) {}
  Word(Tag kind, uint32_t index, Object* target) : tag(kind), id(index), object(target) {}
  bool is_object() const { return tag >= Tag::kTensor; }
  bool is_scalar(DType wanted) const { return tag == Tag::kScalar && dtype == static_cast<uint8_t>(wanted); }
};
static_assert(sizeof(Word) == 16);

// A scalar of a dtype.
template <class T>
Word scalar_word(T value) {
  Word word(Tag::kScalar, static_cast<uint8_t>(dtype_of<T>));
  __builtin_memcpy(&word.bits, &value, sizeof(T));
  return word;
}

struct Object {
  static constexpr uint32_t kImmortal = UINT32_MAX;

  uint32_t count = 1;  // of the words that refer to it; kImmortal: it is a constant
  Tag kind = Tag::kCell;
  uint32_t epoch = 0;   // the last collection that found it
  uint32_t id = 0;      // a cell's type, a closure's function, a reference's index in the list
  uint32_t length = 0;  // words after the object
  Object* link = nullptr;

  Word* words() { return reinterpret_cast<Word*>(this + 1); }
};
static_assert(sizeof(Object) <= 32 && sizeof(Object) % alignof(Word) == 0);  // 24 where pointers have 32 bits

struct TensorObject : Object {
  Tensor tensor;
  Storage room;           // the tensor's memory, where there may be more of it behind the tensor; or none
  uint64_t counted = 0;   // bytes of memory of its own, in Heap::tensor_bytes
  uint32_t node = 0;      // what its owner knows it by; 0: it has none
  bool is_state = false;  // of the session, which has a handle too
};

// Whose tensors have a node.
class TensorOwner {
 public:
  virtual ~TensorOwner() = default;
  // The tensor ends.
  virtual void released(TensorObject& tensor) = 0;
};

// Whether freed memory of objects and tensors is kept for later ones; not where a sanitizer looks for its uses.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TENON_ADDRESS_SANITIZED
#endif
#endif
#ifdef TENON_ADDRESS_SANITIZED
inline constexpr bool kPoolsMemory = false;
#undef TENON_ADDRESS_SANITIZED
#else
inline constexpr bool kPoolsMemory = true;
#endif

class Heap {
 public:
  // `max_bytes`: of all objects and of the memory that tensors have of their own; 0: no limit.
  explicit Heap(uint64_t max_bytes) : max_bytes_(max_bytes) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap();

  // A new object with empty words and a count of 1; nullptr beyond the limit, or without memory.
  Object* make(Tag kind, uint32_t id, uint32_t length);
  Object* make_reference();
  // A word that owns the tensor. `own`: no other value shares its memory, which counts as an allocation of the run.
  // Empty beyond the limit.
  Word tensor(Tensor tensor, bool own);
  // The same for a tensor at the beginning of memory of its own, which may be longer.
  Word tensor(Tensor tensor, Storage room);
  // A handle to the same tensor, and an empty shape: both reuse the memory that shapes of dropped handles had.
  Tensor share(const Tensor& tensor);
  Shape shape();
  void drop(Tensor&& handle);

  static void retain(const Word& word) {
    if (word.is_object() && word.object->count != Object::kImmortal) ++word.object->count;
  }
  void release(const Word& word) {
    if (word.is_object() && word.object->count != Object::kImmortal && --word.object->count == 0) destroy(word.object);
  }

  // Whether the references have doubled since the last collection.
  bool wants_collection() const { return references_.size() >= collect_at_; }
  // Empties all references that the roots do not lead to.
  void collect(std::span<const std::span<const Word>> roots);

  // Whom to tell where a tensor with a node ends.
  void set_owner(TensorOwner* owner) { owner_ = owner; }

  uint64_t allocations() const { return allocations_; }    // tensors with memory of their own, since reset()
  uint64_t tensor_bytes() const { return tensor_bytes_; }  // that are live
  uint64_t live_objects() const { return live_; }
  void reset() { allocations_ = 0; }

 private:
  static constexpr size_t kClasses = 33;  // of 16 bytes each

  void* allocate(size_t bytes);
  void free(Object* object);
  void destroy(Object* dead);
  bool charge(uint64_t bytes);
  Tensor take_spare();
  Word tensor_object(Tensor tensor, uint64_t counted);

  uint64_t max_bytes_ = 0, bytes_ = 0, tensor_bytes_ = 0, allocations_ = 0, live_ = 0;
  std::array<Object*, kClasses> idle_{};
  std::vector<std::byte*> chunks_;
  std::vector<Object*> references_;
  std::vector<Tensor> spares_;  // empty tensors whose shapes have capacity
  TensorOwner* owner_ = nullptr;
  size_t collect_at_ = 1024;
  uint32_t epoch_ = 0;
};

}  // namespace tenon::runtime
