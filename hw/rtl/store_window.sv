// The data half of a store engine: reads units of a scratchpad and makes beats of them, by the rule of MOVE backwards.
//
// A window of bytes, each with a strobe, starts at a beat's address; vectors are merged into it at their offsets, later
// ones over earlier ones, and beats before the current vector leave it. Bytes that no vector covers have strobe 0.
//
// One cycle determines from counts alone what is merged and which beat leaves; the next one moves the bytes, into a queue
// of beats for the write port. The flags that the first one reads are registers, each computed for all outcomes of the
// cycle before.
module store_window #(
  parameter int UnitBytes = 16
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,
  input  logic                             clear_i,
  input  logic                             halt_i,       // send nothing more
  input  logic                             start_i,      // takes a command
  input  dma_pkg::dma_cmd_t                cmd_i,
  output logic                             busy_o,       // with one
  output logic                             sent_o,       // all of its beats; with OVERLAPPING_STORES, to the queue of beats
  input  logic                             finish_i,     // it is over
  output logic [31:0]                      index_o,      // of the command whose beat is on the data channel
  // Scratchpad: granted in the cycle of the request, data in the next one.
  output logic                             st_req_o,
  output logic                             st_acc_o,
  output logic [15:0]                      st_addr_o,
  input  logic                             st_gnt_i,
  input  logic [UnitBytes*8-1:0]           st_rdata_i,
  // To the write port.
  input  logic                             room_i,
  output logic                             beat_o,
  input  logic                             load_i,
  output logic [tenon_pkg::AXI_BITS-1:0]   wdata_o,
  output logic [tenon_pkg::AXI_BYTES-1:0]  wstrb_o
);

  localparam int BeatBytes = tenon_pkg::AXI_BYTES;
  localparam int BeatShift = $clog2(BeatBytes);
  localparam int Window    = UnitBytes + BeatBytes;  // bytes
  localparam int SkipBits  = $clog2(UnitBytes);
  localparam int UnitSlots = 4;  // units read ahead
  localparam int BeatSlots = 4;  // beats that the write port has not taken
  localparam logic [2:0] AllRoom = 3'(BeatSlots);

  logic              valid, flush;
  // verilator lint_off UNUSEDSIGNAL
  dma_pkg::dma_cmd_t cmd;  // the cursor counts some fields
  // verilator lint_on UNUSEDSIGNAL
  assign busy_o = valid;

  // -------------------------------------------------------------------------------------------- units from scratchpad
  logic [tenon_pkg::TOTAL_BITS-1:0] read_left_q;
  logic [15:0]            read_addr_q;
  logic                   read_more_q;  // read_left_q is not 0
  logic                   reading_q;  // data of a granted read is on st_rdata_i
  logic                   read_q;     // and a cycle later in a register, since a scratchpad's output is slow
  logic [2:0]             space_q;    // free slots, without those reserved by reads in flight
  logic                   data_valid, merge, read;
  logic                   unit_push_ready;  // always 1, as space_q counts
  logic [UnitBytes*8-1:0] data, read_data_q;

  assign st_req_o  = valid & read_more_q & space_q != 3'd0 & ~halt_i;
  assign st_acc_o  = cmd.mem == tenon_pkg::MEM_ACC;
  assign st_addr_o = read_addr_q;
  assign read      = st_req_o & st_gnt_i;

  prim_fifo #(
    .Width(UnitBytes * 8),
    .Depth(4)
  ) u_units (
    .clk_i,
    .rst_ni,
    .clear_i,
    .push_valid_i(read_q),
    .push_ready_o(unit_push_ready),
    .push_data_i (read_data_q),
    .pop_valid_o (data_valid),
    .pop_ready_i (merge),
    .pop_data_o  (data)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {reading_q, read_q} <= 2'b00;
      space_q             <= 3'(UnitSlots);
    end else if (clear_i) begin
      {reading_q, read_q} <= 2'b00;
      space_q             <= 3'(UnitSlots);
    end else begin
      {reading_q, read_q} <= {read, reading_q};
      space_q             <= space_q - 3'(read) + 3'(merge);
    end
  end
  always_ff @(posedge clk_i) begin
    if (reading_q) read_data_q <= st_rdata_i;
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      read_left_q <= tenon_pkg::TOTAL_BITS'(cmd_i.total);
      read_addr_q <= cmd_i.unit[15:0];
      read_more_q <= 1'b1;
    end else if (read) begin
      read_more_q <= read_left_q != tenon_pkg::TOTAL_BITS'(1);
      read_left_q <= read_left_q - 1'b1;
      read_addr_q <= read_addr_q + 16'd1;
    end
  end

  // -------------------------------------------------------------------------------------------------- window of bytes
  logic                  no_beat, few_beats;  // is left of the row; at most one
  logic                  active_q;      // a command has rows left
  logic                  rows_done_q, last_row;
  logic signed [19:0]    ahead;         // of the next vector, relative to the window
  logic [UnitBytes-1:0]  in_row, data_bytes;
  logic [2:0]            room_q;        // beats that may leave the window
  logic                  room_any_q;    // it is not 0
  logic                  beyond_q;      // ahead >= BeatBytes: the window's first beat is whole
  logic                  far_beyond_q;  // ahead >= 2 BeatBytes

  logic               merged_all, row_end, next_row, no_beats;
  logic signed [19:0] ahead_flushed, ahead_merged, merged;

  // verilator lint_off PINCONNECTEMPTY
  row_cursor #(
    .UnitBytes(UnitBytes),
    .BeatBytes(BeatBytes)
  ) u_cursor (
    .clk_i,
    .rst_ni,
    .clear_i,
    .take_i    (start_i),
    .cmd_i,
    .next_i    (next_row),
    .move_i    (merge | next_row | start_i),
    .end_i     (finish_i),
    .vector_i  (merge),
    .beat_i    (flush),
    .ahead_i   (merge ? ahead_merged : ahead_flushed),
    .row_after_o (),
    .valid_o   (valid),
    .cmd_o     (cmd),
    .present_o (),  // rows without bytes have no beats
    .start_present_o(),
    .last_row_o(last_row),
    .no_beat_o (no_beat),
    .few_beats_o(few_beats),
    .no_vector_o (merged_all),
    .few_vectors_o(),
    .ahead_o   (ahead),
    .mask_i    (1'b1),
    .whole_o   (),  // a store has strobes instead
    .data_o    (data_bytes),
    .in_row_o  (in_row)
  );
  // verilator lint_on PINCONNECTEMPTY

  localparam logic signed [19:0] Beat = 20'(BeatBytes), Unit = 20'(UnitBytes);
  assign flush         = active_q & ~no_beat & (merged_all | beyond_q) & room_any_q;
  // Sums and comparisons are made for both cases before it is known whether a beat is sent.
  assign merged        = ahead + $signed({4'd0, cmd.x_step});
  assign ahead_flushed = flush ? ahead - Beat : ahead;
  assign ahead_merged  = flush ? merged - Beat : merged;
  assign no_beats      = no_beat | (flush & few_beats);
  // A vector beyond the window's first beat waits until this one is sent, and one farther beyond until it is the last.
  assign merge         = active_q & ~merged_all & data_valid &
                         (no_beat | ~beyond_q | (room_any_q & (few_beats | ~far_beyond_q)));

  // A row's first vector is not beyond its first beat.
  logic merged_beyond, merged_far_beyond, merged_very_far, very_far;
  assign merged_beyond     = merged >= Beat;
  assign merged_far_beyond = merged >= 2 * Beat;
  assign merged_very_far   = merged >= 3 * Beat;
  assign very_far          = ahead >= 3 * Beat;
  always_ff @(posedge clk_i) begin
    if (start_i | next_row) begin
      beyond_q     <= 1'b0;
      far_beyond_q <= 1'b0;
    end else if (valid) begin
      beyond_q     <= merge ? (flush ? merged_far_beyond : merged_beyond) : (flush ? far_beyond_q : beyond_q);
      far_beyond_q <= merge ? (flush ? merged_very_far : merged_far_beyond) : (flush ? very_far : far_beyond_q);
    end
  end
  assign row_end       = active_q & merged_all & no_beat;  // a cycle after the last beat
  assign next_row      = row_end & ~last_row;

  always_ff @(posedge clk_i) begin
    if (start_i) rows_done_q <= 1'b0;
    else if (row_end) rows_done_q <= last_row;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) active_q <= 1'b0;
    else if (clear_i) active_q <= 1'b0;
    else active_q <= start_i | (active_q & ~(row_end & last_row));
  end

  // ------------------------------------------------------------------------------------------- the bytes, a cycle later
  logic                   move_clear_q, move_flush_q, move_merge_q;
  logic [UnitBytes*8-1:0] move_data_q;
  logic [UnitBytes-1:0]   move_placed_q;
  logic                   move_before_q, move_outside_q;  // the row begins inside the vector, or after it
  logic [SkipBits-1:0]    move_skipped_q;
  logic [BeatShift-1:0]   move_offset_q;
  logic [Window*8-1:0]    window_q;
  logic [Window-1:0]      strobe_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {move_clear_q, move_flush_q, move_merge_q} <= 3'b000;
    else {move_clear_q, move_flush_q, move_merge_q} <= {start_i | next_row, {flush, merge & ~no_beats} & {2{~clear_i}}};
  end
  // These follow every cycle, and have a meaning with move_merge_q alone.
  always_ff @(posedge clk_i) begin
    move_data_q    <= data;
    move_placed_q  <= data_bytes & in_row;
    // No beat is sent before the vector: `ahead` is what it is after one.
    move_before_q  <= ahead[19];
    move_outside_q <= ahead <= -Unit;
    move_skipped_q <= ~ahead[SkipBits-1:0] + 1'b1;  // outside if there are more
    move_offset_q  <= ahead[BeatShift-1:0];
  end

  // Merging.
  logic [UnitBytes*8-1:0] aligned;
  logic [UnitBytes-1:0]   placed;
  logic [Window*8-1:0]    window, wide, blend;
  logic [Window-1:0]      strobe, wide_placed;
  always_comb begin
    window      = 'x;
    strobe      = 'x;
    placed      = 'x;
    aligned     = 'x;
    wide        = 'x;
    wide_placed = 'x;
    blend       = 'x;
    if (move_flush_q | move_merge_q) begin
      window = move_flush_q ? window_q >> (BeatBytes * 8) : window_q;
      strobe = move_flush_q ? strobe_q >> BeatBytes : strobe_q;
    end
    if (move_merge_q) begin
      aligned = move_data_q;
      placed  = move_placed_q;
      if (move_before_q) begin
        if (move_outside_q) placed = '0;
        placed      = placed >> move_skipped_q;
        aligned     = aligned >> {move_skipped_q, 3'd0};
        wide        = (Window * 8)'(aligned);
        wide_placed = Window'(placed);
      end else begin
        wide        = (Window * 8)'(aligned) << {move_offset_q, 3'd0};
        wide_placed = Window'(placed) << move_offset_q;
      end
      for (int j = 0; j < Window; j++) blend[j*8+:8] = {8{wide_placed[j]}};
      window = (window & ~blend) | (wide & blend);
      strobe = strobe | wide_placed;
    end
  end

  always_ff @(posedge clk_i) begin
    if (move_clear_q) begin
      window_q <= '0;
      strobe_q <= '0;
    end else if (move_merge_q | move_flush_q) begin
      window_q <= window;
      strobe_q <= strobe;
    end
  end

  // --------------------------------------------------------------------------------------------------------- write data
  // Beats of two commands may be in the queue, so that each has a bit that alternates between commands.
  localparam int TagBits = tenon_pkg::OVERLAPPING_STORES != 0 ? 1 : 0;
  logic                   beat_valid;
  logic                   beat_push_ready;  // always 1, as room_q counts
  logic [BeatBytes*8-1:0] beat_data;
  logic [BeatBytes-1:0]   beat_strobe;

  logic [BeatBytes*9+TagBits-1:0] pushed, popped;
  assign {beat_strobe, beat_data} = popped[BeatBytes*9-1:0];
  if (TagBits == 0) begin : g_one_index
    assign index_o = cmd.index;
    assign pushed  = {strobe_q[BeatBytes-1:0], window_q[BeatBytes*8-1:0]};
  end else begin : g_indices
    logic        tag_q;
    logic [31:0] index0_q, index1_q;  // of the last command with this tag
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) tag_q <= 1'b0;
      else if (start_i) tag_q <= ~tag_q;
    end
    always_ff @(posedge clk_i) begin
      if (start_i & tag_q) index0_q <= cmd_i.index;
      if (start_i & ~tag_q) index1_q <= cmd_i.index;
      if (load_i) index_o <= popped[BeatBytes*9] ? index1_q : index0_q;
    end
    assign pushed = {tag_q, strobe_q[BeatBytes-1:0], window_q[BeatBytes*8-1:0]};
  end

  prim_fifo #(
    .Width(BeatBytes * 9 + TagBits),
    .Depth(BeatSlots)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .clear_i,
    .push_valid_i(move_flush_q),
    .push_ready_o(beat_push_ready),
    .push_data_i (pushed),
    .pop_valid_o (beat_valid),
    .pop_ready_i (beat_o),
    .pop_data_o  (popped)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {room_any_q, room_q} <= {1'b1, AllRoom};
    else if (clear_i) {room_any_q, room_q} <= {1'b1, AllRoom};
    else if (flush != beat_o) {room_any_q, room_q} <= flush ? {room_q != 3'd1, room_q - 3'd1} : {1'b1, room_q + 3'd1};
  end
  always_ff @(posedge clk_i) begin
    if (load_i) begin
      wdata_o <= beat_data;
      wstrb_o <= beat_o ? beat_strobe : '0;
    end
  end

  assign beat_o = beat_valid & room_i & ~halt_i;
  assign sent_o = valid & rows_done_q;

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & read_q) begin
      AUnitFromTheScratchpadFindsRoom: assert (unit_push_ready);
    end
    if (rst_ni & move_flush_q) begin
      ABeatFromTheWindowFindsRoom: assert (beat_push_ready);
    end
    if (rst_ni & valid) begin
      RowsAreLeftUntilTheyAreDone: assert (active_q == ~rows_done_q);
      EveryFlagAgreesWithItsCount: assert (beyond_q == (ahead >= Beat) & far_beyond_q == (ahead >= 2 * Beat) &
                                               read_more_q == (read_left_q != '0) & room_any_q == (room_q != 3'd0));
    end
    if (rst_ni & finish_i) begin
      ACommandEndsWithAllBeatsSent: assert (room_q == 3'(BeatSlots) | halt_i | tenon_pkg::OVERLAPPING_STORES != 0);
      ACommandEndsWithAllUnitsRead: assert (read_left_q == '0 & ~reading_q & ~read_q & ~data_valid);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
