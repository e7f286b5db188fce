// The sum of a lane's products in two registered stages: sums of four, sum. Each is registered at its natural width:
// wider registered sums of products break in some mappings to DSP blocks.
module dot_tree #(
  parameter int Lanes    = 16,
  parameter int SumWidth = 20  // 16 + log2 Lanes
) (
  input  logic                       clk_i,
  input  logic                       group_en_i,
  input  logic                       sum_en_i,
  input  logic [Lanes*16-1:0]        products_i,  // signed
  output logic signed [SumWidth-1:0] sum_o
);

  // 16 groups of 4 lanes; those beyond Lanes are 0.
  for (genvar g = 0; g < 16; g++) begin : g_group
    logic signed [SumWidth-1:0] sum;
    if (g * 4 < Lanes) begin : g_used
      for (genvar l = 0; l < 4; l++) begin : g_lane
        logic signed [31:0] product;
        if (g * 4 + l < Lanes) begin : g_used
          assign product = 32'($signed(products_i[(g*4+l)*16+:16]));
        end else begin : g_unused
          assign product = '0;
        end
      end
      logic signed [31:0] group;
      logic signed [17:0] group_q;
      logic               unused_group;
      assign group = (g_lane[0].product + g_lane[1].product) + (g_lane[2].product + g_lane[3].product);
      assign unused_group = ^group[31:18];
      always_ff @(posedge clk_i) begin
        if (group_en_i) group_q <= group[17:0];
      end
      // Of one or two products the upper bits only repeat the sign.
      if (SumWidth > 18) begin : g_wider
        assign sum = {{(SumWidth - 18) {group_q[17]}}, group_q};
      end else begin : g_narrower
        assign sum = group_q[SumWidth-1:0];
        logic unused_sign;
        assign unused_sign = ^group_q;
      end
    end else begin : g_unused
      assign sum = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (sum_en_i) begin
      sum_o <= (((g_group[0].sum + g_group[1].sum) + (g_group[2].sum + g_group[3].sum)) +
                ((g_group[4].sum + g_group[5].sum) + (g_group[6].sum + g_group[7].sum))) +
               (((g_group[8].sum + g_group[9].sum) + (g_group[10].sum + g_group[11].sum)) +
                ((g_group[12].sum + g_group[13].sum) + (g_group[14].sum + g_group[15].sum)));
    end
  end

`ifndef SYNTHESIS
  initial begin
    TheSumHoldsEveryProduct: assert (2**(SumWidth - 16) >= Lanes);
    TheTreeHasALeafForEveryLane: assert (Lanes <= 64);
  end
`endif

endmodule
