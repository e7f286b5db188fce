// Executes loads: reads rows of bytes from DRAM and writes them as units into a scratchpad, by the rule of MOVE.
//
// Two halves work independently: one sends the addresses of each row's bytes, the other builds units from the
// returning beats. A second command is taken while the first one still waits for its data, so that a run of short
// commands does not pay the memory's latency each; with IN_ORDER there is no register for it. The second half keeps a
// window of bytes: beats are appended at its end, the bytes before the current vector are dropped at its start. Dense
// data moves a beat a cycle; vectors that overlap, one a cycle. `done_o` comes with the last unit, in the order of the
// commands.
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
  output logic [tenon_pkg::ADDR_BITS-1:0]  ar_addr_o,
  output logic [7:0]                       ar_len_o,
  input  logic                             r_valid_i,
  input  logic [tenon_pkg::AXI_BITS-1:0]   r_data_i,
  input  logic                             r_error_i
);

  localparam int BeatBytes = tenon_pkg::AXI_BYTES;
  localparam int Window    = UnitBytes + BeatBytes;  // bytes
  localparam int CountWidth = $clog2(Window + 1);

  // ------------------------------------------------------------------------------------------ addresses, row by row
  logic              run_valid, run_ready;
  logic [tenon_pkg::ADDR_BITS-1:0] run_addr;
  // verilator lint_off UNUSEDSIGNAL
  logic [31:0]       run_bytes;  // in LENGTH_BITS
  // verilator lint_on UNUSEDSIGNAL
  logic              next_valid, take_next, accept, valid;
  dma_pkg::dma_cmd_t next;

  assign accept = cmd_valid_i & cmd_ready_o;

  row_addresses u_addresses (
    .clk_i,
    .rst_ni,
    .clear_i,
    .start_i    (accept),
    .cmd_i,
    .run_valid_o(run_valid),
    .run_ready_i(run_ready),
    .run_addr_o (run_addr),
    .run_bytes_o(run_bytes)
  );

  logic                   beat_valid, beat_ready, beat_error;
  logic [BeatBytes*8-1:0] beat_data;

  read_port #(
    .BeatBytes(BeatBytes),
    .MaxBurst (tenon_pkg::MAX_BURST),
    .FifoDepth(FifoDepth),
    .LenWidth (tenon_pkg::LENGTH_BITS)
  ) u_port (
    .clk_i,
    .rst_ni,
    .clear_i,
    .halt_i,
    .run_valid_i (run_valid),
    .run_ready_o (run_ready),
    .run_addr_i  (run_addr),
    .run_bytes_i (run_bytes[tenon_pkg::LENGTH_BITS-1:0]),
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
  logic                  error_q;
  // verilator lint_off UNUSEDSIGNAL
  dma_pkg::dma_cmd_t     cmd;  // the cursor counts some fields
  // verilator lint_on UNUSEDSIGNAL
  logic [22:0]           unit_q;
  logic [32:0]           beats_left;
  logic [23:0]           vectors_left;  // from this one on
  logic signed [19:0]    ahead;         // of the current vector's start, relative to the window's first byte
  logic [Window*8-1:0]   window_q;
  logic [CountWidth-1:0] count_q;
  logic                  whole;
  logic [UnitBytes-1:0]  in_row, data_bytes;

  logic                  present, have_all, emit, last_vector, last_row, next_row, finish, take;
  logic [CountWidth-1:0] drop, kept;
  logic signed [19:0]    ahead_emitted, need, unit_bytes;

  row_cursor #(
    .UnitBytes(UnitBytes),
    .BeatBytes(BeatBytes)
  ) u_cursor (
    .clk_i,
    .rst_ni,
    .clear_i,
    .take_i    (take_next),
    .cmd_i     (next),
    .next_i    (next_row),
    .end_i     (finish),
    .vector_i  (emit),
    .beat_i    (take),
    .ahead_i   (ahead_emitted - $signed(20'(drop))),
    .valid_o   (valid),
    .cmd_o     (cmd),
    .present_o (present),
    .last_row_o(last_row),
    .beats_o   (beats_left),
    .vectors_o (vectors_left),
    .ahead_o   (ahead),
    .mask_i    (emit & ~whole),
    .whole_o   (whole),
    .data_o    (data_bytes),
    .in_row_o  (in_row)
  );

  assign have_all    = beats_left == 33'd0;
  assign unit_bytes  = $signed({13'd0, cmd.unit_bytes});
  assign need        = unit_bytes + ahead;
  assign last_vector = vectors_left == 24'd1;

  // The bytes of the vector have come, or will never come.
  always_comb begin
    if (!valid) emit = 1'b0;
    else if (!present) emit = 1'b1;
    else if (ahead > 0) emit = have_all & count_q == '0;
    else emit = have_all | $signed(20'(count_q)) >= need;
  end
  assign next_row  = emit & last_vector & ~last_row;
  assign finish    = emit & last_vector & last_row;
  assign take_next = next_valid & (~valid | finish);

  if (tenon_pkg::IN_ORDER == 0) begin : g_next
    logic              next_valid_q;
    dma_pkg::dma_cmd_t next_q;
    assign cmd_ready_o = ~run_valid & ~next_valid_q;
    assign next_valid  = next_valid_q;
    assign next        = next_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) next_valid_q <= 1'b0;
      else if (clear_i) next_valid_q <= 1'b0;
      else next_valid_q <= accept | (next_valid_q & ~take_next);
    end
    always_ff @(posedge clk_i) begin
      if (accept) next_q <= cmd_i;
    end
  end else begin : g_one
    assign cmd_ready_o = ~run_valid & ~valid;
    assign next_valid  = accept;
    assign next        = cmd_i;
  end

  // Drop what no later vector needs, then append.
  assign ahead_emitted = emit ? ahead + $signed({4'd0, cmd.x_step}) : ahead;
  always_comb begin
    if (!valid | !present | ahead_emitted <= 0) drop = '0;
    else if (ahead_emitted >= $signed(20'(count_q))) drop = count_q;
    else drop = ahead_emitted[CountWidth-1:0];
  end
  assign kept       = count_q - drop;
  assign beat_ready = valid & present & ~have_all & kept <= CountWidth'(UnitBytes);
  assign take       = beat_valid & beat_ready;

  always_ff @(posedge clk_i) begin
    if (take_next) begin
      unit_q  <= next.unit;
      error_q <= 1'b0;
    end else begin
      if (emit) unit_q <= unit_q + 23'd1;
      if (take & beat_error) error_q <= 1'b1;
    end
    if (take_next | next_row) begin
      count_q  <= '0;
      window_q <= '0;
    end else if (valid) begin
      count_q <= kept + (take ? CountWidth'(BeatBytes) : '0);
      if (take) begin
        window_q <= (window_q >> {drop, 3'd0}) | (((Window * 8)'(beat_data)) << {kept, 3'd0});
      end else if (drop != '0) begin
        window_q <= window_q >> {drop, 3'd0};
      end
    end
  end

  // --------------------------------------------------------------------------------------- the unit: align, pad, write
  logic [UnitBytes*8-1:0] unit, unit_padded;

  always_comb begin
    unit        = 'x;
    unit_padded = 'x;
    if (emit & whole) begin
      unit_padded = window_q[UnitBytes*8-1:0];
    end else if (emit) begin
      unit = window_q[UnitBytes*8-1:0];
      // Before the row begins, the window lags: its first byte is byte -ahead of the vector.
      if (ahead < 0) unit = ahead <= -20'(UnitBytes) ? '0 : unit << {~ahead[7:0] + 8'd1, 3'd0};
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
