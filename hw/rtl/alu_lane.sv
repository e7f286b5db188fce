// One lane of the ALU: operand b is held, operand a comes from acc; the result is valid in the next cycle.
//
// A product is taken modulo 2^32. With ALU_MULTIPLY_PASSES = 1 it is the sum of three 16-bit products of the lane's own
// multipliers. With 2 a multiplier outside, 32 by 16 bits, gives a * b[15:0] in a first pass, with half_i, and
// a * b[31:16] in the second, with d_en_i. With 0 decode refuses MUL.
module alu_lane (
  input  logic        clk_i,
  input  logic        load_i,     // takes imm_i as operand b
  input  logic        b_en_i,     // takes acc_i as operand b
  input  logic        d_en_i,     // takes acc_i as operand a
  input  logic [2:0]  op_i,       // of the operation in stage d
  input  logic [31:0] imm_i,
  input  logic [31:0] acc_i,
  output logic [31:0] result_o,
  // The multiplier outside, whose product comes in the next cycle and stays.
  input  logic        half_i,     // takes acc_i as operand a of a first pass
  output logic        multiply_o,
  output logic [31:0] multiplicand_o,
  output logic [15:0] multiplier_o,
  input  logic [31:0] product_i
);
  /* verilator no_inline_module */

  logic [31:0] b, b_q, result_q, product;
  logic [4:0]  amount_q;
  logic        mul, mul_q, less;

  function automatic logic [31:0] reversed(logic [31:0] x);
    for (int i = 0; i < 32; i++) reversed[i] = x[31-i];
  endfunction

  // The amount of a shift by n, 31 at most. The magnitude of a negative n is one more than its complement's, which the
  // shift adds.
  function automatic logic [4:0] shift_amount(logic [31:0] n);
    if (n[31]) shift_amount = (&n[31:5] & |n[4:0]) ? ~n[4:0] : 5'd30;
    else shift_amount = (|n[31:5]) ? 5'd31 : n[4:0];
  endfunction

  // x >> amount, or x << amount + 1. Lanes that are few for their area have one shifter, which shifts the reversed word
  // to the right instead of the word to the left.
  function automatic logic [31:0] shift(logic [31:0] x, logic left, logic [4:0] amount);
    logic signed [32:0] word;
    if (tenon_pkg::ALU_PASSES > 1) begin
      word  = left ? {1'b0, reversed({x[30:0], 1'b0})} : {x[31], x};
      word  = word >>> amount;
      shift = left ? reversed(word[31:0]) : word[31:0];
    end else begin
      word  = {x[31], x};
      shift = left ? {x[30:0], 1'b0} << amount : $unsigned($signed(x) >>> amount);
    end
  endfunction

  // The amount is computed as b is taken, which leaves a cycle for the shift.
  always_ff @(posedge clk_i) begin
    if (load_i) {b_q, amount_q} <= {imm_i, shift_amount(imm_i)};
    else if (b_en_i) {b_q, amount_q} <= {acc_i, shift_amount(acc_i)};
  end
  assign b    = b_q;
  assign less = $signed(acc_i) < $signed(b);

  always_ff @(posedge clk_i) begin
    if (d_en_i) begin
      mul_q <= mul;
      unique case (op_i)
        tenon_pkg::ALU_MIN,
        tenon_pkg::ALU_MAX: result_q <= less == (op_i == tenon_pkg::ALU_MIN) ? acc_i : b;
        tenon_pkg::ALU_SHR: result_q <= shift(acc_i, b[31], amount_q);
        tenon_pkg::ALU_MUL: ;
        default: result_q <= acc_i + b;
      endcase
    end
  end

  assign mul      = tenon_pkg::ALU_MULTIPLY_PASSES != 0 & op_i == tenon_pkg::ALU_MUL;
  assign result_o = mul_q ? product : result_q;

  if (tenon_pkg::ALU_MULTIPLY_PASSES == 1) begin : g_own
    logic [31:0] ll_q;
    logic [15:0] lh_q, hl_q;
    always_ff @(posedge clk_i) begin
      if (d_en_i & mul) begin
        ll_q <= {16'd0, acc_i[15:0]} * {16'd0, b[15:0]};
        lh_q <= acc_i[15:0] * b[31:16];
        hl_q <= acc_i[31:16] * b[15:0];
      end
    end
    assign product = ll_q + {lh_q + hl_q, 16'd0};
    logic unused_outside;
    assign unused_outside = ^{half_i, product_i};
    assign {multiply_o, multiplicand_o, multiplier_o} = '0;
  end else if (tenon_pkg::ALU_MULTIPLY_PASSES == 2) begin : g_outside
    logic [31:0] low_q;
    always_ff @(posedge clk_i) begin
      if (d_en_i & mul) low_q <= product_i;
    end
    assign product        = low_q + {product_i[15:0], 16'd0};
    assign multiply_o     = half_i | (d_en_i & mul);
    assign multiplicand_o = acc_i;
    assign multiplier_o   = half_i ? b[15:0] : b[31:16];
  end else begin : g_none
    logic unused_outside;
    assign unused_outside = ^{half_i, product_i};
    assign product = 32'd0;
    assign {multiply_o, multiplicand_o, multiplier_o} = '0;
  end

`ifndef SYNTHESIS
  initial begin
    AShiftRightKeepsTheSign: assert (shift(32'h80000000, 1'b0, shift_amount(32'd4)) == 32'hf8000000);
    AShiftIsBy31AtMost: assert (shift(32'h80000000, 1'b0, shift_amount(32'd40)) == 32'hffffffff);
    ANegativeShiftGoesLeft: assert (shift(32'd3, 1'b1, shift_amount(-32'd4)) == 32'd48);
    TheMostNegativeShiftGoesLeftBy31: assert (shift(32'd1, 1'b1, shift_amount(32'h80000000)) == 32'h80000000);
  end
`endif

endmodule
