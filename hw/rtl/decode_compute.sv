// Extracts the commands of GEMM, ALU and RQ from an instruction's bits: those of GEMM have the fields of both profiles,
// widened; that of RQ is the instruction's own fields, so that a new one needs no line here.
module decode_compute (
  input  logic                   valid_i,
  input  logic                   native_i,
  // verilator lint_off UNUSEDSIGNAL
  input  logic [255:0]           insn_i,  // no format uses all bits
  // verilator lint_on UNUSEDSIGNAL
  input  logic [31:0]            index_i,
  output compute_pkg::gemm_cmd_t gemm_o,
  output compute_pkg::alu_cmd_t  alu_o,
  output tenon_pkg::rq_cmd_t   rq_o
);

  // verilator lint_off UNUSEDSIGNAL
  tenon_pkg::gemm_insn_t gemm;  // tokens and the opcode are decode's
  tenon_pkg::alu_insn_t  alu;
  tenon_pkg::mac_insn_t  mac;
  // verilator lint_on UNUSEDSIGNAL
  assign gemm = insn_i[$bits(gemm)-1:0];  // longer than a slot where a buffer is deeper than the base profile has
  assign alu  = insn_i[$bits(alu)-1:0];
  assign mac  = insn_i;

  // A window of own lanes. Rows in different banks of inp are read in one cycle: their distance is odd, or they are two.
  logic        own, overlaps, by_two;
  logic [1:0]  reads;
  logic [11:0] entering;
  assign own    = tenon_pkg::OWN_LANES != 0 & native_i & mac.own;
  assign by_two = mac.src_x == {mac.src_r2[10:0], 1'b0} & ~mac.src_r2[11] & mac.src_x != mac.src_r2;
  assign overlaps = (mac.src_x == mac.src_r2 & mac.r2 > 10'd1) | (by_two & mac.r2 > 10'd2);
  assign entering = 12'(mac.r2) + (by_two ? {1'b0, mac.x, 1'b0} - 12'd2 : 12'(mac.x) - 12'd1);
  always_comb begin
    reads = 2'd1;
    if (mac.r1[1:0] != 2'd1 & mac.src_r1[1:0] == 2'b00) reads = mac.r1[1:0];
    if (mac.r1[1:0] == 2'd3 & mac.src_r1[1:0] == 2'b10) reads = 2'd2;
  end

  always_comb begin
    gemm_o = 'x;
    alu_o  = 'x;
    rq_o   = 'x;
    if (valid_i) begin
      gemm_o.index        = index_i;
      gemm_o.is_base      = ~native_i;
      gemm_o.reset        = gemm.reset;
      gemm_o.first        = mac.first;
      gemm_o.own          = own;
      gemm_o.own_overlaps = own & overlaps;
      gemm_o.own_by_two   = own & by_two;
      gemm_o.own_reads    = own ? reads : 2'd0;
      gemm_o.own_steps    = ~own | mac.r1 == 10'd0 ? 3'd0 : 3'(reads) + 3'(tenon_pkg::PACKED_PRODUCTS != 0);
      gemm_o.own_columns  = ~own | mac.x == 10'd0 ? 12'd0 : entering;
      gemm_o.r0        = 10'(mac.r0);
      gemm_o.r1        = 10'(mac.r1);
      gemm_o.r2        = 10'(mac.r2);
      gemm_o.y         = native_i ? 14'(mac.y) : 14'(gemm.iter_out);
      gemm_o.x         = native_i ? 14'(mac.x) : 14'(gemm.iter_in);
      gemm_o.uop_begin = 14'(gemm.uop_begin);
      gemm_o.uop_end   = 15'(gemm.uop_end);
      gemm_o.dst_base  = 14'(mac.dst_base);
      gemm_o.src_base  = 14'(mac.src_base);
      gemm_o.wgt_base  = 14'(mac.wgt_base);
      gemm_o.dst_y     = native_i ? 14'(mac.dst_y) : 14'(gemm.dst_factor_out);
      gemm_o.dst_x     = native_i ? 14'(mac.dst_x) : 14'(gemm.dst_factor_in);
      gemm_o.src_r0    = 14'(mac.src_r0);
      gemm_o.src_r1    = 14'(mac.src_r1);
      gemm_o.src_r2    = 14'(mac.src_r2);
      gemm_o.src_y     = native_i ? 14'(mac.src_y) : 14'(gemm.src_factor_out);
      gemm_o.src_x     = native_i ? 14'(mac.src_x) : 14'(gemm.src_factor_in);
      gemm_o.wgt_r0    = 14'(mac.wgt_r0);
      gemm_o.wgt_r1    = 14'(mac.wgt_r1);
      gemm_o.wgt_r2    = 14'(mac.wgt_r2);
      gemm_o.wgt_y     = 14'(gemm.wgt_factor_out);
      gemm_o.wgt_x     = 14'(gemm.wgt_factor_in);

      alu_o.index     = index_i;
      alu_o.op        = 3'(alu.alu_opcode);
      alu_o.use_imm   = 1'(alu.use_imm);
      alu_o.imm       = 16'(alu.imm);
      alu_o.y         = 14'(alu.iter_out);
      alu_o.x         = 14'(alu.iter_in);
      alu_o.uop_begin = 14'(alu.uop_begin);
      alu_o.uop_end   = 15'(alu.uop_end);
      alu_o.dst_y     = 14'(alu.dst_factor_out);
      alu_o.dst_x     = 14'(alu.dst_factor_in);
      alu_o.src_y     = 14'(alu.src_factor_out);
      alu_o.src_x     = 14'(alu.src_factor_in);

      rq_o = tenon_pkg::rq_command(insn_i, index_i);
    end
  end

`ifndef SYNTHESIS
  initial begin
    MicroOpRangesFitTheirFields: assert ($bits(gemm.uop_begin) <= 14 && $bits(gemm.uop_end) <= 15 &&
                                         $bits(alu.uop_begin) <= 14 && $bits(alu.uop_end) <= 15);
    ExtentsFitTheirFields: assert ($bits(gemm.iter_out) <= 14 && $bits(gemm.iter_in) <= 14 && $bits(mac.y) <= 14 &&
                                   $bits(mac.r0) <= 10);
    FactorsFitTheirFields: assert ($bits(gemm.dst_factor_out) <= 14 && $bits(gemm.src_factor_out) <= 14 &&
                                   $bits(gemm.wgt_factor_out) <= 14 && $bits(mac.src_r0) <= 14);
    BasesFitTheirFields: assert ($bits(mac.dst_base) <= 14 && $bits(mac.src_base) <= 14 && $bits(mac.wgt_base) <= 14);
  end
`endif

endmodule
