// The writing AXI4 master, write_port, for every engine and every memory that responds to complete bursts: addresses and
// data stay until they are taken, data never waits for its address to be taken, every burst has the beats of its
// address with WLAST at the last one, and bursts that are open end although requests are halted. One burst, tracked
// from any cycle on, stands for all.
module write_port_proof #(
  parameter int Bursts = 7
) (
  input logic       clk_i,
  input logic       clear_i,
  input logic       halt_i,
  input logic       start_i,
  input logic       run_valid_i,
  input logic [tenon_pkg::ADDR_BITS-1:0] run_addr_i,
  input logic [3:0] run_bytes_i,
  input logic       beat_i,
  input logic       awready_i,
  input logic       wready_i,
  input logic       bvalid_i,
  input logic       berror_i,
  input logic       track_i
);

  localparam int Bits = tenon_pkg::ADDR_BITS;

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic            run_ready, room, beat, load, begun, done, idle, error, awvalid, wvalid, wlast, bvalid, clear;
  logic [Bits-1:0] awaddr, awaddr_q;
  logic [7:0]      awlen, awlen_q;
  logic [3:0]      open;
  logic            aw_q, w_q, w_last_q, halted_q, due_q;
  logic [3:0]      taken_q, ended_q;  // bursts without response whose address was taken, whose data has ended
  logic [3:0]      unanswered_q;      // bursts without response, before one that begins

  assign beat   = beat_i & room & ~halt_i;
  assign bvalid = bvalid_i & taken_q != 4'd0 & ended_q != 4'd0;
  assign clear  = clear_i & halt_i & halted_q & idle;

  write_port #(
    .Bursts(Bursts)
  ) u_port (
    .clk_i,
    .rst_ni     (rst_n),
    .clear_i    (clear),
    .halt_i,
    .start_i,
    .run_valid_i(run_valid_i & run_bytes_i != 4'd0),
    .run_ready_o(run_ready),
    .run_addr_i,
    .run_bytes_i(tenon_pkg::LENGTH_BITS'(run_bytes_i)),
    .room_o     (room),
    .beat_i     (beat),
    .load_o     (load),
    .begun_o    (begun),
    .open_o     (open),
    .done_o     (done),
    .idle_o     (idle),
    .error_o    (error),
    .awvalid_o  (awvalid),
    .awready_i,
    .awaddr_o   (awaddr),
    .awlen_o    (awlen),
    .wvalid_o   (wvalid),
    .wready_i,
    .wlast_o    (wlast),
    .bvalid_i   (bvalid),
    .berror_i
  );

  // A burst begins when its address appears. Bursts begun whose data has not ended are ahead of one that begins.
  logic       begins, aw_seen_q, ends;
  logic [3:0] open_q, ahead_q;
  logic       tracked_q;
  logic [7:0] left_q;  // beats of the tracked burst after the one that is next
  logic       fresh_q;  // a run was taken, and no burst has begun since
  assign begins = awvalid & ~aw_seen_q;
  assign ends   = wvalid & wready_i & wlast;

  always_ff @(posedge clk_i) begin
    awaddr_q <= awaddr;
    awlen_q  <= awlen;
    w_last_q <= wlast;
    if (~rst_n) begin
      {aw_q, w_q, aw_seen_q, halted_q, tracked_q, due_q} <= 6'd0;
      taken_q   <= 4'd0;
      ended_q   <= 4'd0;
      unanswered_q <= 4'd0;
      open_q    <= 4'd0;
      fresh_q   <= 1'b0;
    end else begin
      aw_q      <= awvalid & ~awready_i;
      w_q       <= wvalid & ~wready_i;
      aw_seen_q <= awvalid & ~awready_i;
      halted_q  <= halt_i;
      due_q     <= (begins | open_q != 4'd0) & ~wvalid & (beat_i | halt_i);
      if (run_valid_i & run_bytes_i != 4'd0 & run_ready & ~clear) fresh_q <= 1'b1;
      else if (clear | begins) fresh_q <= 1'b0;
      taken_q   <= taken_q + 4'(awvalid & awready_i) - 4'(bvalid);
      ended_q   <= ended_q + 4'(ends) - 4'(bvalid);
      unanswered_q <= unanswered_q + 4'(begins) - 4'(bvalid);
      open_q    <= open_q + 4'(begins) - 4'(ends);
      if (~tracked_q) begin
        if (begins & track_i & ~(ends & open_q == 4'd0)) begin
          tracked_q <= 1'b1;
          ahead_q  <= open_q - 4'(ends);
          left_q   <= awlen - 8'(open_q == 4'd0 & wvalid & wready_i);
        end
      end else if (ahead_q != 4'd0) begin
        ahead_q <= ahead_q - 4'(ends);
      end else if (wvalid & wready_i) begin
        tracked_q <= ~wlast;
        left_q   <= left_q - 8'd1;
      end
      AnAddressStaysUntilItIsTaken: assert (~aw_q | (awvalid & awaddr == awaddr_q & awlen == awlen_q));
      DataStayUntilTheyAreTaken: assert (~w_q | (wvalid & wlast == w_last_q));
      if (awvalid) begin
        ABurstHasAtMostMaxBurstBeats: assert (32'(awlen) < tenon_pkg::MAX_BURST);
        ABurstStaysInItsPage: assert (32'(awaddr[11:0]) + (32'(awlen) + 1) * tenon_pkg::AXI_BYTES <= 4096);
      end
      // Data that the engine has, or that end a burst after a halt, come in the next cycle, whatever AWREADY is.
      DataDoNotWaitForTheirAddressToBeTaken: assert (~due_q | wvalid);
      NoDataComeBeforeTheirAddress: assert (~wvalid | open_q != 4'd0 | begins);
      if (tracked_q & ahead_q == 4'd0 & wvalid) begin
        WlastIsAtTheLastBeatOfTheBurst: assert (wlast == (left_q == 8'd0));
      end
      if (begins & open_q == 4'd0 & wvalid) begin
        WlastIsAtTheFirstBeatOfABurstOfOne: assert (wlast == (awlen == 8'd0));
      end
      ADonePortHasBegunABurstOfItsRun: assert (~done | ~fresh_q);
      APortThatHasBegunAllHasBegunABurstOfItsRun: assert (~begun | ~fresh_q | begins);
      TheOpenBurstsAreThoseWithoutResponse: assert (open == unanswered_q + 4'(begins));
      ADonePortIsOwedNoResponse: assert (~done | (taken_q == 4'd0 & ended_q == 4'd0 & open_q == 4'd0));
      AnIdlePortIsOwedNoResponse: assert (~idle | (taken_q == 4'd0 & ended_q == 4'd0 & open_q == 4'd0));
    end
  end

endmodule
