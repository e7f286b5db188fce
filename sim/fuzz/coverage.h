// Functional coverage of programs that ran: which instruction, with which class of value in which field, started in
// which way. Lines of the RTL are counted by Verilator (sim/verilator).
//
// Semantics: a cell is (instruction, field, class of its value, way of its start). Values of a field are divided into
// classes by the field's width: zero; one; more, without the highest bit; with the highest bit, or, of a signed field,
// negative. An instruction starts while its engine is idle, adjacent to the engine's one before (the two overlap, or
// follow each other without a cycle between), or after it has waited for tokens. A class counts where an instruction
// with this value and otherwise zeros is legal in the configuration, so that fields of an extension that is off have
// the class zero alone. Instructions that no engine executes (the end of a stream) have no cells.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw/spec/isa.h"
#include "sim/fuzz/program.h"
#include "sim/simulator.h"

namespace tenon::sim::fuzz {

enum class ValueClass : uint8_t { kZero, kOne, kMore, kHigh };
inline constexpr auto kValueClassNames = std::to_array<std::string_view>({"zero", "one", "more", "high"});
enum class Start : uint8_t { kIdle, kAdjacent, kWaited };
inline constexpr auto kStartNames = std::to_array<std::string_view>({"idle", "adjacent", "waited"});

ValueClass class_of(const spec::Field& field, int64_t value);

class Coverage {
 public:
  explicit Coverage(const spec::Config& config);

  // Counts the instructions of a launch that has ended, by its timeline.
  void add(const Launch& launch, std::span<const Interval> timeline);

  size_t instructions() const { return instructions_; }
  size_t cells() const;    // see above; those that are legal together with other fields alone count once they have run
  size_t covered() const;  // cells that have run
  // One line a field: of each class the number of instructions in each way of starting; cells without are marked.
  std::string table() const;

 private:
  static constexpr size_t kClasses = kValueClassNames.size(), kStarts = kStartNames.size();
  using Counts = std::array<std::array<uint64_t, kStarts>, kClasses>;
  struct FieldCounts {
    std::array<bool, kClasses> legal{};
    Counts counts{};
  };

  spec::Isa isa_;
  std::vector<std::vector<FieldCounts>> fields_;  // by format, by field; empty for formats without cells
  size_t instructions_ = 0;
};

// A simulator that runs launches on another one and keeps the timeline of each.
class Recorded final : public Simulator {
 public:
  explicit Recorded(Simulator& simulator);

  // The timelines of the launches since the beginning, in order.
  const std::vector<std::vector<Interval>>& timelines() const { return timelines_; }

  const spec::Config& config() const override { return simulator_.config(); }
  uint32_t read_register(uint32_t offset) override { return simulator_.read_register(offset); }
  void write_register(uint32_t offset, uint32_t value) override;
  std::span<std::byte> memory() override { return simulator_.memory(); }
  bool advance(uint64_t cycles) override;
  std::string explain() override { return simulator_.explain(); }
  void observe(WriteObserver* observer) override { simulator_.observe(observer); }
  void record_timeline(bool on) override { simulator_.record_timeline(on); }
  std::span<const Interval> timeline() const override { return simulator_.timeline(); }

 private:
  Simulator& simulator_;
  std::vector<std::vector<Interval>> timelines_;
};

}  // namespace tenon::sim::fuzz
