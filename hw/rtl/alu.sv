// The vector ALU of the base profile: acc[dst] = op(acc[dst], imm or acc[src]) over y, x and micro-ops.
//
// Stages   a  loops and indices; the micro-op is read
//          b  dst and src are summed
//          c  range check; acc is read: src first where there is one, dst last
//          d  the operands are there   e  the result is written
// With an immediate one element a cycle, else two cycles. A read waits while its address is the dst of an operation in
// d or e, so results equal sequential execution at any index distance. Completion and errors as in gemm.
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
  output logic [tenon_pkg::BLOCK_OUT*32-1:0] acc_wdata_o
`ifdef TENON_TRACE
  ,
  output logic [31:0]                        trace_index_o
`endif
);

  localparam int IndexWidth = 16;  // see loop_index
  localparam int AccBits    = tenon_pkg::ACC_AW;

  logic en;  // stages a to c go on
  logic load, dead_q;

  // a: loops. One command at a time: operation and immediate hold for all stages.
  logic                  a_valid, a_empty, a_last, a_work, busy_q;
  logic [4:0]            a_step;
  logic [14:0]           uop_count, a_uop;
  logic [IndexWidth-1:0] a_dst, a_src;
  logic [13:0]           dst_y_q, dst_x_q, src_y_q, src_x_q;
  logic [2:0]            op_q;
  logic                  use_imm_q;
  logic [15:0]           imm_q;

  assign uop_count = cmd_i.uop_end > {1'b0, cmd_i.uop_begin} ? cmd_i.uop_end - {1'b0, cmd_i.uop_begin} : 15'd0;
  assign ready_o   = ~busy_q & ~dead_q;
  assign load      = valid_i & ready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) busy_q <= 1'b0;
    else if (load) busy_q <= 1'b1;
    else if (done_o) busy_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (load) begin
      {dst_y_q, dst_x_q, src_y_q, src_x_q} <= {cmd_i.dst_y, cmd_i.dst_x, cmd_i.src_y, cmd_i.src_x};
      {op_q, use_imm_q, imm_q} <= {cmd_i.op, cmd_i.use_imm, cmd_i.imm};
    end
  end

  loop_nest u_nest (
    .clk_i,
    .rst_ni,
    .load_i   (load),
    .extent_i (valid_i ? {uop_count, {1'b0, cmd_i.x}, {1'b0, cmd_i.y}, 15'd1, 15'd1} : 'x),
    .advance_i(a_valid & en),
    .valid_o  (a_valid),
    .empty_o  (a_empty),
    .last_o   (a_last),
    .step_o   (a_step)
  );
  loop_index #(.Width(IndexWidth)) u_dst (
    .clk_i,
    .load_i  (load),
    .base_i  (14'd0),
    .step_i  (a_step),
    .stride_i({14'd0, dst_x_q, dst_y_q, 28'd0}),
    .index_o (a_dst)
  );
  loop_index #(.Width(IndexWidth)) u_src (
    .clk_i,
    .load_i  (load),
    .base_i  (14'd0),
    .step_i  (a_step),
    .stride_i({14'd0, src_x_q, src_y_q, 28'd0}),
    .index_o (a_src)
  );
  loop_index #(.Width(15)) u_uop (
    .clk_i,
    .load_i  (load),
    .base_i  (cmd_i.uop_begin),
    .step_i  (a_step),
    .stride_i({14'd1, 56'd0}),
    .index_o (a_uop)
  );

  assign a_work     = a_valid & ~a_empty & ~dead_q;
  assign uop_re_o   = en & a_work;
  assign uop_addr_o = a_uop[tenon_pkg::UOP_AW-1:0];

  // b: micro-op + offsets.
  logic                  b_work_q, b_last_q, b_bad_q;
  logic [IndexWidth-1:0] b_dst_q, b_src_q, b_uop_dst, b_uop_src;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {b_work_q, b_last_q} <= 2'b00;
    else if (en) {b_work_q, b_last_q} <= {a_work, a_valid & a_last & ~dead_q};
  end
  always_ff @(posedge clk_i) begin
    if (en & a_work) begin
      b_bad_q <= a_uop >= 15'(tenon_pkg::UOP_DEPTH);
      b_dst_q <= a_dst;
      b_src_q <= a_src;
    end
  end
  always_comb begin
    b_uop_dst = '0;
    b_uop_src = '0;
    b_uop_dst[tenon_pkg::UOP_DST_W-1:0] = uop_data_i[tenon_pkg::UOP_DST_LSB+:tenon_pkg::UOP_DST_W];
    b_uop_src[tenon_pkg::UOP_SRC_W-1:0] = uop_data_i[tenon_pkg::UOP_SRC_LSB+:tenon_pkg::UOP_SRC_W];
  end
  logic unused_uop;
  assign unused_uop = ^uop_data_i;

  // c: one or two reads of acc.
  logic                  c_work_q, c_last_q, c_bad_q, c_bad, c_src_read_q, c_src_phase, c_hazard;
  logic [IndexWidth-1:0] c_dst_q, c_src_q;
  logic                  d_work_q, d_last_q, d_bad_q, e_work_q, e_last_q, e_bad_q;
  logic [AccBits-1:0]    d_dst_q, e_dst_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {c_work_q, c_last_q} <= 2'b00;
    else if (en) {c_work_q, c_last_q} <= {2{~dead_q & ~c_bad}} & {b_work_q, b_last_q};
  end
  always_ff @(posedge clk_i) begin
    if (en & b_work_q) begin
      c_bad_q <= b_bad_q;
      c_dst_q <= b_dst_q + b_uop_dst;
      c_src_q <= b_src_q + b_uop_src;
    end
  end

  assign c_bad = c_work_q & (c_bad_q | c_dst_q >= IndexWidth'(tenon_pkg::ACC_DEPTH) |
                             (~use_imm_q & c_src_q >= IndexWidth'(tenon_pkg::ACC_DEPTH)));
  assign c_src_phase = ~use_imm_q & ~c_src_read_q;
  assign acc_raddr_o = c_src_phase ? c_src_q[AccBits-1:0] : c_dst_q[AccBits-1:0];
  assign c_hazard    = (d_work_q & d_dst_q == acc_raddr_o) | (e_work_q & e_dst_q == acc_raddr_o);
  assign acc_req_o   = c_work_q & ~c_bad & ~c_hazard;
  assign en          = ~c_work_q | c_bad | (acc_req_o & acc_gnt_i & ~c_src_phase);

  logic src_there_q;  // acc_rdata_i is the source operand
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {c_src_read_q, src_there_q} <= 2'b00;
    else begin
      src_there_q <= acc_req_o & acc_gnt_i & c_src_phase;
      if (en) c_src_read_q <= 1'b0;
      else if (acc_req_o & acc_gnt_i) c_src_read_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) dead_q <= 1'b0;
    else if (c_bad) dead_q <= 1'b1;
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

  for (genvar l = 0; l < tenon_pkg::BLOCK_OUT; l++) begin : g_lane
    alu_lane u_lane (
      .clk_i,
      .b_en_i   (src_there_q),
      .d_en_i   (d_work_q),
      .op_i     (op_q),
      .use_imm_i(use_imm_q),
      .imm_i    ({{16{imm_q[15]}}, imm_q}),
      .acc_i    (acc_rdata_i[l*32+:32]),
      .result_o (acc_wdata_o[l*32+:32])
    );
  end
  assign acc_we_o    = e_work_q;
  assign acc_waddr_o = e_dst_q;

  logic done_q, bad_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {done_q, bad_q} <= 2'b00;
    else {done_q, bad_q} <= {e_last_q, e_bad_q};
  end
  assign done_o  = done_q;
  assign error_o = bad_q ? tenon_pkg::STOP_SCRATCHPAD_RANGE : tenon_pkg::STOP_NONE;

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

endmodule
