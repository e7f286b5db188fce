// Cuts a run of bytes into AXI INCR bursts: none crosses 4 KiB, none has more than MaxBurst beats. Addresses are
// aligned down to a beat. One burst a cycle; a run follows the previous one without a gap. With bursts of several beats
// two runs wait in a queue, with their beats counted, so that the source of runs does not wait for the bursts' receiver.
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
  output logic                busy_o,       // with a run
  output logic                burst_valid_o,
  input  logic                burst_ready_i,
  output logic [tenon_pkg::ADDR_BITS-1:0] burst_addr_o,
  output logic [8:0]          burst_beats_o
);

  localparam int BeatShift = $clog2(BeatBytes);
  localparam int PageBits  = 12 - BeatShift;  // beats of a page
  localparam int BeatWidth = LenWidth + 1;
  localparam logic [BeatWidth-1:0] BeatMinus1 = BeatWidth'(BeatBytes) - 1'b1;

  logic                  valid_q, last, fire, follows, next, run_valid;
  logic [tenon_pkg::ADDR_BITS-1:BeatShift] addr_q;
  logic [BeatWidth-1:0]  left_q;  // beats of the run from this burst on
  logic [BeatWidth-1:0]  whole, run_beats, left;
  logic [tenon_pkg::ADDR_BITS-1:BeatShift] run_addr;
  logic [8:0]            beats;

  // Beats of the run: offset in the first beat + bytes, rounded up.
  assign whole = (BeatWidth'(run_addr_i[BeatShift-1:0]) + BeatWidth'(run_bytes_i) + BeatMinus1) >>
                 BeatShift;

  assign fire    = valid_q & burst_ready_i;
  assign follows = valid_q & ~last;  // the next burst is of the same run
  assign left    = follows ? left_q - BeatWidth'(beats) : run_beats;

  assign burst_valid_o = valid_q;
  assign burst_addr_o  = {addr_q, {BeatShift{1'b0}}};
  assign burst_beats_o = beats;
  assign next          = ~valid_q | (fire & last);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (clear_i) valid_q <= 1'b0;
    else if (next) valid_q <= run_valid;
  end

  always_ff @(posedge clk_i) begin
    if (next ? run_valid : fire) begin
      addr_q <= follows ? addr_q + (tenon_pkg::ADDR_BITS - BeatShift)'(beats) :
                          run_addr;
      left_q <= left;
    end
  end

  if (MaxBurst == 1) begin : g_one
    assign beats       = 9'd1;
    assign last        = left_q <= BeatWidth'(1);
    assign run_valid   = run_valid_i;
    assign run_ready_o = next;
    assign run_addr    = run_addr_i[tenon_pkg::ADDR_BITS-1:BeatShift];
    assign run_beats   = whole;
    assign busy_o      = valid_q;
  end else begin : g_several
    // The length of a burst is computed before the burst is present, since ready, room and addresses follow from it.
    localparam int Longest = MaxBurst < 2**PageBits ? MaxBurst : 2**PageBits;
    logic [PageBits-1:0] page_q, page;  // beats to the end of the page; 0: all of it
    logic [8:0]          beats_q, limit;
    logic                last_q, is_last;

    logic [PageBits-1:0] run_page;
    assign busy_o = valid_q | run_valid;
    prim_fifo #(
      .Width       (BeatWidth + PageBits + tenon_pkg::ADDR_BITS - BeatShift),
      .Depth       (2),
      .HeadRegister(1'b1)
    ) u_runs (
      .clk_i,
      .rst_ni,
      .clear_i,
      .push_valid_i(run_valid_i),
      .push_ready_o(run_ready_o),
      .push_data_i ({whole, -run_addr_i[11:BeatShift], run_addr_i[tenon_pkg::ADDR_BITS-1:BeatShift]}),
      .pop_valid_o (run_valid),
      .pop_ready_i (next),
      .pop_data_o  ({run_beats, run_page, run_addr})
    );

    // The next burst of this run and the first one of the next are computed beside each other.
    function automatic logic [8:0] page_limit(logic [PageBits-1:0] beats_of_page);
      page_limit = beats_of_page == '0 | 32'(beats_of_page) >= Longest ? 9'(Longest) : 9'(beats_of_page);
    endfunction
    // Longest is a power of two, so that a burst that another one follows has Longest beats, or those of the page below it.
    localparam int LongBits = $clog2(Longest);
    logic [PageBits-1:0]  upper, low, run_low, after_page;
    logic [8:0]           after_limit, run_limit;
    logic                 after_is_last, run_is_last;
    assign upper         = page_q >> LongBits;
    assign low           = page_q & PageBits'(Longest - 1);
    assign after_page    = upper == '0 & low != '0 ? '0 : page_q - PageBits'(Longest);
    assign after_limit   = upper == PageBits'(1) & low != '0 ? 9'(low) : 9'(Longest);
    // The beats left are no more than the limits of this burst and the next one.
    assign after_is_last = low == '0 | upper > PageBits'(1) ? 34'(left_q) <= 34'(2 * Longest) :
                           34'(left_q) <= (34'(low) | 34'(Longest));
    assign run_low       = run_page & PageBits'(Longest - 1);
    assign run_limit     = page_limit(run_page);
    assign run_is_last   = run_low == run_page & run_low != '0 ? 34'(run_beats) <= 34'(run_low) :
                           34'(run_beats) <= 34'(Longest);
    assign page         = follows ? after_page : run_page;
    assign limit        = follows ? after_limit : run_limit;
    assign is_last      = follows ? after_is_last : run_is_last;

    always_ff @(posedge clk_i) begin
      if (next ? run_valid : fire) begin
        page_q  <= page;
        beats_q <= is_last ? left[8:0] : limit;
        last_q  <= is_last;
      end
    end
    assign beats = beats_q;
    assign last  = last_q;
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
