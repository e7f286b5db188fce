#include "sim/timing/transfer_plan.h"

#include <algorithm>

namespace tenon::sim::timing {
namespace {

constexpr uint64_t kPage = 4096;  // no burst crosses one
constexpr uint32_t kRowGap = 1;   // a row's first beat comes a cycle behind the last vector of the row before

// Vectors that the unit moves a cycle each: base transfers of wide elements are several.
int64_t unit_vectors(const spec::Config& config, const Dma& dma) {
  if (dma.convert != Dma::Convert::kNone) return dma.vectors;
  return dma.vectors * std::max(dma.vector_bytes / config.unit_bytes(dma.memory), 1);
}

// Rows that follow one another in DRAM are one long row.
bool dense(const Dma& d) {
  return d.left == 0 && d.top == 0 && d.source_rows >= d.rows && d.valid == d.vector_bytes &&
         d.x_step == d.vector_bytes && d.row_bytes == d.vectors * d.vector_bytes &&
         (d.y_step == d.row_bytes || d.rows == 1);
}

}  // namespace

void append_bursts(const spec::Config& config, uint64_t address, uint64_t bytes, uint32_t max_beats,
                   std::vector<Burst>& bursts) {
  const auto beat = static_cast<uint64_t>(config.axi_bytes());
  const uint64_t end = (address + bytes + beat - 1) / beat * beat;
  for (uint64_t at = address / beat * beat; at < end;) {
    const uint64_t limit = std::min({at + beat * max_beats, (at / kPage + 1) * kPage, end});
    bursts.push_back({.beats = static_cast<uint32_t>((limit - at) / beat)});
    at = limit;
  }
}

TransferPlan plan(const spec::Config& config, const Dma& dma) {
  TransferPlan result;
  const bool one_row = dense(dma);
  const int64_t rows = one_row ? 1 : dma.rows;
  const auto vectors =
      static_cast<uint64_t>(one_row ? unit_vectors(config, dma) * dma.rows : unit_vectors(config, dma));
  const int64_t row_bytes = one_row ? dma.row_bytes * dma.rows : dma.row_bytes;
  const int64_t all_vectors = one_row ? dma.vectors * dma.rows : dma.vectors;
  const int64_t first = std::max<int64_t>(-dma.left, 0);
  const int64_t last = std::min((all_vectors - 1) * dma.x_step - dma.left + dma.valid, row_bytes);
  uint32_t idle = 0;
  for (int64_t y = 0; y < rows; ++y) {
    if (!dma.row_in_dram(y) || first >= last) {
      idle += static_cast<uint32_t>(vectors);
      continue;
    }
    const size_t begin = result.bursts.size();
    append_bursts(config, dma.row_address(y) + static_cast<uint64_t>(first), static_cast<uint64_t>(last - first),
                  static_cast<uint32_t>(config.max_burst_beats), result.bursts);
    uint64_t beats = 0;
    for (size_t i = begin; i < result.bursts.size(); ++i) beats += result.bursts[i].beats;
    for (size_t i = begin; i < result.bursts.size(); ++i) {
      Burst& b = result.bursts[i];
      b.work = static_cast<uint32_t>((b.beats * std::max(vectors, beats) + beats - 1) / beats);
      if (i == begin) b.work += kRowGap, b.idle_work = idle;
    }
    idle = 0;
    result.last_row = static_cast<uint32_t>(result.bursts.size() - begin);
  }
  result.tail = idle;
  return result;
}

}  // namespace tenon::sim::timing
