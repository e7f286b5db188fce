// Memory on the chip for boards without another: an AXI4 slave for the accelerator's bursts, and a port of words for the
// bridge, which comes first. It has 2**serial_pkg::MEMORY_LOG2 bytes at the address of the same value; every other
// address has an error response. A burst is of type INCR, whole beats, and inside a page of 4 KiB.
module board_memory (
  input  logic        clk_i,
  input  logic        rst_ni,
  // The accelerator.
  // verilator lint_off UNUSEDSIGNAL
`include "tenon_memory_ports.svh"  // the kind of a burst and low bits of addresses are not used
  // verilator lint_on UNUSEDSIGNAL
  // The bridge: a read's data comes in the next cycle.
  input  logic        we_i,
  input  logic        re_i,
  input  logic [serial_pkg::MEMORY_LOG2-1:2] addr_i,
  input  logic [31:0] wdata_i,
  output logic        rvalid_word_o,
  output logic [31:0] rdata_o
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

  assign m_axi_gmem_awready = ~writing_q & ~m_axi_gmem_bvalid;
  assign m_axi_gmem_wready  = writing_q & ~we_i;
  assign m_axi_gmem_bid     = 2'd0;
  assign m_axi_gmem_bresp   = {~write_ok_q, 1'b0};
  assign beat               = m_axi_gmem_wvalid & m_axi_gmem_wready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      writing_q         <= 1'b0;
      m_axi_gmem_bvalid <= 1'b0;
    end else begin
      if (m_axi_gmem_awvalid & m_axi_gmem_awready) writing_q <= 1'b1;
      else if (beat & m_axi_gmem_wlast) writing_q <= 1'b0;
      if (beat & m_axi_gmem_wlast) m_axi_gmem_bvalid <= 1'b1;
      else if (m_axi_gmem_bready) m_axi_gmem_bvalid <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (m_axi_gmem_awvalid & m_axi_gmem_awready) begin
      waddr_q    <= m_axi_gmem_awaddr[MemoryLog2-1:BeatShift];
      write_ok_q <= m_axi_gmem_awaddr[63:MemoryLog2] == Base;
    end else if (beat) begin
      waddr_q <= waddr_q + 1'b1;
    end
  end

  // ------------------------------------------------------------------------------------------------------------ reads
  logic                 reading_q, read_ok_q, issue;
  logic [AddrWidth-1:0] raddr_q;
  logic [7:0]           left_q;

  assign m_axi_gmem_arready = ~reading_q;
  assign issue              = reading_q & ~re_i & (~m_axi_gmem_rvalid | m_axi_gmem_rready);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reading_q         <= 1'b0;
      m_axi_gmem_rvalid <= 1'b0;
      rvalid_word_o     <= 1'b0;
    end else begin
      rvalid_word_o <= re_i;
      if (m_axi_gmem_arvalid & m_axi_gmem_arready) reading_q <= 1'b1;
      else if (issue & left_q == 8'd0) reading_q <= 1'b0;
      if (issue) m_axi_gmem_rvalid <= 1'b1;
      else if (m_axi_gmem_rready) m_axi_gmem_rvalid <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (m_axi_gmem_arvalid & m_axi_gmem_arready) begin
      raddr_q   <= m_axi_gmem_araddr[MemoryLog2-1:BeatShift];
      left_q    <= m_axi_gmem_arlen;
      read_ok_q <= m_axi_gmem_araddr[63:MemoryLog2] == Base;
    end else if (issue) begin
      raddr_q <= raddr_q + 1'b1;
      left_q  <= left_q - 8'd1;
    end
    if (m_axi_gmem_arvalid & m_axi_gmem_arready) m_axi_gmem_rid <= m_axi_gmem_arid;
    if (issue) begin
      m_axi_gmem_rlast <= left_q == 8'd0;
      m_axi_gmem_rresp <= {~read_ok_q, 1'b0};
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

  assign we               = we_i ? lanes : beat & write_ok_q ? m_axi_gmem_wstrb : '0;
  assign m_axi_gmem_rdata = rdata;

  prim_ram_1r1w #(
    .Width    (tenon_pkg::AXI_BITS),
    .Depth    (2**AddrWidth),
    .SubWords (tenon_pkg::AXI_BYTES),
    .AddrWidth(AddrWidth)
  ) u_ram (
    .clk_i,
    .we_i   (we),
    .waddr_i(we_i ? addr_i[MemoryLog2-1:BeatShift] : waddr_q),
    .wdata_i(we_i ? {Words{wdata_i}} : m_axi_gmem_wdata),
    .re_i   (re_i | issue),
    .raddr_i(re_i ? addr_i[MemoryLog2-1:BeatShift] : raddr_q),
    .rdata_o(rdata)
  );

endmodule
