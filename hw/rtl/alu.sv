// The vector ALU of the base profile: acc[dst] = op(acc[dst], imm or acc[src]) over y, x and micro-ops.
//
// Stages   a  loops and indices; the micro-op is read
//          b  dst and src are summed
//          c  range check; acc is read: first src, if the operation has one, then dst
//          d  the lanes compute   e  the result is written
// With an immediate the throughput is one element a cycle, else one in two cycles; a MUL in two passes reads dst twice,
// which takes another cycle. A read waits while its address is
// the dst of an operation in d or e, so that results equal sequential execution at any index distance. Completion and
// errors as in gemm.
module alu (
  input  logic                               clk_i,
  input  logic                               rst_ni,
  input  logic                               valid_i,
  input  compute_pkg::alu_cmd_t              cmd_i,
  output logic                               ready_o,
  output logic                               done_o,
  output logic [7:0]                         error_o,
  output logic                               uop_re_o,
  output logic [tenon_pkg::UOP_AW-1:0]       uop_addr_o,
  input  logic [31:0]                        uop_data_i,
  output logic                               acc_req_o,
  input  logic                               acc_gnt_i,
  output logic [tenon_pkg::ACC_AW-1:0]       acc_raddr_o,
  input  logic [tenon_pkg::BLOCK_OUT*32-1:0] acc_rdata_i,
  output logic                               acc_we_o,
  output logic [tenon_pkg::ACC_AW-1:0]       acc_waddr_o,
  output logic [tenon_pkg::BLOCK_OUT*32-1:0] acc_wdata_o,
  // Multipliers of 32 by 16 bits (ALU_MULTIPLY_PASSES = 2); the product comes in the next cycle and stays.
  output logic                               multiply_o,
  output logic [tenon_pkg::BLOCK_OUT*32-1:0] multiplicand_o,
  output logic [tenon_pkg::BLOCK_OUT*16-1:0] multiplier_o,
  input  logic [tenon_pkg::BLOCK_OUT*32-1:0] product_i
`ifdef TENON_TRACE
  ,
  output logic [31:0]                        trace_index_o
`endif
);

  localparam int IndexWidth = compute_pkg::INDEX_WIDTH;
  localparam int AccBits    = tenon_pkg::ACC_AW;

  logic en;  // stages a to c advance
  logic load, fail, c_bad, e_last_q, e_bad_q;

  command_port u_port (
    .clk_i,
    .rst_ni,
    .valid_i,
    .room_i    (1'b1),
    .ready_o,
    .load_o    (load),
    .done_o,
    .error_o,
    .bad_i     (c_bad),
    .fail_o    (fail),
    .last_i    (e_last_q),
    .last_bad_i(e_bad_q)
  );

  // One command at a time: operation and immediate hold for all stages.
  logic [2:0]  op_q;
  logic        use_imm_q;
  logic [15:0] imm_q;

  always_ff @(posedge clk_i) begin
    if (load) {op_q, use_imm_q, imm_q} <= {cmd_i.op, cmd_i.use_imm, cmd_i.imm};
  end

  // a to c.
  logic [74:0]             extent;
  logic [139:0]            stride;
  logic                    c_work_q, c_last_q, c_uop_bad_q;
  logic [2*IndexWidth-1:0] c_indices;
  logic [IndexWidth-1:0]   c_dst_q, c_src_q;

  always_comb begin
    extent = 'x;
    stride = 'x;
    if (valid_i) begin
      extent = compute_pkg::base_extent(cmd_i.y, cmd_i.x, compute_pkg::uop_count(cmd_i.uop_begin, cmd_i.uop_end));
      stride = {compute_pkg::base_stride(cmd_i.src_y, cmd_i.src_x),
                compute_pkg::base_stride(cmd_i.dst_y, cmd_i.dst_x)};
    end
  end

  // verilator lint_off PINCONNECTEMPTY
  index_stages #(
    .Indices(2)
  ) u_stages (
    .clk_i,
    .rst_ni,
    .en_i       (en),
    .load_i     (load),
    .fail_i     (fail),
    .extent_i   (extent),
    .base_i     (28'd0),
    .stride_i   (stride),
    .uop_i      (1'b1),
    .uop_begin_i(cmd_i.uop_begin),
    .uop_re_o,
    .uop_addr_o,
    .uop_data_i,
    .a_valid_o  (),  // the port takes one command at a time
    .a_last_o   (),
    .a_step_o   (),
    .a_tag_i    (1'b0),
    .c_work_o   (c_work_q),
    .c_last_o   (c_last_q),
    .c_uop_bad_o(c_uop_bad_q),
    .c_tag_o    (),
    .c_index_o  (c_indices),
    .c_bad_i    (c_bad)
  );
  // verilator lint_on PINCONNECTEMPTY
  assign {c_src_q, c_dst_q} = c_indices;

  // c: one to three reads of acc.
  localparam logic Twice = tenon_pkg::ALU_MULTIPLY_PASSES == 2;
  logic               c_src_read_q, c_src_phase, c_half_read_q, c_half_phase, c_hazard, c_read;
  logic               d_work_q, d_last_q, d_bad_q, e_work_q;
  logic [AccBits-1:0] d_dst_q, e_dst_q;

  assign c_bad = c_work_q & (c_uop_bad_q | c_dst_q >= IndexWidth'(tenon_pkg::ACC_DEPTH) |
                             (~use_imm_q & c_src_q >= IndexWidth'(tenon_pkg::ACC_DEPTH)));
  assign c_src_phase = ~use_imm_q & ~c_src_read_q;
  assign c_half_phase = Twice & op_q == tenon_pkg::ALU_MUL & ~c_src_phase & ~c_half_read_q;
  assign acc_raddr_o = c_src_phase ? c_src_q[AccBits-1:0] : c_dst_q[AccBits-1:0];
  assign c_hazard    = (d_work_q & d_dst_q == acc_raddr_o) | (e_work_q & e_dst_q == acc_raddr_o);
  assign acc_req_o   = c_work_q & ~c_bad & ~c_hazard;
  assign c_read      = acc_req_o & acc_gnt_i;
  assign en          = ~c_work_q | c_bad | (c_read & ~c_src_phase & ~c_half_phase);

  logic src_read_q, half_read_q;  // acc_rdata_i is the source operand, operand a of a first pass
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {c_src_read_q, src_read_q, c_half_read_q, half_read_q} <= 4'b0000;
    else begin
      src_read_q  <= c_read & c_src_phase;
      half_read_q <= c_read & c_half_phase;
      if (en) {c_src_read_q, c_half_read_q} <= 2'b00;
      else if (c_read) {c_src_read_q, c_half_read_q} <= {1'b1, c_half_phase};
    end
  end
  // d, e.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {d_work_q, d_last_q, d_bad_q} <= 3'd0;
      {e_work_q, e_last_q, e_bad_q} <= 3'd0;
    end else begin
      {d_work_q, d_last_q, d_bad_q} <= {3{en}} & {c_work_q & ~c_bad, c_last_q | c_bad, c_bad};
      {e_work_q, e_last_q, e_bad_q} <= {d_work_q, d_last_q, d_bad_q};
    end
  end
  always_ff @(posedge clk_i) begin
    if (en & c_work_q) d_dst_q <= c_dst_q[AccBits-1:0];
    if (d_work_q) e_dst_q <= d_dst_q;
  end

  logic [tenon_pkg::BLOCK_OUT-1:0] multiplies;
  assign multiply_o = multiplies[0];
  for (genvar l = 0; l < tenon_pkg::BLOCK_OUT; l++) begin : g_lane
    alu_lane u_lane (
      .clk_i,
      .b_en_i   (src_read_q),
      .d_en_i   (d_work_q),
      .op_i     (op_q),
      .use_imm_i(use_imm_q),
      .imm_i    ({{16{imm_q[15]}}, imm_q}),
      .acc_i    (acc_rdata_i[l*32+:32]),
      .result_o (acc_wdata_o[l*32+:32]),
      .half_i        (half_read_q),
      .multiply_o    (multiplies[l]),
      .multiplicand_o(multiplicand_o[l*32+:32]),
      .multiplier_o  (multiplier_o[l*16+:16]),
      .product_i     (product_i[l*32+:32])
    );
  end
  logic unused_multiplies;
  assign unused_multiplies = ^multiplies;  // they are equal
  assign acc_we_o    = e_work_q;
  assign acc_waddr_o = e_dst_q;

`ifdef TENON_TRACE
  logic [31:0] index_q;
  always_ff @(posedge clk_i) begin
    if (load) index_q <= cmd_i.index;
  end
  assign trace_index_o = index_q;
`else
  logic unused_index;
  assign unused_index = ^cmd_i.index;
`endif

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & src_read_q) begin
      TheOperandsNeverArriveTogether: assert (!d_work_q);
      AnImmediateNeedsNoSource: assert (!use_imm_q);
    end
    if (rst_ni & acc_we_o) begin
      AReadWaitsForAnEarlierWriteOfItsElement: assert (!(acc_req_o & acc_gnt_i) | acc_raddr_o != acc_waddr_o);
      AStepInErrorHasNoEffect: assert (!e_bad_q);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
