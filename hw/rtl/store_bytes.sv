// The data half of a store engine for IN_ORDER, where all transfers are of the base profile: a byte a cycle, without the
// shifters of store_window. A store has no padding there, its command stays at the input until it is done, and so does a
// unit that was read from the scratchpad, since no other engine reads meanwhile.
//
// Each byte goes to its position in the data channel's beat, with its strobe; a full beat, and the last one of a row, is
// sent.
module store_bytes #(
  parameter int UnitBytes = 16
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,
  input  logic                             clear_i,
  input  logic                             halt_i,       // send nothing more
  input  logic                             start_i,      // takes a command
  // verilator lint_off UNUSEDSIGNAL
  input  dma_pkg::dma_cmd_t                cmd_i,        // in the bits that the configuration has
  // verilator lint_on UNUSEDSIGNAL
  output logic                             busy_o,       // with one
  output logic                             sent_o,       // all of its beats
  input  logic                             finish_i,     // it is over
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
  input  logic                             waits_i,      // a beat is on the data channel
  input  logic                             gone_i,       // and is taken
  output logic [tenon_pkg::AXI_BITS-1:0]   wdata_o,
  output logic [tenon_pkg::AXI_BYTES-1:0]  wstrb_o
);

  localparam int BeatBytes = tenon_pkg::AXI_BYTES;
  localparam int BeatShift = $clog2(BeatBytes);
  localparam int ByteWidth = $clog2(UnitBytes);

  logic [tenon_pkg::ROW_BITS-1:0]    rows_q;     // from this one on
  logic [tenon_pkg::VECTOR_BITS-1:0] vectors_q;  // from this one on
  logic [15:0]          unit_q;
  logic [ByteWidth-1:0] byte_q;                  // in the unit
  logic [BeatShift-1:0] offset_q, offset, in_beat_q;  // of the row's first byte, the next row's, and this one, in a beat
  logic                 valid_q, read_q, full_q, put, send, unit_end, row_end;

  assign st_req_o  = valid_q & rows_q != '0 & ~read_q & ~halt_i;
  assign st_acc_o  = cmd_i.mem == tenon_pkg::MEM_ACC;
  assign st_addr_o = unit_q;
  // The data channel holds the beat that is being filled: a byte waits until the last beat is gone.
  assign put       = read_q & ~full_q & ~waits_i;
  assign unit_end  = put & (&byte_q);
  assign row_end   = unit_end & vectors_q == tenon_pkg::VECTOR_BITS'(1);
  assign offset    = offset_q + cmd_i.y_step[BeatShift-1:0];
  assign send      = full_q & room_i & ~halt_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {valid_q, read_q, full_q} <= 3'b000;
    else if (clear_i) {valid_q, read_q, full_q} <= 3'b000;
    else begin
      valid_q <= start_i | (valid_q & ~finish_i);
      read_q  <= (st_req_o & st_gnt_i) | (read_q & ~unit_end);
      full_q  <= (put & (&in_beat_q | row_end)) | (full_q & ~load_i);
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      rows_q   <= tenon_pkg::ROW_BITS'(cmd_i.rows);
      offset_q <= cmd_i.addr[BeatShift-1:0];
    end else if (row_end) begin
      rows_q   <= rows_q - 1'b1;
      offset_q <= offset;
    end

    if (start_i) unit_q <= cmd_i.unit[15:0];
    else if (unit_end) unit_q <= unit_q + 16'd1;

    if (start_i | row_end) vectors_q <= cmd_i.vectors[tenon_pkg::VECTOR_BITS-1:0];
    else if (unit_end) vectors_q <= vectors_q - 1'b1;

    if (start_i) byte_q <= '0;
    else if (put) byte_q <= byte_q + 1'b1;

    if (start_i | row_end) in_beat_q <= start_i ? cmd_i.addr[BeatShift-1:0] : offset;
    else if (put) in_beat_q <= in_beat_q + 1'b1;
  end

  // A beat begins without bytes; one of a halted burst has none.
  for (genvar j = 0; j < BeatBytes; j++) begin : g_byte
    logic here;
    assign here = put & in_beat_q == BeatShift'(j);
    always_ff @(posedge clk_i) begin
      if (start_i | (load_i & ~send) | gone_i) wstrb_o[j] <= 1'b0;
      else if (here) wstrb_o[j] <= 1'b1;
      if (here) wdata_o[j*8+:8] <= st_rdata_i[{byte_q, 3'd0}+:8];
    end
  end

  assign busy_o = valid_q;
  assign beat_o = send;
  assign sent_o = valid_q & rows_q == '0 & ~full_q;

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & start_i) begin
      AStoredUnitIsAWholeVector: assert (32'(cmd_i.unit_bytes) == UnitBytes & cmd_i.valid == cmd_i.unit_bytes);
      AStoreHasNoPadding: assert (cmd_i.left == 18'd0 & cmd_i.top == 8'd0 & cmd_i.source_rows == cmd_i.rows);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
