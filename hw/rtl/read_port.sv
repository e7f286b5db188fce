// One reader's side of the memory port: requests runs of bytes as read bursts and delivers their beats in order. A
// burst is requested only when the FIFO has room for all of it, so that the read channel never waits for a reader. Two
// addresses wait for the arbiter, so that its grant is on no path to the next burst.
module read_port #(
  parameter int BeatBytes = 8,
  parameter int MaxBurst  = 64,
  parameter int FifoDepth = 128,  // power of two, at least MaxBurst
  parameter int FewBeats  = FifoDepth,  // a power of two, at least MaxBurst
  parameter int LenWidth  = 32,
  parameter bit Errors    = 1'b1  // 0: beat_error_o is 0, and the RAM is one bit narrower
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   clear_i,
  input  logic                   halt_i,      // send no more addresses
  input  logic                   all_i,       // request beats for all of the FIFO, or for FewBeats; changes with clear
  input  logic                   run_valid_i,
  output logic                   run_ready_o,
  input  logic [tenon_pkg::ADDR_BITS-1:0] run_addr_i,
  input  logic [LenWidth-1:0]    run_bytes_i,
  output logic                   beat_valid_o,
  input  logic                   beat_ready_i,
  output logic [BeatBytes*8-1:0] beat_data_o,
  output logic                   beat_error_o,
  output logic                   idle_o,      // no beat is outstanding
  // To the arbiter.
  output logic                   ar_valid_o,
  input  logic                   ar_ready_i,
  output logic [tenon_pkg::ADDR_BITS-1:0] ar_addr_o,
  output logic [7:0]             ar_len_o,
  input  logic                   r_valid_i,
  input  logic [BeatBytes*8-1:0] r_data_i,
  input  logic                   r_error_i
);

  localparam int CountWidth = $clog2(FifoDepth) + 1;
  localparam int Addresses  = tenon_pkg::IN_ORDER != 0 ? 0 : 2;

  logic                  burst_valid, burst_ready, fits, grant, ar_ready, ar_valid, sent;
  logic [tenon_pkg::ADDR_BITS-1:0] burst_addr;
  logic [8:0]            burst_beats;
  logic [7:0]            burst_len;
  logic [CountWidth-1:0] space_q, outstanding_q, space;
  logic                  pop;

  // verilator lint_off PINCONNECTEMPTY
  burst_split #(
    .BeatBytes(BeatBytes),
    .MaxBurst (MaxBurst),
    .LenWidth (LenWidth)
  ) u_split (
    .clk_i,
    .rst_ni,
    .clear_i,
    .run_valid_i,
    .run_ready_o,
    .run_addr_i,
    .run_bytes_i,
    .busy_o       (),  // the engine counts beats
    .burst_valid_o(burst_valid),
    .burst_ready_i(burst_ready),
    .burst_addr_o (burst_addr),
    .burst_beats_o(burst_beats)
  );
  // verilator lint_on PINCONNECTEMPTY

  // With FewBeats the other slots stay free, so that these bits are the space without them.
  if (FewBeats == FifoDepth) begin : g_all
    assign space = space_q;
    logic unused_all;
    assign unused_all = all_i;
  end else begin : g_few
    localparam int FewBits = $clog2(FewBeats);
    assign space = all_i ? space_q : CountWidth'({space_q[CountWidth-1], space_q[FewBits-1:0]});
  end
  assign fits        = space >= CountWidth'(burst_beats);
  assign burst_len   = 8'(burst_beats - 9'd1);
  assign burst_ready = ar_ready & fits & ~halt_i;
  assign grant       = burst_valid & burst_ready;
  assign ar_valid_o  = ar_valid & ~halt_i;
  assign sent        = ar_valid_o & ar_ready_i;

  prim_fifo #(
    .Width(tenon_pkg::ADDR_BITS + 8),
    .Depth(Addresses)
  ) u_addresses (
    .clk_i,
    .rst_ni,
    .clear_i,
    .push_valid_i(burst_valid & fits & ~halt_i),
    .push_ready_o(ar_ready),
    .push_data_i ({burst_addr, burst_len}),
    .pop_valid_o (ar_valid),
    .pop_ready_i (ar_ready_i & ~halt_i),
    .pop_data_o  ({ar_addr_o, ar_len_o})
  );

  assign pop         = beat_valid_o & beat_ready_i;

  // Beats are counted as outstanding a cycle after their address is sent, as answered a cycle after they come, and their
  // room as free a cycle after they are taken.
  logic                  sent_count, r_count, pop_count;
  logic [CountWidth-1:0] sent_beats;
  if (tenon_pkg::IN_ORDER != 0) begin : g_count
    assign sent_count = sent;
    assign r_count    = r_valid_i;
    assign pop_count  = pop;
    assign sent_beats = CountWidth'(ar_len_o) + 1'b1;
    assign idle_o     = outstanding_q == '0;
  end else begin : g_count_later
    logic                  sent_q, r_valid_q, pop_q;
    logic [CountWidth-1:0] sent_beats_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) {sent_q, r_valid_q, pop_q} <= 3'b000;
      else {sent_q, r_valid_q, pop_q} <= {sent, r_valid_i, pop & ~clear_i};
    end
    always_ff @(posedge clk_i) sent_beats_q <= CountWidth'(ar_len_o) + 1'b1;
    assign {sent_count, r_count, pop_count, sent_beats} = {sent_q, r_valid_q, pop_q, sent_beats_q};
    assign idle_o = outstanding_q == '0 & ~sent_q;
  end

  localparam int Width = BeatBytes * 8 + (Errors ? 1 : 0);
  logic [Width-1:0] popped;
  assign beat_data_o  = popped[BeatBytes*8-1:0];
  assign beat_error_o = Errors & popped[Width-1];

  prim_ram_fifo #(
    .Width(Width),
    .Depth(FifoDepth),
    .Queue(tenon_pkg::IN_ORDER == 0)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .clear_i,
    .push_i     (r_valid_i),
    .push_data_i(Width'({r_error_i, r_data_i})),
    .pop_valid_o(beat_valid_o),
    .pop_ready_i(beat_ready_i),
    .pop_data_o (popped)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      space_q       <= CountWidth'(FifoDepth);
      outstanding_q <= '0;
    end else if (clear_i) begin
      space_q       <= CountWidth'(FifoDepth);
      outstanding_q <= '0;
    end else begin
      if (grant | pop_count) space_q <= space_q - (grant ? CountWidth'(burst_beats) : '0) + CountWidth'(pop_count);
      if (sent_count | r_count) begin
        outstanding_q <= outstanding_q + (sent_count ? sent_beats : '0) - CountWidth'(r_count);
      end
    end
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & r_count) begin
      ABeatWasRequested: assert (outstanding_q != '0);
    end
    if (rst_ni & grant) begin
      ABurstLeavesWithRoomForAllOfIt: assert (space_q >= CountWidth'(burst_beats));
      RoomIsReservedForEveryOutstandingBeat: assert (32'(space_q) + 32'(outstanding_q) <= FifoDepth);
      FewBeatsLeaveTheOtherSlotsFree: assert (all_i | 32'(space_q) >= FifoDepth - FewBeats + 32'(burst_beats));
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
