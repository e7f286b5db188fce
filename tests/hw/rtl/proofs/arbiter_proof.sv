// read_arbiter for every behavior of four readers and a memory: a request that is granted goes out unchanged under its
// reader's index and stays until it is taken, no reader waits for more than three others, and beats go to their reader.
module arbiter_proof (
  input logic       clk_i,
  input logic [3:0] ar_valid_i,
  input logic [4*tenon_pkg::ADDR_BITS-1:0] ar_addr_i,
  input logic [31:0] ar_len_i,
  input logic       arready_i,
  input logic       rvalid_i,
  input logic [1:0] rid_i,
  input logic [1:0] reader_i
);

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  localparam int Bits = tenon_pkg::ADDR_BITS;

  logic [3:0]      ar_ready, r_valid;
  logic            idle, arvalid, begun_q;
  logic [Bits-1:0] araddr, addr_q;
  logic [7:0]      arlen, len_q;
  logic [1:0]      arid, reader_q, passed_q;  // passed: grants to others while the reader waits

  read_arbiter u_arbiter (
    .clk_i,
    .rst_ni    (rst_n),
    .ar_valid_i,
    .ar_ready_o(ar_ready),
    .ar_addr_i,
    .ar_len_i,
    .r_valid_o (r_valid),
    .idle_o    (idle),
    .arvalid_o (arvalid),
    .arready_i,
    .araddr_o  (araddr),
    .arlen_o   (arlen),
    .arid_o    (arid),
    .rvalid_i,
    .rid_i
  );

  logic [3:0] grant;
  logic       sent_q, expected_q;
  assign grant = ar_valid_i & ar_ready;

  always_ff @(posedge clk_i) begin
    // One of the readers, chosen once, stands for all.
    if (~rst_n) begin
      reader_q   <= reader_i;
      passed_q   <= 2'd0;
      expected_q <= 1'b0;
      sent_q     <= 1'b0;
    end else begin
      if (~ar_valid_i[reader_q] | grant[reader_q]) passed_q <= 2'd0;
      else if (grant != 4'd0) passed_q <= passed_q + 2'd1;
      sent_q <= arvalid & ~arready_i;
      if (grant[reader_q]) begin
        expected_q <= 1'b1;
        addr_q     <= ar_addr_i[reader_q*Bits+:Bits];
        len_q      <= ar_len_i[{reader_q, 3'd0}+:8];
      end else if (arready_i) begin
        expected_q <= 1'b0;
      end
      AtMostOneReaderIsGranted: assert ((grant & (grant - 4'd1)) == 4'd0);
      AReaderThatAsksIsGrantedWhenThePortIsFree: assert (ar_valid_i == 4'd0 | grant != 4'd0 | (arvalid & ~arready_i));
      NoReaderWaitsForMoreThanThreeOthers: assert (~ar_valid_i[reader_q] | grant[reader_q] | grant == 4'd0 |
                                                   passed_q != 2'd3);
      AGrantedRequestGoesOutUnchanged: assert (expected_q == (arvalid & arid == reader_q));
      if (expected_q) begin
        ItsAddressAndLengthStay: assert (araddr == addr_q & arlen == len_q);
      end
      AnAddressStaysUntilItIsTaken: assert (~sent_q | arvalid);
      ThePortIsIdleWithoutAnAddress: assert (idle == ~arvalid);
      ABeatGoesToTheReaderOfItsId: assert (r_valid[reader_q] == (rvalid_i & rid_i == reader_q));
    end
  end

endmodule
