// One lane of the ALU: operand b is held, operand a comes from acc; the result is there in the next cycle.
// The product is made of three 16-bit ones, of which only the low 32 bits of the sum count.
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

  logic [31:0] a, b, b_q, simple_d, result_q, magnitude;
  logic [31:0] product_ll_q;
  logic [15:0] product_lh_q, product_hl_q;
  logic [4:0]  shift;
  logic        mul_q;

  always_ff @(posedge clk_i) begin
    if (b_en_i) b_q <= acc_i;
  end

  assign a         = acc_i;
  assign b         = use_imm_i ? imm_i : b_q;
  assign magnitude = b[31] ? -b : b;  // of -2^31 as well: its upper bits are not 0
  assign shift     = (|magnitude[31:5]) ? 5'd31 : magnitude[4:0];

  always_comb begin
    simple_d = a + b;
    unique case (op_i)
      tenon_pkg::ALU_MIN: simple_d = $signed(a) < $signed(b) ? a : b;
      tenon_pkg::ALU_MAX: simple_d = $signed(a) > $signed(b) ? a : b;
      tenon_pkg::ALU_SHR: simple_d = b[31] ? a << shift : $unsigned($signed(a) >>> shift);
      default: simple_d = a + b;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (d_en_i) begin
      mul_q <= op_i == tenon_pkg::ALU_MUL;
      if (op_i == tenon_pkg::ALU_MUL) begin
        product_ll_q <= {16'd0, a[15:0]} * {16'd0, b[15:0]};
        product_lh_q <= a[15:0] * b[31:16];
        product_hl_q <= a[31:16] * b[15:0];
      end else begin
        result_q <= simple_d;
      end
    end
  end

  assign result_o = mul_q ? product_ll_q + {product_lh_q + product_hl_q, 16'd0} : result_q;

endmodule
