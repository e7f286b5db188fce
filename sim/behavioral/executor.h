// The scratchpads, and the effect of each instruction on them and on DRAM.
//
// Semantics: hw/spec/isa.h, sequential per instruction. execute() is called with the instruction's footprint, whose
// computation has proved that every scratchpad element is in bounds; outside_dram() checks the DRAM accesses and is
// called before execute().
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hw/spec/isa.h"
#include "sim/behavioral/footprint.h"
#include "sim/behavioral/kernels.h"
#include "sim/simulator.h"

namespace tenon::sim {

class Executor {
 public:
  Executor(const spec::Isa& isa, const KernelSet& kernels, std::span<std::byte> dram);

  // The first range of the transfer that is outside DRAM, or nothing.
  std::optional<Range> outside_dram(const Dma& dma) const;
  void execute(const spec::Instruction& instruction, const Footprint& footprint);
  // Reports the writes of execute(), one per element.
  void report(const spec::Instruction& instruction, uint32_t index, const Footprint& footprint,
              WriteObserver& observer) const;

  std::span<const uint32_t> uops() const;
  std::span<const std::byte> scratchpad(spec::Memory memory) const { return pad(memory); }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  using Bytes = std::unique_ptr<std::byte[], Free>;
  static Bytes allocate(size_t bytes);

  std::span<std::byte> pad(spec::Memory memory) const {
    return {pads_[index_of(memory)].get(), static_cast<size_t>(isa_.config().bytes[index_of(memory)])};
  }
  int32_t* acc(int64_t index) const;
  const std::byte* packed_inp(int64_t index) const {
    return packed_inp_.get() + static_cast<size_t>(index) * inp_bytes_;
  }
  const std::byte* packed_wgt(int64_t index) const {
    return packed_wgt_.get() + static_cast<size_t>(index) * wgt_bytes_;
  }
  void pack(const Footprint& footprint);

  void load(const Dma& dma);
  void store(const Dma& dma);
  void run(const spec::base::Gemm& gemm, const Footprint& footprint);
  void run(const spec::base::Alu& alu);
  void run(const spec::native::Gemm& gemm);
  void run_own(const spec::native::Gemm& gemm);
  void run(const spec::native::Requantize& rq);
  void requantize_window(const spec::native::Requantize& rq, RequantizeRun run, const spec::LayerParameters& layer,
                         int64_t y, int64_t x, std::vector<int8_t>& column, int8_t* result);

  const spec::Isa& isa_;
  const KernelSet& kernels_;
  Shape shape_;
  std::span<std::byte> dram_;
  std::array<Bytes, spec::kScratchpads> pads_;
  size_t inp_bytes_, wgt_bytes_;
  Bytes packed_inp_, packed_wgt_;
  Bitmap stale_inp_, stale_wgt_;  // elements whose packed form is out of date
  std::vector<spec::base::Uop> decoded_;
};

}  // namespace tenon::sim
