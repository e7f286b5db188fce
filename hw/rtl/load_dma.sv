// Executes loads: reads rows of bytes from DRAM and writes them as units into a scratchpad, by the rule of MOVE.
//
// Two halves work on their own: one sends the addresses of each row's bytes, the other builds units from the beats that
// come back. A second command is taken while the first one still waits for its data, so that a run of short commands
// does not pay the memory's latency each. The second half keeps a window of bytes: beats are appended behind, the
// bytes before the current vector are dropped in front. Dense data moves a beat a cycle; vectors that overlap, one a
// cycle. `done_o` comes with the last unit, in the order of the commands.
module load_dma #(
  parameter int UnitBytes = 16,  // of the widest unit
  parameter int FifoDepth = 128
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,
  input  logic                             clear_i,
  input  logic                             halt_i,
  input  logic                             cmd_valid_i,
  output logic                             cmd_ready_o,
  input  dma_pkg::dma_cmd_t                cmd_i,
  output logic                             done_o,
  output logic                             error_o,      // with done: the memory answered with an error
  output logic                             idle_o,       // nothing is outstanding in the memory
  // To the scratchpad, which always accepts.
  output logic                             we_o,
  output logic [2:0]                       mem_o,
  output logic [31:0]                      unit_o,
  output logic [31:0]                      index_o,
  output logic [UnitBytes*8-1:0]           data_o,
  // To the arbiter.
  output logic                             ar_valid_o,
  input  logic                             ar_ready_i,
  output logic [63:0]                      ar_addr_o,
  output logic [7:0]                       ar_len_o,
  input  logic                             r_valid_i,
  input  logic [tenon_pkg::AXI_BITS-1:0]   r_data_i,
  input  logic                             r_error_i
);

  localparam int BeatBytes = tenon_pkg::AXI_BYTES;
  localparam int BeatShift = $clog2(BeatBytes);
  localparam int Window    = UnitBytes + BeatBytes;  // bytes
  localparam int CountWidth = $clog2(Window + 1);

  // ------------------------------------------------------------------------------------------ addresses, row by row
  logic        addr_valid_q, run_ready;
  logic [16:0] addr_rows_q;  // after this one
  logic [63:0] addr_q;
  logic [31:0] addr_len_q, addr_step_q;
  logic        next_valid_q, take_next, accept;
  dma_pkg::dma_cmd_t next_q;

  assign cmd_ready_o = ~addr_valid_q & ~next_valid_q;
  assign accept      = cmd_valid_i & cmd_ready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) addr_valid_q <= 1'b0;
    else if (clear_i) addr_valid_q <= 1'b0;
    else if (accept) addr_valid_q <= cmd_i.source_rows != 17'd0;
    else if (run_ready & addr_rows_q == 17'd0) addr_valid_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (accept) begin
      addr_rows_q <= cmd_i.source_rows - 17'd1;
      addr_q      <= cmd_i.addr;
      addr_len_q  <= cmd_i.len;
      addr_step_q <= cmd_i.y_step;
    end else if (addr_valid_q & run_ready) begin
      addr_rows_q <= addr_rows_q - 17'd1;
      addr_q      <= addr_q + 64'(addr_step_q);
    end
  end

  logic                   beat_valid, beat_ready, beat_error;
  logic [BeatBytes*8-1:0] beat_data;

  read_port #(
    .BeatBytes(BeatBytes),
    .MaxBurst (tenon_pkg::MAX_BURST),
    .FifoDepth(FifoDepth),
    .LenWidth (32)
  ) u_port (
    .clk_i,
    .rst_ni,
    .clear_i,
    .halt_i,
    .run_valid_i (addr_valid_q),
    .run_ready_o (run_ready),
    .run_addr_i  (addr_q),
    .run_bytes_i (addr_len_q),
    .beat_valid_o(beat_valid),
    .beat_ready_i(beat_ready),
    .beat_data_o (beat_data),
    .beat_error_o(beat_error),
    .idle_o,
    .ar_valid_o,
    .ar_ready_i,
    .ar_addr_o,
    .ar_len_o,
    .r_valid_i,
    .r_data_i,
    .r_error_i
  );

  // ----------------------------------------------------------------------------------------------- data, unit by unit
  logic              valid_q, error_q;
  // verilator lint_off UNUSEDSIGNAL
  dma_pkg::dma_cmd_t cmd_q;          // of which the counters below hold some fields
  // verilator lint_on UNUSEDSIGNAL
  logic [22:0]       unit_q;
  logic [16:0]       rows_left_q;       // after this one
  logic [23:0]       vectors_left_q;    // after this one
  logic [7:0]        top_left_q;        // absent rows from this one on
  logic [16:0]       source_left_q;     // rows with bytes from this one on, when top_left is 0
  logic [BeatShift-1:0] row_offset_q;   // the row's first byte in its beat
  logic [32:0]       beats_left_q;      // beats that this row still takes
  // Where the current vector starts: relative to the window's first byte, and relative to the row's ends.
  logic signed [19:0] ahead_q;
  logic signed [34:0] low_q, high_q;    // bytes low <= j < high of the vector have k in [0, row_bytes)
  logic [Window*8-1:0]   window_q;
  logic [CountWidth-1:0] count_q;

  logic                  present, have_all, emit, last_vector, last_row, finish, take;
  logic [CountWidth-1:0] drop, rest;
  logic signed [19:0]    ahead, need, unit_bytes;

  assign present     = top_left_q == 8'd0 & source_left_q != 17'd0;
  assign have_all    = beats_left_q == 33'd0;
  assign unit_bytes  = $signed({13'd0, cmd_q.unit_bytes});
  assign need        = unit_bytes + ahead_q;
  assign last_vector = vectors_left_q == 24'd0;
  assign last_row    = rows_left_q == 17'd0;

  // The bytes of the vector are there, or will never be.
  always_comb begin
    if (!valid_q) emit = 1'b0;
    else if (!present) emit = 1'b1;
    else if (ahead_q > 0) emit = have_all & count_q == '0;
    else emit = have_all | $signed(20'(count_q)) >= need;
  end
  assign finish = emit & last_vector & last_row;

  // Drop what no later vector needs, then append.
  assign ahead = emit ? ahead_q + $signed({4'd0, cmd_q.x_step}) : ahead_q;
  always_comb begin
    if (!valid_q | !present | ahead <= 0) drop = '0;
    else if (ahead >= $signed(20'(count_q))) drop = count_q;
    else drop = ahead[CountWidth-1:0];
  end
  assign rest       = count_q - drop;
  assign beat_ready = valid_q & present & ~have_all & rest <= CountWidth'(UnitBytes);
  assign take       = beat_valid & beat_ready;

  // The next row, or the first one of the next command.
  logic                 start, start_present;
  logic [23:0]          start_vectors;
  logic [31:0]          start_len;
  logic [17:0]          start_left;
  logic [33:0]          start_end;
  logic [BeatShift-1:0] start_offset;
  assign take_next     = next_valid_q & (~valid_q | finish);
  assign start         = take_next | (emit & last_vector & ~last_row);
  always_comb begin
    {start_vectors, start_len, start_left, start_end, start_offset, start_present} = 'x;
    if (take_next) begin
      start_vectors = next_q.vectors;
      start_len     = next_q.len;
      start_left    = next_q.left;
      start_end     = next_q.row_end;
      start_offset  = next_q.addr[BeatShift-1:0];
      start_present = next_q.top == 8'd0 & next_q.source_rows != 17'd0;
    end else if (start) begin
      start_vectors = cmd_q.vectors;
      start_len     = cmd_q.len;
      start_left    = cmd_q.left;
      start_end     = cmd_q.row_end;
      start_offset  = present ? row_offset_q + cmd_q.y_step[BeatShift-1:0] : row_offset_q;
      start_present = top_left_q <= 8'd1 & (present ? source_left_q != 17'd1 : source_left_q != 17'd0);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q      <= 1'b0;
      next_valid_q <= 1'b0;
    end else if (clear_i) begin
      valid_q      <= 1'b0;
      next_valid_q <= 1'b0;
    end else begin
      valid_q      <= take_next | (valid_q & ~finish);
      next_valid_q <= accept | (next_valid_q & ~take_next);
    end
  end

  always_ff @(posedge clk_i) begin
    if (accept) next_q <= cmd_i;
    if (take_next) begin
      cmd_q         <= next_q;
      unit_q        <= next_q.unit;
      rows_left_q   <= next_q.rows - 17'd1;
      top_left_q    <= next_q.top;
      source_left_q <= next_q.source_rows;
      error_q       <= 1'b0;
    end else begin
      if (emit) unit_q <= unit_q + 23'd1;
      if (start) begin
        rows_left_q <= rows_left_q - 17'd1;
        if (top_left_q != 8'd0) top_left_q <= top_left_q - 8'd1;
        if (present) source_left_q <= source_left_q - 17'd1;
      end
      if (take & beat_error) error_q <= 1'b1;
    end
    if (start) begin
      vectors_left_q <= start_vectors - 24'd1;
      row_offset_q   <= start_offset;
      beats_left_q   <= start_present ? (33'(start_len) + 33'(start_offset) + 33'(BeatBytes - 1)) >> BeatShift : '0;
      ahead_q        <= $signed(20'(start_offset)) - (start_left[17] ? 20'sd0 : $signed({2'd0, start_left}));
      low_q          <= {{17{start_left[17]}}, start_left};
      high_q         <= {start_end[33], start_end};
      count_q        <= '0;
      window_q       <= '0;
    end else if (valid_q) begin
      if (emit) begin
        vectors_left_q <= vectors_left_q - 24'd1;
        low_q          <= low_q - $signed({19'd0, cmd_q.x_step});
        high_q         <= high_q - $signed({19'd0, cmd_q.x_step});
      end
      if (take) beats_left_q <= beats_left_q - 33'd1;
      ahead_q <= ahead - $signed(20'(drop));
      count_q <= rest + (take ? CountWidth'(BeatBytes) : '0);
      if (take) begin
        window_q <= (window_q >> {drop, 3'd0}) | (((Window * 8)'(beat_data)) << {rest, 3'd0});
      end else if (drop != '0) begin
        window_q <= window_q >> {drop, 3'd0};
      end
    end
  end

  // --------------------------------------------------------------------------------------- the unit: align, pad, write
  logic [UnitBytes*8-1:0] unit, unit_padded;
  logic [UnitBytes-1:0]   placed, data_bytes;
  logic                   whole;

  assign whole = present & low_q <= 0 & high_q >= 35'(unit_bytes) & cmd_q.valid == cmd_q.unit_bytes;

  always_comb begin
    unit = 'x;
    placed = '0;
    data_bytes = 'x;
    unit_padded = 'x;
    if (emit & whole) begin
      unit_padded = window_q[UnitBytes*8-1:0];
    end else if (emit) begin
      unit = window_q[UnitBytes*8-1:0];
      // In front of the row the window lags behind: its first byte is byte -ahead of the vector.
      if (ahead_q < 0) unit = ahead_q <= -20'(UnitBytes) ? '0 : unit << {~ahead_q[7:0] + 8'd1, 3'd0};
      data_bytes = ~({UnitBytes{1'b1}} << cmd_q.valid);
      if (present & high_q > 0) begin
        placed = high_q >= 35'(UnitBytes) ? '1 : ~({UnitBytes{1'b1}} << high_q[6:0]);
        if (low_q > 0) placed = low_q >= 35'(UnitBytes) ? '0 : placed & ({UnitBytes{1'b1}} << low_q[6:0]);
      end
      for (int j = 0; j < UnitBytes; j++) begin
        unit_padded[j*8+:8] = !data_bytes[j] ? 8'd0 : placed[j] ? unit[j*8+:8] : cmd_q.pad_value;
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
      mem_o        <= cmd_q.mem;
      unit_o       <= 32'(unit_q);
      index_o      <= cmd_q.index;
      data_o       <= unit_padded;
      done_error_q <= error_q;
    end
  end
  assign we_o    = we_q;
  assign done_o  = done_q;
  assign error_o = done_error_q;

  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni) assert (!(start & present & ~take_next & ~have_all));  // a row leaves no beat to the next one
  end
  // verilator lint_on SYNCASYNCNET

endmodule
