// The reading AXI4 master, a read_port and the arbiter after it, for every memory that answers what was requested and
// nothing else: addresses stay until they are taken, no burst is longer than allowed or leaves its page, and there is
// room for every beat whenever it comes, since RREADY does not exist.
module read_port_proof #(
  parameter int MaxBurst  = 2,
  parameter int FifoDepth = 4,
  parameter int FewBeats  = FifoDepth
) (
  input logic       clk_i,
  input logic       clear_i,
  input logic       halt_i,
  input logic       all_i,
  input logic       run_valid_i,
  input logic [tenon_pkg::ADDR_BITS-1:0] run_addr_i,
  input logic [3:0] run_bytes_i,
  input logic       beat_ready_i,
  input logic       arready_i,
  input logic       rvalid_i,
  input logic       rdata_i
);

  localparam int Bits = tenon_pkg::ADDR_BITS;

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic            run_ready, beat_valid, beat_error, port_idle, idle, ar_valid, arvalid, rvalid, clear;
  logic [31:0]     beat_data;
  logic [Bits-1:0] ar_addr, araddr, araddr_q;
  logic [7:0]      ar_len, arlen, arlen_q;
  logic [3:0]      ar_ready, r_valid;
  logic [1:0]      arid;
  logic            stays_q, halted_q, waits_q, all_q;
  logic [3:0]      owed_q, room_q;  // beats that the memory owes; items for which there is room

  // A memory answers after the address was taken. All is cleared while it owes nothing, after requests were halted.
  assign rvalid = rvalid_i & owed_q != 4'd0;
  assign clear  = clear_i & halt_i & halted_q & port_idle & idle;

  read_port #(
    .BeatBytes(4),
    .MaxBurst (MaxBurst),
    .FifoDepth(FifoDepth),
    .FewBeats (FewBeats),
    .LenWidth (4),
    .Errors   (1'b1)
  ) u_port (
    .clk_i,
    .rst_ni      (rst_n),
    .clear_i     (clear),
    .halt_i,
    .all_i       (all_q),
    .run_valid_i (run_valid_i & run_bytes_i != 4'd0),
    .run_ready_o (run_ready),
    .run_addr_i,
    .run_bytes_i,
    .beat_valid_o(beat_valid),
    .beat_ready_i,
    .beat_data_o (beat_data),
    .beat_error_o(beat_error),
    .idle_o      (port_idle),
    .ar_valid_o  (ar_valid),
    .ar_ready_i  (ar_ready[0]),
    .ar_addr_o   (ar_addr),
    .ar_len_o    (ar_len),
    .r_valid_i   (r_valid[0]),
    .r_data_i    ({31'd0, rdata_i}),
    .r_error_i   (1'b0)
  );

  read_arbiter u_arbiter (
    .clk_i,
    .rst_ni    (rst_n),
    .ar_valid_i({3'b000, ar_valid}),
    .ar_ready_o(ar_ready),
    .ar_addr_i ({{(3 * Bits) {1'b0}}, ar_addr}),
    .ar_len_i  ({24'd0, ar_len}),
    .r_valid_o (r_valid),
    .idle_o    (idle),
    .arvalid_o (arvalid),
    .arready_i,
    .araddr_o  (araddr),
    .arlen_o   (arlen),
    .arid_o    (arid),
    .rvalid_i  (rvalid),
    .rid_i     (2'd0)
  );

  always_ff @(posedge clk_i) begin
    araddr_q <= araddr;
    arlen_q  <= arlen;
    if (~rst_n) begin
      stays_q  <= 1'b0;
      halted_q <= 1'b0;
      owed_q   <= 4'd0;
      room_q   <= 4'(FifoDepth);
      all_q    <= all_i;
    end else begin
      stays_q  <= arvalid & ~arready_i;
      halted_q <= halt_i;
      owed_q   <= owed_q + (arvalid & arready_i ? 4'(arlen) + 4'd1 : 4'd0) - 4'(rvalid);
      if (clear) all_q <= all_i;
      if (clear) room_q <= 4'(FifoDepth);
      else room_q <= room_q - (arvalid & arready_i ? 4'(arlen) + 4'd1 : 4'd0) + 4'(beat_valid & beat_ready_i);
      AnAddressStaysUntilItIsTaken: assert (~stays_q | (arvalid & araddr == araddr_q & arlen == arlen_q));
      if (arvalid) begin
        ABurstHasAtMostMaxBurstBeats: assert (32'(arlen) < MaxBurst);
        ABurstStaysInItsPage: assert (32'(araddr[11:2]) + 32'(arlen) < 1024);
        AnAddressIsThatOfABeat: assert (araddr[1:0] == 2'd0);
        ThereIsRoomForEveryBeatOfABurst: assert (32'(arlen) < 32'(room_q));
      end
      AnIdlePortIsOwedNothing: assert (~(port_idle & idle) | (owed_q == 4'd0 & ~arvalid));
      NoBeatIsDeliveredThatDidNotCome: assert (~beat_valid | 32'(room_q) + 32'(owed_q) < FifoDepth);
    end
  end

endmodule
