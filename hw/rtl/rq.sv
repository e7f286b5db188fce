// The requantizer of the native profile: out[..] = requantize(acc[..]) over rows and columns, one vector in RQ_PASSES
// cycles. Each pass reads the vector and computes BLOCK_OUT / RQ_PASSES lanes of it, and the last pass writes it. With a
// window (WINDOW_MAXIMUM) a vector of results is the maximum of those of its window, column by column.
//
// Stages   c  loops, indices, range check; acc and res are read
//          d to k  the lanes (rq_lane.sv)
//          l  the maximum; out is written, or with `to_inp` the result enters a queue, since loads write to inp first
// A command enters when c has none; what those before it need in later stages goes along with their vectors. Its
// parameter vector is read as it enters and stays at the output of par. While the acc port is granted to another engine,
// c waits and the later stages drain; so does it while the vectors on their way to inp may fill the queue. Completion and
// errors as in gemm; a command with `to_inp` is done when its results are in inp, and the next one not before it.
module rq (
  input  logic                               clk_i,
  input  logic                               rst_ni,
  input  logic                               valid_i,
  input  tenon_pkg::rq_cmd_t               cmd_i,
  output logic                               ready_o,
  output logic                               done_o,
  output logic [7:0]                         error_o,
  // Parameters and residuals: the data comes in the next cycle and stays.
  output logic                               par_re_o,
  output logic [tenon_pkg::PAR_AW-1:0]       par_addr_o,
  input  logic [tenon_pkg::BLOCK_OUT*64-1:0] par_data_i,
  output logic                               res_re_o,
  output logic [tenon_pkg::RES_AW-1:0]       res_addr_o,
  input  logic [tenon_pkg::BLOCK_OUT*8-1:0]  res_data_i,
  // acc: data in the cycle after the grant.
  output logic                               acc_req_o,
  input  logic                               acc_gnt_i,
  output logic [tenon_pkg::ACC_AW-1:0]       acc_raddr_o,
  input  logic [tenon_pkg::BLOCK_OUT*32-1:0] acc_rdata_i,
  output logic                               out_we_o,
  output logic [tenon_pkg::OUT_AW-1:0]       out_addr_o,
  output logic [tenon_pkg::BLOCK_OUT*8-1:0]  out_data_o,
  output logic                               inp_valid_o,
  input  logic                               inp_ready_i,
  // waits: a result taken in or before this cycle is still unwritten at its end; stays: the same for results taken before
  // this cycle.
  input  logic                               inp_waits_i,
  input  logic                               inp_stays_i,
  output logic [tenon_pkg::INP_AW-1:0]       inp_addr_o,
  output logic [tenon_pkg::BLOCK_OUT*8-1:0]  inp_data_o,
  // The lanes' multipliers, for the ALU; the two never run together.
  input  logic                                                       multiply_i,
  input  logic [tenon_pkg::BLOCK_OUT/tenon_pkg::RQ_PASSES*32-1:0]    multiplicand_i,
  input  logic [tenon_pkg::BLOCK_OUT/tenon_pkg::RQ_PASSES*16-1:0]    multiplier_i,
  output logic [tenon_pkg::BLOCK_OUT/tenon_pkg::RQ_PASSES*32-1:0]    product_o
`ifdef TENON_TRACE
  ,
  output logic [31:0]                        trace_index_o,     // of the result for out
  output logic [31:0]                        trace_inp_index_o  // of that for inp
`endif
);

  localparam int IndexWidth = compute_pkg::INDEX_WIDTH;
  localparam int Passes     = tenon_pkg::RQ_PASSES;
  localparam int Lanes      = tenon_pkg::BLOCK_OUT / Passes;
  localparam int PassWidth  = Passes > 1 ? $clog2(Passes) : 1;
  localparam logic ToInp    = tenon_pkg::RESULTS_TO_INP != 0;
  localparam logic Window   = tenon_pkg::WINDOW_MAXIMUM != 0;
  localparam int AddrWidth  = ToInp & tenon_pkg::INP_AW > tenon_pkg::OUT_AW ? tenon_pkg::INP_AW : tenon_pkg::OUT_AW;

  tenon_pkg::rq_cmd_t cmd_q;
  logic                 load, en, fail, c_bad;
  logic [8:0]           work_q, last_q, bad_q;  // stages d to l; bit 0 is stage d
  logic [8:0]           to_inp_q;               // stages d to l: their vectors' results are for inp
  logic                 to_inp, room, last, last_bad, windowed;
  assign to_inp   = ToInp & cmd_q.to_inp;
  assign windowed = Window & |{cmd_q.win_rows, cmd_q.win_cols, cmd_q.win_pitch, cmd_q.win_carry};

  command_port #(
    .Overlap(1'b1)
  ) u_port (
    .clk_i,
    .rst_ni,
    .valid_i,
    .room_i    (~c_valid),
    .ready_o,
    .load_o    (load),
    .done_o,
    .error_o,
    .bad_i     (step & c_bad),
    .fail_o    (fail),
    .last_i    (last),
    .last_bad_i(last_bad)
  );

  always_ff @(posedge clk_i) begin
    if (load) cmd_q <= cmd_i;
  end

  // The parameters are read with the first vector, whose accumulators they meet in d.
  logic load_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) load_q <= 1'b0;
    else load_q <= load;
  end
  assign par_re_o   = load_q;
  assign par_addr_o = cmd_q.par_base[tenon_pkg::PAR_AW-1:0];

  // c: loops, outermost first: rows, columns, and with windows the window's columns and rows. Indices: acc, out, res.
  logic                    c_valid, c_empty, c_last, c_work, c_read, c_vector;
  logic [74:0]             extent;
  logic [209:0]            stride;
  logic [3*IndexWidth-1:0] c_index;
  logic [IndexWidth-1:0]   c_acc, c_out, c_res;
  // verilator lint_off UNUSEDSIGNAL
  logic [3:0]              c_ends;  // of levels that are windows
  // verilator lint_on UNUSEDSIGNAL

  always_comb begin
    extent = 'x;
    stride = 'x;
    if (valid_i & Window) begin
      extent = {12'd0, cmd_i.win_rows == 3'd0 ? 3'd1 : cmd_i.win_rows,
                12'd0, cmd_i.win_cols == 3'd0 ? 3'd1 : cmd_i.win_cols, 5'd0, cmd_i.cols, 5'd0, cmd_i.rows, 15'd1};
      stride = {28'd0, 14'd1, 2'd0, cmd_i.res_pitch, 14'd0, 28'd0, 14'd1, 2'd0, cmd_i.out_pitch, 14'd0,
                2'd0, cmd_i.win_pitch, 14'd1, 2'd0, cmd_i.acc_step, 2'd0, cmd_i.acc_pitch, 14'd0};
    end else if (valid_i) begin
      extent = {5'd0, cmd_i.cols, 5'd0, cmd_i.rows, 15'd1, 15'd1, 15'd1};
      stride = {14'd1, 2'd0, cmd_i.res_pitch, 42'd0, 14'd1, 2'd0, cmd_i.out_pitch, 42'd0,
                2'd0, cmd_i.acc_step, 2'd0, cmd_i.acc_pitch, 42'd0};
    end
  end

  // verilator lint_off PINCONNECTEMPTY
  indexed_nest #(
    .Outermost(Window ? 1 : 3)
  ) u_nest (
    .clk_i,
    .rst_ni,
    .load_i   (load),
    .extent_i (extent),
    .base_i   ({cmd_i.res_base, cmd_i.out_base, cmd_i.acc_base}),
    .stride_i (stride),
    .hold_i   (1'b0),
    .advance_i(c_valid & step),
    .valid_o  (c_valid),
    .empty_o  (c_empty),
    .last_o   (c_last),
    .level_o  (),  // the indices follow it
    .ends_o   (c_ends),
    .free_o   (),
    .index_o  (c_index)
  );
  // verilator lint_on PINCONNECTEMPTY
  assign {c_res, c_out, c_acc} = c_index;

  assign c_bad = c_valid & ~c_empty & ~fail &
                 ((~windowed & c_acc >= IndexWidth'(tenon_pkg::ACC_DEPTH)) |
                  c_out >= (to_inp ? IndexWidth'(tenon_pkg::INP_DEPTH) : IndexWidth'(tenon_pkg::OUT_DEPTH)) |
                  (cmd_q.residual & c_res >= IndexWidth'(tenon_pkg::RES_DEPTH)) |
                  {3'd0, cmd_q.par_base} >= 15'(tenon_pkg::PAR_DEPTH));
  // A vector in error is read as any other is and dropped after it: its check is on no path to the grant.
  assign c_vector    = c_valid & ~c_empty & ~fail;
  assign c_read      = c_vector & room;
  assign c_work      = c_read & ~c_bad;
  assign acc_req_o   = c_read;
  assign acc_raddr_o = c_acc[tenon_pkg::ACC_AW-1:0];  // of a window modulo the depth
  assign en          = ~c_vector | (room & acc_gnt_i);

  // The pass over the vector in c, which stays for the last one.
  logic [PassWidth-1:0] c_pass_q;
  logic                 c_last_pass, step;
  assign c_last_pass = Passes == 1 | c_pass_q == PassWidth'(Passes - 1);
  assign step        = en & (~c_read | c_last_pass);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) c_pass_q <= '0;
    else if (c_read & acc_gnt_i) c_pass_q <= c_last_pass ? '0 : c_pass_q + 1'b1;
  end
  assign res_re_o    = c_read & acc_gnt_i & cmd_q.residual;
  assign res_addr_o  = c_res[tenon_pkg::RES_AW-1:0];

  // d to l: control.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      work_q <= '0;
      last_q <= '0;
      bad_q  <= '0;
    end else begin
      work_q <= {work_q[7:0], c_work & acc_gnt_i};
      last_q <= {last_q[7:0], step & ((c_valid & c_last & ~fail) | c_bad)};
      bad_q  <= {bad_q[7:0], step & c_bad};
    end
  end
  always_ff @(posedge clk_i) begin
    to_inp_q <= {to_inp_q[7:0], to_inp};
  end

  // The parameters of the layer that the lanes need in later stages. The next command enters after the last vector's d.
  logic [15:0] d_r_multiplier_q, e_r_multiplier_q;
  logic [4:0]  d_r_shift_q, e_r_shift_q, f_r_shift_q;
  logic [23:0] d_v_bounds_q, e_v_bounds_q, f_v_bounds_q, g_v_bounds_q;
  logic [23:0] d_clamp_q, e_clamp_q, f_clamp_q, g_clamp_q, h_clamp_q, i_clamp_q;  // zero, lo, hi
  always_ff @(posedge clk_i) begin
    if (work_q[0]) begin
      d_r_multiplier_q <= cmd_q.r_multiplier;
      d_r_shift_q      <= cmd_q.r_shift;
      d_v_bounds_q     <= {cmd_q.v_lo, cmd_q.v_hi};
      d_clamp_q        <= {cmd_q.zero, cmd_q.lo, cmd_q.hi};
    end
    if (work_q[1]) begin
      e_r_multiplier_q <= d_r_multiplier_q;
      e_r_shift_q      <= d_r_shift_q;
      e_v_bounds_q     <= d_v_bounds_q;
      e_clamp_q        <= d_clamp_q;
    end
    if (work_q[2]) begin
      f_r_shift_q  <= e_r_shift_q;
      f_v_bounds_q <= e_v_bounds_q;
      f_clamp_q    <= e_clamp_q;
    end
    if (work_q[3]) begin
      g_v_bounds_q <= f_v_bounds_q;
      g_clamp_q    <= f_clamp_q;
    end
    if (work_q[4]) h_clamp_q <= g_clamp_q;
    if (work_q[5]) i_clamp_q <= h_clamp_q;
  end

  logic [AddrWidth-1:0] d_out_q, e_out_q, f_out_q, g_out_q, h_out_q, i_out_q, j_out_q, k_out_q, l_out_q;
  always_ff @(posedge clk_i) begin
    if (c_read & acc_gnt_i) d_out_q <= c_out[AddrWidth-1:0];
    if (work_q[0]) e_out_q <= d_out_q;
    if (work_q[1]) f_out_q <= e_out_q;
    if (work_q[2]) g_out_q <= f_out_q;
    if (work_q[3]) h_out_q <= g_out_q;
    if (work_q[4]) i_out_q <= h_out_q;
    if (work_q[5]) j_out_q <= i_out_q;
    if (work_q[6]) k_out_q <= j_out_q;
    if (work_q[7]) l_out_q <= k_out_q;
  end

  // The lanes of each stage's pass.
  logic [Lanes*32-1:0] d_acc;
  logic [Lanes*8-1:0]  d_res, l_out;
  logic [Lanes*64-1:0] d_par;
  logic                l_last_pass;
  logic [tenon_pkg::BLOCK_OUT*8-1:0] l_vector;
  if (Passes == 1) begin : g_one_pass
    assign d_acc       = acc_rdata_i;
    assign d_res       = res_data_i;
    assign d_par       = par_data_i;
    assign l_last_pass = 1'b1;
    assign l_vector    = l_out;
  end else begin : g_passes
    logic [PassWidth-1:0]                             d_pass_q;
    logic [8:0]                                       last_pass_q;  // stages d to l
    logic [(tenon_pkg::BLOCK_OUT-Lanes)*8-1:0]        kept_q;       // the lanes of the passes before
    always_ff @(posedge clk_i) begin
      if (c_read & acc_gnt_i) d_pass_q <= c_pass_q;
      last_pass_q <= {last_pass_q[7:0], c_last_pass};
      if (work_q[8]) kept_q <= (tenon_pkg::BLOCK_OUT*8 - Lanes*8)'({l_out, kept_q} >> (Lanes * 8));
    end
    assign d_acc       = acc_rdata_i[d_pass_q*(Lanes*32)+:Lanes*32];
    assign d_res       = res_data_i[d_pass_q*(Lanes*8)+:Lanes*8];
    assign d_par       = par_data_i[d_pass_q*(Lanes*64)+:Lanes*64];
    assign l_last_pass = last_pass_q[8];
    assign l_vector    = {l_out, kept_q};
  end

  for (genvar l = 0; l < Lanes; l++) begin : g_lane
    rq_lane u_lane (
      .clk_i,
      .d_en_i        (work_q[0]),
      .e_en_i        (work_q[1]),
      .f_en_i        (work_q[2]),
      .g_en_i        (work_q[3]),
      .h_en_i        (work_q[4]),
      .i_en_i        (work_q[5]),
      .j_en_i        (work_q[6]),
      .k_en_i        (work_q[7]),
      .acc_i         (d_acc[l*32+:32]),
      .res_i         (d_res[l*8+:8]),
      .bias_i        (d_par[l*64+:32]),
      .multiplier_i  (d_par[l*64+32+:16]),
      .shift_i       (d_par[l*64+48+:6]),
      .residual_i    (cmd_q.residual),
      .r_zero_i      (cmd_q.r_zero),
      .r_multiplier_i(e_r_multiplier_q),
      .r_shift_i     (f_r_shift_q),
      .v_lo_i        (g_v_bounds_q[23:12]),
      .v_hi_i        (g_v_bounds_q[11:0]),
      .zero_i        (i_clamp_q[23:16]),
      .lo_i          (i_clamp_q[15:8]),
      .hi_i          (i_clamp_q[7:0]),
      .out_o         (l_out[l*8+:8]),
      .multiply_i,
      .multiplicand_i  (multiplicand_i[l*32+:32]),
      .alu_multiplier_i(multiplier_i[l*16+:16]),
      .product_o       (product_o[l*32+:32])
    );
  end

  // l: the maximum over a window. `c_result` and `l_result`: the vector is the last one of its window.
  logic c_result, l_result;
  if (Window) begin : g_window
    localparam int Bytes = tenon_pkg::BLOCK_OUT;

    logic [8:0]         column_q, window_q, row_q;  // stages d to l: the last vector of its column, window, row
    logic [8:0]         carried_q;                  // and whether its last column enters the next window
    logic               column_begins_q, window_begins_q, row_begins_q;  // with the next vector
    logic [Bytes*8-1:0] maximum_q, maximum;  // of the window so far
    logic [Bytes*8-1:0] carry_q, column;     // of its column so far, and after a window of its last one
    logic               arrives;
    assign arrives  = work_q[8] & l_last_pass;
    assign c_result = c_ends[2];
    assign l_result = window_q[8];

    always_ff @(posedge clk_i) begin
      column_q  <= {column_q[7:0], c_ends[3]};
      window_q  <= {window_q[7:0], c_ends[2]};
      row_q     <= {row_q[7:0], c_ends[1]};
      carried_q <= {carried_q[7:0], cmd_q.win_carry};
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        {column_begins_q, window_begins_q, row_begins_q} <= 3'b111;
      end else if (arrives) begin
        column_begins_q <= column_q[8];
        window_begins_q <= window_q[8];
        if (window_q[8]) row_begins_q <= row_q[8];
      end
    end

    for (genvar l = 0; l < Bytes; l++) begin : g_byte
      logic signed [7:0] value, so_far, in_column;
      assign value     = l_vector[l*8+:8];
      assign in_column = carry_q[l*8+:8];
      assign so_far    = ~window_begins_q ? maximum_q[l*8+:8] : carried_q[8] & ~row_begins_q ? in_column : 8'sh80;
      assign maximum[l*8+:8] = so_far > value ? so_far : value;
      assign column[l*8+:8]  = ~column_begins_q & in_column > value ? in_column : value;
    end

    always_ff @(posedge clk_i) begin
      if (arrives) begin
        maximum_q <= maximum;
        carry_q   <= column;
      end
    end
    assign out_data_o = maximum;
  end else begin : g_no_window
    assign {c_result, l_result} = 2'b11;
    assign out_data_o = l_vector;
  end

  assign out_we_o   = work_q[8] & l_last_pass & l_result & ~to_inp_q[8];
  assign out_addr_o = l_out_q[tenon_pkg::OUT_AW-1:0];

`ifdef TENON_TRACE
  // The indices of the two commands in flight, and which of them a vector in d to l belongs to.
  logic        trace_c_odd_q;
  logic [8:0]  trace_odd_q;
  logic [31:0] trace_even_index_q, trace_odd_index_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) trace_c_odd_q <= 1'b0;
    else if (load) trace_c_odd_q <= ~trace_c_odd_q;
  end
  always_ff @(posedge clk_i) begin
    if (load & trace_c_odd_q) trace_even_index_q <= cmd_i.index;
    if (load & ~trace_c_odd_q) trace_odd_index_q <= cmd_i.index;
    trace_odd_q <= {trace_odd_q[7:0], trace_c_odd_q};
  end
  assign trace_index_o = trace_odd_q[8] ? trace_odd_index_q : trace_even_index_q;
`endif

  // The queue of results in front of inp. `vectors_q` counts those that have left c and that inp has not taken, `queued_q`
  // those in the queue.
  if (ToInp) begin : g_to_inp
    localparam int Queue      = 16;
    localparam int CountWidth = 5;

    logic [CountWidth-1:0] vectors_q, queued_q, queued;
    logic                  enters, leaves, pushed;
    // verilator lint_off UNUSEDSIGNAL
    logic                  queue_ready;  // there is always room
    // verilator lint_on UNUSEDSIGNAL

    assign enters = to_inp & c_work & acc_gnt_i & c_last_pass & c_result;
    assign leaves = inp_valid_o & inp_ready_i;
    assign pushed = work_q[8] & l_last_pass & l_result & to_inp_q[8];
    assign room   = ~to_inp | vectors_q != CountWidth'(Queue);
    assign queued = queued_q + CountWidth'(pushed) - CountWidth'(leaves);
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        vectors_q <= '0;
        queued_q  <= '0;
      end else begin
        if (enters != leaves) vectors_q <= enters ? vectors_q + 1'b1 : vectors_q - 1'b1;
        queued_q <= queued;
      end
    end

    prim_fifo #(
      .Width(tenon_pkg::INP_AW + tenon_pkg::BLOCK_OUT * 8),
      .Depth(Queue)
    ) u_queue (
      .clk_i,
      .rst_ni,
      .clear_i     (1'b0),
      .push_valid_i(pushed),
      .push_ready_o(queue_ready),
      .push_data_i ({l_out_q[tenon_pkg::INP_AW-1:0], out_data_o}),
      .pop_valid_o (inp_valid_o),
      .pop_ready_i (inp_ready_i),
      .pop_data_o  ({inp_addr_o, inp_data_o})
    );

    // A command whose last step has left l waits while results of it are in front of inp, of which `left_q` are in the
    // queue: when it begins to wait, the queue holds its results alone, since those of the next command are younger. The
    // last step of that one may follow meanwhile; no third command is in flight.
    logic                  waits_q, waits_bad_q, follows_q, follows_bad_q, drained;
    logic [CountWidth-1:0] left_q;
    assign drained  = waits_q & (left_q == '0 ? ~inp_stays_i : left_q == CountWidth'(1) & leaves & ~inp_waits_i);
    assign last     = drained | (last_q[8] & ~to_inp_q[8] & ~waits_q);
    assign last_bad = waits_q ? drained & waits_bad_q : bad_q[8] & ~to_inp_q[8];
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        waits_q   <= 1'b0;
        follows_q <= 1'b0;
      end else if (drained) begin
        waits_q   <= follows_q | last_q[8];
        follows_q <= 1'b0;
      end else if (waits_q) begin
        follows_q <= follows_q | last_q[8];
      end else begin
        waits_q   <= last_q[8] & to_inp_q[8];
      end
    end
    always_ff @(posedge clk_i) begin
      if (drained | ~waits_q) waits_bad_q <= follows_q ? follows_bad_q : bad_q[8];
      if (last_q[8]) follows_bad_q <= bad_q[8];
      if (drained | ~waits_q) left_q <= queued;
      else if (leaves & left_q != '0) left_q <= left_q - 1'b1;
    end

`ifdef TENON_TRACE
    logic trace_odd;
    // verilator lint_off PINCONNECTEMPTY
    prim_fifo #(
      .Width(1),
      .Depth(Queue)
    ) u_trace (
      .clk_i,
      .rst_ni,
      .clear_i     (1'b0),
      .push_valid_i(pushed),
      .push_ready_o(),
      .push_data_i (trace_odd_q[8]),
      .pop_valid_o (),
      .pop_ready_i (leaves),
      .pop_data_o  (trace_odd)
    );
    // verilator lint_on PINCONNECTEMPTY
    assign trace_inp_index_o = trace_odd ? trace_odd_index_q : trace_even_index_q;
`endif

`ifndef SYNTHESIS
    // Only assertions read the reset synchronously.
    // verilator lint_off SYNCASYNCNET
    always_ff @(posedge clk_i) begin
      if (rst_ni & pushed) begin
        AResultFindsRoomInItsQueue: assert (queue_ready);
      end
      if (rst_ni & last_q[8]) begin
        AtMostTwoCommandsWaitForTheirResults: assert (!follows_q);
      end
      if (rst_ni & waits_q) begin
        ACommandWaitsForItsOwnResults: assert (left_q <= queued_q & queued_q <= vectors_q);
      end
    end
    // verilator lint_on SYNCASYNCNET
`endif
  end else begin : g_to_out
    assign room     = 1'b1;
    assign last     = last_q[8];
    assign last_bad = bad_q[8];
    assign {inp_valid_o, inp_addr_o, inp_data_o} = '0;
`ifdef TENON_TRACE
    assign trace_inp_index_o = 32'd0;
`endif
    logic unused_ready;
    assign unused_ready = ^{inp_ready_i, inp_waits_i, inp_stays_i, c_result};
  end

  logic unused_bits;
  assign unused_bits = ^{d_par, to_inp_q, cmd_q, cmd_i.par_base};

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & (|bad_q)) begin
      AVectorInErrorHasNoEffect: assert ((work_q & bad_q) == 9'd0);
      AnErrorIsTheLastOfItsCommand: assert ((bad_q & ~last_q) == 9'd0);
    end
    if (rst_ni & multiply_i) begin
      AluAndRequantizerNeverMultiplyTogether: assert (work_q == 9'd0);
    end
    if (rst_ni & load) begin
      AWindowHasNoResidual: assert (!(Window & cmd_i.residual &
                                      |{cmd_i.win_rows, cmd_i.win_cols, cmd_i.win_pitch, cmd_i.win_carry}));
    end
    if (rst_ni & res_re_o) begin
      AResidualIsReadWithItsAccumulator: assert (cmd_q.residual & acc_req_o);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
