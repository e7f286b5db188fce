// The accelerator as a Vitis kernel, with Vitis's names for clock, reset and interrupt. All other ports are passed through.
module tenon_kernel (
  input  logic ap_clk,
  input  logic ap_rst_n,
`include "tenon_ports.svh"
  // verilator lint_off SYMRSVDWORD
  output logic interrupt
  // verilator lint_on SYMRSVDWORD
);

  tenon u_tenon (
    .clk_i      (ap_clk),
    .rst_ni     (ap_rst_n),
    .interrupt_o(interrupt),
    .*
  );

endmodule
