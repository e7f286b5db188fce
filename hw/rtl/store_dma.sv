// Executes stores: reads units of a scratchpad in order and writes them to DRAM, by the rule of MOVE backwards.
//
// A window of bytes, each with a strobe, starts at a beat's address; vectors are merged into it at their offsets, later
// ones over earlier ones, and beats before the current vector leave it. Bytes that no vector covers have strobe 0, so
// that memory is never read in order to be written. `done_o` comes after the last write response.
module store_dma #(
  parameter int UnitBytes = 16
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,
  input  logic                             clear_i,
  input  logic                             halt_i,       // no more addresses; open bursts end with strobes 0
  input  logic                             cmd_valid_i,
  output logic                             cmd_ready_o,
  input  dma_pkg::dma_cmd_t                cmd_i,
  output logic                             done_o,
  output logic                             error_o,      // with done: the memory answered with an error
  output logic                             idle_o,       // nothing is outstanding in the memory
  output logic [31:0]                      index_o,
  // Scratchpad: granted in the cycle of the request, data in the next one.
  output logic                             st_req_o,
  output logic                             st_acc_o,
  output logic [15:0]                      st_addr_o,
  input  logic                             st_gnt_i,
  input  logic [UnitBytes*8-1:0]           st_rdata_i,
  // Write channels of the memory port.
  output logic                             awvalid_o,
  input  logic                             awready_i,
  output logic [tenon_pkg::ADDR_BITS-1:0]  awaddr_o,
  output logic [7:0]                       awlen_o,
  output logic                             wvalid_o,
  input  logic                             wready_i,
  output logic [tenon_pkg::AXI_BITS-1:0]   wdata_o,
  output logic [tenon_pkg::AXI_BYTES-1:0]  wstrb_o,
  output logic                             wlast_o,
  input  logic                             bvalid_i,
  input  logic                             berror_i
);

  localparam int BeatBytes = tenon_pkg::AXI_BYTES;
  localparam int BeatShift = $clog2(BeatBytes);
  localparam int Window    = UnitBytes + BeatBytes;  // bytes
  // Units read ahead, and bursts without response.
  localparam int UnitSlots = tenon_pkg::IN_ORDER == 0 ? 3 : 2;
  localparam int Bursts    = tenon_pkg::IN_ORDER == 0 ? 7 : 1;

  logic              valid, start_cmd;
  // verilator lint_off UNUSEDSIGNAL
  dma_pkg::dma_cmd_t cmd;  // the cursor counts some fields
  // verilator lint_on UNUSEDSIGNAL
  assign cmd_ready_o = ~valid;
  assign start_cmd   = cmd_valid_i & cmd_ready_o;
  assign index_o     = cmd.index;

  // -------------------------------------------------------------------------------------------- units from scratchpad
  logic [tenon_pkg::TOTAL_BITS-1:0] read_left_q;
  logic [15:0]            read_addr_q;
  logic                   reading_q;  // data of a granted read is on st_rdata_i
  logic [1:0]             space_q;    // free slots, without those reserved by reads in flight
  logic                   data_valid, merge, read;
  logic                   unit_push_ready;  // always 1, as space_q counts
  logic [UnitBytes*8-1:0] data;

  assign st_req_o  = valid & read_left_q != '0 & space_q != 2'd0 & ~halt_i;
  assign st_acc_o  = cmd.mem == tenon_pkg::MEM_ACC;
  assign st_addr_o = read_addr_q;
  assign read      = st_req_o & st_gnt_i;

  prim_fifo #(
    .Width(UnitBytes * 8),
    .Depth(tenon_pkg::IN_ORDER == 0 ? 4 : 2)
  ) u_units (
    .clk_i,
    .rst_ni,
    .clear_i,
    .push_valid_i(reading_q),
    .push_ready_o(unit_push_ready),
    .push_data_i (st_rdata_i),
    .pop_valid_o (data_valid),
    .pop_ready_i (merge),
    .pop_data_o  (data)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reading_q <= 1'b0;
      space_q   <= 2'(UnitSlots);
    end else if (clear_i) begin
      reading_q <= 1'b0;
      space_q   <= 2'(UnitSlots);
    end else begin
      reading_q <= read;
      space_q   <= space_q - 2'(read) + 2'(merge);
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_cmd) begin
      read_left_q <= tenon_pkg::TOTAL_BITS'(cmd_i.total);
      read_addr_q <= cmd_i.unit[15:0];
    end else if (read) begin
      read_left_q <= read_left_q - 1'b1;
      read_addr_q <= read_addr_q + 16'd1;
    end
  end

  // ------------------------------------------------------------------------------------------ addresses, row by row
  logic        run_valid, run_ready, burst_valid, burst_ready, length_ready;
  logic [tenon_pkg::ADDR_BITS-1:0] run_addr, burst_addr;
  // verilator lint_off UNUSEDSIGNAL
  logic [31:0] run_bytes;  // in LENGTH_BITS
  // verilator lint_on UNUSEDSIGNAL
  logic [8:0]  burst_beats;

  row_addresses u_addresses (
    .clk_i,
    .rst_ni,
    .clear_i,
    .start_i    (start_cmd),
    .cmd_i,
    .run_valid_o(run_valid),
    .run_ready_i(run_ready),
    .run_addr_o (run_addr),
    .run_bytes_o(run_bytes)
  );

  burst_split #(
    .BeatBytes(BeatBytes),
    .MaxBurst (tenon_pkg::MAX_BURST),
    .LenWidth (tenon_pkg::LENGTH_BITS)
  ) u_split (
    .clk_i,
    .rst_ni,
    .clear_i,
    .run_valid_i  (run_valid),
    .run_ready_o  (run_ready),
    .run_addr_i   (run_addr),
    .run_bytes_i  (run_bytes[tenon_pkg::LENGTH_BITS-1:0]),
    .burst_valid_o(burst_valid),
    .burst_ready_i(burst_ready),
    .burst_addr_o (burst_addr),
    .burst_beats_o(burst_beats)
  );

  // A burst begins on both write channels at once: its data never waits for the slave to take its address, since a slave
  // may wait for the data before it does (AXI4, A3.3.1).
  logic       aw_valid_q, begin_burst;
  logic [7:0] burst_len;
  assign awvalid_o   = aw_valid_q;
  assign burst_ready = (~aw_valid_q | awready_i) & length_ready & ~halt_i;
  assign begin_burst = burst_valid & burst_ready;
  assign burst_len   = 8'(burst_beats - 9'd1);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) aw_valid_q <= 1'b0;
    else if (begin_burst) aw_valid_q <= 1'b1;
    else if (awready_i) aw_valid_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (begin_burst) begin
      awaddr_o <= burst_addr;
      awlen_o  <= burst_len;
    end
  end

  // Lengths of the bursts whose data has not begun.
  logic       length_valid, length_pop, length_push_ready;
  logic [7:0] length;
  logic [3:0] open_q;  // bursts without response
  assign length_ready = open_q < 4'(Bursts);

  prim_fifo #(
    .Width(8),
    .Depth(tenon_pkg::IN_ORDER == 0 ? 8 : 1)
  ) u_lengths (
    .clk_i,
    .rst_ni,
    .clear_i,
    .push_valid_i(begin_burst),
    .push_ready_o(length_push_ready),
    .push_data_i (burst_len),
    .pop_valid_o (length_valid),
    .pop_ready_i (length_pop),
    .pop_data_o  (length)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= 4'd0;
    else if (begin_burst != bvalid_i) open_q <= begin_burst ? open_q + 4'd1 : open_q - 4'd1;
  end

  // -------------------------------------------------------------------------------------------------- window of bytes
  logic [32:0]           beats_left;
  logic [23:0]           vectors_left;  // from the next one on
  logic                  rows_done_q, last_row;
  logic signed [19:0]    ahead;         // of the next vector, relative to the window
  logic [Window*8-1:0]   window_q;
  logic [Window-1:0]     strobe_q;
  logic [UnitBytes-1:0]  in_row, data_bytes;

  logic               merged_all, flush, w_free, row_end, next_row, burst_open, no_beats, finish;
  logic signed [19:0] ahead_flushed;
  logic [7:0]         burst_left_q;
  logic               burst_open_q;

  // verilator lint_off PINCONNECTEMPTY
  row_cursor #(
    .UnitBytes(UnitBytes),
    .BeatBytes(BeatBytes)
  ) u_cursor (
    .clk_i,
    .rst_ni,
    .clear_i,
    .take_i    (start_cmd),
    .cmd_i,
    .next_i    (next_row),
    .end_i     (finish),
    .vector_i  (merge),
    .beat_i    (flush),
    .ahead_i   (ahead_flushed + (merge ? $signed({4'd0, cmd.x_step}) : 20'sd0)),
    .valid_o   (valid),
    .cmd_o     (cmd),
    .present_o (),  // rows without bytes have no beats
    .last_row_o(last_row),
    .beats_o   (beats_left),
    .vectors_o (vectors_left),
    .ahead_o   (ahead),
    .mask_i    (merge & ~no_beats),
    .whole_o   (),  // a store has strobes instead
    .data_o    (data_bytes),
    .in_row_o  (in_row)
  );
  // verilator lint_on PINCONNECTEMPTY

  assign merged_all    = vectors_left == 24'd0;
  assign w_free        = ~wvalid_o | wready_i;
  assign burst_open    = burst_open_q | length_valid;
  assign flush         = valid & ~rows_done_q & beats_left != 33'd0 & (merged_all | ahead >= $signed(20'(BeatBytes))) &
                         w_free & burst_open & ~halt_i;
  assign ahead_flushed = flush ? ahead - $signed(20'(BeatBytes)) : ahead;
  assign no_beats      = beats_left == 33'd0 | (flush & beats_left == 33'd1);
  assign merge         = valid & ~rows_done_q & ~merged_all & data_valid &
                         (no_beats | ahead_flushed < $signed(20'(BeatBytes)));
  assign row_end       = valid & ~rows_done_q & merged_all & no_beats;
  assign next_row      = row_end & ~last_row;

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
    if (flush | merge) begin
      window = flush ? window_q >> (BeatBytes * 8) : window_q;
      strobe = flush ? strobe_q >> BeatBytes : strobe_q;
    end
    if (merge & ~no_beats) begin
      aligned = data;
      placed  = data_bytes & in_row;
      if (ahead_flushed < 0) begin
        // The row begins inside this vector, or after it.
        if (ahead_flushed <= -20'(UnitBytes)) placed = '0;
        placed      = placed >> (~ahead_flushed[7:0] + 8'd1);
        aligned     = aligned >> {~ahead_flushed[7:0] + 8'd1, 3'd0};
        wide        = (Window * 8)'(aligned);
        wide_placed = Window'(placed);
      end else begin
        wide        = (Window * 8)'(aligned) << {ahead_flushed[BeatShift-1:0], 3'd0};
        wide_placed = Window'(placed) << ahead_flushed[BeatShift-1:0];
      end
      if (&placed & strobe == '0) begin
        window = wide;  // the usual case: no earlier bytes to keep
      end else begin
        for (int j = 0; j < Window; j++) blend[j*8+:8] = {8{wide_placed[j]}};
        window = (window & ~blend) | (wide & blend);
      end
      strobe = strobe | wide_placed;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_cmd) rows_done_q <= 1'b0;
    else if (row_end) rows_done_q <= last_row;
    if (start_cmd | next_row) begin
      window_q <= '0;
      strobe_q <= '0;
    end else if (merge | flush) begin
      window_q <= window;
      strobe_q <= strobe;
    end
  end

  // ---------------------------------------------------------------------------------------- write data and responses
  logic w_load;
  assign w_load     = flush | (halt_i & w_free & burst_open);
  assign length_pop = w_load & ~burst_open_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wvalid_o     <= 1'b0;
      burst_open_q <= 1'b0;
    end else begin
      if (w_free) wvalid_o <= w_load;
      if (w_load) burst_open_q <= burst_open_q ? burst_left_q != 8'd1 : length != 8'd0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (w_load) begin
      wdata_o      <= window_q[BeatBytes*8-1:0];
      wstrb_o      <= flush ? strobe_q[BeatBytes-1:0] : '0;
      wlast_o      <= burst_open_q ? burst_left_q == 8'd1 : length == 8'd0;
      burst_left_q <= burst_open_q ? burst_left_q - 8'd1 : length;
    end
  end

  logic error_q;
  assign finish  = valid & rows_done_q & ~run_valid & ~burst_valid & open_q == 4'd0;
  assign done_o  = finish;
  assign error_o = error_q;
  assign idle_o  = open_q == 4'd0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) error_q <= 1'b0;
    else if (clear_i) error_q <= 1'b0;
    else if (start_cmd) error_q <= 1'b0;
    else if (bvalid_i & berror_i) error_q <= 1'b1;
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & reading_q) begin
      AUnitFromTheScratchpadFindsRoom: assert (unit_push_ready);
    end
    if (rst_ni & begin_burst) begin
      ABurstThatBeginsFindsRoomForItsLength: assert (length_push_ready);
    end
    if (rst_ni & bvalid_i) begin
      AResponseBelongsToABurst: assert (open_q != 4'd0);
    end
    if (rst_ni & finish) begin
      ACommandEndsWithAllUnitsRead: assert (read_left_q == '0 & ~reading_q & ~data_valid);
    end
  end
  // verilator lint_on SYNCASYNCNET

  stream_check #(.Width(tenon_pkg::ADDR_BITS + 8)) u_aw_check (
    .clk_i,
    .rst_ni,
    .valid_i(awvalid_o),
    .ready_i(awready_i),
    .data_i ({awaddr_o, awlen_o})
  );
  stream_check #(.Width(BeatBytes * 9 + 1)) u_w_check (
    .clk_i,
    .rst_ni,
    .valid_i(wvalid_o),
    .ready_i(wready_i),
    .data_i ({wdata_o, wstrb_o, wlast_o})
  );
`endif

endmodule
