// One lane of requantization (hw/spec/requantize.h), one element a cycle:
//   d  t = acc + bias           r - r_zero
//   e  p = t * multiplier       r * r_multiplier
//   f  p >> shift               r >> r_shift
//   g  clamp to v_lo, v_hi      saturate to 20 bits
//   h  zero + ((v + w + 128) >> 8), clamp to lo, hi
// Each stage's registers follow its enable. The parameters hold for a whole command.
module rq_lane (
  input  logic               clk_i,
  input  logic               d_en_i,
  input  logic               e_en_i,
  input  logic               f_en_i,
  input  logic               g_en_i,
  input  logic               h_en_i,
  input  logic        [31:0] acc_i,
  input  logic        [7:0]  res_i,
  // The channel's.
  input  logic        [31:0] bias_i,
  input  logic        [15:0] multiplier_i,
  input  logic        [5:0]  shift_i,
  // The layer's.
  input  logic               residual_i,
  input  logic signed [11:0] v_lo_i,
  input  logic signed [11:0] v_hi_i,
  input  logic signed [7:0]  zero_i,
  input  logic signed [7:0]  lo_i,
  input  logic signed [7:0]  hi_i,
  input  logic signed [7:0]  r_zero_i,
  input  logic        [15:0] r_multiplier_i,
  input  logic        [4:0]  r_shift_i,
  output logic        [7:0]  out_o
);
  /* verilator no_inline_module */

  logic signed [31:0] t_q;
  logic signed [47:0] p_q, shifted_q, v_lo, v_hi, at_least_lo;
  logic signed [19:0] v_q, w_q;
  logic signed [8:0]  r_q;
  logic signed [24:0] r_product_q, r_shifted_q;
  logic signed [15:0] sum, out, lo, hi, out_at_least_lo, out_clamped;
  logic signed [21:0] rounded;

  always_ff @(posedge clk_i) begin
    if (d_en_i) begin
      t_q <= $signed(acc_i + bias_i);
      if (residual_i) r_q <= $signed({res_i[7], res_i}) - $signed({r_zero_i[7], r_zero_i});
    end
  end

  // |t| * multiplier < 2^47: the product of 32 signed and 17 signed bits fits 48.
  always_ff @(posedge clk_i) begin
    if (e_en_i) begin
      p_q <= t_q * $signed({1'b0, multiplier_i});
      if (residual_i) r_product_q <= r_q * $signed({1'b0, r_multiplier_i});
    end
  end

  always_ff @(posedge clk_i) begin
    if (f_en_i) begin
      shifted_q <= p_q >>> shift_i;
      if (residual_i) r_shifted_q <= r_product_q >>> r_shift_i;
    end
  end

  assign v_lo        = $signed({{28{v_lo_i[11]}}, v_lo_i, 8'd0});
  assign v_hi        = $signed({{28{v_hi_i[11]}}, v_hi_i, 8'd0});
  assign at_least_lo = shifted_q > v_lo ? shifted_q : v_lo;
  always_ff @(posedge clk_i) begin
    if (g_en_i) begin
      v_q <= at_least_lo < v_hi ? at_least_lo[19:0] : v_hi[19:0];
      if (!residual_i) w_q <= 20'd0;
      else if (r_shifted_q[24:19] == 6'd0 | r_shifted_q[24:19] == 6'h3f) w_q <= r_shifted_q[19:0];
      else w_q <= {r_shifted_q[24], {19{~r_shifted_q[24]}}};
    end
  end

  assign rounded         = $signed({{2{v_q[19]}}, v_q}) + $signed({{2{w_q[19]}}, w_q}) + 22'sd128;
  assign sum             = $signed({{2{rounded[21]}}, rounded[21:8]});
  assign out             = sum + $signed({{8{zero_i[7]}}, zero_i});
  assign lo              = $signed({{8{lo_i[7]}}, lo_i});
  assign hi              = $signed({{8{hi_i[7]}}, hi_i});
  assign out_at_least_lo = out > lo ? out : lo;
  assign out_clamped     = out_at_least_lo < hi ? out_at_least_lo : hi;
  always_ff @(posedge clk_i) begin
    if (h_en_i) out_o <= out_clamped[7:0];
  end

  logic unused_bits;
  assign unused_bits = ^{rounded[7:0], out_clamped[15:8]};

endmodule
