// One output lane's dot product of BLOCK_IN int8 pairs without multipliers: a bit of every input a cycle, the sign
// first. The sum is doubled before each further bit, and the sign's bit counts negatively.
module dot_serial #(
  parameter int Lanes    = 2,
  parameter int SumWidth = 17  // 16 + log2 Lanes
) (
  input  logic                       clk_i,
  input  logic                       en_i,
  input  logic                       first_i,  // the bits are signs, and begin a sum
  input  logic [Lanes-1:0]           bits_i,
  input  logic [Lanes*8-1:0]         b_i,
  output logic signed [SumWidth-1:0] sum_o
);
  /* verilator no_inline_module */

  localparam int PartWidth = 8 + $clog2(Lanes);

  logic signed [PartWidth-1:0] part;  // the sum for this bit
  always_comb begin
    part = '0;
    for (int l = 0; l < Lanes; l++) begin
      part = part + PartWidth'($signed(b_i[l*8+:8] & {8{bits_i[l]}}));
    end
  end

  // base + addend + first_i by one addition: the complement and 1 negate the signs' part.
  logic [SumWidth-1:0] base, addend, sum;
  logic                unused_carry;
  assign base   = first_i ? '0 : {sum_o[SumWidth-2:0], 1'b0};
  assign addend = {{(SumWidth - PartWidth){part[PartWidth-1]}}, part} ^ {SumWidth{first_i}};
  assign {sum, unused_carry} = {base, 1'b1} + {addend, first_i};

  always_ff @(posedge clk_i) begin
    if (en_i) sum_o <= sum;
  end

`ifndef SYNTHESIS
  initial begin
    TheSumHoldsEveryProduct: assert (2**(SumWidth - 16) >= Lanes);
  end
`endif

endmodule
