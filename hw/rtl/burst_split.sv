// Cuts a run of bytes into AXI INCR bursts: none crosses 4 KiB, none has more than MaxBurst beats. Addresses are
// aligned down to a beat. One burst a cycle; a run follows the previous one without a gap.
module burst_split #(
  parameter int BeatBytes = 8,
  parameter int MaxBurst  = 64,
  parameter int LenWidth  = 32
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                clear_i,
  input  logic                run_valid_i,
  output logic                run_ready_o,
  input  logic [tenon_pkg::ADDR_BITS-1:0] run_addr_i,
  input  logic [LenWidth-1:0] run_bytes_i,  // at least 1
  output logic                burst_valid_o,
  input  logic                burst_ready_i,
  output logic [tenon_pkg::ADDR_BITS-1:0] burst_addr_o,
  output logic [8:0]          burst_beats_o
);

  localparam int BeatShift = $clog2(BeatBytes);
  localparam int PageBits  = 12 - BeatShift;  // beats of a page
  localparam int BeatWidth = LenWidth + 1;
  localparam logic [BeatWidth-1:0] BeatMinus1 = BeatWidth'(BeatBytes) - 1'b1;

  logic                  valid_q;
  logic [tenon_pkg::ADDR_BITS-1:BeatShift] addr_q;
  logic [BeatWidth-1:0]  beats_q;
  logic [BeatWidth-1:0]  run_beats;
  logic [PageBits:0]     to_page;
  logic [8:0]            limit, beats;
  logic                  last, fire;

  // Beats of the run: offset in the first beat + bytes, rounded up.
  assign run_beats = (BeatWidth'(run_addr_i[BeatShift-1:0]) + BeatWidth'(run_bytes_i) + BeatMinus1) >>
                     BeatShift;

  assign to_page = {1'b1, {PageBits{1'b0}}} - {1'b0, addr_q[11:BeatShift]};
  assign limit   = MaxBurst > 1 & 32'(to_page) < MaxBurst ? 9'(to_page) : 9'(MaxBurst);
  assign last    = beats_q <= BeatWidth'(limit);
  assign beats   = MaxBurst > 1 & last ? beats_q[8:0] : limit;
  assign fire    = valid_q & burst_ready_i;

  assign burst_valid_o = valid_q;
  assign burst_addr_o  = {addr_q, {BeatShift{1'b0}}};
  assign burst_beats_o = beats;
  assign run_ready_o   = ~valid_q | (fire & last);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (clear_i) valid_q <= 1'b0;
    else if (run_ready_o) valid_q <= run_valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (run_ready_o) begin
      if (run_valid_i) begin
        addr_q  <= run_addr_i[tenon_pkg::ADDR_BITS-1:BeatShift];
        beats_q <= run_beats;
      end
    end else if (fire) begin
      addr_q  <= addr_q + (tenon_pkg::ADDR_BITS - BeatShift)'(beats);
      beats_q <= beats_q - BeatWidth'(beats);
    end
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & run_valid_i & run_ready_o) begin
      ARunHasBytes: assert (run_bytes_i != '0);
    end
    if (rst_ni & fire) begin
      ABurstHasABeat: assert (beats != 9'd0);
      ABurstIsNotLongerThanAllowed: assert (32'(beats) <= MaxBurst);
      ABurstStaysInsideItsPage: assert (32'(addr_q[11:BeatShift]) + 32'(beats) <= 2**PageBits);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
