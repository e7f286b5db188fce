// Shares the read channels of the memory port between four readers: round robin on addresses, the reader's index as
// ID, beats distributed by ID. The address channel is registered, so that it is stable while it waits.
module read_arbiter (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic [3:0]   ar_valid_i,
  output logic [3:0]   ar_ready_o,
  input  logic [4*tenon_pkg::ADDR_BITS-1:0] ar_addr_i,  // reader i at ADDR_BITS * i
  input  logic [31:0]  ar_len_i,    // reader i at 8 i
  output logic [3:0]   r_valid_o,
  output logic         idle_o,      // no address waits at the port
  output logic         arvalid_o,
  input  logic         arready_i,
  output logic [tenon_pkg::ADDR_BITS-1:0]  araddr_o,
  output logic [7:0]   arlen_o,
  output logic [1:0]   arid_o,
  input  logic         rvalid_i,
  input  logic [1:0]   rid_i
);

  logic        valid_q, take;
  logic [tenon_pkg::ADDR_BITS-1:0] addr_q;
  logic [7:0]  len_q;
  logic [1:0]  id_q;
  logic [2:0]  rotated;
  logic [1:0]  first, pick;

  // The reader after the last granted one has priority.
  assign take    = ~valid_q | arready_i;
  assign first   = id_q + 2'd1;
  assign rotated = 3'({ar_valid_i, ar_valid_i} >> first);
  always_comb begin
    if (rotated[0]) pick = first;
    else if (rotated[1]) pick = first + 2'd1;
    else if (rotated[2]) pick = first + 2'd2;
    else pick = first + 2'd3;
  end
  assign ar_ready_o = take ? 4'b0001 << pick : 4'b0000;
  assign r_valid_o  = rvalid_i ? 4'b0001 << rid_i : 4'b0000;
  assign idle_o     = ~valid_q;
  assign arvalid_o  = valid_q;
  assign araddr_o   = addr_q;
  assign arlen_o    = len_q;
  assign arid_o     = id_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      id_q    <= 2'd0;
    end else if (take) begin
      valid_q <= |ar_valid_i;
      if (|ar_valid_i) id_q <= pick;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take & |ar_valid_i) begin
      addr_q <= ar_addr_i[pick*tenon_pkg::ADDR_BITS+:tenon_pkg::ADDR_BITS];
      len_q  <= ar_len_i[{pick, 3'd0}+:8];
    end
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & take & (|ar_valid_i)) begin
      AGrantGoesToOneReaderThatAsks: assert ((ar_ready_o & ~ar_valid_i) == 4'd0 &
                                            (ar_ready_o & (ar_ready_o - 4'd1)) == 4'd0);
    end
    if (rst_ni & rvalid_i) begin
      ABeatGoesToOneReader: assert (r_valid_o != 4'd0 & (r_valid_o & (r_valid_o - 4'd1)) == 4'd0);
    end
  end
  // verilator lint_on SYNCASYNCNET

  stream_check #(.Width(tenon_pkg::ADDR_BITS + 10)) u_ar_check (
    .clk_i,
    .rst_ni,
    .valid_i(arvalid_o),
    .ready_i(arready_i),
    .data_i ({araddr_o, arlen_o, arid_o})
  );
`endif

endmodule
