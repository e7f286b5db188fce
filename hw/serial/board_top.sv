// The design of a board with a serial line at its pins: a clock and the line. Its reset is made here, from registers
// that the bitstream loads with 0; it lasts until the RAMs of an iCE40 can be read.
module board_top (
  input  logic clk_i,
  input  logic rx_i,
  output logic tx_o
);

  logic [9:0] reset_q = 10'd0;  // counts until the upper bit is set

  always_ff @(posedge clk_i) begin
    if (!reset_q[9]) reset_q <= reset_q + 10'd1;
  end

  serial_top u_serial (
    .clk_i,
    .rst_ni(reset_q[9]),
    .rx_i,
    .tx_o,
    // verilator lint_off PINCONNECTEMPTY
    .sdram_cke_o  (),
    .sdram_cs_no  (),
    .sdram_ras_no (),
    .sdram_cas_no (),
    .sdram_we_no  (),
    .sdram_ba_o   (),
    .sdram_a_o    (),
    .sdram_dqm_o  (),
    .sdram_dq_oe_o(),
    .sdram_dq_o   (),
    // verilator lint_on PINCONNECTEMPTY
    .sdram_dq_i   ('0)
  );

endmodule
