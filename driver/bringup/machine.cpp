#include "driver/bringup/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "driver/bringup/replay.h"
#include "support/try.h"

namespace tenon::driver {

namespace reg = spec::reg;

Expected<std::unique_ptr<Machine>> Machine::create(Accelerator& accelerator, Reproducer reproducer) {
  if (accelerator.simulator() == nullptr) {
    return error("the debugger requires a simulator, and this device is not a simulator", accelerator.info().uri,
                 "use behavioral:, verilator:, systemc: or lockstep:, which run the same program", Fault::kUsage);
  }
  if (reproducer.launches.empty()) return error("there is no launch to debug", reproducer.device);
  std::unique_ptr<Machine> machine(new Machine(accelerator, std::move(reproducer)));
  TENON_TRY(machine->restart());
  return machine;
}

Machine::Machine(Accelerator& accelerator, Reproducer reproducer)
    : accelerator_(accelerator),
      simulator_(*accelerator.simulator()),
      reproducer_(std::move(reproducer)),
      isa_(reproducer_.config) {
  for (int i = 0; i < spec::kScratchpads; ++i) {
    pads_[static_cast<size_t>(i)].element_bytes =
        static_cast<size_t>(reproducer_.config.element_bytes(static_cast<spec::Memory>(i)));
  }
  simulator_.observe(this);
}

Machine::~Machine() { simulator_.observe(nullptr); }

Status Machine::restart() {
  TENON_TRY(load(accelerator_, reproducer_));
  for (int i = 0; i < spec::kScratchpads; ++i) {
    Pad& pad = pads_[static_cast<size_t>(i)];
    pad.bytes.assign(static_cast<size_t>(reproducer_.config.bytes[static_cast<size_t>(i)]), std::byte{});
    pad.written.assign(static_cast<size_t>(reproducer_.config.depth(static_cast<spec::Memory>(i))), false);
  }
  launch_ = 0;
  decode();
  return {};
}

Status Machine::next_launch() {
  if (launch_ + 1 == reproducer_.launches.size()) return error("this was the last launch", {}, "use restart");
  ++launch_;
  decode();
  return {};
}

void Machine::decode() {
  state_ = State::kReady;
  done_count_ = 0;
  newly_done_.clear();
  newly_written_.clear();
  program_.clear();
  // An instruction that cannot be decoded stops the accelerator with an error; the instructions before it are
  // available.
  const Launch& launch = reproducer_.launches[launch_];
  const uint64_t room = reproducer_.memory_bytes - std::min(reproducer_.memory_bytes, launch.instructions);
  std::vector<spec::Slot> slots(std::min<uint64_t>(launch.count, room / spec::kSlotBytes));
  const auto bytes = contents(reproducer_, launch.instructions, slots.size() * spec::kSlotBytes);
  if (!bytes.empty()) std::memcpy(slots.data(), bytes.data(), bytes.size());
  const uint32_t width = launch.profile == spec::Profile::kNative ? 2 : 1;
  for (uint32_t slot = 0; slot < slots.size(); slot += width) {
    auto instruction = isa_.decode(slots, slot, launch.profile);
    if (!instruction) break;
    program_.push_back({std::move(*instruction), slot});
  }
  done_.assign(program_.size(), false);
}

Status Machine::start() {
  TENON_TRY(driver::start(accelerator_, reproducer_.launches[launch_]));
  state_ = State::kRunning;
  return {};
}

Status Machine::advance(uint64_t cycles) {
  if (state_ != State::kRunning || simulator_.advance(cycles)) return {};
  const auto code = static_cast<spec::StopCode>(simulator_.read_register(reg::kStatus) & 0xff);
  state_ = code == spec::StopCode::kNone ? State::kOver : State::kStopped;
  simulator_.read_register(reg::kControl);  // clears ap_done
  return {};
}

std::string Machine::stop_reason() {
  const auto code = static_cast<spec::StopCode>(simulator_.read_register(reg::kStatus) & 0xff);
  const uint32_t index = simulator_.read_register(reg::kErrorIndex);
  std::string text = fmt::format("{}, instruction {}", spec::describe(code), index);
  if (const auto at = index_of(index)) text += fmt::format(" ({})", isa_.disassemble(program_[*at].instruction));
  if (const std::string more = simulator_.explain(); !more.empty()) text += "\n  " + more;
  return text;
}

std::optional<size_t> Machine::index_of(uint32_t slot) const {
  const auto it = std::ranges::lower_bound(program_, slot, {}, &spec::Decoded::index);
  if (it == program_.end() || it->index != slot) return std::nullopt;
  return static_cast<size_t>(it - program_.begin());
}

std::vector<size_t> Machine::pending(spec::Engine engine) const {
  std::vector<size_t> result;
  for (size_t i = 0; i < program_.size(); ++i) {
    if (!done_[i] && spec::engine_of(program_[i].instruction) == engine) result.push_back(i);
  }
  return result;
}

unsigned Machine::tokens(spec::Engine producer, spec::Engine consumer) {
  const uint32_t i = spec::kEngines * static_cast<uint32_t>(producer) + static_cast<uint32_t>(consumer);
  return simulator_.read_register(reg::kTokens + i / 4 * 4) >> (i % 4 * 8) & 0xff;
}

Machine::TokenCounts Machine::all_tokens() {
  TokenCounts counts{};
  uint32_t word = 0;
  for (uint32_t i = 0; i < counts.size(); ++i) {
    if (i % 4 == 0) word = simulator_.read_register(reg::kTokens + i);
    counts[i] = static_cast<uint8_t>(word >> (i % 4 * 8));
  }
  return counts;
}

bool Machine::waits(spec::Engine engine) {
  return (simulator_.read_register(reg::kTokenWait) >> static_cast<unsigned>(engine) & 1) != 0;
}

std::optional<uint32_t> Machine::decoded() {
  if (state_ != State::kRunning) return std::nullopt;
  return simulator_.read_register(reg::kDecoded);
}

std::span<const std::byte> Machine::element(spec::Memory memory, uint64_t index) const {
  const Pad& pad = pads_[static_cast<size_t>(memory)];
  if (index >= pad.written.size() || !pad.written[index]) return {};
  return std::span(pad.bytes).subspan(index * pad.element_bytes, pad.element_bytes);
}

void Machine::on_write(const sim::Write& write) {
  newly_written_.push_back({write.instruction, write.memory, write.address});
  if (write.memory == spec::Memory::kDram) return;
  Pad& pad = pads_[static_cast<size_t>(write.memory)];
  if (write.address >= pad.written.size()) return;
  pad.written[write.address] = true;
  std::memcpy(pad.bytes.data() + write.address * pad.element_bytes, write.value.data(),
              std::min(write.value.size(), pad.element_bytes));
}

void Machine::on_done(uint32_t instruction) {
  newly_done_.push_back(instruction);
  const auto index = index_of(instruction);
  if (!index || done_[*index]) return;
  done_[*index] = true;
  ++done_count_;
}

}  // namespace tenon::driver
