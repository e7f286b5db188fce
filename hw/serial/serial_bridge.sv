// The bridge of a board with a serial line: executes the requests of hw/spec/serial.h on the accelerator's registers and
// on the memory that both share.
//
// One request at a time: it is received into the header registers, executed, and answered; bytes that arrive meanwhile
// are dropped. The payload of a write goes to memory as it arrives. One CRC unit serves both directions.
module serial_bridge (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        rx_i,
  output logic        tx_o,
  // Registers: AXI4-Lite, one access at a time.
  output logic        awvalid_o,
  input  logic        awready_i,
  output logic        wvalid_o,
  input  logic        wready_i,
  output logic [31:0] wdata_o,
  input  logic        bvalid_i,
  output logic        arvalid_o,
  input  logic        arready_i,
  output logic [11:0] addr_o,
  input  logic        rvalid_i,
  input  logic [31:0] rdata_i,
  // Memory: a read's data comes in a later cycle; what was written is there when the memory is not busy.
  output logic                               mem_we_o,
  output logic                               mem_re_o,
  output logic [serial_pkg::MEMORY_LOG2-1:2] mem_addr_o,
  output logic [31:0]                        mem_wdata_o,
  input  logic                               mem_rvalid_i,
  input  logic [31:0]                        mem_rdata_i,
  input  logic                               mem_busy_i
);

  localparam int Log2 = serial_pkg::MEMORY_LOG2;

  typedef enum logic [4:0] {
    Header,
    Check,
    Payload,
    Complete,   // all bytes have arrived; the end of the frame must follow
    Drop,       // until the end of the frame
    Settle,     // until the memory has the payload
    Execute,
    Write,
    Read,
    Begin,      // of the response
    Sequence,
    Status,
    Data,
    Fetch,      // the next word of memory
    Fetched,
    Crc,
    End
  } state_e;

  // ------------------------------------------------------------------------------------------------------- bytes
  logic       line_valid, tx_valid, tx_ready;
  logic [7:0] line_data, tx_data;

  uart_rx #(.ClocksPerBit(serial_pkg::CLOCKS_PER_BIT)) u_rx (
    .clk_i, .rst_ni, .rx_i, .valid_o(line_valid), .data_o(line_data)
  );
  uart_tx #(.ClocksPerBit(serial_pkg::CLOCKS_PER_BIT)) u_tx (
    .clk_i, .rst_ni, .valid_i(tx_valid), .ready_o(tx_ready), .data_i(tx_data), .tx_o
  );

  // What a byte of the line means, in registers.
  logic       rx_escaped_q, rx_valid, frame_end, byte_valid, bad_escape, is_end, is_escape;
  logic [7:0] rx_byte;

  assign is_end    = line_data == serial_pkg::END;
  assign is_escape = line_data == serial_pkg::ESCAPE;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {rx_escaped_q, rx_valid, frame_end, byte_valid, bad_escape} <= 5'd0;
    else begin
      rx_valid   <= line_valid;
      frame_end  <= line_valid & is_end;
      byte_valid <= line_valid & ~is_end & ~is_escape;
      bad_escape <= line_valid & rx_escaped_q & ~is_end & line_data != serial_pkg::ESCAPED_END &
                    line_data != serial_pkg::ESCAPED_ESCAPE;
      if (line_valid) rx_escaped_q <= is_escape;
    end
  end
  always_ff @(posedge clk_i) begin
    rx_byte <= ~rx_escaped_q ? line_data :
               line_data == serial_pkg::ESCAPED_END ? serial_pkg::END : serial_pkg::ESCAPE;
  end

  // --------------------------------------------------------------------------------------------- request and response
  state_e      state_q, state_d;
  logic [7:0]  operation_q, sequence_q, last_sequence_q, result_q;
  logic [31:0] address_q, data_q, last_data_q;
  logic [8:0]  words_q;
  logic [3:0]  count_q;
  logic        compared_q;  // last_sequence_q is valid
  logic        range_q, tx_escaped_q, payload_q;

  logic        crc_clear, crc_valid, crc_busy, crc_good;
  logic [31:0] crc;
  logic        receives, is_write, is_read, is_hello, is_register, executes, fetches;
  logic        in_registers_q, in_memory_q, words_good_q, repeated_q;
  logic        sends, sent, raw_escape, ready_q;
  logic [7:0]  raw, next_raw;

  logic [3:0] operation;  // hello, a register's, read, write
  assign operation = {operation_q == serial_pkg::HELLO,
                      operation_q == serial_pkg::READ_REGISTER | operation_q == serial_pkg::WRITE_REGISTER,
                      operation_q == serial_pkg::READ_MEMORY, operation_q == serial_pkg::WRITE_MEMORY};
  // A board with an SDRAM has room for these registers, and a clock that asks for them.
  if (serial_pkg::SDRAM != 0) begin : g_operation
    always_ff @(posedge clk_i) {is_hello, is_register, is_read, is_write} <= operation;
  end else begin : g_operation_now
    assign {is_hello, is_register, is_read, is_write} = operation;
  end
  // The header and an incremented address are there for some cycles before these are used.
  always_ff @(posedge clk_i) begin
    in_registers_q <= address_q[31:12] == 20'd0 & address_q[1:0] == 2'd0;
    in_memory_q    <= address_q[31:Log2] == {{(31 - Log2){1'b0}}, 1'b1} & address_q[1:0] == 2'd0;
    words_good_q   <= data_q[31:9] == 23'd0 & ~(data_q[8] & data_q[7:0] != 8'd0);
    repeated_q     <= compared_q & sequence_q == last_sequence_q;
  end
  assign crc_good     = crc == serial_pkg::CRC_RESIDUE;
  assign executes     = is_register & in_registers_q & ~repeated_q;
  assign fetches      = is_read & result_q == serial_pkg::DONE;
  assign receives     = state_q == Header | state_q == Payload;

  // The bytes of a response. A byte is sent as one or two, and counts for the CRC once.
  assign sends      = state_q == Begin | state_q == Sequence | state_q == Status | state_q == Data | state_q == Crc |
                      state_q == End;
  assign next_raw   = state_q == Sequence ? sequence_q : state_q == Status ? result_q :
                      state_q == Data ? data_q[7:0] : ~crc[7:0];
  assign tx_valid   = ready_q;  // only in a state that sends, which does not end before
  // A byte is in its register for a cycle before it is sent.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ready_q <= 1'b0;
    else ready_q <= sends & ~crc_busy & ~(tx_valid & tx_ready);
  end
  always_ff @(posedge clk_i) begin
    raw        <= next_raw;
    raw_escape <= next_raw == serial_pkg::END | next_raw == serial_pkg::ESCAPE;
  end
  assign sent       = tx_valid & tx_ready & (state_q == Begin | state_q == End | ~raw_escape | tx_escaped_q);
  always_comb begin
    if (state_q == Begin | state_q == End) tx_data = serial_pkg::END;
    else if (~raw_escape) tx_data = raw;
    else if (~tx_escaped_q) tx_data = serial_pkg::ESCAPE;
    else tx_data = raw == serial_pkg::END ? serial_pkg::ESCAPED_END : serial_pkg::ESCAPED_ESCAPE;
  end

  assign crc_clear = frame_end & state_q == Header | state_q == Check | sent & state_q == Begin | state_q == End;
  assign crc_valid = byte_valid & receives | sent & state_q != Begin & state_q != End;

  crc32_serial u_crc (
    .clk_i,
    .rst_ni,
    .clear_i(crc_clear),
    .valid_i(crc_valid),
    .data_i (receives ? rx_byte : state_q == Crc ? crc[7:0] : raw),
    .busy_o (crc_busy),
    .crc_o  (crc)
  );

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      Header:
        if (bad_escape) state_d = Drop;
        else if (frame_end) state_d = count_q == 4'd0 ? Header : Begin;
        else if (count_q == 4'd14 & ~crc_busy) state_d = Check;
      Check:    state_d = ~crc_good | is_write & ~words_good_q ? Drop : is_write ? Payload : Complete;
      Payload:
        if (bad_escape) state_d = Drop;
        else if (frame_end) state_d = Begin;
        else if (byte_valid & count_q[1:0] == 2'd3 & words_q == 9'd0) state_d = Complete;
      Complete: if (frame_end) state_d = payload_q & ~crc_good ? Begin : Settle;
                else if (rx_valid) state_d = Drop;
      Drop:     if (frame_end) state_d = Begin;
      Settle:   if (~mem_busy_i) state_d = Execute;
      Execute:  state_d = ~executes ? Begin : operation_q == serial_pkg::WRITE_REGISTER ? Write : Read;
      Write:    if (bvalid_i) state_d = Begin;
      Read:     if (rvalid_i) state_d = Begin;
      Begin:    if (sent) state_d = Sequence;
      Sequence: if (sent) state_d = Status;
      Status:   if (sent) state_d = fetches ? Fetch : Data;
      Fetch:    state_d = Fetched;
      Fetched:  if (mem_rvalid_i) state_d = Data;
      Data:     if (sent & count_q[1:0] == 2'd3) state_d = words_q == 9'd0 ? Crc : Fetch;
      Crc:      if (sent & count_q[1:0] == 2'd3) state_d = End;
      End:      if (sent) state_d = Header;
      default:  state_d = Header;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q    <= Header;
      count_q    <= 4'd0;
      tx_escaped_q <= 1'b0;
      compared_q <= 1'b0;
      awvalid_o  <= 1'b0;
      wvalid_o   <= 1'b0;
      arvalid_o  <= 1'b0;
    end else begin
      state_q <= state_d;
      if (state_q == End | state_q == Check | state_q == Status) count_q <= 4'd0;
      else if (byte_valid & receives | sent & (state_q == Data | state_q == Crc)) begin
        count_q <= ~receives & count_q == 4'd3 ? 4'd0 : count_q + 4'd1;
      end
      if (tx_valid & tx_ready) tx_escaped_q <= ~sent;
      if (state_q == Execute & (is_hello | executes)) compared_q <= 1'b1;
      if (state_q == Execute & executes & operation_q == serial_pkg::WRITE_REGISTER) awvalid_o <= 1'b1;
      else if (awready_i) awvalid_o <= 1'b0;
      if (state_q == Execute & executes & operation_q == serial_pkg::WRITE_REGISTER) wvalid_o <= 1'b1;
      else if (wready_i) wvalid_o <= 1'b0;
      if (state_q == Execute & executes & operation_q == serial_pkg::READ_REGISTER) arvalid_o <= 1'b1;
      else if (arready_i) arvalid_o <= 1'b0;
    end
  end

  // --------------------------------------------------------------------------------------------------------- registers
  logic header_byte, payload_byte, word_written;
  assign header_byte  = state_q == Header & byte_valid & count_q < 4'd10;
  assign payload_byte = state_q == Payload & byte_valid;

  always_ff @(posedge clk_i) begin
    if (state_q == Check) payload_q <= is_write;

    if (header_byte) begin
      operation_q <= sequence_q;
      sequence_q  <= address_q[7:0];
    end
    if (header_byte) address_q <= {data_q[7:0], address_q[31:8]};
    else if (word_written | state_q == Fetch) address_q[Log2:2] <= address_q[Log2:2] + 1'b1;
    if (header_byte | payload_byte) data_q <= {rx_byte, data_q[31:8]};
    else if (state_q == Begin) data_q <= last_data_q;
    else if (state_q == Fetched) data_q <= mem_rdata_i;
    else if (state_q == Data & sent) data_q <= {8'd0, data_q[31:8]};

    if (state_q == Check) words_q <= data_q[8:0];
    else if (state_q == Status & sent & ~fetches) words_q <= 9'd0;
    else if (word_written | state_q == Fetch) words_q <= words_q - 9'd1;

    if (state_q == Check) range_q <= data_q[8:0] == 9'd0 | ~words_good_q | ~in_memory_q;
    else if ((word_written | state_q == Fetch) & ~in_memory_q) range_q <= 1'b1;

    if (receives | state_q == Complete | state_q == Drop) result_q <= serial_pkg::CORRUPT;
    else if (state_q == Execute) begin
      if (is_hello) result_q <= serial_pkg::DONE;
      else if (is_register) result_q <= in_registers_q ? serial_pkg::DONE : serial_pkg::RANGE;
      else if (is_read | is_write) result_q <= range_q ? serial_pkg::RANGE : serial_pkg::DONE;
      else result_q <= serial_pkg::UNSUPPORTED;
    end

    if (state_q == Execute & (is_hello | is_register & in_registers_q)) last_sequence_q <= sequence_q;
    if (state_q == Execute & is_hello) last_data_q <= serial_pkg::IDENTIFICATION;
    else if (state_q == Read & rvalid_i) last_data_q <= rdata_i;
  end

  assign word_written = payload_byte & count_q[1:0] == 2'd3 & words_q != 9'd0;
  assign addr_o       = address_q[11:0];
  assign wdata_o      = data_q;
  assign mem_we_o     = word_written & in_memory_q;
  assign mem_re_o     = state_q == Fetch;
  assign mem_addr_o   = address_q[Log2-1:2];
  assign mem_wdata_o  = {rx_byte, data_q[31:8]};

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & ready_q) begin
      AByteIsSentInAStateThatSends: assert (sends);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
