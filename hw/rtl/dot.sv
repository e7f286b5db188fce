// One output lane's dot product of BLOCK_IN int8 pairs in three registered stages: products, sums of four, sum. Each is
// registered at its natural width: wider registered sums of products break in some mappings to DSP blocks.
//
// Not inlined by Verilator, so that its compiler gets small functions; the sums are computed under the enables, so that
// an idle lane costs no time. With TENON_FAST_DOT, for simulators, the sum is computed in the first stage, two products
// a 64-bit multiplication, and passes through the other two: equal at the output, a third of the work.
module dot #(
  parameter int Lanes    = 16,
  parameter int SumWidth = 20  // 16 + log2 Lanes
) (
  input  logic                       clk_i,
  input  logic                       product_en_i,
  input  logic                       group_en_i,
  input  logic                       sum_en_i,
  input  logic [Lanes*8-1:0]         a_i,
  input  logic [Lanes*8-1:0]         b_i,
  output logic signed [SumWidth-1:0] sum_o
);
  /* verilator no_inline_module */

`ifdef TENON_FAST_DOT
  // Two's complement is bits ^ 128 - 128: so fields of 32 bits become signed values without a test of signs. Then
  // (a0 + a1 2^32) (b1 + b0 2^32) = a0 b1 + (a0 b0 + a1 b1) 2^32 modulo 2^64, and sums of 32 of these do not overflow.
  localparam int          Words = (Lanes + 7) / 8;
  localparam logic [63:0] Signs = 64'h8080808080808080;
  localparam logic [63:0] Field = 64'h000000ff000000ff;
  localparam logic [63:0] Bias  = 64'h0000008000000080;

  function automatic logic [63:0] dot_of_eight(logic [63:0] a, logic [63:0] b);
    logic [63:0] x, y;
    x = a ^ Signs;
    y = {b[31:0], b[63:32]} ^ Signs;
    dot_of_eight = ((x & Field) - Bias) * ((y & Field) - Bias) +
                   (((x >> 8) & Field) - Bias) * (((y >> 8) & Field) - Bias) +
                   (((x >> 16) & Field) - Bias) * (((y >> 16) & Field) - Bias) +
                   (((x >> 24) & Field) - Bias) * (((y >> 24) & Field) - Bias);
  endfunction

  logic [Words*64-1:0] a, b;
  logic [SumWidth-1:0] first_q, second_q;
  assign a = (Words * 64)'(a_i);
  assign b = (Words * 64)'(b_i);

  always_ff @(posedge clk_i) begin
    logic [63:0] total;
    if (product_en_i) begin
      total = 64'h80000000;  // rounds away what the low fields borrow
      for (int w = 0; w < Words; w++) total = total + dot_of_eight(a[w*64+:64], b[w*64+:64]);
      first_q <= total[32+:SumWidth];
    end
    if (group_en_i) second_q <= first_q;
    if (sum_en_i) sum_o <= $signed(second_q);
  end
`else
  logic [Lanes*16-1:0] products_q;
  for (genvar l = 0; l < Lanes; l++) begin : g_lane
    logic signed [7:0]  a, b;
    logic signed [31:0] a_times_b;  // a machine word, which simulates faster; 16 bits hold it
    logic               unused_sign;
    assign a           = a_i[l*8+:8];
    assign b           = b_i[l*8+:8];
    assign a_times_b   = a * b;
    assign unused_sign = ^a_times_b[31:16];
    always_ff @(posedge clk_i) begin
      if (product_en_i) products_q[l*16+:16] <= a_times_b[15:0];
    end
  end

  dot_tree #(
    .Lanes   (Lanes),
    .SumWidth(SumWidth)
  ) u_tree (
    .clk_i,
    .group_en_i,
    .sum_en_i,
    .products_i(products_q),
    .sum_o
  );
`endif

`ifndef SYNTHESIS
  initial begin
    TheSumHoldsEveryProduct: assert (2**(SumWidth - 16) >= Lanes);
`ifdef TENON_FAST_DOT
    TheFastSumIsExactAtTheExtremes: assert ((dot_of_eight(Signs, Signs) + 64'h80000000) >> 32 == 64'd131072 &&
                                            (dot_of_eight(Signs, ~Signs) + 64'h80000000) >> 32 == 64'hfffe0400);
`endif
  end
`endif

endmodule
