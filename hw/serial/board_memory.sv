// Memory on the chip for boards without another: an AXI4 slave for the accelerator's bursts, and a port of words for the
// bridge, which comes first. It has 2**serial_pkg::MEMORY_LOG2 bytes at the address of the same value; every other
// address has an error response. A burst is of type INCR, whole beats, and inside a page of 4 KiB.
module board_memory (
  input  logic                            clk_i,
  input  logic                            rst_ni,
  // The bridge: a read's data comes in the next cycle.
  input  logic                            we_i,
  input  logic                            re_i,
  input  logic [serial_pkg::MEMORY_LOG2-1:2] addr_i,
  input  logic [31:0]                     wdata_i,
  output logic                            rvalid_word_o,
  output logic [31:0]                     rdata_o,
  // The accelerator.
  input  logic                            awvalid_i,
  output logic                            awready_o,
  // verilator lint_off UNUSEDSIGNAL
  input  logic [63:0]                     awaddr_i,  // the low bits select no beat
  // verilator lint_on UNUSEDSIGNAL
  input  logic                            wvalid_i,
  output logic                            wready_o,
  input  logic [tenon_pkg::AXI_BITS-1:0]  wdata_axi_i,
  input  logic [tenon_pkg::AXI_BYTES-1:0] wstrb_i,
  input  logic                            wlast_i,
  output logic                            bvalid_o,
  input  logic                            bready_i,
  output logic                            berror_o,
  input  logic                            arvalid_i,
  output logic                            arready_o,
  // verilator lint_off UNUSEDSIGNAL
  input  logic [63:0]                     araddr_i,  // the low bits select no beat
  // verilator lint_on UNUSEDSIGNAL
  input  logic [1:0]                      arid_i,
  input  logic [7:0]                      arlen_i,
  output logic                            rvalid_o,
  input  logic                            rready_i,
  output logic [tenon_pkg::AXI_BITS-1:0]  rdata_axi_o,
  output logic [1:0]                      rid_o,
  output logic                            rlast_o,
  output logic                            rerror_o
);

  localparam int MemoryLog2 = serial_pkg::MEMORY_LOG2;
  localparam int BeatShift  = $clog2(tenon_pkg::AXI_BYTES);
  localparam int AddrWidth  = MemoryLog2 - BeatShift;
  localparam int Words      = tenon_pkg::AXI_BYTES / 4;
  localparam logic [63:MemoryLog2] Base = {{(63 - MemoryLog2){1'b0}}, 1'b1};

  // ----------------------------------------------------------------------------------------------------------- writes
  logic                 writing_q, write_ok_q;
  logic [AddrWidth-1:0] waddr_q;
  logic                 beat;

  assign awready_o = ~writing_q & ~bvalid_o;
  assign wready_o  = writing_q & ~we_i;
  assign beat      = wvalid_i & wready_o;
  assign berror_o  = ~write_ok_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      writing_q <= 1'b0;
      bvalid_o  <= 1'b0;
    end else begin
      if (awvalid_i & awready_o) writing_q <= 1'b1;
      else if (beat & wlast_i) writing_q <= 1'b0;
      if (beat & wlast_i) bvalid_o <= 1'b1;
      else if (bready_i) bvalid_o <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (awvalid_i & awready_o) begin
      waddr_q    <= awaddr_i[MemoryLog2-1:BeatShift];
      write_ok_q <= awaddr_i[63:MemoryLog2] == Base;
    end else if (beat) begin
      waddr_q <= waddr_q + 1'b1;
    end
  end

  // ------------------------------------------------------------------------------------------------------------ reads
  logic                 reading_q, read_ok_q, issue;
  logic [AddrWidth-1:0] raddr_q;
  logic [7:0]           left_q;

  assign arready_o = ~reading_q;
  assign issue     = reading_q & ~re_i & (~rvalid_o | rready_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reading_q <= 1'b0;
      rvalid_o  <= 1'b0;
      rvalid_word_o <= 1'b0;
    end else begin
      rvalid_word_o <= re_i;
      if (arvalid_i & arready_o) reading_q <= 1'b1;
      else if (issue & left_q == 8'd0) reading_q <= 1'b0;
      if (issue) rvalid_o <= 1'b1;
      else if (rready_i) rvalid_o <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (arvalid_i & arready_o) begin
      raddr_q   <= araddr_i[MemoryLog2-1:BeatShift];
      left_q    <= arlen_i;
      read_ok_q <= araddr_i[63:MemoryLog2] == Base;
    end else if (issue) begin
      raddr_q <= raddr_q + 1'b1;
      left_q  <= left_q - 8'd1;
    end
    if (arvalid_i & arready_o) rid_o <= arid_i;
    if (issue) begin
      rlast_o  <= left_q == 8'd0;
      rerror_o <= ~read_ok_q;
    end
  end

  // -------------------------------------------------------------------------------------------------------------- RAM
  logic [tenon_pkg::AXI_BYTES-1:0] we, lanes;
  logic [tenon_pkg::AXI_BITS-1:0]  rdata;

  if (Words == 1) begin : g_word
    assign lanes   = '1;
    assign rdata_o = rdata;
  end else begin : g_words
    logic [$clog2(Words)-1:0] word_q;
    always_ff @(posedge clk_i) begin
      if (re_i) word_q <= addr_i[BeatShift-1:2];
    end
    assign lanes   = tenon_pkg::AXI_BYTES'(15) << {addr_i[BeatShift-1:2], 2'b00};
    assign rdata_o = 32'(rdata >> {word_q, 5'd0});
  end

  assign we          = we_i ? lanes : beat & write_ok_q ? wstrb_i : '0;
  assign rdata_axi_o = rdata;

  prim_ram_1r1w #(
    .Width    (tenon_pkg::AXI_BITS),
    .Depth    (2**AddrWidth),
    .SubWords (tenon_pkg::AXI_BYTES),
    .AddrWidth(AddrWidth)
  ) u_ram (
    .clk_i,
    .we_i   (we),
    .waddr_i(we_i ? addr_i[MemoryLog2-1:BeatShift] : waddr_q),
    .wdata_i(we_i ? {Words{wdata_i}} : wdata_axi_i),
    .re_i   (re_i | issue),
    .raddr_i(re_i ? addr_i[MemoryLog2-1:BeatShift] : raddr_q),
    .rdata_o(rdata)
  );

endmodule
