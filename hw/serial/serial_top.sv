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

  // verilator lint_off UNUSEDSIGNAL
`include "tenon_signals.svh"  // the accelerator's constant outputs, and what a memory does not distinguish
  // verilator lint_on UNUSEDSIGNAL
  logic [11:0] addr;

  logic                               mem_we, mem_re, mem_rvalid, mem_busy;
  logic [serial_pkg::MEMORY_LOG2-1:2] mem_addr;
  logic [31:0]                        mem_wdata, mem_rdata;

  serial_bridge u_bridge (
    .clk_i,
    .rst_ni,
    .rx_i,
    .tx_o,
    .awvalid_o  (s_axi_control_awvalid),
    .awready_i  (s_axi_control_awready),
    .wvalid_o   (s_axi_control_wvalid),
    .wready_i   (s_axi_control_wready),
    .wdata_o    (s_axi_control_wdata),
    .bvalid_i   (s_axi_control_bvalid),
    .arvalid_o  (s_axi_control_arvalid),
    .arready_i  (s_axi_control_arready),
    .addr_o     (addr),
    .rvalid_i   (s_axi_control_rvalid),
    .rdata_i    (s_axi_control_rdata),
    .mem_we_o   (mem_we),
    .mem_re_o   (mem_re),
    .mem_addr_o (mem_addr),
    .mem_wdata_o(mem_wdata),
    .mem_rvalid_i(mem_rvalid),
    .mem_rdata_i(mem_rdata),
    .mem_busy_i (mem_busy)
  );

  assign s_axi_control_awaddr = addr;
  assign s_axi_control_araddr = addr;
  assign s_axi_control_wstrb  = 4'hf;
  assign s_axi_control_bready = 1'b1;
  assign s_axi_control_rready = 1'b1;

  if (serial_pkg::SDRAM != 0) begin : g_sdram
    sdram_memory u_memory (
      .clk_i,
      .rst_ni,
      .we_i         (mem_we),
      .re_i         (mem_re),
      .addr_i       (mem_addr),
      .wdata_i      (mem_wdata),
      .rvalid_word_o(mem_rvalid),
      .rdata_o      (mem_rdata),
      .busy_o       (mem_busy),
      .cke_o        (sdram_cke_o),
      .cs_no        (sdram_cs_no),
      .ras_no       (sdram_ras_no),
      .cas_no       (sdram_cas_no),
      .we_no        (sdram_we_no),
      .ba_o         (sdram_ba_o),
      .a_o          (sdram_a_o),
      .dqm_o        (sdram_dqm_o),
      .dq_oe_o      (sdram_dq_oe_o),
      .dq_o         (sdram_dq_o),
      .dq_i         (sdram_dq_i),
      .*
    );
  end else begin : g_chip
    board_memory u_memory (
      .clk_i,
      .rst_ni,
      .we_i         (mem_we),
      .re_i         (mem_re),
      .addr_i       (mem_addr),
      .wdata_i      (mem_wdata),
      .rvalid_word_o(mem_rvalid),
      .rdata_o      (mem_rdata),
      .*
    );
    assign mem_busy = 1'b0;
    assign {sdram_cke_o, sdram_cs_no, sdram_ras_no, sdram_cas_no, sdram_we_no, sdram_ba_o} = '0;
    assign {sdram_a_o, sdram_dqm_o, sdram_dq_oe_o, sdram_dq_o} = '0;
    logic unused_sdram;
    assign unused_sdram = ^sdram_dq_i;
  end

  tenon u_tenon (
    .clk_i,
    .rst_ni,
    // verilator lint_off PINCONNECTEMPTY
    .interrupt_o(),
    // verilator lint_on PINCONNECTEMPTY
    .*
  );

endmodule
