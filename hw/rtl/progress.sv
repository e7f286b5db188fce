// The progress of a launch, for the diagnosis of one that does not end: each engine's instruction, the decoder's
// position in the stream, and the outstanding bursts. All read 0 when the launch is over.
module progress (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  logic                     clear_i,
  input  tenon_pkg::engines_t      empty_i,       // engine i has no instruction
  input  tenon_pkg::engines_t      busy_i,        // engine i has one in flight
  input  tenon_pkg::engine_slots_t index_i,       // of the oldest in flight, else of the head; engine i at 32 i
  input  logic [31:0]              decoded_i,     // slots
  input  logic                     read_burst_i,  // an address is taken
  input  logic                     read_last_i,   // the last beat of one comes
  input  logic                     write_burst_i,
  input  logic                     write_answer_i,
  input  logic                     read_i,
  input  logic [3:0]               word_i,        // counted from REG_HEAD0
  output logic [31:0]              word_o         // in the next cycle
);

  logic [15:0] reads_q, writes_q;
  tenon_pkg::engines_t present;
  assign present = ~empty_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reads_q  <= '0;
      writes_q <= '0;
    end else if (clear_i) begin
      reads_q  <= '0;
      writes_q <= '0;
    end else begin
      if (read_burst_i != read_last_i) reads_q <= read_burst_i ? reads_q + 16'd1 : reads_q - 16'd1;
      if (write_burst_i != write_answer_i) writes_q <= write_burst_i ? writes_q + 16'd1 : writes_q - 16'd1;
    end
  end

  localparam logic [3:0] Activity    = 4'((tenon_pkg::REG_ACTIVITY - tenon_pkg::REG_HEAD0) >> 2);
  localparam logic [3:0] Decoded     = 4'((tenon_pkg::REG_DECODED - tenon_pkg::REG_HEAD0) >> 2);
  localparam logic [3:0] Outstanding = 4'((tenon_pkg::REG_OUTSTANDING - tenon_pkg::REG_HEAD0) >> 2);

  // A word is selected in two steps: in three groups, and then of these.
  logic [31:0] first, second, third, first_q, second_q, third_q;
  logic        is_first_q, is_second_q;
  always_comb begin
    first  = 'x;
    second = 'x;
    third  = 'x;
    if (read_i) begin
      first  = 32'd0;
      second = 32'd0;
      third  = 32'd0;
      for (int e = 0; e < 4; e++) begin
        if (word_i == 4'(e) & present[e]) first = index_i[e*32+:32];
      end
      for (int e = 4; e < tenon_pkg::NUM_ENGINES; e++) begin
        if (word_i == 4'(e) & present[e]) second = index_i[e*32+:32];
      end
      if (word_i == Activity) third = {16'd0, 8'(busy_i), 8'(present)};
      if (word_i == Decoded) third = decoded_i;
      if (word_i == Outstanding) third = {writes_q, reads_q};
    end
  end
  always_ff @(posedge clk_i) begin
    if (read_i) begin
      {first_q, second_q, third_q} <= {first, second, third};
      {is_first_q, is_second_q}    <= {word_i < 4'd4, word_i >= 4'd4 & word_i < 4'(tenon_pkg::NUM_ENGINES)};
    end
  end
  assign word_o = is_first_q ? first_q : is_second_q ? second_q : third_q;

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & clear_i) begin
      NoBurstIsOutstandingWhenALaunchIsOver: assert (reads_q == 16'd0 & writes_q == 16'd0);
    end
    if (rst_ni & read_last_i) begin
      ALastBeatEndsABurstOfThisLaunch: assert (reads_q != 16'd0);
    end
    if (rst_ni & write_answer_i) begin
      AnAnswerEndsABurstOfThisLaunch: assert (writes_q != 16'd0);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
