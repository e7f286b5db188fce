// The store engine's side of the memory port: makes bursts of runs of bytes, sends their addresses, counts the beats
// of each burst, and collects the responses. The engine holds a beat's bytes; `load_o` moves them to the data channel.
//
// A burst begins on both write channels at once: its data never waits for the slave to take its address, since a slave
// may wait for the data before it does (AXI4, A3.3.1).
module write_port #(
  parameter int Bursts = tenon_pkg::IN_ORDER == 0 ? 7 : 1  // without response: one less than a power of two, or one
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,
  input  logic                             clear_i,
  input  logic                             halt_i,       // no more addresses; open bursts end with strobes 0
  input  logic                             start_i,      // of a command: forgets the errors of the last one
  input  logic                             run_valid_i,
  output logic                             run_ready_o,
  input  logic [tenon_pkg::ADDR_BITS-1:0]  run_addr_i,
  input  logic [tenon_pkg::LENGTH_BITS-1:0] run_bytes_i,
  // Beats of the bursts that have begun.
  output logic                             room_o,       // the data channel can take a beat
  input  logic                             beat_i,       // takes one; only with room and without halt
  output logic                             load_o,       // a beat moves to the data channel: beat_i, or one with strobes 0
  output logic                             begun_o,      // every burst of the runs that were taken has begun
  output logic [3:0]                       open_o,       // bursts without response
  output logic                             done_o,       // nothing waits or is outstanding, except runs
  output logic                             idle_o,       // nothing is outstanding in the memory
  output logic                             error_o,      // the memory answered with an error
  // Write channels of the memory port; the engine has the data's bytes.
  output logic                             awvalid_o,
  input  logic                             awready_i,
  output logic [tenon_pkg::ADDR_BITS-1:0]  awaddr_o,
  output logic [7:0]                       awlen_o,
  output logic                             wvalid_o,
  input  logic                             wready_i,
  output logic                             wlast_o,
  input  logic                             bvalid_i,
  input  logic                             berror_i
);

  // --------------------------------------------------------------------------------------------------------- addresses
  logic        burst_valid, burst_ready, length_ready, busy;
  logic [tenon_pkg::ADDR_BITS-1:0] burst_addr;
  logic [8:0]  burst_beats;

  burst_split #(
    .BeatBytes(tenon_pkg::AXI_BYTES),
    .MaxBurst (tenon_pkg::MAX_BURST),
    .LenWidth (tenon_pkg::LENGTH_BITS)
  ) u_split (
    .clk_i,
    .rst_ni,
    .clear_i,
    .run_valid_i,
    .run_ready_o,
    .run_addr_i,
    .run_bytes_i,
    .busy_o       (busy),
    .burst_valid_o(burst_valid),
    .burst_ready_i(burst_ready),
    .burst_addr_o (burst_addr),
    .burst_beats_o(burst_beats)
  );

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
    .Depth(Bursts == 1 ? 1 : Bursts + 1)
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

  // ------------------------------------------------------------------------------------------------------------- beats
  logic       w_free, burst_open, burst_open_q;
  logic [7:0] burst_left_q;
  assign w_free     = ~wvalid_o | wready_i;
  assign burst_open = burst_open_q | length_valid;
  assign room_o     = w_free & burst_open;
  assign load_o     = beat_i | (halt_i & w_free & burst_open);
  assign length_pop = load_o & ~burst_open_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wvalid_o     <= 1'b0;
      burst_open_q <= 1'b0;
    end else begin
      if (w_free) wvalid_o <= load_o;
      if (load_o) burst_open_q <= burst_open_q ? burst_left_q != 8'd1 : length != 8'd0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (load_o) begin
      wlast_o      <= burst_open_q ? burst_left_q == 8'd1 : length == 8'd0;
      burst_left_q <= burst_open_q ? burst_left_q - 8'd1 : length;
    end
  end

  // --------------------------------------------------------------------------------------------------------- responses
  logic error_q;
  assign begun_o = ~busy;
  assign open_o  = open_q;
  assign done_o  = ~busy & open_q == 4'd0;
  assign idle_o  = open_q == 4'd0;
  assign error_o = error_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) error_q <= 1'b0;
    else if (clear_i) error_q <= 1'b0;
    else if (start_i) error_q <= 1'b0;
    else if (bvalid_i & berror_i) error_q <= 1'b1;
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & begin_burst) begin
      ABurstThatBeginsFindsRoomForItsLength: assert (length_push_ready);
    end
    if (rst_ni & bvalid_i) begin
      AResponseBelongsToABurst: assert (open_q != 4'd0);
    end
    if (rst_ni & beat_i) begin
      ABeatFindsRoomInABurst: assert (room_o & ~halt_i);
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
`endif

endmodule
