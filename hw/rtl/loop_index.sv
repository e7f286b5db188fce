// An index that a loop nest advances: base + sum over the levels of iteration * stride, by one addition a step.
// `at_k` is the index at level k's current iteration with all inner levels at 0; the level that advances adds its
// stride, and the levels inside it start from the sum. The sum is computed without regard to `advance_i`, which comes
// late and enables registers alone. An advance from the last iteration leaves no index.
//
// Two bits more than those of a base, a stride and a micro-op are enough: an index is one that was inside its scratchpad
// plus one stride and one micro-op. Indices after the first one outside may wrap, but are never used. `Bits` of the
// output's `Width` are counted.
module loop_index #(
  parameter int Width = 16,
  parameter int Bits  = Width
) (
  input  logic             clk_i,
  input  logic             free_i,    // from loop_nest: takes the base
  // verilator lint_off UNUSEDSIGNAL
  input  logic [13:0]      base_i,    // in Bits, as the strides
  // verilator lint_on UNUSEDSIGNAL
  input  logic             advance_i,
  input  logic [4:0]       level_i,   // one hot, from loop_nest: which level an advance increments, with or without one
  input  logic [3:0]       ends_i,    // all levels inside level k are at their last iteration
  input  logic [69:0]      stride_i,  // level k at [14k +: 14]
  output logic [Width-1:0] index_o
);

  logic [Bits-1:0] at0_q, at1_q, at2_q, at3_q, at4_q;
  logic [Bits-1:0] next;

  localparam logic Parallel = tenon_pkg::IN_ORDER == 0;
  if (Parallel) begin : g_sums
    // The sums of all levels are computed beside each other, while the level is selected.
    logic [Bits-1:0] sum0, sum1, sum2, sum3, sum4;
    assign sum0 = at0_q + Bits'(stride_i[13:0]);
    assign sum1 = at1_q + Bits'(stride_i[27:14]);
    assign sum2 = at2_q + Bits'(stride_i[41:28]);
    assign sum3 = at3_q + Bits'(stride_i[55:42]);
    assign sum4 = at4_q + Bits'(stride_i[69:56]);
    always_comb begin
      if (free_i) next = Bits'(base_i);
      else if (level_i[0]) next = sum0;
      else if (level_i[1]) next = sum1;
      else if (level_i[2]) next = sum2;
      else if (level_i[3]) next = sum3;
      else next = sum4;
    end
  end else begin : g_sum
    logic [Bits-1:0] from;
    // verilator lint_off UNUSEDSIGNAL
    logic [13:0]     stride;
    // verilator lint_on UNUSEDSIGNAL
    always_comb begin
      from   = 'x;
      stride = 'x;
      next   = 'x;
      if (free_i) begin
        next = Bits'(base_i);
      end else if (|level_i) begin
        from   = at4_q;
        stride = stride_i[69:56];
        if (level_i[3]) begin
          from   = at3_q;
          stride = stride_i[55:42];
        end
        if (level_i[2]) begin
          from   = at2_q;
          stride = stride_i[41:28];
        end
        if (level_i[1]) begin
          from   = at1_q;
          stride = stride_i[27:14];
        end
        if (level_i[0]) begin
          from   = at0_q;
          stride = stride_i[13:0];
        end
        next = from + Bits'(stride);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (free_i | advance_i) at4_q <= next;
    if (free_i | (advance_i & ends_i[3])) at3_q <= next;
    if (free_i | (advance_i & ends_i[2])) at2_q <= next;
    if (free_i | (advance_i & ends_i[1])) at1_q <= next;
    if (free_i | (advance_i & ends_i[0])) at0_q <= next;
  end

  assign index_o = Width'(at4_q);

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (advance_i) begin
      OneLevelAdvancesAtATime: assert ((level_i & (level_i - 5'd1)) == 5'd0);
    end
  end
  initial begin
    CountedBitsFitTheIndex: assert (Bits <= Width);
  end
`endif

endmodule
