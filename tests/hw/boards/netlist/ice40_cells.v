// The one cell of an iCE40 that icebox_vlog leaves as an instance: its RAM, after Lattice's technology library. Mode 0 has
// 256 words of 16 bits, and each further mode twice the words of half the bits: data bit k of a word is pin S k + P, and
// bit S k + s of the row, where s is the upper part of the address. Contents at power-on are not modeled: the bitstream
// has zeros.
module SB_RAM40_4K #(
  parameter READ_MODE = 0,
  parameter WRITE_MODE = 0,
  parameter INIT_0 = 256'd0, INIT_1 = 256'd0, INIT_2 = 256'd0, INIT_3 = 256'd0,
  parameter INIT_4 = 256'd0, INIT_5 = 256'd0, INIT_6 = 256'd0, INIT_7 = 256'd0,
  parameter INIT_8 = 256'd0, INIT_9 = 256'd0, INIT_A = 256'd0, INIT_B = 256'd0,
  parameter INIT_C = 256'd0, INIT_D = 256'd0, INIT_E = 256'd0, INIT_F = 256'd0
) (
  output reg [15:0] RDATA,
  input             RCLK, RCLKE, RE,
  input      [10:0] RADDR,
  input             WCLK, WCLKE, WE,
  input      [10:0] WADDR,
  input      [15:0] MASK, WDATA
);
  localparam WS = 1 << WRITE_MODE, WP = WRITE_MODE == 0 ? 0 : WS / 2 - 1;
  localparam RS = 1 << READ_MODE, RP = READ_MODE == 0 ? 0 : RS / 2 - 1;

  reg [15:0] rows[0:255];
  reg [15:0] written, read;
  integer i, j;

  always @(posedge WCLK) begin
    if (WE && WCLKE) begin
      written = rows[WADDR[7:0]];
      for (i = 0; i < 16; i = i + WS) begin
        if (WRITE_MODE != 0 || !MASK[i]) written[i + (WADDR[10:8] & (WS - 1))] = WDATA[i + WP];
      end
      rows[WADDR[7:0]] <= written;
    end
  end

  always @(posedge RCLK) begin
    if (RE && RCLKE) begin
      read = rows[RADDR[7:0]];
      RDATA <= 16'd0;
      for (j = 0; j < 16; j = j + RS) RDATA[j + RP] <= read[j + (RADDR[10:8] & (RS - 1))];
    end
  end
endmodule
