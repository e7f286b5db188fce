// The matrix engine: turns a GEMM command of either profile into a stream of steps, one a cycle, for the tensor core.
//
// Stages   a  loop nest and indices; the micro-op is read (base)
//          b  the micro-op is there; dst, src, wgt are summed
//          c  range check; inp and weights are read
//          d  products   e  sums of groups   f  sum; acc is read
//          g  acc + sum is written
// acc is read as late as possible, so that only the step directly before can still be on its way: its result is
// forwarded. Everything else that reads acc has at least one cycle between that write and its own read, or waits for
// done. If the acc port is given to another engine, a to f stand still and g drains.
//
// Completion travels with the last step of a command, so the next command enters without a gap and done comes in
// order. An index outside its scratchpad ends the command: no step from there on has an effect, done comes with the
// stop code, and nothing more is accepted until reset.
module gemm (
  input  logic                               clk_i,
  input  logic                               rst_ni,
  input  logic                               valid_i,
  input  compute_pkg::gemm_cmd_t             cmd_i,
  output logic                               ready_o,
  output logic                               done_o,
  output logic [7:0]                         error_o,
  output logic                               active_o,
  // Micro-ops; the data comes in the next cycle and stays.
  output logic                               uop_re_o,
  output logic [tenon_pkg::UOP_AW-1:0]       uop_addr_o,
  input  logic [31:0]                        uop_data_i,
  // Input vectors, likewise.
  output logic                               inp_re_o,
  output logic [tenon_pkg::INP_AW-1:0]       inp_addr_o,
  input  logic [tenon_pkg::BLOCK_IN*8-1:0]   inp_data_i,
  // Loads of weights.
  input  logic                               wgt_we_i,
  input  logic [31:0]                        wgt_unit_i,
  input  logic [tenon_pkg::BLOCK_IN*8-1:0]   wgt_wdata_i,
  // acc: data in the cycle after the grant.
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

  logic en;    // stages a to f go on
  logic load;  // a command enters
  logic dead_q;

  // a: the loops. Base: y, x, micro-ops on levels 2 to 4; native: r0, r1, r2, y, x.
  logic        is_base_d, is_base_q, reset_q, first_q;
  logic [69:0] dst_stride_d, src_stride_d, wgt_stride_d, dst_stride_q, src_stride_q, wgt_stride_q;
  logic [74:0] extent;
  logic [14:0] uop_count;

  assign is_base_d = (tenon_pkg::HAS_BASE != 0) & (cmd_i.is_base | (tenon_pkg::HAS_NATIVE == 0));
  assign uop_count = cmd_i.uop_end > {1'b0, cmd_i.uop_begin} ? cmd_i.uop_end - {1'b0, cmd_i.uop_begin} : 15'd0;

  always_comb begin
    extent       = 'x;
    dst_stride_d = 'x;
    src_stride_d = 'x;
    wgt_stride_d = 'x;
    if (valid_i & ~is_base_d) begin
      extent       = {{1'b0, cmd_i.x}, {1'b0, cmd_i.y}, {5'd0, cmd_i.r2}, {5'd0, cmd_i.r1}, {5'd0, cmd_i.r0}};
      dst_stride_d = {cmd_i.dst_x, cmd_i.dst_y, 42'd0};
      src_stride_d = {cmd_i.src_x, cmd_i.src_y, cmd_i.src_r2, cmd_i.src_r1, cmd_i.src_r0};
      wgt_stride_d = {28'd0, cmd_i.wgt_r2, cmd_i.wgt_r1, cmd_i.wgt_r0};
    end else if (valid_i) begin
      extent       = {uop_count, {1'b0, cmd_i.x}, {1'b0, cmd_i.y}, 15'd1, 15'd1};
      dst_stride_d = {14'd0, cmd_i.dst_x, cmd_i.dst_y, 28'd0};
      src_stride_d = {14'd0, cmd_i.src_x, cmd_i.src_y, 28'd0};
      wgt_stride_d = {14'd0, cmd_i.wgt_x, cmd_i.wgt_y, 28'd0};
    end
  end

  always_ff @(posedge clk_i) begin
    if (load) begin
      is_base_q    <= is_base_d;
      reset_q      <= is_base_d & cmd_i.reset;
      first_q      <= ~is_base_d & cmd_i.first;
      dst_stride_q <= dst_stride_d;
      src_stride_q <= src_stride_d;
      wgt_stride_q <= wgt_stride_d;
    end
  end

  logic       a_valid, a_empty, a_last;
  logic [4:0] a_step;

  assign ready_o = ~dead_q & (~a_valid | (en & a_last));
  assign load    = valid_i & ready_o;

  loop_nest u_nest (
    .clk_i,
    .rst_ni,
    .load_i   (load),
    .extent_i (extent),
    .advance_i(a_valid & en),
    .valid_o  (a_valid),
    .empty_o  (a_empty),
    .last_o   (a_last),
    .step_o   (a_step)
  );

  logic [IndexWidth-1:0] a_dst, a_src, a_wgt;
  logic [14:0]           a_uop;

  loop_index #(.Width(IndexWidth)) u_dst (
    .clk_i,
    .load_i  (load),
    .base_i  (is_base_d ? 14'd0 : cmd_i.dst_base),
    .step_i  (a_step),
    .stride_i(dst_stride_q),
    .index_o (a_dst)
  );
  loop_index #(.Width(IndexWidth)) u_src (
    .clk_i,
    .load_i  (load),
    .base_i  (is_base_d ? 14'd0 : cmd_i.src_base),
    .step_i  (a_step),
    .stride_i(src_stride_q),
    .index_o (a_src)
  );
  loop_index #(.Width(IndexWidth)) u_wgt (
    .clk_i,
    .load_i  (load),
    .base_i  (is_base_d ? 14'd0 : cmd_i.wgt_base),
    .step_i  (a_step),
    .stride_i(wgt_stride_q),
    .index_o (a_wgt)
  );
  loop_index #(.Width(15)) u_uop (
    .clk_i,
    .load_i  (load),
    .base_i  (cmd_i.uop_begin),
    .step_i  (a_step),
    .stride_i({14'd1, 56'd0}),
    .index_o (a_uop)
  );

  // acc reads as 0 in the first round of a native command: until one of the r loops goes on.
  logic a_first_q;
  always_ff @(posedge clk_i) begin
    if (load) a_first_q <= 1'b1;
    else if (|a_step[2:0]) a_first_q <= 1'b0;
  end

  logic a_work;
  assign a_work     = a_valid & ~a_empty & ~dead_q;
  assign uop_re_o   = en & a_work & is_base_q;
  assign uop_addr_o = a_uop[tenon_pkg::UOP_AW-1:0];

  // b: micro-op + offsets.
  logic                  b_work_q, b_last_q, b_base_q, b_reset_q, b_zero_q, b_bad_q;
  logic [IndexWidth-1:0] b_dst_q, b_src_q, b_wgt_q;
  logic [IndexWidth-1:0] b_uop_dst, b_uop_src, b_uop_wgt;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      b_work_q <= 1'b0;
      b_last_q <= 1'b0;
    end else if (en) begin
      b_work_q <= a_work;
      b_last_q <= a_valid & a_last & ~dead_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (en & a_work) begin
      b_base_q  <= is_base_q;
      b_reset_q <= reset_q;
      b_zero_q  <= reset_q | (first_q & a_first_q);
      b_bad_q   <= is_base_q & (a_uop >= 15'(tenon_pkg::UOP_DEPTH));
      b_dst_q   <= a_dst;
      b_src_q   <= a_src;
      b_wgt_q   <= a_wgt;
    end
  end

  always_comb begin
    b_uop_dst = '0;
    b_uop_src = '0;
    b_uop_wgt = '0;
    if (b_base_q) begin
      b_uop_dst[tenon_pkg::UOP_DST_W-1:0] = uop_data_i[tenon_pkg::UOP_DST_LSB+:tenon_pkg::UOP_DST_W];
      b_uop_src[tenon_pkg::UOP_SRC_W-1:0] = uop_data_i[tenon_pkg::UOP_SRC_LSB+:tenon_pkg::UOP_SRC_W];
      b_uop_wgt[tenon_pkg::UOP_WGT_W-1:0] = uop_data_i[tenon_pkg::UOP_WGT_LSB+:tenon_pkg::UOP_WGT_W];
    end
  end

  logic unused_uop;
  assign unused_uop = ^uop_data_i;

  // c: range check, reads of inp and weights.
  logic                  c_work_q, c_last_q, c_reset_q, c_zero_q, c_bad_q;
  logic [IndexWidth-1:0] c_dst_q, c_src_q, c_wgt_q;
  logic                  c_bad, c_work, c_mac;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      c_work_q <= 1'b0;
      c_last_q <= 1'b0;
    end else if (en) begin
      c_work_q <= b_work_q & ~dead_q & ~c_bad;
      c_last_q <= b_last_q & ~dead_q & ~c_bad;
    end
  end
  always_ff @(posedge clk_i) begin
    if (en & b_work_q) begin
      c_reset_q <= b_reset_q;
      c_zero_q  <= b_zero_q;
      c_bad_q   <= b_bad_q;
      c_dst_q   <= b_dst_q + b_uop_dst;
      c_src_q   <= b_src_q + b_uop_src;
      c_wgt_q   <= b_wgt_q + b_uop_wgt;
    end
  end

  assign c_bad = c_work_q & (c_bad_q | c_dst_q >= IndexWidth'(tenon_pkg::ACC_DEPTH) |
                             (~c_reset_q & (c_src_q >= IndexWidth'(tenon_pkg::INP_DEPTH) |
                                            c_wgt_q >= IndexWidth'(tenon_pkg::WGT_DEPTH))));
  assign c_work = c_work_q & ~c_bad;
  assign c_mac  = c_work & ~c_reset_q;

  // From the first bad step on nothing enters any more; younger steps are dropped.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) dead_q <= 1'b0;
    else if (en & c_bad) dead_q <= 1'b1;
  end

  assign inp_re_o   = en & c_mac;
  assign inp_addr_o = c_src_q[tenon_pkg::INP_AW-1:0];

  // d, e, f, g.
  logic d_work_q, d_last_q, d_bad_q, d_mac_q, d_zero_q;
  logic e_work_q, e_last_q, e_bad_q, e_mac_q, e_zero_q;
  logic f_work_q, f_last_q, f_bad_q, f_mac_q, f_zero_q;
  logic g_work_q, g_last_q, g_bad_q, g_mac_q, g_zero_q, g_forward_q;
  logic [tenon_pkg::ACC_AW-1:0] d_dst_q, e_dst_q, f_dst_q, g_dst_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {d_work_q, d_last_q, d_bad_q, d_mac_q} <= 4'd0;
      {e_work_q, e_last_q, e_bad_q, e_mac_q} <= 4'd0;
      {f_work_q, f_last_q, f_bad_q, f_mac_q} <= 4'd0;
    end else if (en) begin
      {d_work_q, d_last_q, d_bad_q, d_mac_q} <= {c_work, c_last_q | c_bad, c_bad, c_mac};
      {e_work_q, e_last_q, e_bad_q, e_mac_q} <= {d_work_q, d_last_q, d_bad_q, d_mac_q};
      {f_work_q, f_last_q, f_bad_q, f_mac_q} <= {e_work_q, e_last_q, e_bad_q, e_mac_q};
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {g_work_q, g_last_q, g_bad_q, g_mac_q} <= 4'd0;
    else {g_work_q, g_last_q, g_bad_q, g_mac_q} <= {4{en}} & {f_work_q, f_last_q, f_bad_q, f_mac_q};
  end
  always_ff @(posedge clk_i) begin
    if (en) begin
      d_zero_q <= c_zero_q;
      d_dst_q  <= c_dst_q[tenon_pkg::ACC_AW-1:0];
      e_zero_q <= d_zero_q;
      e_dst_q  <= d_dst_q;
      f_zero_q <= e_zero_q;
      f_dst_q  <= e_dst_q;
      g_zero_q <= f_zero_q;
      g_dst_q  <= f_dst_q;
      // The step in g writes while this one reads: it gets the old value, and the new one from the tensor core.
      g_forward_q <= g_work_q & g_dst_q == f_dst_q;
    end
  end

  assign acc_req_o   = f_work_q & ~f_zero_q;
  assign acc_raddr_o = f_dst_q;
  assign en          = ~acc_req_o | acc_gnt_i;

  tensor_core u_core (
    .clk_i,
    .wgt_we_i,
    .wgt_unit_i,
    .wgt_wdata_i,
    .c_en_i      (inp_re_o),
    .d_en_i      (en & d_mac_q),
    .e_en_i      (en & e_mac_q),
    .f_en_i      (en & f_mac_q),
    .g_en_i      (g_work_q),
    .c_wgt_addr_i(c_wgt_q[tenon_pkg::WGT_AW-1:0]),
    .d_inp_i     (inp_data_i),
    .g_zero_i    (g_zero_q),
    .g_forward_i (g_forward_q),
    .g_reset_i   (~g_mac_q),
    .g_acc_i     (acc_rdata_i),
    .g_result_o  (acc_wdata_o)
  );

  assign acc_we_o    = g_work_q;
  assign acc_waddr_o = g_dst_q;
  assign active_o    = g_mac_q;

  logic done_q, bad_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {done_q, bad_q} <= 2'b00;
    else {done_q, bad_q} <= {g_last_q, g_bad_q};
  end
  assign done_o  = done_q;
  assign error_o = bad_q ? tenon_pkg::STOP_SCRATCHPAD_RANGE : tenon_pkg::STOP_NONE;

`ifdef TENON_TRACE
  logic [31:0] a_index_q, b_index_q, c_index_q, d_index_q, e_index_q, f_index_q, g_index_q;
  always_ff @(posedge clk_i) begin
    if (load) a_index_q <= cmd_i.index;
    if (en) begin
      b_index_q <= a_index_q;
      c_index_q <= b_index_q;
      d_index_q <= c_index_q;
      e_index_q <= d_index_q;
      f_index_q <= e_index_q;
      g_index_q <= f_index_q;
    end
  end
  assign trace_index_o = g_index_q;
`else
  logic unused_index;
  assign unused_index = ^cmd_i.index;
`endif

endmodule
