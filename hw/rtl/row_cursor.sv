// The position of a DMA engine in its command: the row, the vector in it, and its offset from the engine's window of
// bytes.
// Loads and stores iterate over a command in the same way; they differ in the events that move the window.
module row_cursor #(
  parameter int UnitBytes = 16,
  parameter int BeatBytes = 8,
  parameter int BeatShift = $clog2(BeatBytes)  // follows
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 clear_i,
  // Events; at most one of take and next.
  input  logic                 take_i,     // to the first row of a command
  input  dma_pkg::dma_cmd_t    cmd_i,      // with take
  input  logic                 next_i,     // to the next row of the same command
  input  logic                 move_i,     // with take, next and vector; without them only where no command is in progress
  input  logic                 end_i,      // the command is over, unless another is taken
  input  logic                 vector_i,   // to the next vector of the row
  input  logic                 beat_i,     // a beat of the row has been moved
  // verilator lint_off UNUSEDSIGNAL
  input  logic signed [19:0]   ahead_i,    // next value of ahead_o within a row, in AHEAD_BITS
  // verilator lint_on UNUSEDSIGNAL
  output logic [BeatShift-1:0] row_after_o,   // the first byte of the next row in its beat, a cycle before next at least
  // The command in progress.
  output logic                 valid_o,
  // verilator lint_off UNUSEDSIGNAL
  output dma_pkg::dma_cmd_t    cmd_o,
  // verilator lint_on UNUSEDSIGNAL
  // The row.
  output logic                 present_o,  // it has bytes in DRAM
  output logic                 start_present_o, // with take and next: the row that begins has
  output logic                 last_row_o,
  output logic                 no_beat_o,  // is left to move
  output logic                 few_beats_o,   // one or none
  // The vector.
  output logic                 no_vector_o,   // of the row is left, with this one
  output logic                 few_vectors_o, // one or none
  output logic signed [19:0]   ahead_o,    // its first byte, from the window's first byte on
  // Its bytes; unknown without mask_i.
  input  logic                 mask_i,
  output logic                 whole_o,    // all are data of the row
  output logic [UnitBytes-1:0] data_o,     // the first `valid` bytes; a load zeroes all others
  output logic [UnitBytes-1:0] in_row_o    // bytes in the row; the others are padding
);

  localparam int EndWidth  = tenon_pkg::END_BITS + 1;
  localparam int BeatWidth = tenon_pkg::LENGTH_BITS + 2;
  localparam int RowWidth  = tenon_pkg::ROW_BITS + 1;

  logic                 valid_q;
  dma_pkg::dma_cmd_t    cmd_q;
  // Counters of rows and beats hold two less than they count, so that the sign tells one and none from more.
  logic [RowWidth-1:0]    rows_q;  // from this one on
  logic [tenon_pkg::VECTOR_BITS-1:0] vectors_q;
  logic                   one_vector_q, few_vectors_q;  // a row has one; one or none is left
  logic                   present_q;
  logic [7:0]           top_q;           // absent rows from this one on
  logic [tenon_pkg::ROW_BITS-1:0] source_q;  // rows with bytes from this one on, while top is 0
  logic                 no_source_q, one_source_q;  // source_q is 0, or 1
  logic [BeatShift-1:0] row_offset_q;    // the row's first byte in its beat
  logic [BeatWidth-1:0] beats_q;
  logic                 no_beat_q, no_vector_q;  // none is counted: registers, since the engines' events follow from them
  logic signed [tenon_pkg::AHEAD_BITS-1:0] ahead_q;
  // Bytes low <= j < high of the vector have k in [0, row_bytes).
  logic signed [EndWidth-1:0] low_q, high_q;

  assign valid_o    = valid_q;
  assign cmd_o      = cmd_q;
  assign present_o  = present_q;
  assign last_row_o = rows_q[RowWidth-1];
  assign no_beat_o    = no_beat_q;
  assign few_beats_o  = beats_q[BeatWidth-1];
  assign no_vector_o  = no_vector_q;
  assign few_vectors_o = few_vectors_q;
  assign ahead_o    = 20'(ahead_q);

  // Its beats, rounded up, less two, of a row that begins; and `ahead` there. The first row of the next command and the
  // next row of this one are computed side by side, since it is known late which of them begins.
  function automatic logic [BeatWidth-1:0] row_beats(logic present, logic [31:0] len, logic [BeatShift-1:0] offset);
    row_beats = {{(BeatWidth - 1) {1'b1}}, 1'b0};
    if (present) begin
      row_beats = BeatWidth'($signed({2'd0, len} + 34'(offset) - (34'(BeatBytes) + 34'd1)) >>> BeatShift);
    end
  endfunction
  function automatic logic [tenon_pkg::AHEAD_BITS-1:0] row_ahead(logic [17:0] left, logic [BeatShift-1:0] offset);
    row_ahead = tenon_pkg::AHEAD_BITS'(20'(offset) - (left[17] ? 20'd0 : {2'd0, left}));
  endfunction

  logic                 start, take_one, take_present, next_present;
  logic [BeatWidth-1:0] take_beats, next_beats;
  logic [BeatShift-1:0] take_offset, next_offset_q;
  logic [tenon_pkg::AHEAD_BITS-1:0] take_ahead, next_ahead;
  assign start         = take_i | next_i;
  assign take_one      = cmd_i.vectors[tenon_pkg::VECTOR_BITS-1:0] == tenon_pkg::VECTOR_BITS'(1);
  assign take_present  = cmd_i.top == 8'd0 & cmd_i.source_rows != 17'd0;
  assign take_offset   = cmd_i.addr[BeatShift-1:0];
  assign take_beats    = row_beats(take_present, cmd_i.len, take_offset);
  assign take_ahead    = row_ahead(cmd_i.left, take_offset);
  assign next_present  = top_q <= 8'd1 & ~(present_q ? one_source_q : no_source_q);
  assign start_present_o = take_i ? take_present : next_present;
  assign next_beats    = row_beats(next_present, cmd_q.len, next_offset_q);
  assign next_ahead    = row_ahead(cmd_q.left, next_offset_q);
  // A row with bytes takes two cycles or more, and the next row's first byte is in its beat what this one's is after a
  // row without: so it is a register.
  assign row_after_o = present_q ? row_offset_q + cmd_q.y_step[BeatShift-1:0] : row_offset_q;
  always_ff @(posedge clk_i) next_offset_q <= take_i ? take_offset : row_after_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (clear_i) valid_q <= 1'b0;
    else valid_q <= take_i | (valid_q & ~end_i);
  end

  always_ff @(posedge clk_i) begin
    if (take_i) begin
      cmd_q        <= cmd_i;
      one_vector_q <= take_one;
      rows_q       <= RowWidth'({1'b0, cmd_i.rows} - 18'd2);
      top_q        <= cmd_i.top;
      source_q     <= tenon_pkg::ROW_BITS'(cmd_i.source_rows);
      {no_source_q, one_source_q} <= {cmd_i.source_rows == 17'd0, cmd_i.source_rows == 17'd1};
    end else if (next_i) begin
      rows_q <= rows_q - 1'b1;
      if (top_q != 8'd0) top_q <= top_q - 8'd1;
      if (present_q) begin
        source_q <= source_q - 1'b1;
        {no_source_q, one_source_q} <= {one_source_q, source_q == tenon_pkg::ROW_BITS'(2)};
      end
    end
    if (start) begin
      present_q    <= start_present_o;
      row_offset_q <= take_i ? take_offset : next_offset_q;
    end
    if (move_i) begin
      // Only one of the values is a difference, so that the counter does not wait for the selection.
      vectors_q     <= start ? (take_i ? cmd_i.vectors[tenon_pkg::VECTOR_BITS-1:0] :
                                         cmd_q.vectors[tenon_pkg::VECTOR_BITS-1:0]) : vectors_q - 1'b1;
      few_vectors_q <= start ? (take_i ? take_one : one_vector_q) : vectors_q <= tenon_pkg::VECTOR_BITS'(2);
      low_q         <= start ? (take_i ? EndWidth'({{17{cmd_i.left[17]}}, cmd_i.left}) :
                                         EndWidth'({{17{cmd_q.left[17]}}, cmd_q.left})) :
                               low_q - $signed(EndWidth'(cmd_q.x_step));
      high_q        <= start ? (take_i ? EndWidth'({cmd_i.row_end[33], cmd_i.row_end}) :
                                         EndWidth'({cmd_q.row_end[33], cmd_q.row_end})) :
                               high_q - $signed(EndWidth'(cmd_q.x_step));
    end
    // A row that is present has a beat.
    if (start) no_beat_q <= ~start_present_o;
    else if (beat_i) no_beat_q <= few_beats_o;
    if (start) no_vector_q <= 1'b0;
    else if (vector_i) no_vector_q <= few_vectors_o;
    if (start | beat_i) beats_q <= start ? (take_i ? take_beats : next_beats) : beats_q - 1'b1;
    ahead_q <= start ? (take_i ? take_ahead : next_ahead) : tenon_pkg::AHEAD_BITS'(ahead_i);
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
    if (rst_ni & valid_q) begin
      EveryFlagAgreesWithItsCount: assert (no_beat_q == (beats_q[BeatWidth-1] & ~beats_q[0]) &
                                           no_vector_q == (vectors_q == '0) &
                                           few_vectors_q == (vectors_q <= tenon_pkg::VECTOR_BITS'(1)) &
                                           no_source_q == (source_q == '0) &
                                           one_source_q == (source_q == tenon_pkg::ROW_BITS'(1)));
    end
    if (rst_ni & next_i) begin
      ARowFollowsOneThatIsNotTheLast: assert (valid_q & ~last_row_o & ~take_i);
      TheFirstByteOfTheNextRowIsKnown: assert (next_offset_q == row_after_o);
      NoBeatIsLeftToTheNextRow: assert (no_beat_o | (beat_i & few_beats_o));
    end
    if (rst_ni & (take_i | next_i | vector_i | (move_i & valid_q))) begin
      TheRowMovesWithAnEvent: assert (move_i & (take_i | next_i | vector_i));
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
