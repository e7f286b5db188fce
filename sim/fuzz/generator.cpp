#include "sim/fuzz/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "sim/fuzz/generation.h"
#include "support/pages.h"

namespace tenon::sim::fuzz {
namespace {

constexpr int64_t kLeastData = 4096, kMostElements = 160, kSpareUops = 64, kPageBytes = 4096;

// The memory for loads and stores, where the largest transfer has so many bytes.
int64_t data_bytes(int64_t bytes) { return (bytes + 2 * kPageBytes - 1) / kPageBytes * kPageBytes; }

}  // namespace

Program Generator::run() {
  lay_out();
  Builder builder(program_, random_);
  b_ = &builder;
  // A quarter of the memory for streams is left to SYNCs.
  const size_t most = spare_bytes() / spec::kSlotBytes / 4 * 3;
  const auto length = std::min(most, static_cast<size_t>(random_.between(options_.min_length, options_.max_length)));
  const auto launches = static_cast<size_t>(random_.between(1, options_.max_launches));
  std::array<bool, 2> filled{};
  for (size_t i = 0; i < launches; ++i) {
    const spec::Profile profile = choose_profile();
    builder.begin_launch(profile);
    const size_t share = length * (i + 1) / launches - length * i / launches;
    if (!filled[static_cast<size_t>(profile)]) profile == spec::Profile::kBase ? fill_base() : fill_native();
    filled[static_cast<size_t>(profile)] = true;
    for (int tries = 0; builder.length() < share && tries < 4000; ++tries) {
      if (profile == spec::Profile::kBase) body_base();
      else body_native();
    }
    builder.finish();
  }
  assign_stream_addresses();
  return std::move(program_);
}

spec::Profile Generator::choose_profile() {
  if (options_.profile) return *options_.profile;
  if (!config_.base) return spec::Profile::kNative;
  if (!config_.native) return spec::Profile::kBase;
  return random_.chance(50) ? spec::Profile::kBase : spec::Profile::kNative;
}

// Lays out memory: [0, data_) is free for loads and stores, [data_, uops_end_) has micro-ops, streams follow.
void Generator::lay_out() {
  int64_t bytes = kLeastData;
  for (size_t m = 0; m < spec::kScratchpads; ++m) {
    const auto memory = static_cast<Memory>(m);
    const int64_t depth = config_.depth(memory);
    Window& w = windows_[m];
    w.size = std::min<int64_t>(depth, random_.between(8, kMostElements));
    if (memory == Memory::kPar) w.size = std::min<int64_t>(depth, random_.between(1, 8));
    w.low = random_.chance(30) ? 0 : random_.chance(40) ? depth - w.size : random_.between(0, depth - w.size);
    bytes = std::max(bytes, 2 * w.size * config_.element_bytes(memory));
  }
  data_ = data_bytes(bytes);
  const int64_t uops = windows_[index_of(Memory::kUop)].size + kSpareUops;
  uops_begin_ = data_ + 4 * random_.between(0, 16);
  uops_end_ = uops_begin_ + 4 * uops;
  program_.memory.resize(whole_pages(static_cast<uint64_t>(uops_end_)));
  for (std::byte& b : program_.memory)
    b = static_cast<std::byte>(random_.chance(5) ? random_.of({0x00, 0x7f, 0x80, 0xff})
                                                 : static_cast<int>(random_.next() & 255));
  for (int64_t i = 0; i < uops; ++i) {
    // Micro-ops in the lower part of the windows leave room for the loops.
    const auto random_index = [&](Memory m) {
      const Window& w = windows_[index_of(m)];
      return static_cast<uint32_t>(w.low +
                                   random_.between(0, std::max<int64_t>(w.size / (random_.chance(70) ? 4 : 1) - 1, 0)));
    };
    const bool for_alu = random_.chance(40);
    const spec::base::Uop uop{.dst = random_index(Memory::kAcc),
                              .src = random_index(for_alu ? Memory::kAcc : Memory::kInp),
                              .wgt = random_index(Memory::kWgt)};
    const uint32_t word = isa_.encode_uop(uop);
    std::memcpy(program_.memory.data() + uops_begin_ + 4 * i, &word, 4);
  }
  for (size_t i = 0; i < program_.bases.size(); ++i) {
    const int64_t alignment = random_.of({1, 4, 16, 64});
    program_.bases[i] = static_cast<uint64_t>(random_.between(0, data_ / 4) / alignment * alignment);
  }
  // The base of the micro-ops is a multiple of 4 bytes from them, so that every element is a whole micro-op.
  program_.bases[spec::kBaseUop] = static_cast<uint64_t>(random_.chance(50) ? uops_begin_ : uops_begin_ % 4);
}

// The bytes that the configuration addresses after the program's memory.
uint64_t Generator::spare_bytes() const {
  const uint64_t memory = program_.memory.size(), end = config_.address_mask();
  return end < memory ? 0 : end - memory + (end == ~uint64_t{0} ? 0 : 1);
}

void Generator::assign_stream_addresses() {
  uint64_t at = program_.memory.size(), spare = spare_bytes();
  for (const Launch& l : program_.launches) spare -= std::min<uint64_t>(spare, uint64_t{l.slots()} * spec::kSlotBytes);
  for (Launch& l : program_.launches) {
    const uint64_t gap = std::min(spare / 16 * 16, 16 * static_cast<uint64_t>(random_.between(0, 255)));
    at += gap, spare -= gap;
    l.stream = at;
    at += uint64_t{l.slots()} * spec::kSlotBytes;
  }
  program_.memory.resize(whole_pages(at));
}

// Sets the factors such that base + sum((extent - 1) * factor) is in [low, high); returns the base.
int64_t Generator::nest(int64_t low, int64_t high, std::vector<Loop> loops) {
  int64_t room = high - low - 1;
  for (size_t i = loops.size(); i > 1; --i)
    std::swap(loops[i - 1], loops[static_cast<size_t>(random_.between(0, static_cast<int64_t>(i) - 1))]);
  for (const Loop& l : loops) {
    if (l.extent <= 1) {
      *l.factor = random_.value(0, l.max);
      continue;
    }
    const int64_t most = std::min(room / (l.extent - 1), l.max);
    *l.factor = random_.chance(40) ? std::min<int64_t>(most, random_.between(0, 2)) : random_.between(0, most);
    room -= *l.factor * (l.extent - 1);
  }
  return low + random_.between(0, room);
}

// Sets extents whose product is at most `steps`; rarely an extent is 0.
void Generator::extents(std::initializer_list<int64_t*> fields, int64_t steps, int64_t max, bool zero) {
  for (int64_t* e : fields) {
    *e = random_.size(std::min(steps, max));
    steps /= *e;
  }
  if (zero && random_.chance(4)) *fields.begin()[random_.between(0, static_cast<int64_t>(fields.size()) - 1)] = 0;
}

Status check_memory(const spec::Config& config) {
  int64_t bytes = kLeastData;
  for (size_t m = 0; m < spec::kScratchpads; ++m) {
    const auto memory = static_cast<spec::Memory>(m);
    bytes = std::max(bytes, 2 * std::min(config.depth(memory), kMostElements) * config.element_bytes(memory));
  }
  const int64_t uops = 4 * (std::min(config.depth(spec::Memory::kUop), kMostElements) + 2 * kSpareUops);
  const uint64_t least = whole_pages(static_cast<uint64_t>(data_bytes(bytes) + uops)) + kPageBytes;  // for streams
  if (config.address_mask() >= least - 1) return {};
  return error(fmt::format("random programs need {} bytes of memory, of which the configuration addresses {}", least,
                           config.address_mask() + 1),
               config.name, fmt::format("set address_bits to {} or more", std::bit_width(least - 1)));
}

Program generate(const spec::Config& config, uint64_t seed, const GeneratorOptions& options) {
  return Generator(config, seed, options).run();
}

}  // namespace tenon::sim::fuzz
