// One lane of the ALU: operand b is held, operand a comes from acc; the result is valid in the next cycle.
// The product is the sum of three 16-bit products, modulo 2^32.
module alu_lane (
  input  logic        clk_i,
  input  logic        b_en_i,     // takes acc_i as operand b
  input  logic        d_en_i,     // takes acc_i as operand a
  input  logic [2:0]  op_i,       // of the operation in stage d
  input  logic        use_imm_i,
  input  logic [31:0] imm_i,
  input  logic [31:0] acc_i,
  output logic [31:0] result_o
);
  /* verilator no_inline_module */

  logic [31:0] b, b_q, result_q, product_ll_q;
  logic [15:0] product_lh_q, product_hl_q;
  logic        mul_q;

  // x >> n, or x << -n where n is negative; by 31 at most.
  function automatic logic [31:0] shift_right(logic [31:0] x, logic [31:0] n);
    logic [31:0] magnitude;
    logic [4:0]  amount;
    magnitude   = n[31] ? -n : n;  // also for -2^31, whose upper bits are not 0
    amount      = (|magnitude[31:5]) ? 5'd31 : magnitude[4:0];
    shift_right = n[31] ? x << amount : $unsigned($signed(x) >>> amount);
  endfunction

  always_ff @(posedge clk_i) begin
    if (b_en_i) b_q <= acc_i;
  end
  assign b = use_imm_i ? imm_i : b_q;

  always_ff @(posedge clk_i) begin
    if (d_en_i) begin
      mul_q <= op_i == tenon_pkg::ALU_MUL;
      unique case (op_i)
        tenon_pkg::ALU_MIN: result_q <= $signed(acc_i) < $signed(b) ? acc_i : b;
        tenon_pkg::ALU_MAX: result_q <= $signed(acc_i) > $signed(b) ? acc_i : b;
        tenon_pkg::ALU_SHR: result_q <= shift_right(acc_i, b);
        tenon_pkg::ALU_MUL: begin
          product_ll_q <= {16'd0, acc_i[15:0]} * {16'd0, b[15:0]};
          product_lh_q <= acc_i[15:0] * b[31:16];
          product_hl_q <= acc_i[31:16] * b[15:0];
        end
        default: result_q <= acc_i + b;
      endcase
    end
  end

  assign result_o = mul_q ? product_ll_q + {product_lh_q + product_hl_q, 16'd0} : result_q;

`ifndef SYNTHESIS
  initial begin
    AShiftRightKeepsTheSign: assert (shift_right(32'h80000000, 32'd4) == 32'hf8000000);
    AShiftIsBy31AtMost: assert (shift_right(32'h80000000, 32'd40) == 32'hffffffff);
    ANegativeShiftGoesLeft: assert (shift_right(32'd3, -32'd4) == 32'd48);
    TheMostNegativeShiftGoesLeftBy31: assert (shift_right(32'd1, 32'h80000000) == 32'h80000000);
  end
`endif

endmodule
