#include "sim/timing/transfer_plan.h"

#include <algorithm>

namespace tenon::sim::timing {
namespace {

constexpr uint32_t kRowGap = 1;  // cycles from the last vector of a row to the first beat of the next row

// The number of vectors that the unit moves in a cycle each: an element of a base transfer may be several vectors.
int64_t unit_vectors(const spec::Config& config, const Dma& dma) {
  if (dma.convert != Dma::Convert::kNone) return dma.vectors;
  return dma.vectors * std::max(dma.vector_bytes / config.unit_bytes(dma.memory), 1);
}

// In order, the cycles of a row, whose bytes move one by one, padding included; a store reads each vector before.
constexpr uint64_t kStoredVector = 1, kStoredBeat = 2;
uint64_t bytewise_work(const Dma& dma) {
  const int64_t overhead = dma.store ? static_cast<int64_t>(kStoredVector) : 0;
  return static_cast<uint64_t>(dma.vectors * (dma.vector_bytes + overhead));
}

// Whether the rows are contiguous in DRAM, and so are one long row.
bool dense(const spec::Config& config, const Dma& d) {
  return !config.in_order && d.left == 0 && d.top == 0 && d.source_rows >= d.rows && d.valid == d.vector_bytes &&
         d.x_step == d.vector_bytes && d.row_bytes == d.vectors * d.vector_bytes &&
         (d.y_step == d.row_bytes || d.rows == 1);
}

}  // namespace

void append_bursts(const spec::Config& config, uint64_t address, uint64_t bytes, uint32_t max_beats,
                   std::vector<Burst>& bursts) {
  const auto beat = static_cast<uint64_t>(config.axi_bytes());
  const uint64_t end = (address + bytes + beat - 1) / beat * beat;
  for (uint64_t at = address / beat * beat; at < end;) {
    const uint64_t limit = std::min({at + beat * max_beats, (at / kBurstBoundary + 1) * kBurstBoundary, end});
    bursts.push_back({.beats = static_cast<uint32_t>((limit - at) / beat)});
    at = limit;
  }
}

TransferPlan plan(const spec::Config& config, const Dma& dma) {
  TransferPlan result;
  const bool merged = dense(config, dma);
  const int64_t rows = merged ? 1 : dma.rows;
  const auto vectors = static_cast<uint64_t>(merged ? unit_vectors(config, dma) * dma.rows : unit_vectors(config, dma));
  const uint64_t row_work = config.in_order ? bytewise_work(dma) : vectors;
  const int64_t row_bytes = merged ? dma.row_bytes * dma.rows : dma.row_bytes;
  const int64_t all_vectors = merged ? dma.vectors * dma.rows : dma.vectors;
  const int64_t first = std::max<int64_t>(-dma.left, 0);
  const int64_t last = std::min((all_vectors - 1) * dma.x_step - dma.left + dma.valid, row_bytes);
  uint32_t idle = 0;
  for (int64_t y = 0; y < rows; ++y) {
    if (!dma.row_in_dram(y) || first >= last) {
      idle += static_cast<uint32_t>(row_work);
      continue;
    }
    const size_t begin = result.bursts.size();
    append_bursts(config, dma.row_address(y) + static_cast<uint64_t>(first), static_cast<uint64_t>(last - first),
                  static_cast<uint32_t>(config.max_burst_beats), result.bursts);
    uint64_t beats = 0;
    for (size_t i = begin; i < result.bursts.size(); ++i) beats += result.bursts[i].beats;
    const uint64_t beat_work = config.in_order && dma.store ? beats * kStoredBeat : 0;
    for (size_t i = begin; i < result.bursts.size(); ++i) {
      Burst& b = result.bursts[i];
      b.work = static_cast<uint32_t>((b.beats * (std::max(row_work, beats) + beat_work) + beats - 1) / beats);
      if (i == begin) b.work += kRowGap, b.idle_work = idle;
    }
    idle = 0;
    result.last_row = static_cast<uint32_t>(result.bursts.size() - begin);
  }
  result.tail = idle;
  return result;
}

}  // namespace tenon::sim::timing
