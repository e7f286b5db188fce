// The data half of a load engine for IN_ORDER, where all transfers are of the base profile: a byte a cycle, without
// the shifters of load_window. A vector is data or padding as a whole there, and the command stays at the input until it
// is done.
//
// The byte at position `pos` of a row, padding included, is the next one of the current beat where it is data, else 0.
module load_bytes #(
  parameter int UnitBytes = 16  // of the widest unit
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,
  input  logic                             clear_i,
  input  logic                             accept_i,     // takes a command
  output logic                             room_o,       // for one
  // verilator lint_off UNUSEDSIGNAL
  input  dma_pkg::dma_cmd_t                cmd_i,        // in the bits that the configuration has
  // verilator lint_on UNUSEDSIGNAL
  output logic                             done_o,
  output logic                             error_o,      // with done: a beat of the command came with an error
  // Beats, in the order of the rows.
  input  logic                             beat_valid_i,
  output logic                             beat_ready_o,
  input  logic [tenon_pkg::AXI_BITS-1:0]   beat_data_i,
  input  logic                             error_i,      // a beat arrives with an error: every beat is this command's
  // To the scratchpad, which always accepts.
  output logic                             we_o,
  output logic [2:0]                       mem_o,
  output logic [31:0]                      unit_o,
  output logic [31:0]                      index_o,
  output logic [UnitBytes*8-1:0]           data_o
);

  localparam int BeatShift = $clog2(tenon_pkg::AXI_BYTES);
  localparam int ByteWidth = $clog2(UnitBytes);
  localparam int PosWidth  = tenon_pkg::LENGTH_BITS + 1;

  logic [tenon_pkg::ROW_BITS-1:0]    rows_q, source_q;  // rows after this one; rows with data from this one on
  logic [tenon_pkg::VECTOR_BITS-1:0] vectors_q;         // from this one on
  logic [7:0]           top_q;                          // rows of padding from this one on
  logic [PosWidth-1:0]  pos_q;                          // in the row
  logic [ByteWidth-1:0] byte_q;                         // in the unit
  logic [BeatShift-1:0] offset_q, offset, in_beat_q;    // of the row's first byte, the next row's, and this one, in a beat
  logic [22:0]          unit_q;
  logic [UnitBytes*8-1:0] data_q;
  logic                 valid_q, present, is_data, step, last_byte, last_vector, last_row, row_last, emit, row_end;
  logic                 we_q, done_q, error_q;

  assign room_o      = ~valid_q;
  assign present     = top_q == 8'd0 & source_q != '0;
  assign is_data     = present & pos_q >= PosWidth'(cmd_i.left) & pos_q < PosWidth'(cmd_i.row_end);
  assign step        = valid_q & (~is_data | beat_valid_i);
  assign last_byte   = byte_q == ByteWidth'(cmd_i.unit_bytes - 7'd1);
  assign last_vector = vectors_q == tenon_pkg::VECTOR_BITS'(1);
  assign last_row    = rows_q == '0;
  assign emit        = step & last_byte;
  assign row_last    = last_byte & last_vector;
  assign row_end     = step & row_last;
  assign offset      = present ? offset_q + cmd_i.y_step[BeatShift-1:0] : offset_q;
  // A row begins a beat of its own: what the last row has left of its last beat is dropped.
  assign beat_ready_o = valid_q & present & (row_last ? is_data | in_beat_q != '0 : is_data & (&in_beat_q));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {valid_q, we_q, done_q} <= 3'b000;
    else if (clear_i) {valid_q, we_q, done_q} <= 3'b000;
    else {valid_q, we_q, done_q} <= {accept_i | (valid_q & ~(row_end & last_row)), emit, row_end & last_row};
  end
  always_ff @(posedge clk_i) begin
    if (accept_i) error_q <= 1'b0;
    else if (error_i) error_q <= 1'b1;

    if (accept_i) unit_q <= cmd_i.unit;
    else if (we_q) unit_q <= unit_q + 23'd1;

    if (accept_i) begin
      rows_q   <= tenon_pkg::ROW_BITS'(cmd_i.rows - 17'd1);
      top_q    <= cmd_i.top;
      source_q <= tenon_pkg::ROW_BITS'(cmd_i.source_rows);
      offset_q <= cmd_i.addr[BeatShift-1:0];
    end else if (row_end) begin
      rows_q   <= rows_q - 1'b1;
      if (top_q != 8'd0) top_q <= top_q - 8'd1;
      if (present) source_q <= source_q - 1'b1;
      offset_q <= offset;
    end

    if (accept_i | row_end) vectors_q <= cmd_i.vectors[tenon_pkg::VECTOR_BITS-1:0];
    else if (emit) vectors_q <= vectors_q - 1'b1;

    if (accept_i | row_end) pos_q <= '0;
    else if (step) pos_q <= pos_q + 1'b1;

    if (accept_i | emit) byte_q <= '0;
    else if (step) byte_q <= byte_q + 1'b1;

    if (accept_i | row_end) in_beat_q <= accept_i ? cmd_i.addr[BeatShift-1:0] : offset;
    else if (step & is_data) in_beat_q <= in_beat_q + 1'b1;
  end
  for (genvar j = 0; j < UnitBytes; j++) begin : g_byte
    always_ff @(posedge clk_i) begin
      if (step & byte_q == ByteWidth'(j)) data_q[j*8+:8] <= is_data ? beat_data_i[{in_beat_q, 3'd0}+:8] : 8'd0;
    end
  end

  assign we_o    = we_q;
  assign mem_o   = cmd_i.mem;
  assign unit_o  = 32'(unit_q);
  assign index_o = cmd_i.index;
  assign data_o  = data_q;
  assign done_o  = done_q;
  assign error_o = error_q;

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & accept_i) begin
      ACommandHasRowsAndVectors: assert (cmd_i.rows != 17'd0 & cmd_i.vectors != 24'd0);
      AUnitFitsTheWidestOne: assert (cmd_i.unit_bytes != 7'd0 & 32'(cmd_i.unit_bytes) <= UnitBytes);
    end
    if (rst_ni & done_q) begin
      ACommandLeavesNoBeatToTheNextOne: assert (~beat_valid_i);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
