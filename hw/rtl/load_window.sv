// The data half of a load engine: builds units from the beats of its commands' rows, by the rule of MOVE.
//
// It keeps a window of bytes: beats are appended at its end, the bytes before the current vector are dropped at its
// start. Dense data moves a beat a cycle; vectors that overlap, one a cycle. A second command is taken while the first
// one still waits for its data.
//
// One cycle determines from counts alone what is dropped, appended and emitted; the next one moves the bytes. The flags
// that the first one reads are registers, each computed for all outcomes of the cycle before.
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
  localparam int BeatShift = $clog2(BeatBytes);
  localparam int CountWidth = $clog2(Window + 1);
  localparam int LagBits   = $clog2(UnitBytes);
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
  logic signed [AvailWidth-1:0] avail_q, next_avail_q, avail;
  logic signed [AvailWidth-1:0] take_avail, take_next_avail, row_avail, row_next_avail;  // at a row's start
  logic                  precedes_q;  // the window begins before the vector: more bytes than avail_q
  logic                  enough_q;    // avail_q is a vector, and the window begins with it or inside it
  logic                  over_q;      // without another beat the vector has all of its bytes
  logic                  fits_q;      // next_avail_q is no more than a unit; unknown at a row's start
  logic [BeatShift-1:0]  row_after;
  logic [CountWidth-1:0] count_q;
  logic                  whole;
  logic [UnitBytes-1:0]  in_row, data_bytes;

  logic                  present, start_present, have_all, few_beats, emit, last_vector, last_row, next_row, finish, take;
  logic [CountWidth-1:0] drop, kept, emit_keeps, wait_keeps;

  // Of `count` bytes those from the last `bytes` on, and those before them; `excess` is count - bytes.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [CountWidth-1:0] keep(logic signed [AvailWidth-1:0] bytes, logic [CountWidth-1:0] count,
                                                 logic signed [AvailWidth-1:0] excess);
    if (bytes[AvailWidth-1]) keep = '0;
    else keep = excess[AvailWidth-1] ? count : bytes[CountWidth-1:0];
  endfunction
  function automatic logic [CountWidth-1:0] leave(logic signed [AvailWidth-1:0] bytes, logic [CountWidth-1:0] count,
                                                  logic signed [AvailWidth-1:0] excess);
    if (bytes[AvailWidth-1]) leave = count;
    else leave = excess[AvailWidth-1] ? '0 : excess[CountWidth-1:0];
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // verilator lint_off UNUSEDSIGNAL
  function automatic logic signed [AvailWidth-1:0] begins(logic [17:0] left, logic [BeatShift-1:0] offset);
    begins = (left[17] ? '0 : AvailWidth'(left)) - AvailWidth'(offset);
  endfunction
  // verilator lint_on UNUSEDSIGNAL
  function automatic logic fills(logic signed [AvailWidth-1:0] bytes, dma_pkg::unit_bytes_t unit_bytes);
    fills = bytes >= $signed(AvailWidth'(unit_bytes));
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
    .move_i    (move_q),
    .end_i     (finish),
    .vector_i  (emit),
    .beat_i    (take),
    .ahead_i   ('0),  // follows from `avail` here
    .row_after_o(row_after),
    .valid_o   (valid),
    .cmd_o     (cmd),
    .present_o (present),
    .start_present_o(start_present),
    .last_row_o(last_row),
    .no_beat_o (have_all),
    .few_beats_o(few_beats),
    .no_vector_o (),
    .few_vectors_o(last_vector),  // the row ends with it
    .ahead_o   (),
    .mask_i    (emit),  // also of vectors that are whole: their registers do not wait for it
    .whole_o   (whole),
    .data_o    (data_bytes),
    .in_row_o  (in_row)
  );
  // verilator lint_on PINCONNECTEMPTY

  // The bytes of the vector have come, or will never come: a register, and so is the enable of the cursor's counters,
  // which may count while no command is in progress.
  logic emit_q, move_q, next_emit, next_valid;
  assign next_valid = take_next | (valid & ~finish);
  assign next_emit  = take_next | next_row ? ~start_present | start_enough :
                      valid & ~finish & (~present | row_enough | ((take ? few_beats : have_all) & row_over));
  assign emit       = emit_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {emit_q, move_q} <= 2'b01;
    else if (clear_i) {emit_q, move_q} <= 2'b01;
    else {emit_q, move_q} <= {next_emit, next_emit | ~next_valid};
  end
  // A copy for the registers of the vector that moves; `keep` leaves synthesis no merging.
  logic emit_moves_q;
  (* keep *) always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) emit_moves_q <= 1'b0;
    else if (clear_i) emit_moves_q <= 1'b0;
    else emit_moves_q <= next_emit;
  end
  assign next_row  = emit & last_vector & ~last_row;
  assign finish    = emit & last_vector & last_row;
  assign take_next = next_ready_q & ~valid;  // a cycle after the end of the last one: on no path with it

  assign room_o = ~next_valid_q;
  // A command waits a cycle at least, in which the bytes of its first row are counted. Its first beat is not there yet.
  logic                         next_ready_q;
  logic signed [AvailWidth-1:0] take_avail_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {next_valid_q, next_ready_q} <= 2'b00;
    else if (clear_i) {next_valid_q, next_ready_q} <= 2'b00;
    else {next_valid_q, next_ready_q} <= {accept_i | (next_valid_q & ~take_next), next_valid_q & ~take_next};
  end
  always_ff @(posedge clk_i) begin
    if (accept_i) next_q <= cmd_i;
    if (next_valid_q) take_avail_q <= begins(next_q.left, next_q.addr[BeatShift-1:0]);
  end

  // Drop what no later vector needs, then append.
  localparam logic signed [AvailWidth-1:0] Unit = AvailWidth'(UnitBytes);
  logic signed [AvailWidth-1:0] emit_excess, wait_excess;
  assign emit_excess = $signed(AvailWidth'(count_q)) - next_avail_q;
  assign wait_excess = $signed(AvailWidth'(count_q)) - avail_q;
  assign emit_keeps  = keep(next_avail_q, count_q, emit_excess);
  assign wait_keeps  = keep(avail_q, count_q, wait_excess);
  assign kept       = emit ? emit_keeps : wait_keeps;
  assign drop       = emit ? leave(next_avail_q, count_q, emit_excess) : leave(avail_q, count_q, wait_excess);
  assign beat_ready_o = open_q;
  assign take         = beat_valid_i & beat_ready_o;

  localparam logic signed [AvailWidth-1:0] Beat = AvailWidth'(BeatBytes);
  logic signed [AvailWidth-1:0] x_step, next_x_step;
  logic signed [AvailWidth-1:0] after, avail_beat, next_beat, after_beat;  // of the vector after the next; with a beat
  assign after      = next_avail_q - x_step;
  assign avail_beat = avail_q + Beat;
  assign next_beat  = next_avail_q + Beat;
  assign after_beat = after + Beat;
  logic avail_fills, avail_beat_fills, next_fills, next_beat_fills;
  logic next_fits, next_beat_fits, after_fits, after_beat_fits;
  assign x_step          = AvailWidth'($signed({5'd0, cmd.x_step}));
  assign next_x_step     = AvailWidth'($signed({5'd0, next_q.x_step}));
  assign take_avail      = take_avail_q;
  assign take_next_avail = take_avail - next_x_step;
  assign row_avail       = row_avail_q;
  assign row_next_avail  = row_avail - x_step;
  assign avail           = emit ? next_avail_q : avail_q;
  assign avail_fills      = fills(avail_q, cmd.unit_bytes);
  assign avail_beat_fills = avail_q >= short_q;
  assign next_fills       = fills(next_avail_q, cmd.unit_bytes);
  assign next_beat_fills  = next_avail_q >= short_q;
  assign next_fits        = next_avail_q <= Unit;
  assign next_beat_fits   = next_avail_q <= Unit - Beat;
  assign after_fits       = next_avail_q <= after_unit_q;
  assign after_beat_fits  = next_avail_q <= after_beat_unit_q;
  // Whether a row begins with a vector that has its bytes, and what is known of the next vector otherwise.
  logic start_enough, row_enough, row_over;
  assign start_enough = take_next ? fills(take_avail, next_q.unit_bytes) : fills(row_avail, cmd.unit_bytes);
  assign row_over     = ~take | ~avail[AvailWidth-1];
  assign row_enough   = ~avail[AvailWidth-1] &
                        (take ? (enough_q ? next_beat_fills : avail_beat_fills) : (emit ? next_fills : avail_fills));
  // While beats are left, a vector is emitted if it has enough bytes, and leaves room for a beat if no more than a unit
  // is kept. One that waits for bytes leaves it; one that waits until the bytes before it are dropped may have more than a
  // unit in a wide beat. A row begins with an empty window. Readiness is a register as well, so that a beat is taken early
  // in the cycle.
  localparam int NarrowBeat = BeatBytes <= UnitBytes ? BeatBytes : UnitBytes + 1;
  logic open_q, next_open, row_fits, row_count_fits, row_waits;
  assign row_fits       = take ? (enough_q ? after_beat_fits : next_beat_fits) : (emit ? after_fits : next_fits);
  assign row_count_fits = take ? kept + CountWidth'(NarrowBeat) <= CountWidth'(UnitBytes) : kept <= CountWidth'(UnitBytes);
  assign row_waits      = BeatBytes <= UnitBytes | ~take | ~avail[AvailWidth-1] |
                          (emit ? next_beat_fits : avail_q <= Unit - Beat);
  assign next_open      = take_next | next_row ? start_present :
                          valid & ~finish & present & ~(take ? few_beats : have_all) &
                          (row_enough ? row_fits | row_count_fits : row_waits);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= 1'b0;
    else if (clear_i) open_q <= 1'b0;
    else open_q <= next_open;
  end
  // Of the next row: a register, as its first byte is, from which it follows.
  logic signed [AvailWidth-1:0] row_avail_q;
  always_ff @(posedge clk_i) begin
    if (take_next) row_avail_q <= take_avail;
    else if (valid) row_avail_q <= begins(cmd.left, row_after);
  end
  // The bounds of these comparisons, so that none waits for a sum.
  logic signed [AvailWidth-1:0] short_q, after_unit_q, after_beat_unit_q;
  always_ff @(posedge clk_i) begin
    if (take_next) begin
      short_q           <= $signed(AvailWidth'(next_q.unit_bytes)) - Beat;
      after_unit_q      <= Unit + next_x_step;
      after_beat_unit_q <= Unit - Beat + next_x_step;
    end
  end
  always_ff @(posedge clk_i) begin
    if (~(valid | next_valid_q)) begin  // keeps the values of no command
    end else if (take_next | next_row) begin
      over_q       <= 1'b1;
      avail_q      <= take_next ? take_avail : row_avail;
      next_avail_q <= take_next ? take_next_avail : row_next_avail;
      precedes_q   <= take_next ? take_avail[AvailWidth-1] : row_avail[AvailWidth-1];
      enough_q     <= start_enough;
      fits_q       <= 1'b0;  // nothing is kept of the row before
    end else begin
      avail_q      <= take ? (enough_q ? next_beat : avail_beat) : avail;
      next_avail_q <= take ? (enough_q ? after_beat : next_beat) : (emit ? after : next_avail_q);
      fits_q       <= row_fits;
      // What the vector does not need is dropped: more than avail_q remains only where avail_q is negative.
      precedes_q   <= avail[AvailWidth-1];
      over_q       <= row_over;
      enough_q     <= row_enough;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take_next) begin
      unit_q  <= next_q.unit;
      error_q <= 1'b0;
    end else begin
      if (emit_moves_q) unit_q <= unit_q + 23'd1;
      if (take & beat_error_i) error_q <= 1'b1;
    end
    if (take_next | next_row) count_q <= '0;
    else if (valid) count_q <= kept + (take ? CountWidth'(BeatBytes) : '0);
  end

  // ------------------------------------------------------------------------------------------- the bytes, a cycle later
  logic                  move_clear_q, move_take_q, move_emit_q, move_finish_q, move_error_q;
  logic [CountWidth-1:0] move_kept_q, move_drop_q;
  logic [tenon_pkg::AXI_BITS-1:0] move_beat_q;
  logic                  move_whole_q, move_aligned_q, move_empty_q;
  logic [LagBits-1:0]    move_lag_q;
  logic [UnitBytes-1:0]  move_in_row_q, move_data_q;
  logic [7:0]            move_pad_q;
  logic [2:0]            move_mem_q;
  logic [22:0]           move_unit_q;
  logic [31:0]           move_index_q;
  logic [Window*8-1:0]   window_q;
  logic signed [AvailWidth-1:0] lag;  // byte `lag` of the vector is the window's first one
  assign lag = emit ? avail_q - $signed(AvailWidth'(count_q)) : 'x;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {move_emit_q, move_finish_q} <= 2'b00;
    else {move_emit_q, move_finish_q} <= {emit, finish} & {2{~clear_i}};
  end
  always_ff @(posedge clk_i) begin
    move_clear_q <= take_next | next_row;
    move_take_q  <= take;
    move_drop_q  <= valid ? drop : '0;
    if (take) begin
      move_kept_q <= kept;
      move_beat_q <= beat_data_i;
    end
    if (emit_moves_q) begin
      move_whole_q  <= whole;
      move_mem_q    <= cmd.mem;
      move_unit_q   <= unit_q;
      move_index_q  <= cmd.index;
      move_error_q  <= error_q;
      move_pad_q    <= cmd.pad_value;
      // Before the row begins, the window's first byte is a later one of the vector.
      move_aligned_q <= precedes_q;
      move_empty_q   <= ~precedes_q & lag >= $signed(AvailWidth'(UnitBytes));
      move_lag_q     <= LagBits'(lag);  // the vector is empty if there are more
      move_data_q    <= data_bytes;
      move_in_row_q  <= in_row;
    end
  end

  always_ff @(posedge clk_i) begin
    if (move_clear_q) begin
      window_q <= '0;
    end else if (move_take_q) begin
      window_q <= (window_q >> {move_drop_q, 3'd0}) | (((Window * 8)'(move_beat_q)) << {move_kept_q, 3'd0});
    end else if (move_drop_q != '0) begin
      window_q <= window_q >> {move_drop_q, 3'd0};
    end
  end

  // The unit: align, pad, write.
  logic [UnitBytes*8-1:0] unit, unit_padded;
  always_comb begin
    unit        = 'x;
    unit_padded = 'x;
    if (move_emit_q & move_whole_q) begin
      unit_padded = window_q[UnitBytes*8-1:0];
    end else if (move_emit_q) begin
      unit = window_q[UnitBytes*8-1:0];
      if (move_empty_q) unit = '0;
      else if (~move_aligned_q) unit = unit << {move_lag_q, 3'd0};
      for (int j = 0; j < UnitBytes; j++) begin
        unit_padded[j*8+:8] = !move_data_q[j] ? 8'd0 : move_in_row_q[j] ? unit[j*8+:8] : move_pad_q;
      end
    end
  end

  logic we_q, done_q, done_error_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      we_q   <= 1'b0;
      done_q <= 1'b0;
    end else begin
      we_q   <= move_emit_q & ~clear_i;
      done_q <= move_finish_q & ~clear_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (move_emit_q) begin
      mem_o        <= move_mem_q;
      unit_o       <= 32'(move_unit_q);
      index_o      <= move_index_q;
      data_o       <= unit_padded;
      done_error_q <= move_error_q;
    end
  end
  assign we_o    = we_q;
  assign done_o  = done_q;
  assign error_o = done_error_q;

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & valid) begin
      AVectorIsEmittedWithItsBytes: assert (emit == (~present | enough_q | (have_all & over_q)));
      ABeatIsTakenWithRoomForIt: assert (open_q == (present & ~have_all &
                                                    (enough_q ? fits_q | count_q <= CountWidth'(UnitBytes) :
                                                     BeatBytes <= UnitBytes | ~precedes_q | avail_q <= Unit)));
      EveryFlagAgreesWithItsCount: assert (precedes_q == (avail_q < $signed(AvailWidth'(count_q))) &
                                               enough_q == (~precedes_q & avail_fills) & (!fits_q | next_fits) &
                                               over_q == (~precedes_q | count_q == '0));
    end
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
