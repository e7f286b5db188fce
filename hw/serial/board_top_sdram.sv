// The design of an ECP5 board with a serial line and an SDRAM at its pins. As board_top, and the pins of the SDRAM: its
// clock is the inverse of clk_i, made where the other pins are driven so that it has their delay.
module board_top_sdram (
  input  logic        clk_i,
  input  logic        rx_i,
  output logic        tx_o,
  output logic        sdram_clk_o,
  output logic        sdram_cke_o,
  output logic        sdram_cs_no,
  output logic        sdram_ras_no,
  output logic        sdram_cas_no,
  output logic        sdram_we_no,
  output logic [1:0]  sdram_ba_o,
  output logic [12:0] sdram_a_o,
  output logic [1:0]  sdram_dqm_o,
  inout  wire  [15:0] sdram_dq_io
);

  logic [9:0]  reset_q = 10'd0;  // counts until the upper bit is set
  logic        in_reset_q = 1'b1;  // as the registers take it, so that no gate is on its net
  logic        dq_oe;
  logic [15:0] dq_out, dq_in;

  always_ff @(posedge clk_i) begin
    if (!reset_q[9]) reset_q <= reset_q + 10'd1;
    in_reset_q <= ~reset_q[9];
  end

  serial_top u_serial (
    .clk_i,
    .rst_ni       (~in_reset_q),
    .rx_i,
    .tx_o,
    .sdram_cke_o,
    .sdram_cs_no,
    .sdram_ras_no,
    .sdram_cas_no,
    .sdram_we_no,
    .sdram_ba_o,
    .sdram_a_o,
    .sdram_dqm_o,
    .sdram_dq_oe_o(dq_oe),
    .sdram_dq_o   (dq_out),
    .sdram_dq_i   (dq_in)
  );

  ODDRX1F u_clock (
    .SCLK(clk_i),
    .RST (1'b0),
    .D0  (1'b0),
    .D1  (1'b1),
    .Q   (sdram_clk_o)
  );
  for (genvar i = 0; i < 16; i++) begin : g_dq
    BB u_pin (
      .I(dq_out[i]),
      .T(~dq_oe),
      .O(dq_in[i]),
      .B(sdram_dq_io[i])
    );
  end

endmodule
