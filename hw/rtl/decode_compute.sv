// Extracts the commands of GEMM, ALU and RQ from an instruction's bits: the fields, widened.
module decode_compute (
  input  logic                   valid_i,
  input  logic                   native_i,
  // verilator lint_off UNUSEDSIGNAL
  input  logic [255:0]           insn_i,  // no format uses all bits
  // verilator lint_on UNUSEDSIGNAL
  input  logic [31:0]            index_i,
  output compute_pkg::gemm_cmd_t gemm_o,
  output compute_pkg::alu_cmd_t  alu_o,
  output compute_pkg::rq_cmd_t   rq_o
);

  always_comb begin
    gemm_o = 'x;
    alu_o  = 'x;
    rq_o   = 'x;
    if (valid_i) begin
      gemm_o.index     = index_i;
      gemm_o.is_base   = ~native_i;
      gemm_o.reset     = insn_i[tenon_pkg::GEMM_RESET_LSB];
      gemm_o.first     = insn_i[tenon_pkg::MAC_FIRST_LSB];
      gemm_o.r0        = 10'(insn_i[tenon_pkg::MAC_R0_LSB+:tenon_pkg::MAC_R0_W]);
      gemm_o.r1        = 10'(insn_i[tenon_pkg::MAC_R1_LSB+:tenon_pkg::MAC_R1_W]);
      gemm_o.r2        = 10'(insn_i[tenon_pkg::MAC_R2_LSB+:tenon_pkg::MAC_R2_W]);
      gemm_o.y         = native_i ? 14'(insn_i[tenon_pkg::MAC_Y_LSB+:tenon_pkg::MAC_Y_W]) :
                         14'(insn_i[tenon_pkg::GEMM_ITER_OUT_LSB+:tenon_pkg::GEMM_ITER_OUT_W]);
      gemm_o.x         = native_i ? 14'(insn_i[tenon_pkg::MAC_X_LSB+:tenon_pkg::MAC_X_W]) :
                         14'(insn_i[tenon_pkg::GEMM_ITER_IN_LSB+:tenon_pkg::GEMM_ITER_IN_W]);
      gemm_o.uop_begin = 14'(insn_i[tenon_pkg::GEMM_UOP_BEGIN_LSB+:tenon_pkg::GEMM_UOP_BEGIN_W]);
      gemm_o.uop_end   = 15'(insn_i[tenon_pkg::GEMM_UOP_END_LSB+:tenon_pkg::GEMM_UOP_END_W]);
      gemm_o.dst_base  = 14'(insn_i[tenon_pkg::MAC_DST_BASE_LSB+:tenon_pkg::MAC_DST_BASE_W]);
      gemm_o.src_base  = 14'(insn_i[tenon_pkg::MAC_SRC_BASE_LSB+:tenon_pkg::MAC_SRC_BASE_W]);
      gemm_o.wgt_base  = 14'(insn_i[tenon_pkg::MAC_WGT_BASE_LSB+:tenon_pkg::MAC_WGT_BASE_W]);
      gemm_o.dst_y     = native_i ? 14'(insn_i[tenon_pkg::MAC_DST_Y_LSB+:tenon_pkg::MAC_DST_Y_W]) :
                         14'(insn_i[tenon_pkg::GEMM_DST_FACTOR_OUT_LSB+:tenon_pkg::GEMM_DST_FACTOR_OUT_W]);
      gemm_o.dst_x     = native_i ? 14'(insn_i[tenon_pkg::MAC_DST_X_LSB+:tenon_pkg::MAC_DST_X_W]) :
                         14'(insn_i[tenon_pkg::GEMM_DST_FACTOR_IN_LSB+:tenon_pkg::GEMM_DST_FACTOR_IN_W]);
      gemm_o.src_r0    = 14'(insn_i[tenon_pkg::MAC_SRC_R0_LSB+:tenon_pkg::MAC_SRC_R0_W]);
      gemm_o.src_r1    = 14'(insn_i[tenon_pkg::MAC_SRC_R1_LSB+:tenon_pkg::MAC_SRC_R1_W]);
      gemm_o.src_r2    = 14'(insn_i[tenon_pkg::MAC_SRC_R2_LSB+:tenon_pkg::MAC_SRC_R2_W]);
      gemm_o.src_y     = native_i ? 14'(insn_i[tenon_pkg::MAC_SRC_Y_LSB+:tenon_pkg::MAC_SRC_Y_W]) :
                         14'(insn_i[tenon_pkg::GEMM_SRC_FACTOR_OUT_LSB+:tenon_pkg::GEMM_SRC_FACTOR_OUT_W]);
      gemm_o.src_x     = native_i ? 14'(insn_i[tenon_pkg::MAC_SRC_X_LSB+:tenon_pkg::MAC_SRC_X_W]) :
                         14'(insn_i[tenon_pkg::GEMM_SRC_FACTOR_IN_LSB+:tenon_pkg::GEMM_SRC_FACTOR_IN_W]);
      gemm_o.wgt_r0    = 14'(insn_i[tenon_pkg::MAC_WGT_R0_LSB+:tenon_pkg::MAC_WGT_R0_W]);
      gemm_o.wgt_r1    = 14'(insn_i[tenon_pkg::MAC_WGT_R1_LSB+:tenon_pkg::MAC_WGT_R1_W]);
      gemm_o.wgt_r2    = 14'(insn_i[tenon_pkg::MAC_WGT_R2_LSB+:tenon_pkg::MAC_WGT_R2_W]);
      gemm_o.wgt_y     = 14'(insn_i[tenon_pkg::GEMM_WGT_FACTOR_OUT_LSB+:tenon_pkg::GEMM_WGT_FACTOR_OUT_W]);
      gemm_o.wgt_x     = 14'(insn_i[tenon_pkg::GEMM_WGT_FACTOR_IN_LSB+:tenon_pkg::GEMM_WGT_FACTOR_IN_W]);

      alu_o.index     = index_i;
      alu_o.op        = 3'(insn_i[tenon_pkg::ALU_ALU_OPCODE_LSB+:tenon_pkg::ALU_ALU_OPCODE_W]);
      alu_o.use_imm   = 1'(insn_i[tenon_pkg::ALU_USE_IMM_LSB+:tenon_pkg::ALU_USE_IMM_W]);
      alu_o.imm       = 16'(insn_i[tenon_pkg::ALU_IMM_LSB+:tenon_pkg::ALU_IMM_W]);
      alu_o.y         = 14'(insn_i[tenon_pkg::ALU_ITER_OUT_LSB+:tenon_pkg::ALU_ITER_OUT_W]);
      alu_o.x         = 14'(insn_i[tenon_pkg::ALU_ITER_IN_LSB+:tenon_pkg::ALU_ITER_IN_W]);
      alu_o.uop_begin = 14'(insn_i[tenon_pkg::ALU_UOP_BEGIN_LSB+:tenon_pkg::ALU_UOP_BEGIN_W]);
      alu_o.uop_end   = 15'(insn_i[tenon_pkg::ALU_UOP_END_LSB+:tenon_pkg::ALU_UOP_END_W]);
      alu_o.dst_y     = 14'(insn_i[tenon_pkg::ALU_DST_FACTOR_OUT_LSB+:tenon_pkg::ALU_DST_FACTOR_OUT_W]);
      alu_o.dst_x     = 14'(insn_i[tenon_pkg::ALU_DST_FACTOR_IN_LSB+:tenon_pkg::ALU_DST_FACTOR_IN_W]);
      alu_o.src_y     = 14'(insn_i[tenon_pkg::ALU_SRC_FACTOR_OUT_LSB+:tenon_pkg::ALU_SRC_FACTOR_OUT_W]);
      alu_o.src_x     = 14'(insn_i[tenon_pkg::ALU_SRC_FACTOR_IN_LSB+:tenon_pkg::ALU_SRC_FACTOR_IN_W]);

      rq_o.index        = index_i;
      rq_o.residual     = 1'(insn_i[tenon_pkg::RQ_RESIDUAL_LSB+:tenon_pkg::RQ_RESIDUAL_W]);
      rq_o.rows         = 10'(insn_i[tenon_pkg::RQ_ROWS_LSB+:tenon_pkg::RQ_ROWS_W]);
      rq_o.cols         = 10'(insn_i[tenon_pkg::RQ_COLS_LSB+:tenon_pkg::RQ_COLS_W]);
      rq_o.acc_base     = 14'(insn_i[tenon_pkg::RQ_ACC_BASE_LSB+:tenon_pkg::RQ_ACC_BASE_W]);
      rq_o.acc_pitch    = 12'(insn_i[tenon_pkg::RQ_ACC_PITCH_LSB+:tenon_pkg::RQ_ACC_PITCH_W]);
      rq_o.acc_step     = 12'(insn_i[tenon_pkg::RQ_ACC_STEP_LSB+:tenon_pkg::RQ_ACC_STEP_W]);
      rq_o.out_base     = 14'(insn_i[tenon_pkg::RQ_OUT_BASE_LSB+:tenon_pkg::RQ_OUT_BASE_W]);
      rq_o.out_pitch    = 12'(insn_i[tenon_pkg::RQ_OUT_PITCH_LSB+:tenon_pkg::RQ_OUT_PITCH_W]);
      rq_o.par_base     = 12'(insn_i[tenon_pkg::RQ_PAR_BASE_LSB+:tenon_pkg::RQ_PAR_BASE_W]);
      rq_o.v_lo         = 12'(insn_i[tenon_pkg::RQ_V_LO_LSB+:tenon_pkg::RQ_V_LO_W]);
      rq_o.v_hi         = 12'(insn_i[tenon_pkg::RQ_V_HI_LSB+:tenon_pkg::RQ_V_HI_W]);
      rq_o.zero         = 8'(insn_i[tenon_pkg::RQ_ZERO_LSB+:tenon_pkg::RQ_ZERO_W]);
      rq_o.lo           = 8'(insn_i[tenon_pkg::RQ_LO_LSB+:tenon_pkg::RQ_LO_W]);
      rq_o.hi           = 8'(insn_i[tenon_pkg::RQ_HI_LSB+:tenon_pkg::RQ_HI_W]);
      rq_o.res_base     = 14'(insn_i[tenon_pkg::RQ_RES_BASE_LSB+:tenon_pkg::RQ_RES_BASE_W]);
      rq_o.res_pitch    = 12'(insn_i[tenon_pkg::RQ_RES_PITCH_LSB+:tenon_pkg::RQ_RES_PITCH_W]);
      rq_o.r_zero       = 8'(insn_i[tenon_pkg::RQ_R_ZERO_LSB+:tenon_pkg::RQ_R_ZERO_W]);
      rq_o.r_multiplier = 16'(insn_i[tenon_pkg::RQ_R_MULTIPLIER_LSB+:tenon_pkg::RQ_R_MULTIPLIER_W]);
      rq_o.r_shift      = 5'(insn_i[tenon_pkg::RQ_R_SHIFT_LSB+:tenon_pkg::RQ_R_SHIFT_W]);
    end
  end

`ifndef SYNTHESIS
  initial begin
    MicroOpRangesFitTheirFields: assert (tenon_pkg::GEMM_UOP_BEGIN_W <= 14 && tenon_pkg::GEMM_UOP_END_W <= 15 &&
                                         tenon_pkg::ALU_UOP_BEGIN_W <= 14 && tenon_pkg::ALU_UOP_END_W <= 15);
    ExtentsFitTheirFields: assert (tenon_pkg::GEMM_ITER_OUT_W <= 14 && tenon_pkg::GEMM_ITER_IN_W <= 14 &&
                                   tenon_pkg::MAC_Y_W <= 14 && tenon_pkg::MAC_R0_W <= 10 && tenon_pkg::RQ_ROWS_W <= 10);
    FactorsFitTheirFields: assert (tenon_pkg::GEMM_DST_FACTOR_OUT_W <= 14 && tenon_pkg::GEMM_SRC_FACTOR_OUT_W <= 14 &&
                                   tenon_pkg::GEMM_WGT_FACTOR_OUT_W <= 14 && tenon_pkg::MAC_SRC_R0_W <= 14);
    BasesFitTheirFields: assert (tenon_pkg::MAC_DST_BASE_W <= 14 && tenon_pkg::RQ_ACC_BASE_W <= 14 &&
                                 tenon_pkg::RQ_OUT_BASE_W <= 14 && tenon_pkg::RQ_PAR_BASE_W <= 12);
  end
`endif

endmodule
