// One output lane's dot product of BLOCK_IN int8 pairs in three registered stages: products, sums of groups, sum. Each
// is registered at its natural width: wider registered sums of products break in some mappings to DSP blocks.
//
// Not inlined by Verilator: the lanes share one C++ function instead of a copy each.
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

  localparam int GroupLanes = 1 << (($clog2(Lanes) + 1) / 2);
  localparam int Groups     = Lanes / GroupLanes;
  localparam int GroupWidth = 16 + $clog2(GroupLanes);

  logic signed [Groups*GroupWidth-1:0] groups;

  for (genvar g = 0; g < Groups; g++) begin : g_group
    logic [GroupLanes*16-1:0] products;
    for (genvar l = 0; l < GroupLanes; l++) begin : g_lane
      logic signed [7:0]  a, b;
      logic signed [15:0] product_q;
      assign a = a_i[(g*GroupLanes+l)*8+:8];
      assign b = b_i[(g*GroupLanes+l)*8+:8];
      always_ff @(posedge clk_i) begin
        if (product_en_i) product_q <= a * b;
      end
      assign products[l*16+:16] = product_q;
    end

    logic signed [GroupWidth-1:0] group_d, group_q;
    always_comb begin
      group_d = '0;
      for (int l = 0; l < GroupLanes; l++) group_d = group_d + GroupWidth'($signed(products[l*16+:16]));
    end
    always_ff @(posedge clk_i) begin
      if (group_en_i) group_q <= group_d;
    end
    assign groups[g*GroupWidth+:GroupWidth] = group_q;
  end

  logic signed [SumWidth-1:0] sum_d;
  always_comb begin
    sum_d = '0;
    for (int g = 0; g < Groups; g++) sum_d = sum_d + SumWidth'($signed(groups[g*GroupWidth+:GroupWidth]));
  end
  always_ff @(posedge clk_i) begin
    if (sum_en_i) sum_o <= sum_d;
  end

endmodule
