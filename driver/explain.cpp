#include "driver/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "sim/simulator.h"
#include "support/try.h"

namespace tenon::driver {
namespace {

using namespace spec;

constexpr uint32_t kLastDecoded = 4;
constexpr uint32_t kMaxSlots = 1 << 16;  // read back to count a queue

Engine engine(size_t i) { return static_cast<Engine>(i); }

// The stream of the last launch, read back from the device's memory.
class Stream {
 public:
  static Expected<Stream> of(Accelerator& accelerator) {
    std::array<uint32_t, 4> words{};
    constexpr std::array kOffsets = {reg::kInstructions, reg::kInstructions + 4, reg::kCount, reg::kMode};
    for (size_t i = 0; i < words.size(); ++i) {
      TENON_TRY_ASSIGN(word, accelerator.read_register(kOffsets[i]));
      words[i] = *word;
    }
    return Stream(accelerator, words[0] | uint64_t{words[1]} << 32, words[2],
                  (words[3] & kModeNative) != 0 ? Profile::kNative : Profile::kBase);
  }

  uint32_t count() const { return count_; }
  uint32_t width() const { return profile_ == Profile::kNative ? 2 : 1; }

  // Slots [first, last); empty where they are not in a buffer of the client.
  std::vector<Slot> read(uint32_t first, uint32_t last) {
    std::vector<Slot> slots(last - first);
    const Buffer window{address_ + uint64_t{first} * kSlotBytes, slots.size() * kSlotBytes};
    const auto bytes = std::as_writable_bytes(std::span(slots));
    if (sim::Simulator* simulator = accelerator_.simulator()) {  // its memory may contain a stream outside any buffer
      const std::span<const std::byte> memory = simulator->memory();
      if (window.address > memory.size() || window.size > memory.size() - window.address) return {};
      std::ranges::copy(memory.subspan(window.address, window.size), bytes.begin());
    } else if (!accelerator_.read(window, 0, bytes)) {
      return {};
    }
    return slots;
  }
  auto decode(const std::vector<Slot>& slots, uint32_t at) const { return isa_.decode(slots, at, profile_); }

  std::string describe(uint32_t index) {
    std::string text = fmt::format("instruction {}", index);
    if (index >= count_) return text;
    const std::vector<Slot> slots = read(index, std::min(index + width(), count_));
    if (slots.empty()) return text;
    const auto instruction = decode(slots, 0);
    return fmt::format("{} ({})", text,
                       instruction ? isa_.disassemble(*instruction) : std::string(instruction.error().message));
  }

 private:
  Stream(Accelerator& accelerator, uint64_t address, uint32_t count, Profile profile)
      : accelerator_(accelerator),
        address_(address),
        count_(count),
        profile_(profile),
        isa_(accelerator.info().config) {}

  Accelerator& accelerator_;
  uint64_t address_;
  uint32_t count_;
  Profile profile_;
  Isa isa_;
};

// The registers of a run's progress. The run goes on while they are read: the decoder's slot is read last, so that no
// engine has an instruction after it.
struct Progress {
  std::array<uint32_t, kEngines> heads{};
  uint32_t activity = 0, outstanding = 0, decoded = 0;

  static Expected<Progress> of(Accelerator& accelerator) {
    Progress progress;
    std::vector<std::pair<uint32_t, uint32_t*>> registers = {{reg::kActivity, &progress.activity}};
    for (uint32_t e = 0; e < kEngines; ++e) registers.emplace_back(reg::kHead0 + 4 * e, &progress.heads[e]);
    registers.emplace_back(reg::kOutstanding, &progress.outstanding);
    registers.emplace_back(reg::kDecoded, &progress.decoded);
    for (const auto& [offset, value] : registers) {
      TENON_TRY_ASSIGN(read, accelerator.read_register(offset));
      *value = *read;
    }
    return progress;
  }
  bool has(size_t e) const { return (activity >> e & 1) != 0; }
  bool in_flight(size_t e) const { return (activity >> (8 + e) & 1) != 0; }
};

// The number of instructions of each engine from its head up to the decoder's slot; empty where the stream cannot be
// read up to this slot.
std::vector<uint32_t> count_queues(Stream& stream, const Progress& progress) {
  uint32_t first = progress.decoded;
  for (size_t e = 0; e < kEngines; ++e) {
    if (progress.has(e)) first = std::min(first, progress.heads[e]);
  }
  if (progress.decoded - first > kMaxSlots || progress.decoded > stream.count()) return {};
  const std::vector<Slot> slots = stream.read(first, progress.decoded);
  std::vector<uint32_t> counts(kEngines);
  for (uint32_t i = 0; i < progress.decoded - first; i += stream.width()) {
    const auto instruction = slots.empty() ? std::unexpected(DecodeError{}) : stream.decode(slots, i);
    if (!instruction) return {};
    const auto e = static_cast<size_t>(engine_of(*instruction));
    counts[e] += progress.has(e) && first + i >= progress.heads[e];
  }
  return counts;
}

}  // namespace

Expected<std::string> explain_instruction(Accelerator& accelerator, uint32_t index) {
  TENON_TRY_ASSIGN(stream, Stream::of(accelerator));
  return stream->describe(index);
}

Expected<std::string> explain_tokens(Accelerator& accelerator) {
  TENON_TRY_ASSIGN(waiting, accelerator.read_register(reg::kTokenWait));
  std::vector<std::string_view> engines;
  for (size_t e = 0; e < kEngines; ++e) {
    if ((*waiting >> e & 1) != 0) engines.push_back(name(engine(e)));
  }
  std::vector<std::string> tokens;
  uint32_t word = 0;
  for (uint32_t i = 0; i < kEngines * kEngines; ++i) {
    if (i % 4 == 0) {
      TENON_TRY_ASSIGN(read, accelerator.read_register(reg::kTokens + i));
      word = *read;
    }
    const uint32_t count = word >> (8 * (i % 4)) & 0xff;
    if (count == 0) continue;
    tokens.push_back(fmt::format("{}->{} {}", name(engine(i / kEngines)), name(engine(i % kEngines)), count));
  }
  return fmt::format("engines that wait for tokens: {}; tokens: {}",
                     engines.empty() ? "none" : fmt::format("{}", fmt::join(engines, ", ")),
                     tokens.empty() ? "none" : fmt::format("{}", fmt::join(tokens, ", ")));
}

Expected<std::string> explain_progress(Accelerator& accelerator) {
  if (!accelerator.info().config.progress) return std::string();
  TENON_TRY_ASSIGN(stream, Stream::of(accelerator));
  TENON_TRY_ASSIGN(progress, Progress::of(accelerator));
  std::string text =
      fmt::format("\n  decoded: {} of {} slots; outstanding bursts: {} of reads, {} of writes", progress->decoded,
                  stream->count(), progress->outstanding & 0xffff, progress->outstanding >> 16);
  const std::vector<uint32_t> counts = count_queues(*stream, *progress);
  for (size_t e = 0; e < kEngines; ++e) {
    if (!progress->has(e)) continue;
    text += fmt::format("\n  {}: {} {}", name(engine(e)), stream->describe(progress->heads[e]),
                        progress->in_flight(e) ? "is in flight" : "has not started");
    if (!counts.empty() && counts[e] > 0) text += fmt::format("; {} more after it", counts[e] - 1);
  }
  const uint32_t last = std::min(progress->decoded, stream->count());
  const uint32_t first = last - std::min(last, kLastDecoded * stream->width());
  if (last > first) text += "\n  last decoded instructions:";
  for (uint32_t i = first; i < last; i += stream->width()) text += fmt::format("\n    {}", stream->describe(i));
  return text;
}

}  // namespace tenon::driver
