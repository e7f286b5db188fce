// Dot products of every number of lanes that a configuration may have, 2 to 64, on the same operands: alone, and in
// pairs that share operand a.
module dot_bench (
  input  logic         clk_i,
  input  logic         product_en_i,
  input  logic         group_en_i,
  input  logic         sum_en_i,
  input  logic [511:0] a_i,
  input  logic [511:0] b_i,
  input  logic [511:0] b1_i,
  output logic [191:0] sum_o,        // of 2 << i lanes at 32 i
  output logic [191:0] pair_sum0_o,  // likewise, of a pair
  output logic [191:0] pair_sum1_o
);

  for (genvar i = 0; i < 6; i++) begin : g_lanes
    logic signed [16+i:0] sum;
    dot #(
      .Lanes   (2 << i),
      .SumWidth(17 + i)
    ) u_dot (
      .clk_i,
      .product_en_i,
      .group_en_i,
      .sum_en_i,
      .a_i  (a_i[(16<<i)-1:0]),
      .b_i  (b_i[(16<<i)-1:0]),
      .sum_o(sum)
    );
    assign sum_o[i*32+:32] = 32'(sum);

    logic signed [16+i:0] sum0, sum1;
    dot_pair #(
      .Lanes   (2 << i),
      .SumWidth(17 + i)
    ) u_pair (
      .clk_i,
      .product_en_i,
      .group_en_i,
      .sum_en_i,
      .a_i   (a_i[(16<<i)-1:0]),
      .b0_i  (b_i[(16<<i)-1:0]),
      .b1_i  (b1_i[(16<<i)-1:0]),
      .sum0_o(sum0),
      .sum1_o(sum1)
    );
    assign pair_sum0_o[i*32+:32] = 32'(sum0);
    assign pair_sum1_o[i*32+:32] = 32'(sum1);
  end

endmodule
