// The position of a DMA engine in its command: the row, the vector in it, and its offset from the engine's window of
// bytes.
// Loads and stores iterate over a command in the same way; they differ in the events that move the window.
module row_cursor #(
  parameter int UnitBytes = 16,
  parameter int BeatBytes = 8
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 clear_i,
  // Events; at most one of take and next.
  input  logic                 take_i,     // to the first row of a command
  input  dma_pkg::dma_cmd_t    cmd_i,      // with take
  input  logic                 next_i,     // to the next row of the same command
  input  logic                 end_i,      // the command is over, unless another is taken
  input  logic                 vector_i,   // to the next vector of the row
  input  logic                 beat_i,     // a beat of the row has been moved
  // verilator lint_off UNUSEDSIGNAL
  input  logic signed [19:0]   ahead_i,    // next value of ahead_o within a row, in AHEAD_BITS
  // verilator lint_on UNUSEDSIGNAL
  // With take or next: ahead_o at the row's start, and the command's x_step.
  output logic signed [19:0]   start_ahead_o,
  output logic [15:0]          start_x_step_o,
  // The command in progress.
  output logic                 valid_o,
  // verilator lint_off UNUSEDSIGNAL
  output dma_pkg::dma_cmd_t    cmd_o,
  // verilator lint_on UNUSEDSIGNAL
  // The row.
  output logic                 present_o,  // it has bytes in DRAM
  output logic                 last_row_o,
  output logic                 no_beat_o,  // is left to move
  output logic                 one_beat_o,
  // The vector.
  output logic                 no_vector_o,   // of the row is left, with this one
  output logic                 one_vector_o,
  output logic signed [19:0]   ahead_o,    // its first byte, from the window's first byte on
  // Its bytes; unknown without mask_i.
  input  logic                 mask_i,
  output logic                 whole_o,    // all are data of the row
  output logic [UnitBytes-1:0] data_o,     // the first `valid` bytes; a load zeroes all others
  output logic [UnitBytes-1:0] in_row_o    // bytes in the row; the others are padding
);

  localparam int BeatShift = $clog2(BeatBytes);
  localparam int EndWidth  = tenon_pkg::END_BITS + 1;
  localparam int BeatWidth = tenon_pkg::LENGTH_BITS + 2;
  localparam int RowWidth  = tenon_pkg::ROW_BITS + 1;
  localparam int VectorWidth = tenon_pkg::VECTOR_BITS + 1;

  logic                 valid_q;
  dma_pkg::dma_cmd_t    cmd_q;
  // Counters hold two less than they count, so that the sign tells one and none from more.
  logic [RowWidth-1:0]    rows_q;  // from this one on
  logic [VectorWidth-1:0] vectors_q;
  logic                   present_q;
  logic [7:0]           top_q;           // absent rows from this one on
  logic [tenon_pkg::ROW_BITS-1:0] source_q;  // rows with bytes from this one on, while top is 0
  logic [BeatShift-1:0] row_offset_q;    // the row's first byte in its beat
  logic [BeatWidth-1:0] beats_q;
  logic signed [tenon_pkg::AHEAD_BITS-1:0] ahead_q;
  // Bytes low <= j < high of the vector have k in [0, row_bytes).
  logic signed [EndWidth-1:0] low_q, high_q;

  assign valid_o    = valid_q;
  assign cmd_o      = cmd_q;
  assign present_o  = present_q;
  assign last_row_o = rows_q[RowWidth-1];
  assign no_beat_o    = beats_q[BeatWidth-1] & ~beats_q[0];
  assign one_beat_o   = beats_q[BeatWidth-1] & beats_q[0];
  assign no_vector_o  = vectors_q[VectorWidth-1] & ~vectors_q[0];
  assign one_vector_o = vectors_q[VectorWidth-1] & vectors_q[0];
  assign ahead_o    = 20'(ahead_q);

  // The row that starts.
  logic                 start, start_present;
  logic [tenon_pkg::VECTOR_BITS-1:0] start_vectors;
  logic [31:0]          start_len;
  logic [17:0]          start_left;
  logic [33:0]          start_end;
  logic [BeatShift-1:0] start_offset;
  assign start = take_i | next_i;
  always_comb begin
    {start_vectors, start_len, start_left, start_end, start_offset, start_present} = 'x;
    if (take_i) begin
      start_vectors = cmd_i.vectors[tenon_pkg::VECTOR_BITS-1:0];
      start_len     = cmd_i.len;
      start_left    = cmd_i.left;
      start_end     = cmd_i.row_end;
      start_offset  = cmd_i.addr[BeatShift-1:0];
      start_present = cmd_i.top == 8'd0 & cmd_i.source_rows != 17'd0;
    end else if (next_i) begin
      start_vectors = cmd_q.vectors[tenon_pkg::VECTOR_BITS-1:0];
      start_len     = cmd_q.len;
      start_left    = cmd_q.left;
      start_end     = cmd_q.row_end;
      start_offset  = present_q ? row_offset_q + cmd_q.y_step[BeatShift-1:0] : row_offset_q;
      start_present = top_q <= 8'd1 & (present_q ? source_q != tenon_pkg::ROW_BITS'(1) : source_q != '0);
    end
  end

  assign start_ahead_o  = $signed(20'(start_offset)) - (start_left[17] ? 20'sd0 : $signed({2'd0, start_left}));
  assign start_x_step_o = take_i ? cmd_i.x_step : cmd_q.x_step;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (clear_i) valid_q <= 1'b0;
    else valid_q <= take_i | (valid_q & ~end_i);
  end

  always_ff @(posedge clk_i) begin
    if (take_i) begin
      cmd_q    <= cmd_i;
      rows_q   <= RowWidth'({1'b0, cmd_i.rows} - 18'd2);
      top_q    <= cmd_i.top;
      source_q <= tenon_pkg::ROW_BITS'(cmd_i.source_rows);
    end else if (next_i) begin
      rows_q <= rows_q - 1'b1;
      if (top_q != 8'd0) top_q <= top_q - 8'd1;
      if (present_q) source_q <= source_q - 1'b1;
    end
    if (start) begin
      present_q    <= start_present;
      vectors_q    <= {1'b0, start_vectors} - VectorWidth'(2);
      row_offset_q <= start_offset;
      // Its beats, rounded up, less two.
      beats_q      <= start_present ? BeatWidth'($signed({2'd0, start_len} + 34'(start_offset) - (34'(BeatBytes) + 34'd1)) >>>
                                                 BeatShift) : {{(BeatWidth - 1){1'b1}}, 1'b0};
      ahead_q      <= start_ahead_o[tenon_pkg::AHEAD_BITS-1:0];
      low_q        <= EndWidth'({{17{start_left[17]}}, start_left});
      high_q       <= EndWidth'({start_end[33], start_end});
    end else if (valid_q) begin
      if (vector_i) begin
        vectors_q <= vectors_q - 1'b1;
        low_q     <= low_q - $signed(EndWidth'(cmd_q.x_step));
        high_q    <= high_q - $signed(EndWidth'(cmd_q.x_step));
      end
      if (beat_i) beats_q <= beats_q - 1'b1;
      ahead_q <= tenon_pkg::AHEAD_BITS'(ahead_i);
    end
  end

  // The vector's bytes.
  assign whole_o = present_q & low_q <= 0 & high_q >= $signed(EndWidth'(cmd_q.unit_bytes)) &
                   cmd_q.valid == cmd_q.unit_bytes;

  always_comb begin
    data_o   = 'x;
    in_row_o = 'x;
    if (mask_i) begin
      data_o   = ~({UnitBytes{1'b1}} << cmd_q.valid);
      in_row_o = '0;
      if (present_q & high_q > 0) begin
        in_row_o = high_q >= EndWidth'(UnitBytes) ? '1 : ~({UnitBytes{1'b1}} << high_q[6:0]);
        if (low_q > 0) in_row_o = low_q >= EndWidth'(UnitBytes) ? '0 : in_row_o & ({UnitBytes{1'b1}} << low_q[6:0]);
      end
    end
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & take_i) begin
      ACommandHasRowsAndVectors: assert (cmd_i.rows != 17'd0 & cmd_i.vectors != 24'd0);
      DataFillsAUnitAtMost: assert (cmd_i.valid != 7'd0 & cmd_i.valid <= cmd_i.unit_bytes);
    end
    if (rst_ni & next_i) begin
      ARowFollowsOneThatIsNotTheLast: assert (valid_q & ~last_row_o & ~take_i);
      NoBeatIsLeftToTheNextRow: assert (no_beat_o | (beat_i & one_beat_o));
    end
    if (rst_ni & vector_i) begin
      AVectorBelongsToItsRow: assert (valid_q & ~no_vector_o);
    end
    if (rst_ni & beat_i) begin
      ABeatBelongsToItsRow: assert (valid_q & present_q & ~no_beat_o);
    end
    if (rst_ni & end_i) begin
      ACommandEndsInItsLastRow: assert (valid_q & last_row_o);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
