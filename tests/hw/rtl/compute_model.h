// The reference model of module `compute`, directly after hw/spec/isa.h: sequential, one scratchpad element at a time.
// Every write to acc or out is recorded in order, as on the RTL's trace ports.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/spec/config.h"
#include "hw/spec/isa.h"
#include "hw/spec/requantize.h"

namespace tenon::rtl_test {

struct Write {
  uint32_t index = 0;    // of the instruction
  uint32_t address = 0;  // element
  std::vector<int32_t> lanes;
  bool operator==(const Write&) const = default;
};

// The commands of compute_pkg.sv.
struct GemmCommand {
  uint32_t index = 0;
  bool is_base = false, reset = false, first = false, own = false;
  uint32_t r0 = 1, r1 = 1, r2 = 1, y = 1, x = 1, uop_begin = 0, uop_end = 0;
  uint32_t dst_base = 0, src_base = 0, wgt_base = 0, dst_y = 0, dst_x = 0;
  uint32_t src_r0 = 0, src_r1 = 0, src_r2 = 0, src_y = 0, src_x = 0;
  uint32_t wgt_r0 = 0, wgt_r1 = 0, wgt_r2 = 0, wgt_y = 0, wgt_x = 0;
};
struct AluCommand {
  uint32_t index = 0;
  spec::base::AluOp op = spec::base::AluOp::kAdd;
  bool use_imm = false;
  int16_t imm = 0;
  uint32_t y = 1, x = 1, uop_begin = 0, uop_end = 0, dst_y = 0, dst_x = 0, src_y = 0, src_x = 0;
};
struct RqCommand {
  uint32_t index = 0;
  uint32_t rows = 1, cols = 1, acc_base = 0, acc_pitch = 0, acc_step = 0, out_base = 0, out_pitch = 0, par_base = 0;
  uint32_t res_base = 0, res_pitch = 0;
  bool to_inp = false;
  uint32_t win_rows = 0, win_cols = 0, win_pitch = 0;
  bool win_carry = false;
  bool has_window() const { return win_rows != 0 || win_cols != 0 || win_pitch != 0 || win_carry; }
  spec::LayerParameters layer;
};

// The result of one ALU operation on one lane.
int32_t alu(spec::base::AluOp op, int32_t a, int32_t b);

class Model {
 public:
  explicit Model(const spec::Config& config);

  // Each returns false if an index leaves its scratchpad; the earlier steps have their effect.
  bool execute(const GemmCommand& command);
  bool execute(const AluCommand& command);
  bool execute(const RqCommand& command);

  // A load as the DMA engines issue it: the bytes of one unit. `sign_extended` is MEM_ACC8.
  void load(spec::Memory memory, uint32_t unit, const std::vector<uint8_t>& bytes, bool sign_extended = false);

  const spec::Config& config;
  std::vector<uint32_t> uop;
  std::vector<int8_t> inp, wgt, out, res;
  std::vector<int32_t> acc;
  std::vector<uint8_t> par;
  std::vector<Write> acc_writes, out_writes, inp_writes;

 private:
  bool inside(uint64_t index, spec::Memory memory) const;
  int8_t requantized(const RqCommand& c, uint64_t source, int lane, int8_t residual) const;
  spec::Isa isa_;
};

}  // namespace tenon::rtl_test
