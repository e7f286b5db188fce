// Dot products of every number of lanes that a configuration may have, 2 to 64, on the same operands.
module dot_bench (
  input  logic         clk_i,
  input  logic         product_en_i,
  input  logic         group_en_i,
  input  logic         sum_en_i,
  input  logic [511:0] a_i,
  input  logic [511:0] b_i,
  output logic [191:0] sum_o  // of 2 << i lanes at 32 i
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
  end

endmodule
