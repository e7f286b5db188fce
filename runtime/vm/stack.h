// What one strand of execution has of its own: the registers of its frames, and their arenas. A run executes one stack
// at a time and may put it away for another one (frames.h); heap, kernels and limits are those of the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/vm/heap.h"
#include "runtime/vm/words.h"

namespace tenon::runtime {

struct Frame {
  const Words* words = nullptr;
  size_t base = 0;                    // index of its first register
  const uint32_t* next = nullptr;     // the instruction after the call that it waits for
  const uint32_t* results = nullptr;  // in the caller's code: its registers for the results; nullptr: the entry
  uint32_t result_count = 0;
};

struct Stack {
  std::vector<Word> words;  // the registers of all frames; after the last frame all are empty
  size_t top = 0;           // the registers of live frames
  std::vector<Frame> frames;
  std::vector<Storage> arenas;  // of the frames whose functions have one

  std::span<const Word> live() const { return std::span(words).first(top); }
};

}  // namespace tenon::runtime
