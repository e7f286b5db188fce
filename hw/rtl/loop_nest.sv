// Five nested loops, level 0 outermost, one iteration for each `advance_i`. A loop nest without iterations (an extent
// of 0) is one iteration with `empty_o` set, so that every command has a last item that carries its completion.
// Extents are taken whenever the nest is free, which is known earlier than whether a command enters.
module loop_nest #(
  parameter int Outermost = 0  // the levels outside it have an extent of 1
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        load_i,    // takes the extents; allowed when idle and together with the last advance
  input  logic [74:0] extent_i,  // level k at [15k +: 15]; with IN_ORDER it stays
  input  logic        advance_i,
  output logic        valid_o,   // an iteration is present
  output logic        empty_o,
  output logic        last_o,
  output logic [4:0]  level_o,   // one hot: the level that the next advance increments; 0 at the last iteration
  output logic [3:0]  ends_o,    // all levels inside level k are at their last iteration
  output logic        free_o     // no iteration is present after this cycle, unless load_i
);

  logic        valid_q, empty_q;
  // Iterations after the next one: -1 in the last one, whose sign the levels follow from.
  logic [15:0] first0, first1, first2, first3, first4;       // extent - 2
  logic [79:0] reload, reload_q;                             // the same until the next load
  logic [15:0] left0_q, left1_q, left2_q, left3_q, left4_q;
  logic        end0, end1, end2, end3, end4;
  logic [3:0]  ends;  // of all levels inside level k

  // The base profile has three loops.
  assign end0 = tenon_pkg::HAS_NATIVE == 0 | Outermost > 0 | left0_q[15];
  assign end1 = tenon_pkg::HAS_NATIVE == 0 | Outermost > 1 | left1_q[15];
  assign end2 = Outermost > 2 | left2_q[15];
  assign free_o = ~valid_q | (advance_i & last_o);
  assign end3 = left3_q[15];
  assign end4 = left4_q[15];
  assign ends_o = ends;
  assign ends = {end4, end4 & end3, end4 & end3 & end2, end4 & end3 & end2 & end1};

  assign first0 = {1'b0, extent_i[14:0]} - 16'd2;
  assign first1 = {1'b0, extent_i[29:15]} - 16'd2;
  assign first2 = {1'b0, extent_i[44:30]} - 16'd2;
  assign first3 = {1'b0, extent_i[59:45]} - 16'd2;
  assign first4 = {1'b0, extent_i[74:60]} - 16'd2;
  assign reload = tenon_pkg::IN_ORDER != 0 ? {first4, first3, first2, first1, first0} : reload_q;

  assign valid_o = valid_q;
  assign empty_o = empty_q;
  assign last_o  = empty_q | (end0 & end1 & end2 & end3 & end4);
  always_comb begin
    level_o = 5'd0;
    if (~empty_q) begin
      if (~end4) level_o[4] = 1'b1;
      else if (~end3) level_o[3] = 1'b1;
      else if (~end2) level_o[2] = 1'b1;
      else if (~end1) level_o[1] = 1'b1;
      else if (~end0) level_o[0] = 1'b1;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (load_i) valid_q <= 1'b1;
    else if (free_o) valid_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (free_o) begin
      reload_q <= {first4, first3, first2, first1, first0};
      empty_q  <= extent_i[14:0] == 15'd0 | extent_i[29:15] == 15'd0 | extent_i[44:30] == 15'd0 |
                  extent_i[59:45] == 15'd0 | extent_i[74:60] == 15'd0;
      left0_q <= first0;
      left1_q <= first1;
      left2_q <= first2;
      left3_q <= first3;
      left4_q <= first4;
    end else if (advance_i) begin
      left4_q <= end4 ? reload[64+:16] : left4_q - 16'd1;
      if (ends[3]) left3_q <= end3 ? reload[48+:16] : left3_q - 16'd1;
      if (ends[2]) left2_q <= end2 ? reload[32+:16] : left2_q - 16'd1;
      if (ends[1]) left1_q <= end1 ? reload[16+:16] : left1_q - 16'd1;
      if (ends[0]) left0_q <= end0 ? reload[0+:16] : left0_q - 16'd1;
    end
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & advance_i) begin
      AnAdvanceNeedsAnIteration: assert (valid_q);
      OneLevelAdvancesAtATime: assert ((level_o & (level_o - 5'd1)) == 5'd0);
    end
    if (rst_ni & load_i) begin
      ALoadNeverCutsANestShort: assert (!valid_q | (advance_i & last_o));
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
