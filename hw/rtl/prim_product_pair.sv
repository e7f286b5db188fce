// Two products of int8 numbers with one operand in common, registered, in one multiplier of 25 by 18 bits (DSP48):
// (b1 2^16 + b0) a = (a b1) 2^16 + a b0. The low product is the low 16 bits; a negative one has borrowed 1 from the high
// product, which gets it back after the register, where the multiplier's own register ends.
module prim_product_pair (
  input  logic               clk_i,
  input  logic               en_i,
  input  logic signed [7:0]  a_i,
  input  logic signed [7:0]  b0_i,
  input  logic signed [7:0]  b1_i,
  output logic signed [15:0] product0_o,
  output logic signed [15:0] product1_o
);

  logic signed [24:0] packed_b;
  logic signed [32:0] both;
  logic        [31:0] both_q;
  logic               unused_sign;

  assign packed_b    = $signed({b1_i[7], b1_i, 16'd0}) + $signed({{17{b0_i[7]}}, b0_i});
  assign both        = packed_b * a_i;
  assign unused_sign = both[32];  // the high product has 16 bits

  always_ff @(posedge clk_i) begin
    if (en_i) both_q <= both[31:0];
  end

  assign product0_o = both_q[15:0];
  assign product1_o = both_q[31:16] + {15'd0, both_q[15]};

endmodule
