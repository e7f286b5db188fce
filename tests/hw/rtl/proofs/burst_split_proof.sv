// burst_split for every sequence of runs: the bursts of a run are its beats, all and in order, and each is legal AXI4.
// One run, tracked at any time, stands for all; the length of a run has few bits here.
module burst_split_proof #(
  parameter int BeatBytes = 4,
  parameter int MaxBurst  = 4,
  parameter int Bits      = 5  // of a run's length in bytes
) (
  input logic            clk_i,
  input logic            clear_i,
  input logic            run_valid_i,
  input logic [tenon_pkg::ADDR_BITS-1:0] run_addr_i,
  input logic [Bits-1:0] run_bytes_i,
  input logic            burst_ready_i,
  input logic            track_i
);

  localparam int Addr  = tenon_pkg::ADDR_BITS;
  localparam int Shift = $clog2(BeatBytes);

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic            run_valid, run_ready, busy, burst_valid, accepted, fire;
  logic [Addr-1:0] burst_addr;
  logic [8:0]      burst_beats;
  assign run_valid = run_valid_i & run_bytes_i != '0;
  assign accepted  = run_valid & run_ready;
  assign fire      = burst_valid & burst_ready_i;

  burst_split #(
    .BeatBytes(BeatBytes),
    .MaxBurst (MaxBurst),
    .LenWidth (Bits)
  ) u_split (
    .clk_i,
    .rst_ni       (rst_n),
    .clear_i,
    .run_valid_i  (run_valid),
    .run_ready_o  (run_ready),
    .run_addr_i,
    .run_bytes_i,
    .busy_o       (busy),
    .burst_valid_o(burst_valid),
    .burst_ready_i,
    .burst_addr_o (burst_addr),
    .burst_beats_o(burst_beats)
  );

  // The beats of all runs that are not yet sent, those of them before the tracked run, and the tracked run's own.
  localparam int Count = Bits + 2;
  logic [Addr:0]     last_byte;
  logic [Count-1:0]  beats, pending_q, ahead_q, left_q;
  logic [Addr-1:Shift] next_q;  // address of the tracked run's next beat
  logic              tracked_q;
  assign last_byte = {1'b0, run_addr_i} + (Addr + 1)'(run_bytes_i) - 1'b1;
  assign beats     = Count'(last_byte[Addr:Shift] - {1'b0, run_addr_i[Addr-1:Shift]}) + 1'b1;

  always_ff @(posedge clk_i) begin
    if (~rst_n | clear_i) begin
      pending_q <= '0;
      tracked_q <= 1'b0;
    end else begin
      pending_q <= pending_q + (accepted ? beats : '0) - (fire ? Count'(burst_beats) : '0);
      if (~tracked_q) begin
        if (accepted & track_i) begin
          tracked_q <= 1'b1;
          ahead_q  <= pending_q - (fire ? Count'(burst_beats) : '0);
          left_q   <= beats;
          next_q   <= run_addr_i[Addr-1:Shift];
        end
      end else if (fire) begin
        if (ahead_q != '0) begin
          ahead_q <= ahead_q - Count'(burst_beats);
        end else begin
          left_q   <= left_q - Count'(burst_beats);
          next_q   <= next_q + (Addr - Shift)'(burst_beats);
          tracked_q <= left_q != Count'(burst_beats);
        end
      end
    end
    if (rst_n) begin
      TheSplitterIsBusyWhileBeatsArePending: assert (busy == (pending_q != '0));
      if (burst_valid) begin
        ABurstHasOneToMaxBurstBeats: assert (burst_beats != 9'd0 & 32'(burst_beats) <= MaxBurst);
        ABurstStaysInItsPage: assert (32'(burst_addr[11:0]) + (32'(burst_beats) << Shift) <= 4096);
        AnAddressIsThatOfABeat: assert (burst_addr[Shift-1:0] == '0);
        NoBeatIsSentThatNoRunHas: assert (Count'(burst_beats) <= pending_q);
      end
      if (burst_valid & tracked_q & ahead_q != '0) begin
        ABurstEndsWithItsRun: assert (Count'(burst_beats) <= ahead_q);
      end
      if (burst_valid & tracked_q & ahead_q == '0) begin
        EveryBurstBeginsWhereTheLastOneEnded: assert (burst_addr[Addr-1:Shift] == next_q);
        ARunHasNoMoreBeatsThanItsBytes: assert (Count'(burst_beats) <= left_q);
      end
    end
  end

endmodule
