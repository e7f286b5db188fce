// One lane of requantization (hw/spec/requantize.h), one element a cycle:
//   d  acc, bias, multiplier, r: the words of the memories, whose outputs are slow, and the parameters of the layer
//   e  t = acc + bias                  r - r_zero
//   f  t * multiplier, in halves of t
//   g  p, the sum of both products     r * r_multiplier
//   h  p >> shift                      r >> r_shift
//   i  clamp to v_lo, v_hi             saturate to 20 bits
//   j  (v + w + 128) >> 8
//   k  zero is added, clamp to lo, hi
// Each stage's registers follow its enable. Commands follow each other through the stages, so that parameters come with
// the stage before the one that uses them, and those of d go along with the element. Each lane has a copy of those of the
// layer, since the wires from one register to the multipliers of all lanes would be longer than a cycle; `keep` leaves
// synthesis no merging of these copies.
module rq_lane (
  input  logic               clk_i,
  input  logic               d_en_i,
  input  logic               e_en_i,
  input  logic               f_en_i,
  input  logic               g_en_i,
  input  logic               h_en_i,
  input  logic               i_en_i,
  input  logic               j_en_i,
  input  logic               k_en_i,
  input  logic        [31:0] acc_i,
  input  logic        [7:0]  res_i,
  // Parameters of the channel, with d_en_i.
  input  logic        [31:0] bias_i,
  input  logic        [15:0] multiplier_i,
  input  logic        [5:0]  shift_i,
  // Parameters of the layer.
  input  logic               residual_i,      // with d_en_i
  input  logic signed [7:0]  r_zero_i,        // with d_en_i
  input  logic        [15:0] r_multiplier_i,  // with f_en_i
  input  logic        [4:0]  r_shift_i,       // with g_en_i
  input  logic signed [11:0] v_lo_i,          // with h_en_i
  input  logic signed [11:0] v_hi_i,          // with h_en_i
  input  logic signed [7:0]  zero_i,          // with j_en_i
  input  logic signed [7:0]  lo_i,            // with j_en_i
  input  logic signed [7:0]  hi_i,            // with j_en_i
  output logic        [7:0]  out_o,
  // The ALU's use of the multiplier; never in a cycle with f_en_i.
  input  logic               multiply_i,
  input  logic        [31:0] multiplicand_i,
  input  logic        [15:0] alu_multiplier_i,
  output logic        [31:0] product_o
);
  /* verilator no_inline_module */

  logic        [31:0] acc_q, bias_q;
  logic        [7:0]  res_q;
  logic        [15:0] multiplier_q;
  logic               residual_q, e_residual_q, f_residual_q, g_residual_q, h_residual_q;
  logic signed [11:0] v_lo_q, v_hi_q;
  logic signed [7:0]  zero_q, lo_q, hi_q, r_zero_q;
  logic        [15:0] r_multiplier_q;
  logic        [4:0]  r_shift_q;
  logic signed [31:0] t_q;
  logic        [15:0] m_q;
  logic        [5:0]  d_shift_q, e_shift_q, f_shift_q, shift_q;
  logic        [31:0] low_q;   // the products of the halves of t
  logic signed [31:0] high_q;
  logic signed [47:0] p, p_q, shifted_q;
  logic signed [19:0] v_q, w_q;
  logic signed [13:0] sum_q;
  logic signed [8:0]  r_q, f_r_q;
  logic signed [24:0] r_product_q, r_shifted_q;

  // min(max(x, lo), hi), also if lo > hi. Functions, so that logic under an enable costs no simulation time without it.
  function automatic logic signed [19:0] clamp_v(logic signed [47:0] x, logic signed [11:0] lo,
                                                 logic signed [11:0] hi);
    logic signed [39:0] top;  // 256 * lo and 256 * hi have no low byte
    top = x[47:8];
    if (top < $signed({{28{lo[11]}}, lo})) begin
      clamp_v = lo < hi ? {lo, 8'd0} : {hi, 8'd0};
    end else begin
      clamp_v = top < $signed({{28{hi[11]}}, hi}) ? x[19:0] : {hi, 8'd0};
    end
  endfunction

  function automatic logic signed [19:0] saturate_w(logic signed [24:0] x);
    if (x[24:19] == 6'd0 | x[24:19] == 6'h3f) saturate_w = x[19:0];
    else saturate_w = {x[24], {19{~x[24]}}};
  endfunction

  function automatic logic signed [13:0] round_sum(logic signed [19:0] v, logic signed [19:0] w);
    logic signed [21:0] sum;
    logic               unused_low;
    sum = $signed({{2{v[19]}}, v}) + $signed({{2{w[19]}}, w}) + 22'sd128;
    unused_low = ^sum[7:0];
    round_sum = sum[21:8];
  endfunction

  function automatic logic [7:0] clamp_out(logic signed [13:0] sum, logic signed [7:0] zero, logic signed [7:0] lo,
                                           logic signed [7:0] hi);
    logic signed [15:0] x;
    x = $signed({{2{sum[13]}}, sum}) + $signed({{8{zero[7]}}, zero});
    if (x < $signed({{8{lo[7]}}, lo})) clamp_out = lo < hi ? lo : hi;
    else clamp_out = x < $signed({{8{hi[7]}}, hi}) ? x[7:0] : hi;
  endfunction

  always_ff @(posedge clk_i) begin
    if (d_en_i) begin
      acc_q        <= acc_i;
      bias_q       <= bias_i;
      multiplier_q <= multiplier_i;
      d_shift_q    <= shift_i;
      if (residual_i) res_q <= res_i;
    end
  end
  (* keep *) always_ff @(posedge clk_i) begin
    if (d_en_i) begin
      residual_q <= residual_i;
      r_zero_q   <= r_zero_i;
    end
    if (f_en_i) r_multiplier_q <= r_multiplier_i;
    if (g_en_i) r_shift_q <= r_shift_i;
    if (h_en_i) begin
      v_lo_q <= v_lo_i;
      v_hi_q <= v_hi_i;
    end
    if (j_en_i) begin
      zero_q <= zero_i;
      lo_q   <= lo_i;
      hi_q   <= hi_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (e_en_i) begin
      t_q <= $signed(acc_q + bias_q);
      m_q <= multiplier_q;
      e_shift_q    <= d_shift_q;
      e_residual_q <= residual_q;
      if (residual_q) r_q <= $signed({res_q[7], res_q}) - $signed({r_zero_q[7], r_zero_q});
    end
  end

  // The ALU's operands, or the requantizer's.
  logic signed [31:0] x;
  logic        [15:0] m;
  assign x = multiply_i ? $signed(multiplicand_i) : t_q;
  assign m = multiply_i ? alu_multiplier_i : m_q;

  // |t| * multiplier < 2^47.
  always_ff @(posedge clk_i) begin
    if (f_en_i | multiply_i) begin
      low_q  <= {16'd0, x[15:0]} * {16'd0, m};
      high_q <= 32'($signed(x[31:16]) * $signed({1'b0, m}));
    end
    if (f_en_i) begin
      f_shift_q    <= e_shift_q;
      f_residual_q <= e_residual_q;
      if (e_residual_q) f_r_q <= r_q;
    end
  end

  assign p         = $signed({high_q, 16'd0}) + $signed({16'd0, low_q});
  assign product_o = p[31:0];

  always_ff @(posedge clk_i) begin
    if (g_en_i) begin
      p_q     <= p;
      shift_q <= f_shift_q;
      g_residual_q <= f_residual_q;
      if (f_residual_q) r_product_q <= f_r_q * $signed({1'b0, r_multiplier_q});
    end
  end

  always_ff @(posedge clk_i) begin
    if (h_en_i) begin
      shifted_q <= p_q >>> shift_q;
      h_residual_q <= g_residual_q;
      if (g_residual_q) r_shifted_q <= r_product_q >>> r_shift_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (i_en_i) begin
      v_q <= clamp_v(shifted_q, v_lo_q, v_hi_q);
      w_q <= h_residual_q ? saturate_w(r_shifted_q) : 20'd0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (j_en_i) sum_q <= round_sum(v_q, w_q);
  end

  always_ff @(posedge clk_i) begin
    if (k_en_i) out_o <= clamp_out(sum_q, zero_q, lo_q, hi_q);
  end

`ifndef SYNTHESIS
  initial begin
    AValueBetweenTheBoundsStays: assert (clamp_v(48'sd700, -12'sd4, 12'sd4) == 20'sd700);
    CrossedBoundsGiveTheUpperOne: assert (clamp_v(48'sd0, 12'sd5, -12'sd3) == -20'sd768);
    AResidualSaturatesTo20Bits: assert (saturate_w(25'sd524288) == 20'sd524287 &&
                                        saturate_w(-25'sd524289) == -20'sd524288);
    HalvesRoundUp: assert (round_sum(20'sd128, 20'sd0) == 14'sd1 && round_sum(-20'sd128, 20'sd0) == 14'sd0);
    TheZeroPointIsAddedBeforeTheClamp: assert (clamp_out(14'sd5, 8'sd120, -8'sd128, 8'sd124) == 8'd124);
  end
`endif

endmodule
