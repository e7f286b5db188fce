// The accelerator with a serial line, and memory on the chip or in an SDRAM: all of a board's design but its pins and
// its clock.
module serial_top (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        rx_i,
  output logic        tx_o,
  // An SDRAM, see sdram_controller; without one the outputs are 0.
  output logic        sdram_cke_o,
  output logic        sdram_cs_no,
  output logic        sdram_ras_no,
  output logic        sdram_cas_no,
  output logic        sdram_we_no,
  output logic [1:0]  sdram_ba_o,
  output logic [12:0] sdram_a_o,
  output logic [1:0]  sdram_dqm_o,
  output logic        sdram_dq_oe_o,
  output logic [15:0] sdram_dq_o,
  input  logic [15:0] sdram_dq_i
);

  logic        awvalid, awready, wvalid, wready, bvalid, arvalid, arready, rvalid;
  logic [11:0] addr;
  logic [31:0] wdata, rdata;

  logic                               mem_we, mem_re, mem_rvalid, mem_busy;
  logic [serial_pkg::MEMORY_LOG2-1:2] mem_addr;
  logic [31:0]                        mem_wdata, mem_rdata;

  logic                            m_awvalid, m_awready, m_wvalid, m_wready, m_wlast, m_bvalid, m_bready, m_berror;
  logic                            m_arvalid, m_arready, m_rvalid, m_rready, m_rlast, m_rerror;
  logic [63:0]                     m_awaddr, m_araddr;
  logic [7:0]                      m_awlen, m_arlen;
  logic [1:0]                      m_arid, m_rid;
  logic [tenon_pkg::AXI_BITS-1:0]  m_wdata, m_rdata;
  logic [tenon_pkg::AXI_BYTES-1:0] m_wstrb;

  serial_bridge u_bridge (
    .clk_i,
    .rst_ni,
    .rx_i,
    .tx_o,
    .awvalid_o  (awvalid),
    .awready_i  (awready),
    .wvalid_o   (wvalid),
    .wready_i   (wready),
    .wdata_o    (wdata),
    .bvalid_i   (bvalid),
    .arvalid_o  (arvalid),
    .arready_i  (arready),
    .addr_o     (addr),
    .rvalid_i   (rvalid),
    .rdata_i    (rdata),
    .mem_we_o   (mem_we),
    .mem_re_o   (mem_re),
    .mem_addr_o (mem_addr),
    .mem_wdata_o(mem_wdata),
    .mem_rvalid_i(mem_rvalid),
    .mem_rdata_i(mem_rdata),
    .mem_busy_i (mem_busy)
  );

  if (serial_pkg::SDRAM != 0) begin : g_sdram
    // The bursts and the data of writes pass registers: a beat of 32 bits takes the SDRAM two cycles or more.
    logic                            s_awvalid, s_awready, s_wvalid, s_wready, s_arvalid, s_arready;
    logic [63:0]                     s_awaddr, s_araddr;
    logic [7:0]                      s_awlen, s_arlen;
    logic [1:0]                      s_arid;
    logic [tenon_pkg::AXI_BITS-1:0]  s_wdata;
    logic [tenon_pkg::AXI_BYTES-1:0] s_wstrb;
    logic                            s_rvalid, s_rlast, s_rerror;
    logic [1:0]                      s_rid;
    logic [tenon_pkg::AXI_BITS-1:0]  s_rdata;

    // The accelerator always takes beats of reads: they wait a cycle in a register.
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) m_rvalid <= 1'b0;
      else m_rvalid <= s_rvalid;
    end
    always_ff @(posedge clk_i) begin
      {m_rdata, m_rid, m_rlast, m_rerror} <= {s_rdata, s_rid, s_rlast, s_rerror};
    end
    logic unused_rready;
    assign unused_rready = m_rready;

    stream_register #(
      .Width(72)
    ) u_aw (
      .clk_i,
      .rst_ni,
      .valid_i(m_awvalid),
      .ready_o(m_awready),
      .data_i ({m_awaddr, m_awlen}),
      .valid_o(s_awvalid),
      .ready_i(s_awready),
      .data_o ({s_awaddr, s_awlen})
    );
    stream_register #(
      .Width(tenon_pkg::AXI_BYTES * 9)
    ) u_w (
      .clk_i,
      .rst_ni,
      .valid_i(m_wvalid),
      .ready_o(m_wready),
      .data_i ({m_wstrb, m_wdata}),
      .valid_o(s_wvalid),
      .ready_i(s_wready),
      .data_o ({s_wstrb, s_wdata})
    );
    stream_register #(
      .Width(74)
    ) u_ar (
      .clk_i,
      .rst_ni,
      .valid_i(m_arvalid),
      .ready_o(m_arready),
      .data_i ({m_araddr, m_arlen, m_arid}),
      .valid_o(s_arvalid),
      .ready_i(s_arready),
      .data_o ({s_araddr, s_arlen, s_arid})
    );

    sdram_memory u_memory (
      .clk_i,
      .rst_ni,
      .we_i       (mem_we),
      .re_i       (mem_re),
      .addr_i     (mem_addr),
      .wdata_i    (mem_wdata),
      .rvalid_word_o(mem_rvalid),
      .rdata_o    (mem_rdata),
      .busy_o     (mem_busy),
      .awvalid_i  (s_awvalid),
      .awready_o  (s_awready),
      .awaddr_i   (s_awaddr),
      .awlen_i    (s_awlen),
      .wvalid_i   (s_wvalid),
      .wready_o   (s_wready),
      .wdata_axi_i(s_wdata),
      .wstrb_i    (s_wstrb),
      .bvalid_o   (m_bvalid),
      .bready_i   (m_bready),
      .berror_o   (m_berror),
      .arvalid_i  (s_arvalid),
      .arready_o  (s_arready),
      .araddr_i   (s_araddr),
      .arid_i     (s_arid),
      .arlen_i    (s_arlen),
      .rvalid_o   (s_rvalid),
      .rready_i   (1'b1),
      .rdata_axi_o(s_rdata),
      .rid_o      (s_rid),
      .rlast_o    (s_rlast),
      .rerror_o   (s_rerror),
      .cke_o      (sdram_cke_o),
      .cs_no      (sdram_cs_no),
      .ras_no     (sdram_ras_no),
      .cas_no     (sdram_cas_no),
      .we_no      (sdram_we_no),
      .ba_o       (sdram_ba_o),
      .a_o        (sdram_a_o),
      .dqm_o      (sdram_dqm_o),
      .dq_oe_o    (sdram_dq_oe_o),
      .dq_o       (sdram_dq_o),
      .dq_i       (sdram_dq_i)
    );
    logic unused_wlast;
    assign unused_wlast = m_wlast;
  end else begin : g_chip
    board_memory u_memory (
      .clk_i,
      .rst_ni,
      .we_i       (mem_we),
      .re_i       (mem_re),
      .addr_i     (mem_addr),
      .wdata_i    (mem_wdata),
      .rvalid_word_o(mem_rvalid),
      .rdata_o    (mem_rdata),
      .awvalid_i  (m_awvalid),
      .awready_o  (m_awready),
      .awaddr_i   (m_awaddr),
      .wvalid_i   (m_wvalid),
      .wready_o   (m_wready),
      .wdata_axi_i(m_wdata),
      .wstrb_i    (m_wstrb),
      .wlast_i    (m_wlast),
      .bvalid_o   (m_bvalid),
      .bready_i   (m_bready),
      .berror_o   (m_berror),
      .arvalid_i  (m_arvalid),
      .arready_o  (m_arready),
      .araddr_i   (m_araddr),
      .arid_i     (m_arid),
      .arlen_i    (m_arlen),
      .rvalid_o   (m_rvalid),
      .rready_i   (m_rready),
      .rdata_axi_o(m_rdata),
      .rid_o      (m_rid),
      .rlast_o    (m_rlast),
      .rerror_o   (m_rerror)
    );
    assign mem_busy = 1'b0;
    assign {sdram_cke_o, sdram_cs_no, sdram_ras_no, sdram_cas_no, sdram_we_no, sdram_ba_o} = '0;
    assign {sdram_a_o, sdram_dqm_o, sdram_dq_oe_o, sdram_dq_o} = '0;
    logic unused_sdram;
    assign unused_sdram = ^{sdram_dq_i, m_awlen};
  end

  // The ports that are left open carry constants, or what this memory does not distinguish.
  // verilator lint_off PINCONNECTEMPTY
  tenon u_tenon (
    .clk_i,
    .rst_ni,
    .s_axi_control_awvalid(awvalid),
    .s_axi_control_awready(awready),
    .s_axi_control_awaddr (addr),
    .s_axi_control_wvalid (wvalid),
    .s_axi_control_wready (wready),
    .s_axi_control_wdata  (wdata),
    .s_axi_control_wstrb  (4'hf),
    .s_axi_control_bvalid (bvalid),
    .s_axi_control_bready (1'b1),
    .s_axi_control_bresp  (),
    .s_axi_control_arvalid(arvalid),
    .s_axi_control_arready(arready),
    .s_axi_control_araddr (addr),
    .s_axi_control_rvalid (rvalid),
    .s_axi_control_rready (1'b1),
    .s_axi_control_rdata  (rdata),
    .s_axi_control_rresp  (),
    .m_axi_gmem_awvalid   (m_awvalid),
    .m_axi_gmem_awready   (m_awready),
    .m_axi_gmem_awaddr    (m_awaddr),
    .m_axi_gmem_awid      (),
    .m_axi_gmem_awlen     (m_awlen),
    .m_axi_gmem_awsize    (),
    .m_axi_gmem_awburst   (),
    .m_axi_gmem_awlock    (),
    .m_axi_gmem_awcache   (),
    .m_axi_gmem_awprot    (),
    .m_axi_gmem_awqos     (),
    .m_axi_gmem_wvalid    (m_wvalid),
    .m_axi_gmem_wready    (m_wready),
    .m_axi_gmem_wdata     (m_wdata),
    .m_axi_gmem_wstrb     (m_wstrb),
    .m_axi_gmem_wlast     (m_wlast),
    .m_axi_gmem_bvalid    (m_bvalid),
    .m_axi_gmem_bready    (m_bready),
    .m_axi_gmem_bid       (2'd0),
    .m_axi_gmem_bresp     ({m_berror, 1'b0}),
    .m_axi_gmem_arvalid   (m_arvalid),
    .m_axi_gmem_arready   (m_arready),
    .m_axi_gmem_araddr    (m_araddr),
    .m_axi_gmem_arid      (m_arid),
    .m_axi_gmem_arlen     (m_arlen),
    .m_axi_gmem_arsize    (),
    .m_axi_gmem_arburst   (),
    .m_axi_gmem_arlock    (),
    .m_axi_gmem_arcache   (),
    .m_axi_gmem_arprot    (),
    .m_axi_gmem_arqos     (),
    .m_axi_gmem_rvalid    (m_rvalid),
    .m_axi_gmem_rready    (m_rready),
    .m_axi_gmem_rdata     (m_rdata),
    .m_axi_gmem_rid       (m_rid),
    .m_axi_gmem_rlast     (m_rlast),
    .m_axi_gmem_rresp     ({m_rerror, 1'b0}),
    .interrupt_o          ()
  );
  // verilator lint_on PINCONNECTEMPTY

endmodule
