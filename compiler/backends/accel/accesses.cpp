// The memory accesses of a tile operation, range by range, from which its tokens are derived.
#include <algorithm>
#include <cassert>

#include "compiler/backends/accel/tokens.h"

namespace tenon::compiler::accel {
namespace {

using spec::Memory;
namespace native = spec::native;

Memory memory_of(const native::Move& move) {
  switch (static_cast<native::MoveFunction>(move.function)) {
    case native::MoveFunction::kInp: return Memory::kInp;
    case native::MoveFunction::kWgt: return Memory::kWgt;
    case native::MoveFunction::kPar: return Memory::kPar;
    case native::MoveFunction::kRes: return Memory::kRes;
    case native::MoveFunction::kOut: return Memory::kOut;
  }
  assert(false && "unknown move function");
  return Memory::kInp;
}

// The bytes of vector x that are in DRAM, as an interval of k.
struct Span {
  int64_t begin, end;
};
Span row_span(const native::Move& move, int64_t unit, int64_t x) {
  const int64_t valid = move.valid == 0 ? unit : std::min(move.valid, unit);
  const int64_t k = x * move.x_step - move.left;
  return {std::max<int64_t>(k, 0), std::min(k + valid, move.row_bytes)};
}

// The rows that are in DRAM, and not padding.
Span rows_in_dram(const native::Move& move) { return {move.top, std::min(move.rows, move.top + move.source_rows)}; }

void append_move(const spec::Config& config, const native::Move& move, std::vector<Access>& list) {
  const Memory memory = memory_of(move);
  const bool store = memory == Memory::kOut;
  const int64_t units = move.rows * move.vectors;
  if (units == 0) return;
  const int64_t per_element = config.units_per_element(memory);
  list.push_back({memory, 0, static_cast<uint64_t>(move.sram_base),
                  static_cast<uint64_t>(move.sram_base + (units + per_element - 1) / per_element), !store});
  const int64_t unit = config.unit_bytes(memory);
  const Span rows = rows_in_dram(move);
  if (rows.begin >= rows.end) return;
  // Steps are positive, so the first and the last vector that touch DRAM delimit the interval.
  const int64_t valid = move.valid == 0 ? unit : std::min(move.valid, unit), step = std::max<int64_t>(move.x_step, 1);
  const int64_t first = move.left < valid ? 0 : (move.left - valid) / step + 1;
  const int64_t last =
      move.x_step == 0 ? 0 : std::min(move.vectors - 1, (move.left + move.row_bytes + step - 1) / step - 1);
  if (first > last || move.row_bytes == 0) return;
  const Span bytes{row_span(move, unit, first).begin, row_span(move, unit, last).end};
  if (bytes.begin >= bytes.end) return;
  const int64_t last_row = rows.end - 1 - move.top;
  list.push_back({Memory::kDram, static_cast<int>(move.base), static_cast<uint64_t>(move.offset + bytes.begin),
                  static_cast<uint64_t>(move.offset + last_row * move.y_step + bytes.end), store});
}

uint64_t last_of(int64_t base, std::initializer_list<std::pair<int64_t, int64_t>> loops) {
  for (const auto& [extent, factor] : loops) base += (extent - 1) * factor;
  return static_cast<uint64_t>(base) + 1;
}

// The accumulators that RQ reads: an interval, or, where windows cross the end of acc, one for each row of a window.
void append_accumulators(const spec::Config& config, const native::Requantize& r, std::vector<Access>& list) {
  const auto append = [&](int64_t begin, int64_t end) {
    list.push_back({Memory::kAcc, 0, static_cast<uint64_t>(begin), static_cast<uint64_t>(end), false});
  };
  const auto end = static_cast<int64_t>(last_of(
      r.acc_base, {{r.rows, r.acc_pitch}, {r.cols, r.acc_step}, {r.window_rows(), r.win_pitch}, {r.window_cols(), 1}}));
  const int64_t depth = config.depth(Memory::kAcc);
  if (!r.has_window() || end <= depth) return append(r.acc_base, end);
  const int64_t extent = (r.cols - 1) * r.acc_step + r.window_cols();
  for (int64_t y = 0; y < r.rows; ++y) {
    for (int64_t i = 0; i < r.window_rows(); ++i) {
      const int64_t begin = (r.acc_base + y * r.acc_pitch + i * r.win_pitch) % depth;
      append(begin, std::min(begin + extent, depth));
      if (begin + extent > depth) append(0, std::min(begin + extent - depth, depth));
    }
  }
}

}  // namespace

std::vector<Access> accesses(const spec::Config& config, const spec::Instruction& instruction) {
  std::vector<Access> list;
  if (const auto* move = std::get_if<native::Move>(&instruction)) {
    append_move(config, *move, list);
  } else if (const auto* g = std::get_if<native::Gemm>(&instruction)) {
    if (g->r0 * g->r1 * g->r2 * g->y * g->x == 0) return list;
    const auto at = [](int64_t x) { return static_cast<uint64_t>(x); };
    list.push_back(
        {Memory::kInp, 0, at(g->src_base),
         last_of(g->src_base,
                 {{g->r0, g->src_r0}, {g->r1, g->src_r1}, {g->r2, g->src_r2}, {g->y, g->src_y}, {g->x, g->src_x}}),
         false});
    list.push_back({Memory::kWgt, 0, at(g->wgt_base),
                    g->own != 0 ? last_of(g->wgt_base, {})
                                : last_of(g->wgt_base, {{g->r0, g->wgt_r0}, {g->r1, g->wgt_r1}, {g->r2, g->wgt_r2}}),
                    false});
    list.push_back(
        {Memory::kAcc, 0, at(g->dst_base), last_of(g->dst_base, {{g->y, g->dst_y}, {g->x, g->dst_x}}), true});
  } else if (const auto* r = std::get_if<native::Requantize>(&instruction)) {
    if (r->rows * r->cols == 0) return list;
    const auto at = [](int64_t x) { return static_cast<uint64_t>(x); };
    append_accumulators(config, *r, list);
    list.push_back({Memory::kPar, 0, at(r->par_base), at(r->par_base + 1), false});
    if (r->residual) {
      list.push_back(
          {Memory::kRes, 0, at(r->res_base), last_of(r->res_base, {{r->rows, r->res_pitch}, {r->cols, 1}}), false});
    }
    list.push_back({r->to_inp != 0 ? Memory::kInp : Memory::kOut, 0, at(r->out_base),
                    last_of(r->out_base, {{r->rows, r->out_pitch}, {r->cols, 1}}), true});
  } else {
    assert(std::holds_alternative<native::Sync>(instruction) || std::holds_alternative<native::Finish>(instruction));
  }
  return list;
}

int64_t dram_bytes(const spec::Config& config, const native::Move& move) {
  const int64_t unit = config.unit_bytes(memory_of(move));
  const Span rows = rows_in_dram(move);
  int64_t row = 0;
  for (int64_t x = 0; x < move.vectors; ++x) {
    const Span span = row_span(move, unit, x);
    row += std::max<int64_t>(0, span.end - span.begin);
  }
  return std::max<int64_t>(0, rows.end - rows.begin) * row;
}

}  // namespace tenon::compiler::accel
