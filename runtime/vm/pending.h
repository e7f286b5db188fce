// Results of calls that a batch of instances has put off.
//
// Semantics: a word with Tag::kPending refers to an object of two words: the value, and the row of it that is the
// result, or kWhole. Until the call is executed the value is empty and the object's id is the index of its node. A
// batched call's result is the value of all its calls, whose results are its rows: tensors without its leading axis.
// Nothing but this header's functions, and what moves words around, sees a pending word: an instruction that needs a
// value waits for it.
#pragma once

#include <cstdint>

#include "runtime/vm/buffer_pool.h"
#include "runtime/vm/heap.h"

namespace tenon::runtime {

struct Pending {
  static constexpr uint32_t kWords = 2, kDone = UINT32_MAX;
  static constexpr int64_t kWhole = -1;

  static Word& value(Object& object) { return object.words()[0]; }
  static int64_t row(Object& object) { return object.words()[1].bits; }
  // Takes the value over.
  static void set(Object& object, Word value, int64_t row) {
    object.words()[0] = value;
    object.words()[1] = scalar_word<int64_t>(row);
    object.id = kDone;
  }
  static bool is_executed(Object& object) { return object.id == kDone; }
  // Of an object that was executed: whether its call failed.
  static bool has_failed(Object& object) { return value(object).tag == Tag::kEmpty; }
  static void fail(Object& object) { object.id = kDone; }
};

// The tensor or scalar of an executed call that has not failed, as a word that the caller owns. A row that is aligned
// for tensors shares the memory of its batch, others are copied. Empty without memory.
Word settled(const Word& pending, Heap& heap, BufferPool& buffers);
// The same as a tensor with memory of its own.
Tensor settled_tensor(const Word& pending);

}  // namespace tenon::runtime
