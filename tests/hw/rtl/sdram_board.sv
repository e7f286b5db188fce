// A board's design and its SDRAM, for tests at the pins of the serial line.
module sdram_board (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic rx_i,
  output logic tx_o
);

  logic        cke, cs_n, ras_n, cas_n, we_n, oe, chip_oe;
  logic [1:0]  ba, dqm;
  logic [12:0] a;
  logic [15:0] dq, chip_dq;

  serial_top u_serial (
    .clk_i,
    .rst_ni,
    .rx_i,
    .tx_o,
    .sdram_cke_o  (cke),
    .sdram_cs_no  (cs_n),
    .sdram_ras_no (ras_n),
    .sdram_cas_no (cas_n),
    .sdram_we_no  (we_n),
    .sdram_ba_o   (ba),
    .sdram_a_o    (a),
    .sdram_dqm_o  (dqm),
    .sdram_dq_oe_o(oe),
    .sdram_dq_o   (dq),
    .sdram_dq_i   (chip_oe ? chip_dq : oe ? dq : 16'hdead)
  );

  sdram_chip #(
    .ColBits(serial_pkg::MEMORY_LOG2 - 16)
  ) u_chip (
    .clk_i  (~clk_i),
    .cke_i  (cke),
    .cs_ni  (cs_n),
    .ras_ni (ras_n),
    .cas_ni (cas_n),
    .we_ni  (we_n),
    .ba_i   (ba),
    .a_i    (a),
    .dqm_i  (dqm),
    .dq_oe_i(oe),
    .dq_i   (dq),
    .dq_oe_o(chip_oe),
    .dq_o   (chip_dq)
  );

endmodule
