// A loop nest and the indices that its steps advance: index i is base + sum over the levels of iteration * stride. The
// extents, bases and strides of a nest are taken with `load_i` and held until the next one; with IN_ORDER the command
// that they come from stays at the inputs.
module indexed_nest #(
  parameter int Indices   = 3,
  parameter int Outermost = 0   // the levels outside it have an extent of 1
) (
  input  logic                                        clk_i,
  input  logic                                        rst_ni,
  input  logic                                        load_i,     // see loop_nest
  input  logic [74:0]                                 extent_i,   // level k at [15k +: 15]
  input  logic [Indices*14-1:0]                       base_i,     // index i at [14i +: 14]
  input  logic [Indices*70-1:0]                       stride_i,   // index i at [70i +: 70], its level k at [14k +: 14]
  input  logic                                        hold_i,     // index 0 stays when level 3 advances
  input  logic                                        advance_i,
  output logic                                        valid_o,    // an iteration is present
  output logic                                        empty_o,
  output logic                                        last_o,
  output logic [4:0]                                  level_o,    // one hot: the level that the next advance increments
  output logic                                        free_o,     // no iteration is present after this cycle, unless load_i
  output logic [3:0]                                  ends_o,     // all levels inside level k are at their last iteration
  output logic [Indices*compute_pkg::INDEX_WIDTH-1:0] index_o
);

  logic [Indices*70-1:0] stride, stride_q;
  logic [3:0]            ends;
  logic                  free;
  assign free_o = free;
  assign ends_o = ends;

  always_ff @(posedge clk_i) begin
    if (free) stride_q <= stride_i;
  end
  always_comb begin
    stride = tenon_pkg::IN_ORDER != 0 ? stride_i : stride_q;
    if (hold_i) stride[55:42] = 14'd0;
  end

  loop_nest #(
    .Outermost(Outermost)
  ) u_nest (
    .clk_i,
    .rst_ni,
    .load_i,
    .extent_i,
    .advance_i,
    .valid_o,
    .empty_o,
    .last_o,
    .level_o,
    .ends_o (ends),
    .free_o (free)
  );

  for (genvar i = 0; i < Indices; i++) begin : g_index
    loop_index #(
      .Width(compute_pkg::INDEX_WIDTH),
      .Bits (tenon_pkg::LOOP_BITS)
    ) u_index (
      .clk_i,
      .free_i  (free),
      .base_i  (base_i[i*14+:14]),
      .advance_i,
      .level_i (level_o),
      .ends_i  (ends),
      .stride_i(stride[i*70+:70]),
      .index_o (index_o[i*compute_pkg::INDEX_WIDTH+:compute_pkg::INDEX_WIDTH])
    );
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & advance_i) begin
      AnIterationThatAdvancesIsPresent: assert (valid_o);
      TheLastIterationAndNoOtherIncrementsNoLevel: assert (last_o == (level_o == 5'd0));
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
