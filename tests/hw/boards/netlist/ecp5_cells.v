// What the cells of a routed ECP5 netlist do, after Lattice's FPGA-TN-02204 (memory), FPGA-TN-02205 (multipliers) and
// nextpnr's packing. A port that is not connected has the value that the chip gives it: 1, but 0 for resets and carries.
// Kinds of use that no design of Tenon has end the elaboration.

// The setting of a port's multiplexer: a constant, the inverse, or the port itself.
`define MUX(port) (port``MUX == "0" ? 1'b0 : port``MUX == "1" ? 1'b1 : port``MUX == "INV" ? ~port : port)

module TRELLIS_COMB (
  input  A = 1'b1, B = 1'b1, C = 1'b1, D = 1'b1, M = 1'b1,
  input  FCI = 1'b0, F1 = 1'b0, FXA = 1'b0, FXB = 1'b0,
  input  DI0 = 1'b0, DI1 = 1'b0,
  input  WD = 1'b1, WAD0 = 1'b1, WAD1 = 1'b1, WAD2 = 1'b1, WAD3 = 1'b1, WRE = 1'b1, WCK = 1'b1,
  output F, FCO, OFX
);
  parameter MODE = "LOGIC";
  parameter [15:0] INITVAL = 16'h0;
  parameter CCU2_INJECT1 = "NO";
  parameter WREMUX = "WRE";
  parameter WCKMUX = "WCK";
  parameter IS_Z1 = 1'b0;

  wire look_up = INITVAL[{D, C, B, A}];

  generate
    if (MODE == "CCU2") begin : g_carry
      wire [3:0] pairs = INITVAL[3:0];
      wire both = pairs[{B, A}];
      assign F   = look_up ^ (CCU2_INJECT1 == "YES" ? 1'b0 : FCI);
      assign FCO = look_up ? FCI : (CCU2_INJECT1 == "YES" ? 1'b0 : both);
    end else if (MODE == "DPRAM") begin : g_ram
      reg [15:0] ram = INITVAL;
      wire write = WREMUX == "INV" ? ~WRE : WRE;
      if (WCKMUX == "INV") begin : g_falling
        always @(negedge WCK) if (write) ram[{WAD3, WAD2, WAD1, WAD0}] <= WD;
      end else begin : g_rising
        always @(posedge WCK) if (write) ram[{WAD3, WAD2, WAD1, WAD0}] <= WD;
      end
      assign F   = ram[{A, C, B, D}];
      assign FCO = 1'b0;
    end else if (MODE == "LOGIC" || MODE == "RAMW_BLOCK") begin : g_logic  // the latter only takes a slot
      assign F   = look_up;
      assign FCO = 1'b0;
    end else begin : g_unknown
      a_mode_that_is_not_modelled u_mode ();
    end
    if (IS_Z1) begin : g_upper
      assign OFX = M ? FXB : FXA;
    end else begin : g_lower
      assign OFX = M ? F1 : F;
    end
  endgenerate
endmodule

module TRELLIS_RAMW (
  input  A0 = 1'b1, B0 = 1'b1, C0 = 1'b1, D0 = 1'b1, A1 = 1'b1, B1 = 1'b1, C1 = 1'b1, D1 = 1'b1,
  output WADO0, WADO1, WADO2, WADO3, WDO0, WDO1, WDO2, WDO3
);
  assign {WADO3, WADO2, WADO1, WADO0} = {A0, C0, B0, D0};
  assign {WDO3, WDO2, WDO1, WDO0} = {B1, D1, A1, C1};
endmodule

module TRELLIS_FF (
  input  CLK, LSR = 1'b0, CE = 1'b1, DI = 1'b1, M = 1'b1,
  output reg Q
);
  parameter GSR = "DISABLED";
  parameter CEMUX = "CE";
  parameter CLKMUX = "CLK";
  parameter LSRMUX = "LSR";
  parameter LSRMODE = "LSR";
  parameter SRMODE = "LSR_OVER_CE";
  parameter REGSET = "RESET";
  parameter SD = "1";

  wire enable = CEMUX == "1" ? 1'b1 : CEMUX == "0" ? 1'b0 : CEMUX == "INV" ? ~CE : CE;
  wire reset  = LSRMUX == "INV" ? ~LSR : LSR;
  wire data   = SD == "1" ? DI : M;
  localparam Value = REGSET == "SET" ? 1'b1 : 1'b0;

  initial Q = Value;
  generate
    if (LSRMODE != "LSR" || CLKMUX != "CLK") begin : g_unknown
      a_mode_that_is_not_modelled u_mode ();
    end else if (SRMODE == "ASYNC") begin : g_async
      always @(posedge CLK or posedge reset) begin
        if (reset) Q <= Value;
        else if (enable) Q <= data;
      end
    end else if (SRMODE == "CE_OVER_LSR") begin : g_enabled
      always @(posedge CLK) if (enable) Q <= reset ? Value : data;
    end else begin : g_sync
      always @(posedge CLK) begin
        if (reset) Q <= Value;
        else if (enable) Q <= data;
      end
    end
  endgenerate
endmodule

module TRELLIS_IO (
  inout  B,
  input  I = 1'b0, T = 1'b0, IOLDO = 1'b0, IOLTO = 1'b0,
  output O
);
  parameter DIR = "INPUT";
  parameter DATAMUX_ODDR = "PADDO";
  parameter DATAMUX_MDDR = "PADDO";
  generate
    if (DIR == "INPUT") begin : g_input
      assign O = B;
    end else if (DIR == "OUTPUT") begin : g_output
      assign B = I;
    end else begin : g_unknown
      a_mode_that_is_not_modelled u_mode ();
    end
  endgenerate
endmodule

module DCCA (input CLKI, CE = 1'b1, output CLKO);
  assign CLKO = CLKI;
endmodule

// 18 by 18 bits, each operand signed or not; registers of operands, product and output where they have a clock.
module MULT18X18D (
  input
    A0 = 1'b1, A1 = 1'b1, A2 = 1'b1, A3 = 1'b1, A4 = 1'b1, A5 = 1'b1, A6 = 1'b1, A7 = 1'b1, A8 = 1'b1,
    A9 = 1'b1, A10 = 1'b1, A11 = 1'b1, A12 = 1'b1, A13 = 1'b1, A14 = 1'b1, A15 = 1'b1, A16 = 1'b1, A17 = 1'b1,
    B0 = 1'b1, B1 = 1'b1, B2 = 1'b1, B3 = 1'b1, B4 = 1'b1, B5 = 1'b1, B6 = 1'b1, B7 = 1'b1, B8 = 1'b1,
    B9 = 1'b1, B10 = 1'b1, B11 = 1'b1, B12 = 1'b1, B13 = 1'b1, B14 = 1'b1, B15 = 1'b1, B16 = 1'b1, B17 = 1'b1,
    C0 = 1'b1, C1 = 1'b1, C2 = 1'b1, C3 = 1'b1, C4 = 1'b1, C5 = 1'b1, C6 = 1'b1, C7 = 1'b1, C8 = 1'b1,
    C9 = 1'b1, C10 = 1'b1, C11 = 1'b1, C12 = 1'b1, C13 = 1'b1, C14 = 1'b1, C15 = 1'b1, C16 = 1'b1, C17 = 1'b1,
    SRIA0 = 1'b0, SRIA1 = 1'b0, SRIA2 = 1'b0, SRIA3 = 1'b0, SRIA4 = 1'b0, SRIA5 = 1'b0, SRIA6 = 1'b0, SRIA7 = 1'b0, SRIA8 = 1'b0,
    SRIA9 = 1'b0, SRIA10 = 1'b0, SRIA11 = 1'b0, SRIA12 = 1'b0, SRIA13 = 1'b0, SRIA14 = 1'b0, SRIA15 = 1'b0, SRIA16 = 1'b0, SRIA17 = 1'b0,
    SRIB0 = 1'b0, SRIB1 = 1'b0, SRIB2 = 1'b0, SRIB3 = 1'b0, SRIB4 = 1'b0, SRIB5 = 1'b0, SRIB6 = 1'b0, SRIB7 = 1'b0, SRIB8 = 1'b0,
    SRIB9 = 1'b0, SRIB10 = 1'b0, SRIB11 = 1'b0, SRIB12 = 1'b0, SRIB13 = 1'b0, SRIB14 = 1'b0, SRIB15 = 1'b0, SRIB16 = 1'b0, SRIB17 = 1'b0,
    SIGNEDA = 1'b1, SIGNEDB = 1'b1, SOURCEA = 1'b0, SOURCEB = 1'b0,
    CLK0 = 1'b0, CLK1 = 1'b0, CLK2 = 1'b0, CLK3 = 1'b0, CE0 = 1'b1, CE1 = 1'b1, CE2 = 1'b1, CE3 = 1'b1,
    RST0 = 1'b0, RST1 = 1'b0, RST2 = 1'b0, RST3 = 1'b0,
  output
    P0, P1, P2, P3, P4, P5, P6, P7, P8,
    P9, P10, P11, P12, P13, P14, P15, P16, P17,
    P18, P19, P20, P21, P22, P23, P24, P25, P26,
    P27, P28, P29, P30, P31, P32, P33, P34, P35
);
  parameter REG_INPUTA_CLK = "NONE";
  parameter REG_INPUTB_CLK = "NONE";
  parameter REG_PIPELINE_CLK = "NONE";
  parameter REG_OUTPUT_CLK = "NONE";

  parameter A0MUX = "A0";
  parameter A1MUX = "A1";
  parameter A2MUX = "A2";
  parameter A3MUX = "A3";
  parameter A4MUX = "A4";
  parameter A5MUX = "A5";
  parameter A6MUX = "A6";
  parameter A7MUX = "A7";
  parameter A8MUX = "A8";
  parameter A9MUX = "A9";
  parameter A10MUX = "A10";
  parameter A11MUX = "A11";
  parameter A12MUX = "A12";
  parameter A13MUX = "A13";
  parameter A14MUX = "A14";
  parameter A15MUX = "A15";
  parameter A16MUX = "A16";
  parameter A17MUX = "A17";
  parameter B0MUX = "B0";
  parameter B1MUX = "B1";
  parameter B2MUX = "B2";
  parameter B3MUX = "B3";
  parameter B4MUX = "B4";
  parameter B5MUX = "B5";
  parameter B6MUX = "B6";
  parameter B7MUX = "B7";
  parameter B8MUX = "B8";
  parameter B9MUX = "B9";
  parameter B10MUX = "B10";
  parameter B11MUX = "B11";
  parameter B12MUX = "B12";
  parameter B13MUX = "B13";
  parameter B14MUX = "B14";
  parameter B15MUX = "B15";
  parameter B16MUX = "B16";
  parameter B17MUX = "B17";
  parameter SIGNEDAMUX = "SIGNEDA";
  parameter SIGNEDBMUX = "SIGNEDB";
  parameter SOURCEAMUX = "SOURCEA";
  parameter SOURCEBMUX = "SOURCEB";
  parameter CLK0MUX = "CLK0";
  parameter CLK1MUX = "CLK1";
  parameter CLK2MUX = "CLK2";
  parameter CLK3MUX = "CLK3";
  parameter CE0MUX = "CE0";
  parameter CE1MUX = "CE1";
  parameter CE2MUX = "CE2";
  parameter CE3MUX = "CE3";
  parameter RST0MUX = "RST0";
  parameter RST1MUX = "RST1";
  parameter RST2MUX = "RST2";
  parameter RST3MUX = "RST3";
  parameter C0MUX = "0";
  parameter C1MUX = "0";
  parameter C2MUX = "0";
  parameter C3MUX = "0";
  parameter C4MUX = "0";
  parameter C5MUX = "0";
  parameter C6MUX = "0";
  parameter C7MUX = "0";
  parameter C8MUX = "0";
  parameter C9MUX = "0";
  parameter C10MUX = "0";
  parameter C11MUX = "0";
  parameter C12MUX = "0";
  parameter C13MUX = "0";
  parameter C14MUX = "0";
  parameter C15MUX = "0";
  parameter C16MUX = "0";
  parameter C17MUX = "0";

  wire [17:0] a = {`MUX(A17), `MUX(A16), `MUX(A15), `MUX(A14), `MUX(A13), `MUX(A12), `MUX(A11), `MUX(A10), `MUX(A9), `MUX(A8), `MUX(A7), `MUX(A6), `MUX(A5), `MUX(A4), `MUX(A3), `MUX(A2), `MUX(A1), `MUX(A0)};
  wire [17:0] b = {`MUX(B17), `MUX(B16), `MUX(B15), `MUX(B14), `MUX(B13), `MUX(B12), `MUX(B11), `MUX(B10), `MUX(B9), `MUX(B8), `MUX(B7), `MUX(B6), `MUX(B5), `MUX(B4), `MUX(B3), `MUX(B2), `MUX(B1), `MUX(B0)};
  wire signed [18:0] a_wide = {`MUX(SIGNEDA) & a[17], a};
  wire signed [18:0] b_wide = {`MUX(SIGNEDB) & b[17], b};
  wire signed [37:0] product = a_wide * b_wide;
  assign {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0} = product[35:0];
  generate
    if (REG_INPUTA_CLK != "NONE" || REG_INPUTB_CLK != "NONE" || REG_PIPELINE_CLK != "NONE" || REG_OUTPUT_CLK != "NONE")
    begin : g_unknown
      a_mode_that_is_not_modelled u_mode ();
    end
  endgenerate
endmodule

// 16 Kbit and 2 Kbit of parity: 2048 bytes of 9 bits, which each port sees in units of 1, 2, 4, 9, 18 or 36 bits. With 36
// bits port A writes DIB, DIA and port B reads to DOB, DOA. A port of less than 9 bits sees no parity.
module DP16KD (
  input
    DIA0 = 1'b1, DIA1 = 1'b1, DIA2 = 1'b1, DIA3 = 1'b1, DIA4 = 1'b1, DIA5 = 1'b1, DIA6 = 1'b1, DIA7 = 1'b1, DIA8 = 1'b1,
    DIA9 = 1'b1, DIA10 = 1'b1, DIA11 = 1'b1, DIA12 = 1'b1, DIA13 = 1'b1, DIA14 = 1'b1, DIA15 = 1'b1, DIA16 = 1'b1, DIA17 = 1'b1,
    DIB0 = 1'b1, DIB1 = 1'b1, DIB2 = 1'b1, DIB3 = 1'b1, DIB4 = 1'b1, DIB5 = 1'b1, DIB6 = 1'b1, DIB7 = 1'b1, DIB8 = 1'b1,
    DIB9 = 1'b1, DIB10 = 1'b1, DIB11 = 1'b1, DIB12 = 1'b1, DIB13 = 1'b1, DIB14 = 1'b1, DIB15 = 1'b1, DIB16 = 1'b1, DIB17 = 1'b1,
    ADA0 = 1'b1, ADA1 = 1'b1, ADA2 = 1'b1, ADA3 = 1'b1, ADA4 = 1'b1, ADA5 = 1'b1, ADA6 = 1'b1, ADA7 = 1'b1, ADA8 = 1'b1,
    ADA9 = 1'b1, ADA10 = 1'b1, ADA11 = 1'b1, ADA12 = 1'b1, ADA13 = 1'b1, ADB0 = 1'b1, ADB1 = 1'b1, ADB2 = 1'b1, ADB3 = 1'b1,
    ADB4 = 1'b1, ADB5 = 1'b1, ADB6 = 1'b1, ADB7 = 1'b1, ADB8 = 1'b1, ADB9 = 1'b1, ADB10 = 1'b1, ADB11 = 1'b1, ADB12 = 1'b1,
    ADB13 = 1'b1,
    CEA = 1'b1, CEB = 1'b1, OCEA = 1'b1, OCEB = 1'b1, CLKA = 1'b0, CLKB = 1'b0, WEA = 1'b1, WEB = 1'b1,
    RSTA = 1'b1, RSTB = 1'b1, CSA0 = 1'b1, CSA1 = 1'b1, CSA2 = 1'b1, CSB0 = 1'b1, CSB1 = 1'b1, CSB2 = 1'b1,
  output
    DOA0, DOA1, DOA2, DOA3, DOA4, DOA5, DOA6, DOA7, DOA8,
    DOA9, DOA10, DOA11, DOA12, DOA13, DOA14, DOA15, DOA16, DOA17,
    DOB0, DOB1, DOB2, DOB3, DOB4, DOB5, DOB6, DOB7, DOB8,
    DOB9, DOB10, DOB11, DOB12, DOB13, DOB14, DOB15, DOB16, DOB17
);
  parameter DATA_WIDTH_A = 18;
  parameter DATA_WIDTH_B = 18;
  parameter REGMODE_A = "NOREG";
  parameter REGMODE_B = "NOREG";
  parameter RESETMODE = "SYNC";
  parameter ASYNC_RESET_RELEASE = "SYNC";
  parameter CSDECODE_A = "0b000";
  parameter CSDECODE_B = "0b000";
  parameter WRITEMODE_A = "NORMAL";
  parameter WRITEMODE_B = "NORMAL";
  parameter GSR = "DISABLED";
  parameter DIA0MUX = "DIA0";
  parameter DIA1MUX = "DIA1";
  parameter DIA2MUX = "DIA2";
  parameter DIA3MUX = "DIA3";
  parameter DIA4MUX = "DIA4";
  parameter DIA5MUX = "DIA5";
  parameter DIA6MUX = "DIA6";
  parameter DIA7MUX = "DIA7";
  parameter DIA8MUX = "DIA8";
  parameter DIA9MUX = "DIA9";
  parameter DIA10MUX = "DIA10";
  parameter DIA11MUX = "DIA11";
  parameter DIA12MUX = "DIA12";
  parameter DIA13MUX = "DIA13";
  parameter DIA14MUX = "DIA14";
  parameter DIA15MUX = "DIA15";
  parameter DIA16MUX = "DIA16";
  parameter DIA17MUX = "DIA17";
  parameter DIB0MUX = "DIB0";
  parameter DIB1MUX = "DIB1";
  parameter DIB2MUX = "DIB2";
  parameter DIB3MUX = "DIB3";
  parameter DIB4MUX = "DIB4";
  parameter DIB5MUX = "DIB5";
  parameter DIB6MUX = "DIB6";
  parameter DIB7MUX = "DIB7";
  parameter DIB8MUX = "DIB8";
  parameter DIB9MUX = "DIB9";
  parameter DIB10MUX = "DIB10";
  parameter DIB11MUX = "DIB11";
  parameter DIB12MUX = "DIB12";
  parameter DIB13MUX = "DIB13";
  parameter DIB14MUX = "DIB14";
  parameter DIB15MUX = "DIB15";
  parameter DIB16MUX = "DIB16";
  parameter DIB17MUX = "DIB17";
  parameter ADA0MUX = "ADA0";
  parameter ADA1MUX = "ADA1";
  parameter ADA2MUX = "ADA2";
  parameter ADA3MUX = "ADA3";
  parameter ADA4MUX = "ADA4";
  parameter ADA5MUX = "ADA5";
  parameter ADA6MUX = "ADA6";
  parameter ADA7MUX = "ADA7";
  parameter ADA8MUX = "ADA8";
  parameter ADA9MUX = "ADA9";
  parameter ADA10MUX = "ADA10";
  parameter ADA11MUX = "ADA11";
  parameter ADA12MUX = "ADA12";
  parameter ADA13MUX = "ADA13";
  parameter ADB0MUX = "ADB0";
  parameter ADB1MUX = "ADB1";
  parameter ADB2MUX = "ADB2";
  parameter ADB3MUX = "ADB3";
  parameter ADB4MUX = "ADB4";
  parameter ADB5MUX = "ADB5";
  parameter ADB6MUX = "ADB6";
  parameter ADB7MUX = "ADB7";
  parameter ADB8MUX = "ADB8";
  parameter ADB9MUX = "ADB9";
  parameter ADB10MUX = "ADB10";
  parameter ADB11MUX = "ADB11";
  parameter ADB12MUX = "ADB12";
  parameter ADB13MUX = "ADB13";
  parameter CEAMUX = "CEA";
  parameter CEBMUX = "CEB";
  parameter OCEAMUX = "OCEA";
  parameter OCEBMUX = "OCEB";
  parameter CLKAMUX = "CLKA";
  parameter CLKBMUX = "CLKB";
  parameter WEAMUX = "WEA";
  parameter WEBMUX = "WEB";
  parameter RSTAMUX = "RSTA";
  parameter RSTBMUX = "RSTB";
  parameter CSA0MUX = "CSA0";
  parameter CSA1MUX = "CSA1";
  parameter CSA2MUX = "CSA2";
  parameter CSB0MUX = "CSB0";
  parameter CSB1MUX = "CSB1";
  parameter CSB2MUX = "CSB2";
  parameter [319:0] INITVAL_00 = 320'd0;
  parameter [319:0] INITVAL_01 = 320'd0;
  parameter [319:0] INITVAL_02 = 320'd0;
  parameter [319:0] INITVAL_03 = 320'd0;
  parameter [319:0] INITVAL_04 = 320'd0;
  parameter [319:0] INITVAL_05 = 320'd0;
  parameter [319:0] INITVAL_06 = 320'd0;
  parameter [319:0] INITVAL_07 = 320'd0;
  parameter [319:0] INITVAL_08 = 320'd0;
  parameter [319:0] INITVAL_09 = 320'd0;
  parameter [319:0] INITVAL_0A = 320'd0;
  parameter [319:0] INITVAL_0B = 320'd0;
  parameter [319:0] INITVAL_0C = 320'd0;
  parameter [319:0] INITVAL_0D = 320'd0;
  parameter [319:0] INITVAL_0E = 320'd0;
  parameter [319:0] INITVAL_0F = 320'd0;
  parameter [319:0] INITVAL_10 = 320'd0;
  parameter [319:0] INITVAL_11 = 320'd0;
  parameter [319:0] INITVAL_12 = 320'd0;
  parameter [319:0] INITVAL_13 = 320'd0;
  parameter [319:0] INITVAL_14 = 320'd0;
  parameter [319:0] INITVAL_15 = 320'd0;
  parameter [319:0] INITVAL_16 = 320'd0;
  parameter [319:0] INITVAL_17 = 320'd0;
  parameter [319:0] INITVAL_18 = 320'd0;
  parameter [319:0] INITVAL_19 = 320'd0;
  parameter [319:0] INITVAL_1A = 320'd0;
  parameter [319:0] INITVAL_1B = 320'd0;
  parameter [319:0] INITVAL_1C = 320'd0;
  parameter [319:0] INITVAL_1D = 320'd0;
  parameter [319:0] INITVAL_1E = 320'd0;
  parameter [319:0] INITVAL_1F = 320'd0;
  parameter [319:0] INITVAL_20 = 320'd0;
  parameter [319:0] INITVAL_21 = 320'd0;
  parameter [319:0] INITVAL_22 = 320'd0;
  parameter [319:0] INITVAL_23 = 320'd0;
  parameter [319:0] INITVAL_24 = 320'd0;
  parameter [319:0] INITVAL_25 = 320'd0;
  parameter [319:0] INITVAL_26 = 320'd0;
  parameter [319:0] INITVAL_27 = 320'd0;
  parameter [319:0] INITVAL_28 = 320'd0;
  parameter [319:0] INITVAL_29 = 320'd0;
  parameter [319:0] INITVAL_2A = 320'd0;
  parameter [319:0] INITVAL_2B = 320'd0;
  parameter [319:0] INITVAL_2C = 320'd0;
  parameter [319:0] INITVAL_2D = 320'd0;
  parameter [319:0] INITVAL_2E = 320'd0;
  parameter [319:0] INITVAL_2F = 320'd0;
  parameter [319:0] INITVAL_30 = 320'd0;
  parameter [319:0] INITVAL_31 = 320'd0;
  parameter [319:0] INITVAL_32 = 320'd0;
  parameter [319:0] INITVAL_33 = 320'd0;
  parameter [319:0] INITVAL_34 = 320'd0;
  parameter [319:0] INITVAL_35 = 320'd0;
  parameter [319:0] INITVAL_36 = 320'd0;
  parameter [319:0] INITVAL_37 = 320'd0;
  parameter [319:0] INITVAL_38 = 320'd0;
  parameter [319:0] INITVAL_39 = 320'd0;
  parameter [319:0] INITVAL_3A = 320'd0;
  parameter [319:0] INITVAL_3B = 320'd0;
  parameter [319:0] INITVAL_3C = 320'd0;
  parameter [319:0] INITVAL_3D = 320'd0;
  parameter [319:0] INITVAL_3E = 320'd0;
  parameter [319:0] INITVAL_3F = 320'd0;

  wire [17:0] dia = {`MUX(DIA17), `MUX(DIA16), `MUX(DIA15), `MUX(DIA14), `MUX(DIA13), `MUX(DIA12), `MUX(DIA11), `MUX(DIA10), `MUX(DIA9), `MUX(DIA8), `MUX(DIA7), `MUX(DIA6), `MUX(DIA5), `MUX(DIA4), `MUX(DIA3), `MUX(DIA2), `MUX(DIA1), `MUX(DIA0)};
  wire [17:0] dib = {`MUX(DIB17), `MUX(DIB16), `MUX(DIB15), `MUX(DIB14), `MUX(DIB13), `MUX(DIB12), `MUX(DIB11), `MUX(DIB10), `MUX(DIB9), `MUX(DIB8), `MUX(DIB7), `MUX(DIB6), `MUX(DIB5), `MUX(DIB4), `MUX(DIB3), `MUX(DIB2), `MUX(DIB1), `MUX(DIB0)};
  wire [13:0] ada = {`MUX(ADA13), `MUX(ADA12), `MUX(ADA11), `MUX(ADA10), `MUX(ADA9), `MUX(ADA8), `MUX(ADA7), `MUX(ADA6), `MUX(ADA5), `MUX(ADA4), `MUX(ADA3), `MUX(ADA2), `MUX(ADA1), `MUX(ADA0)};
  wire [13:0] adb = {`MUX(ADB13), `MUX(ADB12), `MUX(ADB11), `MUX(ADB10), `MUX(ADB9), `MUX(ADB8), `MUX(ADB7), `MUX(ADB6), `MUX(ADB5), `MUX(ADB4), `MUX(ADB3), `MUX(ADB2), `MUX(ADB1), `MUX(ADB0)};
  wire cea = `MUX(CEA);
  wire ceb = `MUX(CEB);
  wire ocea = `MUX(OCEA);
  wire oceb = `MUX(OCEB);
  wire wea = `MUX(WEA);
  wire web = `MUX(WEB);
  wire rsta = `MUX(RSTA);
  wire rstb = `MUX(RSTB);
  wire csa0 = `MUX(CSA0);
  wire csa1 = `MUX(CSA1);
  wire csa2 = `MUX(CSA2);
  wire csb0 = `MUX(CSB0);
  wire csb1 = `MUX(CSB1);
  wire csb2 = `MUX(CSB2);
  wire select_a = {csa2, csa1, csa0} == 3'd0;
  wire select_b = {csb2, csb1, csb0} == 3'd0;

  reg [8:0] memory [0:2047];
  integer k;
  initial for (k = 0; k < 2048; k = k + 1) memory[k] = 9'd0;
  reg [35:0] read_a, read_b;
  generate
    if (REGMODE_A != "NOREG" || REGMODE_B != "NOREG" || CSDECODE_A != "0b000" ||
        CSDECODE_B != "0b000" || CLKAMUX != "CLKA" || CLKBMUX != "CLKB") begin : g_unknown
      a_mode_that_is_not_modelled u_mode ();
    end
    if (DATA_WIDTH_A == 36 && DATA_WIDTH_B == 36) begin : g_36
      wire [35:0] data = {dib, dia};
      genvar l;
      for (l = 0; l < 4; l = l + 1) begin : g_byte
        reg [8:0] lane [0:511];
        always @(posedge CLKA) if (cea & wea & select_a & ada[l]) lane[ada[13:5]] <= data[l*9+:9];
        always @(posedge CLKB) if (ceb & select_b) read_b[l*9+:9] <= lane[adb[13:5]];
      end
      assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0} = read_b[17:0];
      assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0} = read_b[35:18];
    end else if (DATA_WIDTH_A <= 18 && DATA_WIDTH_B <= 18) begin : g_narrow
      // Port B of the designs reads only.
      wire [10:0] to = ada[13:3], from = adb[13:3];
      if (DATA_WIDTH_A == 18) begin : g_a18
        always @(posedge CLKA) begin
          if (cea & wea & select_a) begin
            if (ada[0]) memory[{to[10:1], 1'b0}] <= dia[8:0];
            if (ada[1]) memory[{to[10:1], 1'b1}] <= dia[17:9];
          end
        end
      end else if (DATA_WIDTH_A == 9) begin : g_a9
        always @(posedge CLKA) if (cea & wea & select_a) memory[to] <= dia[8:0];
      end else if (DATA_WIDTH_A == 4) begin : g_a4
        always @(posedge CLKA) if (cea & wea & select_a) memory[to][{ada[2], 2'd0}+:4] <= dia[3:0];
      end else if (DATA_WIDTH_A == 2) begin : g_a2
        always @(posedge CLKA) if (cea & wea & select_a) memory[to][{1'b0, ada[2:1], 1'b0}+:2] <= dia[1:0];
      end else begin : g_a1
        always @(posedge CLKA) if (cea & wea & select_a) memory[to][ada[2:0]] <= dia[0];
      end
      wire [8:0] word = memory[from];
      always @(posedge CLKB) begin
        if (ceb & select_b & ~web) begin
          case (DATA_WIDTH_B)
            18: read_b <= {18'd0, memory[{from[10:1], 1'b1}], memory[{from[10:1], 1'b0}]};
            9: read_b <= {27'd0, word};
            4: read_b <= {32'd0, word[{adb[2], 2'd0}+:4]};
            2: read_b <= {34'd0, word[{1'b0, adb[2:1], 1'b0}+:2]};
            default: read_b <= {35'd0, word[{1'b0, adb[2:0]}]};
          endcase
        end
      end
      assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0} = read_b[17:0];
      assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0} = 18'd0;
    end else begin : g_mixed
      a_mode_that_is_not_modelled u_mode ();
    end
  endgenerate
endmodule
