// The dot products of two output lanes, which share the input vector: a multiplier for each pair of their products
// (prim_product_pair.sv). Otherwise as two of dot.sv, which simulators get with TENON_FAST_DOT.
module dot_pair #(
  parameter int Lanes    = 16,
  parameter int SumWidth = 20  // 16 + log2 Lanes
) (
  input  logic                       clk_i,
  input  logic                       product_en_i,
  input  logic                       group_en_i,
  input  logic                       sum_en_i,
  input  logic [Lanes*8-1:0]         a_i,
  input  logic [Lanes*8-1:0]         b0_i,
  input  logic [Lanes*8-1:0]         b1_i,
  output logic signed [SumWidth-1:0] sum0_o,
  output logic signed [SumWidth-1:0] sum1_o
);

`ifdef TENON_FAST_DOT
  dot #(
    .Lanes   (Lanes),
    .SumWidth(SumWidth)
  ) u_dot0 (
    .clk_i,
    .product_en_i,
    .group_en_i,
    .sum_en_i,
    .a_i,
    .b_i  (b0_i),
    .sum_o(sum0_o)
  );
  dot #(
    .Lanes   (Lanes),
    .SumWidth(SumWidth)
  ) u_dot1 (
    .clk_i,
    .product_en_i,
    .group_en_i,
    .sum_en_i,
    .a_i,
    .b_i  (b1_i),
    .sum_o(sum1_o)
  );
`else
  logic [Lanes*16-1:0] products0, products1;
  for (genvar l = 0; l < Lanes; l++) begin : g_lane
    prim_product_pair u_products (
      .clk_i,
      .en_i      (product_en_i),
      .a_i       (a_i[l*8+:8]),
      .b0_i      (b0_i[l*8+:8]),
      .b1_i      (b1_i[l*8+:8]),
      .product0_o(products0[l*16+:16]),
      .product1_o(products1[l*16+:16])
    );
  end

  dot_tree #(
    .Lanes   (Lanes),
    .SumWidth(SumWidth)
  ) u_tree0 (
    .clk_i,
    .group_en_i,
    .sum_en_i,
    .products_i(products0),
    .sum_o     (sum0_o)
  );
  dot_tree #(
    .Lanes   (Lanes),
    .SumWidth(SumWidth)
  ) u_tree1 (
    .clk_i,
    .group_en_i,
    .sum_en_i,
    .products_i(products1),
    .sum_o     (sum1_o)
  );
`endif

endmodule
