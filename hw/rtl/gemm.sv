// The matrix engine: executes a GEMM command of either profile as a stream of steps, one a cycle, on the tensor core.
//
// Stages   a  loop nest and indices; the micro-op is read (base)
//          b  the micro-op is read; dst, src, wgt are summed
//          c  range check; inp and weights are read
//          d  operands   e  products   f  sums of groups; acc is read
//          g  sum; acc, or a result in its stead
//          h  acc + sum is written
// The registers d and g leave the memories' outputs a cycle. acc is read as late as possible, so that only the two
// directly preceding steps can still be in flight: their results are forwarded, or with IN_ORDER waited for. With
// SERIAL_PRODUCTS d, e and f are one stage of eight cycles, at the end of which acc is read; with IN_ORDER as well there
// is no stage h either: g writes acc + sum, which needs no register. Every other reader of acc has at least one cycle
// between that write and its own read, or waits for done. If the acc port is granted to another engine, stages a to f
// stall, and g and h drain.
//
// Completion travels with the last step of a command, so the next command enters without a gap and done comes in
// order. An index outside its scratchpad ends the command: no step from this one on has an effect, done comes with the
// stop code, and no command is accepted until reset.
module gemm (
  input  logic                               clk_i,
  input  logic                               rst_ni,
  input  logic                               valid_i,
  input  compute_pkg::gemm_cmd_t             cmd_i,
  output logic                               ready_o,
  output logic                               done_o,
  output logic [7:0]                         error_o,
  output logic                               active_o,
  // The shared stages a to c, which hold this engine's command while it runs.
  output logic                               stages_load_o,
  output compute_pkg::loops_t                stages_loops_o,
  output logic                               stages_en_o,
  output logic                               stages_fail_o,
  output logic                               stages_bad_o,
  output compute_pkg::step_tag_t             stages_tag_o,
  output logic                               stages_hold_o,
  input  logic                               a_valid_i,
  input  logic                               a_last_i,
  input  logic [4:0]                         a_step_i,
  input  logic [compute_pkg::INDEX_WIDTH-1:0] b_src_i,
  input  logic                               c_work_i,
  input  logic                               c_last_i,
  input  logic                               c_uop_bad_i,
  input  compute_pkg::step_tag_t             c_tag_i,
  input  logic [3*compute_pkg::INDEX_WIDTH-1:0] c_index_i,
  // Input vectors, of row 0 or of up to three rows of a window; the data comes in the next cycle and stays.
  output logic [2:0]                         inp_re_o,
  output logic [3*tenon_pkg::INP_AW-1:0]     inp_addr_o,
  input  logic [3*tenon_pkg::BLOCK_IN*8-1:0] inp_data_i,
  // Loads of weights.
  input  logic                               wgt_we_i,
  input  logic [31:0]                        wgt_unit_i,
  input  logic [tenon_pkg::BLOCK_IN*8-1:0]   wgt_wdata_i,
  // acc: data in the cycle after the grant.
  output logic                               acc_req_o,
  input  logic                               acc_gnt_i,
  input  logic                               acc_gnt_next_i,  // a request of the next cycle is granted
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

  localparam int   IndexWidth = compute_pkg::INDEX_WIDTH;
  localparam logic Forward    = tenon_pkg::IN_ORDER == 0;
  localparam logic Serial     = tenon_pkg::SERIAL_PRODUCTS != 0;
  localparam logic HasOwn     = tenon_pkg::OWN_LANES != 0;
  localparam logic Short      = Serial & ~Forward;  // without stage h
  // The operands of all steps advance, also of those without products, so that their enable is a register's output.
  localparam logic AllSteps = Forward & ~Serial;

  logic en;    // stages a to f advance
  logic load;  // a command enters
  logic c_bad, w_last, w_bad;

  command_port #(
    .Overlap(1'b1)
  ) u_port (
    .clk_i,
    .rst_ni,
    .valid_i,
    .room_i    (~a_valid_i | (Forward & en & a_last_i)),  // with IN_ORDER the engine is idle
    .ready_o,
    .load_o    (load),
    .done_o,
    .error_o,
    .bad_i     (en & c_bad),
    .fail_o    (stages_fail_o),
    .last_i    (w_last),
    .last_bad_i(w_bad)
  );

  // The loops. Base: y, x, micro-ops on levels 2 to 4; native: r0, r1, r2, y, x, or with own lanes r0, y, x, the columns
  // of a window, the steps of a column, where those of a window that overlaps are all columns of a row. Indices: dst, src,
  // wgt.
  logic is_base, is_own;
  assign is_own  = HasOwn & ~is_base & cmd_i.own;
  assign is_base = (tenon_pkg::HAS_BASE != 0) & (cmd_i.is_base | (tenon_pkg::HAS_NATIVE == 0));

  always_comb begin
    stages_loops_o = 'x;
    if (valid_i & is_own) begin
      stages_loops_o.extent = {{12'd0, cmd_i.own_steps}, cmd_i.own_overlaps ? {3'd0, cmd_i.own_columns} : {5'd0, cmd_i.r2},
                               cmd_i.own_overlaps ? 15'd1 : {1'b0, cmd_i.x}, {1'b0, cmd_i.y}, {5'd0, cmd_i.r0}};
      stages_loops_o.base   = {cmd_i.wgt_base, cmd_i.src_base, cmd_i.dst_base};
      stages_loops_o.stride = {70'd0,
                               14'd0, cmd_i.src_r2, cmd_i.src_x, cmd_i.src_y, 14'd0,
                               14'd0, cmd_i.own_overlaps ? cmd_i.dst_x : 14'd0, cmd_i.dst_x, cmd_i.dst_y, 14'd0};
    end else if (valid_i & ~is_base) begin
      stages_loops_o.extent = {{1'b0, cmd_i.x}, {1'b0, cmd_i.y}, {5'd0, cmd_i.r2}, {5'd0, cmd_i.r1}, {5'd0, cmd_i.r0}};
      stages_loops_o.base   = {cmd_i.wgt_base, cmd_i.src_base, cmd_i.dst_base};
      stages_loops_o.stride = {28'd0, cmd_i.wgt_r2, cmd_i.wgt_r1, cmd_i.wgt_r0,
                               cmd_i.src_x, cmd_i.src_y, cmd_i.src_r2, cmd_i.src_r1, cmd_i.src_r0,
                               cmd_i.dst_x, cmd_i.dst_y, 42'd0};
    end else if (valid_i | ~Forward) begin
      stages_loops_o.extent = compute_pkg::base_extent(cmd_i.y, cmd_i.x,
                                                       compute_pkg::uop_count(cmd_i.uop_begin, cmd_i.uop_end));
      stages_loops_o.base   = 42'd0;
      stages_loops_o.stride = {compute_pkg::base_stride(cmd_i.wgt_y, cmd_i.wgt_x),
                               compute_pkg::base_stride(cmd_i.src_y, cmd_i.src_x),
                               compute_pkg::base_stride(cmd_i.dst_y, cmd_i.dst_x)};
    end
    stages_loops_o.uop       = is_base;
    stages_loops_o.uop_begin = cmd_i.uop_begin;
  end
  assign stages_load_o = load;
  assign stages_en_o   = en;
  assign stages_bad_o  = c_bad;

  // acc reads as 0 in the first round of a native command: until one of the r loops advances.
  logic reset_q, first_q, a_first_q, unused_inner;
  assign unused_inner = ^a_step_i[4:3];

  always_ff @(posedge clk_i) begin
    if (load) begin
      reset_q <= is_base & cmd_i.reset;
      first_q <= ~is_base & cmd_i.first;
    end
    if (load) a_first_q <= 1'b1;
    else if (|a_step_i[2:0]) a_first_q <= 1'b0;
  end

  // The steps of windows, and the addresses of their rows.
  compute_pkg::own_step_t  a_own;
  logic [2*IndexWidth-1:0] c_rows;
  logic                    a_zero;
  if (HasOwn) begin : g_own
    own_steps u_steps (
      .clk_i,
      .load_i  (load),
      .cmd_i,
      .en_i    (en),
      .a_step_i,
      .a_own_o (a_own),
      .a_hold_o(stages_hold_o),
      .b_src_i,
      .c_rows_o(c_rows)
    );
    // The odd lanes' step continues the sums of the even lanes' step.
    assign a_zero = first_q & (a_own.own ? ~a_own.odd : a_first_q);
  end else begin : g_no_own
    logic unused_own;
    assign unused_own    = ^{b_src_i, cmd_i.own_by_two, cmd_i.own_reads};
    assign stages_hold_o = 1'b0;
    assign c_rows        = '0;
    always_comb begin
      a_own         = '0;
      a_own.read    = 3'b001;
      a_own.product = 1'b1;
    end
    assign a_zero = first_q & a_first_q;
  end

  // c. A step's tag: `reset`, and whether acc reads as 0.
  logic                  c_work_q, c_last_q, c_uop_bad_q, c_reset_q, c_zero_q;
  logic [IndexWidth-1:0] c_dst_q, c_src_q, c_wgt_q;
  logic                  c_work, c_mac;

  compute_pkg::own_step_t c_own;
  assign stages_tag_o                    = {a_own, reset_q, reset_q | a_zero};
  assign {c_work_q, c_last_q, c_uop_bad_q} = {c_work_i, c_last_i, c_uop_bad_i};
  assign {c_own, c_reset_q, c_zero_q}    = c_tag_i;
  assign {c_wgt_q, c_src_q, c_dst_q}     = c_index_i;

  // c: range check, reads of inp and weights. The last row of a window has its largest address.
  logic [IndexWidth-1:0] c_last_src;
  assign c_last_src = ~(HasOwn & c_own.own & c_own.rows[1]) ? c_src_q :
                      c_own.rows[0] ? c_rows[2*IndexWidth-1:IndexWidth] : c_rows[IndexWidth-1:0];
  assign c_bad = c_work_q & (c_uop_bad_q | c_dst_q >= IndexWidth'(tenon_pkg::ACC_DEPTH) |
                             (~c_reset_q & (c_last_src >= IndexWidth'(tenon_pkg::INP_DEPTH) |
                                            c_wgt_q >= IndexWidth'(tenon_pkg::WGT_DEPTH))));
  assign c_work = c_work_q & ~c_bad & c_own.product;
  assign c_mac  = c_work & ~c_reset_q;

  // A step in error reads as any other does and is dropped after it: its check is on no path to the memories.
  logic c_re;
  assign c_re       = en & (AllSteps | (c_work_q & ~c_reset_q));
  assign inp_re_o   = {{2{c_re & c_work_q}} & c_own.read[2:1], c_re & c_own.read[0]};
  assign inp_addr_o = {c_rows[IndexWidth+:tenon_pkg::INP_AW], c_rows[0+:tenon_pkg::INP_AW],
                       c_src_q[tenon_pkg::INP_AW-1:0]};
  logic unused_rows;
  assign unused_rows = ^c_rows;

  // d to h; w is the stage that writes, h or g.
  logic w_work, w_mac;
  logic d_work_q, d_last_q, d_bad_q, d_mac_q, d_zero_q;
  logic e_work_q, e_last_q, e_bad_q, e_mac_q, e_zero_q;
  logic f_work_q, f_last_q, f_bad_q, f_mac_q, f_zero_q;
  logic g_work_q, g_last_q, g_bad_q, g_mac_q, g_zero_q, g_newest_q, g_newer_q;
  logic h_work_q, h_last_q, h_bad_q, h_mac_q;
  logic [tenon_pkg::ACC_AW-1:0] d_dst_q, e_dst_q, f_dst_q, g_dst_q, h_dst_q;

  // The stage before g: f, or the last cycle of d.
  logic [2:0] d_pass_q;
  logic       f_work, f_last, f_bad, f_mac, f_zero, f_whole, f_reads;
  logic [tenon_pkg::ACC_AW-1:0] f_dst;
  assign {f_work, f_last, f_bad, f_mac} = Serial ? {d_work_q, d_last_q, d_bad_q, d_mac_q} :
                                                   {f_work_q, f_last_q, f_bad_q, f_mac_q};
  assign f_zero  = Serial ? d_zero_q : f_zero_q;
  assign f_dst   = Serial ? d_dst_q : f_dst_q;
  assign f_whole = ~Serial | ~d_mac_q | d_pass_q == 3'd7;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) d_pass_q <= 3'd0;
    else if (Serial & d_mac_q & (en | ~f_whole)) d_pass_q <= d_pass_q + 3'd1;
  end

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
    if (!rst_ni) begin
      {g_work_q, g_last_q, g_bad_q, g_mac_q} <= 4'd0;
      {h_work_q, h_last_q, h_bad_q, h_mac_q} <= 4'd0;
    end else begin
      {g_work_q, g_last_q, g_bad_q, g_mac_q} <= {4{en}} & {f_work, f_last, f_bad, f_mac};
      {h_work_q, h_last_q, h_bad_q, h_mac_q} <= {g_work_q, g_last_q, g_bad_q, g_mac_q};
    end
  end
  always_ff @(posedge clk_i) begin
    if (en) begin
      d_zero_q <= c_zero_q;
      d_dst_q  <= c_dst_q[tenon_pkg::ACC_AW-1:0];
      e_zero_q <= d_zero_q;
      e_dst_q  <= d_dst_q;
      f_zero_q <= e_zero_q;
      f_dst_q  <= e_dst_q;
      g_zero_q <= f_zero;
      g_dst_q  <= f_dst;
      // The steps in g and h write after this one has read: the tensor core takes their results instead.
      g_newest_q <= Forward & g_work_q & g_dst_q == f_dst;
      g_newer_q  <= Forward & h_work_q & h_dst_q == f_dst;
    end
    if (g_work_q) h_dst_q <= g_dst_q;
  end

  // Without stage h the step before is written when this one has its sum.
  assign acc_req_o   = f_reads & (Forward | Short | ~((g_work_q & g_dst_q == f_dst) | (h_work_q & h_dst_q == f_dst)));
  assign acc_raddr_o = f_dst;
  // Its copies for the lanes of the tensor core, since the wires from one register to all of them would be longer than a
  // cycle; `keep` leaves synthesis no merging of these copies.
  logic [tenon_pkg::BLOCK_OUT-1:0] lane_en;
  if (Forward & ~Serial) begin : g_enable
    // Whether the stages advance is known a cycle earlier, and a register: it enables most of the engine. So is whether
    // f reads, on which the grants to all other readers depend.
    logic en_q, reads, reads_q;
    assign reads = en_q ? e_work_q & ~e_zero_q : reads_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) {en_q, reads_q} <= 2'b10;
      else {en_q, reads_q} <= {acc_gnt_next_i | ~reads, reads};
    end
    assign en      = en_q;
    assign f_reads = reads_q;
    for (genvar l = 0; l < tenon_pkg::BLOCK_OUT; l++) begin : g_lane
      logic lane_en_q;
      (* keep *) always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) lane_en_q <= 1'b1;
        else lane_en_q <= acc_gnt_next_i | ~reads;
      end
      assign lane_en[l] = lane_en_q;
    end
`ifndef SYNTHESIS
    // Only assertions read the reset synchronously.
    // verilator lint_off SYNCASYNCNET
    always_ff @(posedge clk_i) begin
      if (rst_ni & f_work_q) begin
        TheStagesAdvanceUnlessAReadIsRefused: assert (en_q == (~f_reads | acc_gnt_i));
        AStepReadsUnlessAccIsZero: assert (reads_q == ~f_zero_q);
      end
    end
    // verilator lint_on SYNCASYNCNET
`endif
  end else begin : g_enable_now
    assign en      = f_whole & (~f_reads | (acc_req_o & acc_gnt_i));
    assign f_reads = f_work & ~f_zero & f_whole;
    assign lane_en = {tenon_pkg::BLOCK_OUT{en}};
    logic unused_next;
    assign unused_next = acc_gnt_next_i;
  end

  // d with own lanes: the rows of the column that enters, and 0 beyond the window's.
  compute_pkg::own_step_t d_own_q;
  logic [3*tenon_pkg::BLOCK_IN*8-1:0] d_column;
  if (HasOwn) begin : g_column
    localparam int Width = tenon_pkg::BLOCK_IN * 8;
    logic [2*Width-1:0] held_q;
    always_ff @(posedge clk_i) begin
      if (en) d_own_q <= c_own;
      for (int r = 0; r < 2; r++) begin
        if (en & d_own_q.own & ~d_own_q.enters & d_own_q.read[r]) held_q[r*Width+:Width] <= inp_data_i[r*Width+:Width];
      end
    end
    assign d_column[0+:Width]       = d_own_q.held[0] ? held_q[0+:Width] : inp_data_i[0+:Width];
    assign d_column[Width+:Width]   = {Width{d_own_q.rows[1]}} &
                                      (d_own_q.held[1] ? held_q[Width+:Width] : inp_data_i[Width+:Width]);
    assign d_column[2*Width+:Width] = {Width{d_own_q.rows == 2'd3}} & inp_data_i[2*Width+:Width];
  end else begin : g_no_column
    assign d_own_q  = '0;
    assign d_column = '0;
    logic unused_column;
    assign unused_column = ^{inp_data_i, c_own};
  end
  logic unused_step;
  assign unused_step = ^d_own_q;

  tensor_core u_core (
    .clk_i,
    .wgt_we_i,
    .wgt_unit_i,
    .wgt_wdata_i,
    .c_en_i      (c_re),
    .d_en_i      ({tenon_pkg::BLOCK_OUT{AllSteps | d_mac_q}} & (lane_en | {tenon_pkg::BLOCK_OUT{~f_whole}})),
    .d_pass_i    (d_pass_q),
    .e_en_i      (lane_en & {tenon_pkg::BLOCK_OUT{AllSteps | e_mac_q}}),
    .f_en_i      (lane_en & {tenon_pkg::BLOCK_OUT{AllSteps | f_mac_q}}),
    .g_en_i      (g_work_q),
    .g_sum_i     (g_mac_q),
    .h_en_i      (h_work_q),
    .c_wgt_addr_i(c_wgt_q[tenon_pkg::WGT_AW-1:0]),
    .d_inp_i     (inp_data_i[tenon_pkg::BLOCK_IN*8-1:0]),
    .d_own_i     (d_own_q.own),
    .d_enters_i  (lane_en & {tenon_pkg::BLOCK_OUT{d_own_q.own & d_own_q.enters}}),
    .d_odd_i     (d_own_q.odd),
    .d_columns_i (d_own_q.columns),
    .d_column_i  (d_column),
    .g_zero_i    (g_zero_q),
    .g_newest_i  (g_newest_q),
    .g_newer_i   (g_newer_q),
    .g_acc_i     (acc_rdata_i),
    .w_reset_i   (~w_mac),
    .w_result_o  (acc_wdata_o)
  );

  // The step that is written.
  assign {w_work, w_last, w_bad, w_mac} = Short ? {g_work_q, g_last_q, g_bad_q, g_mac_q} :
                                                  {h_work_q, h_last_q, h_bad_q, h_mac_q};
  assign acc_we_o    = w_work;
  assign acc_waddr_o = Short ? g_dst_q : h_dst_q;
  assign active_o    = w_mac;

`ifdef TENON_TRACE
  logic [31:0] a_index_q, b_index_q, c_index_q, d_index_q, e_index_q, f_index_q, g_index_q, h_index_q;
  always_ff @(posedge clk_i) begin
    if (load) a_index_q <= cmd_i.index;
    if (en) begin
      b_index_q <= a_index_q;
      c_index_q <= b_index_q;
      d_index_q <= c_index_q;
      e_index_q <= d_index_q;
      f_index_q <= e_index_q;
      g_index_q <= Serial ? d_index_q : f_index_q;
    end
    if (g_work_q) h_index_q <= g_index_q;
  end
  assign trace_index_o = Short ? g_index_q : h_index_q;
`else
  logic unused_index;
  assign unused_index = ^cmd_i.index;
`endif

`ifndef SYNTHESIS
  // The last two writes, and which of them the step in h has taken instead of acc.
  logic                         wrote_q, wrote_before_q, h_newest_q, h_newer_q;
  logic [tenon_pkg::ACC_AW-1:0] wrote_dst_q, wrote_before_dst_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {wrote_q, wrote_before_q} <= 2'b00;
    else {wrote_q, wrote_before_q} <= {acc_we_o, wrote_q};
  end
  always_ff @(posedge clk_i) begin
    {wrote_dst_q, wrote_before_dst_q} <= {acc_waddr_o, wrote_dst_q};
    {h_newest_q, h_newer_q}           <= {g_newest_q, g_newer_q};
  end

  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & w_work) begin
      AStepInErrorHasNoEffect: assert (!w_bad);
    end
    if (rst_ni & h_work_q) begin
      ForwardingFollowsAWriteOfTheSameElement: assert ((!h_newest_q | (wrote_q & wrote_dst_q == h_dst_q)) &
                                                       (!h_newer_q | (wrote_before_q & wrote_before_dst_q == h_dst_q)));
    end
    if (rst_ni & acc_req_o) begin
      AStepReadsNoElementThatIsBeingWritten: assert (Forward | ((!g_work_q | g_dst_q != f_dst) &
                                                                (Short | !h_work_q | h_dst_q != f_dst)));
    end
    if (rst_ni & w_mac) begin
      AStepMultipliesOnlyIfItWorks: assert (w_work);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
