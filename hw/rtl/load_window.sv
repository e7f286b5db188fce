// The data half of a load engine: builds units from the beats of its commands' rows, by the rule of MOVE.
//
// It keeps a window of bytes: beats are appended at its end, the bytes before the current vector are dropped at its
// start. Dense data moves a beat a cycle; vectors that overlap, one a cycle. A second command is taken while the first
// one still waits for its data.
module load_window #(
  parameter int UnitBytes = 16  // of the widest unit
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,
  input  logic                             clear_i,
  input  logic                             accept_i,     // takes a command
  output logic                             room_o,       // for one
  input  dma_pkg::dma_cmd_t                cmd_i,
  output logic                             done_o,
  output logic                             error_o,      // with done: a beat of the command came with an error
  // Beats, in the order of the rows.
  input  logic                             beat_valid_i,
  output logic                             beat_ready_o,
  input  logic [tenon_pkg::AXI_BITS-1:0]   beat_data_i,
  input  logic                             beat_error_i,
  // To the scratchpad, which always accepts.
  output logic                             we_o,
  output logic [2:0]                       mem_o,
  output logic [31:0]                      unit_o,
  output logic [31:0]                      index_o,
  output logic [UnitBytes*8-1:0]           data_o
);

  localparam int BeatBytes = tenon_pkg::AXI_BYTES;
  localparam int Window    = UnitBytes + BeatBytes;  // bytes
  localparam int CountWidth = $clog2(Window + 1);
  localparam int AvailWidth = tenon_pkg::AHEAD_BITS + 1;

  logic              next_valid_q, take_next, valid;
  dma_pkg::dma_cmd_t next_q;
  logic                  error_q;
  // verilator lint_off UNUSEDSIGNAL
  dma_pkg::dma_cmd_t     cmd;  // the cursor counts some fields
  // verilator lint_on UNUSEDSIGNAL
  logic [22:0]           unit_q;
  // Bytes of the window from the current vector's first one on, and from the next vector's; negative before them. Both
  // are registers, so that what a cycle keeps is compared before it is known whether the cycle emits.
  logic signed [AvailWidth-1:0] avail_q, next_avail_q, avail, next_avail, start_avail, x_step, start_x_step;
  // verilator lint_off UNUSEDSIGNAL
  logic signed [19:0]    start_ahead;
  logic [15:0]           start_step;  // both in AvailWidth bits
  // verilator lint_on UNUSEDSIGNAL
  logic [Window*8-1:0]   window_q;
  logic [CountWidth-1:0] count_q;
  logic                  whole;
  logic [UnitBytes-1:0]  in_row, data_bytes;

  logic                  present, have_all, emit, last_vector, last_row, next_row, finish, take;
  logic                  precedes, enough;
  logic [CountWidth-1:0] drop, kept, emit_keeps, wait_keeps;

  // Of `count` bytes those from the last `bytes` on.
  function automatic logic [CountWidth-1:0] keep(logic signed [AvailWidth-1:0] bytes, logic [CountWidth-1:0] count);
    if (bytes[AvailWidth-1]) keep = '0;
    else keep = bytes >= $signed(AvailWidth'(count)) ? count : bytes[CountWidth-1:0];
  endfunction

  // verilator lint_off PINCONNECTEMPTY
  row_cursor #(
    .UnitBytes(UnitBytes),
    .BeatBytes(BeatBytes)
  ) u_cursor (
    .clk_i,
    .rst_ni,
    .clear_i,
    .take_i    (take_next),
    .cmd_i     (next_q),
    .next_i    (next_row),
    .end_i     (finish),
    .vector_i  (emit),
    .beat_i    (take),
    .ahead_i   ('0),  // follows from `avail` here
    .start_ahead_o (start_ahead),
    .start_x_step_o(start_step),
    .valid_o   (valid),
    .cmd_o     (cmd),
    .present_o (present),
    .last_row_o(last_row),
    .no_beat_o (have_all),
    .one_beat_o(),
    .no_vector_o (),
    .one_vector_o(last_vector),
    .ahead_o   (),
    .mask_i    (emit & ~whole),
    .whole_o   (whole),
    .data_o    (data_bytes),
    .in_row_o  (in_row)
  );
  // verilator lint_on PINCONNECTEMPTY

  assign precedes = avail_q < $signed(AvailWidth'(count_q));  // the window begins before the vector
  assign enough = avail_q >= $signed(AvailWidth'(cmd.unit_bytes));

  // The bytes of the vector have come, or will never come.
  always_comb begin
    if (!valid) emit = 1'b0;
    else if (!present) emit = 1'b1;
    else if (precedes) emit = have_all & count_q == '0;
    else emit = have_all | enough;
  end
  assign next_row  = emit & last_vector & ~last_row;
  assign finish    = emit & last_vector & last_row;
  assign take_next = next_valid_q & (~valid | finish);

  assign room_o = ~next_valid_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) next_valid_q <= 1'b0;
    else if (clear_i) next_valid_q <= 1'b0;
    else next_valid_q <= accept_i | (next_valid_q & ~take_next);
  end
  always_ff @(posedge clk_i) begin
    if (accept_i) next_q <= cmd_i;
  end

  // Drop what no later vector needs, then append.
  assign emit_keeps = keep(next_avail_q, count_q);
  assign wait_keeps = keep(avail_q, count_q);
  assign kept       = emit ? emit_keeps : wait_keeps;
  assign drop       = emit ? count_q - emit_keeps : count_q - wait_keeps;
  assign beat_ready_o = valid & present & ~have_all & kept <= CountWidth'(UnitBytes);
  assign take       = beat_valid_i & beat_ready_o;

  assign x_step       = AvailWidth'($signed({5'd0, cmd.x_step}));
  assign start_x_step = AvailWidth'($signed({5'd0, start_step}));
  assign start_avail  = AvailWidth'(20'sd0 - start_ahead);
  assign avail        = emit ? next_avail_q : avail_q;
  assign next_avail   = emit ? next_avail_q - x_step : next_avail_q;
  always_ff @(posedge clk_i) begin
    if (take_next | next_row) begin
      avail_q      <= start_avail;
      next_avail_q <= start_avail - start_x_step;
    end else if (valid) begin
      avail_q      <= take ? avail + $signed(AvailWidth'(BeatBytes)) : avail;
      next_avail_q <= take ? next_avail + $signed(AvailWidth'(BeatBytes)) : next_avail;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take_next) begin
      unit_q  <= next_q.unit;
      error_q <= 1'b0;
    end else begin
      if (emit) unit_q <= unit_q + 23'd1;
      if (take & beat_error_i) error_q <= 1'b1;
    end
    if (take_next | next_row) begin
      count_q  <= '0;
      window_q <= '0;
    end else if (valid) begin
      count_q <= kept + (take ? CountWidth'(BeatBytes) : '0);
      if (take) begin
        window_q <= (window_q >> {drop, 3'd0}) | (((Window * 8)'(beat_data_i)) << {kept, 3'd0});
      end else if (drop != '0) begin
        window_q <= window_q >> {drop, 3'd0};
      end
    end
  end

  // --------------------------------------------------------------------------------------- the unit: align, pad, write
  logic [UnitBytes*8-1:0]       unit, unit_padded;
  logic signed [AvailWidth-1:0] lag;  // byte `lag` of the vector is the window's first one

  always_comb begin
    unit        = 'x;
    unit_padded = 'x;
    lag         = 'x;
    if (emit & whole) begin
      unit_padded = window_q[UnitBytes*8-1:0];
    end else if (emit) begin
      unit = window_q[UnitBytes*8-1:0];
      lag  = avail_q - $signed(AvailWidth'(count_q));
      // Before the row begins, the window's first byte is a later one of the vector.
      if (~precedes) unit = lag >= $signed(AvailWidth'(UnitBytes)) ? '0 : unit << {lag[7:0], 3'd0};
      for (int j = 0; j < UnitBytes; j++) begin
        unit_padded[j*8+:8] = !data_bytes[j] ? 8'd0 : in_row[j] ? unit[j*8+:8] : cmd.pad_value;
      end
    end
  end

  logic we_q, done_q, done_error_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      we_q   <= 1'b0;
      done_q <= 1'b0;
    end else begin
      we_q   <= emit & ~clear_i;
      done_q <= finish & ~clear_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (emit) begin
      mem_o        <= cmd.mem;
      unit_o       <= 32'(unit_q);
      index_o      <= cmd.index;
      data_o       <= unit_padded;
      done_error_q <= error_q;
    end
  end
  assign we_o    = we_q;
  assign done_o  = done_q;
  assign error_o = done_error_q;

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & take) begin
      TheWindowHasRoomForABeat: assert (32'(kept) + BeatBytes <= Window);
    end
    if (rst_ni & finish) begin
      ACommandLeavesNoBeatToTheNextOne: assert (!present | have_all);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
