// Stages a to c of GEMM and ALU: a command becomes a stream of steps, one a cycle, each with its indices.
//
//   a  loop nest and indices; the micro-op is read (base profile)
//   b  the micro-op is at the scratchpad's output; its fields are added to the indices
//   c  the sums: the engine checks their ranges and reads
// A step outside its scratchpad ends the command: the engine reports it with `c_bad_i`, and younger steps are dropped.
module index_stages #(
  parameter int Indices  = 3,  // dst, src and, with 3, wgt
  parameter int TagWidth = 1
) (
  input  logic                                        clk_i,
  input  logic                                        rst_ni,
  input  logic                                        en_i,         // the stages advance
  input  logic                                        load_i,       // a command enters
  input  logic                                        fail_i,       // from the engine's command_port
  // The command, with load_i.
  input  logic [74:0]                                 extent_i,
  input  logic [Indices*14-1:0]                       base_i,
  input  logic [Indices*70-1:0]                       stride_i,
  input  logic                                        uop_i,        // the fields of micro-ops are added
  input  logic [13:0]                                 uop_begin_i,  // first micro-op; level 4 counts them
  output logic                                        uop_re_o,
  output logic [tenon_pkg::UOP_AW-1:0]                uop_addr_o,
  input  logic [31:0]                                 uop_data_i,
  // Stage a.
  output logic                                        a_valid_o,
  output logic                                        a_last_o,
  output logic [4:0]                                  a_step_o,     // one hot: the level that advances
  input  logic [TagWidth-1:0]                         a_tag_i,      // travels with the step
  input  logic                                        a_hold_i,     // dst stays when level 3 advances
  // Stage b.
  output logic [compute_pkg::INDEX_WIDTH-1:0]         b_src_o,      // of a step without a micro-op
  // Stage c.
  output logic                                        c_work_o,
  output logic                                        c_last_o,     // the last step, also of a command without work
  output logic                                        c_uop_bad_o,  // the micro-op is outside its scratchpad
  output logic [TagWidth-1:0]                         c_tag_o,
  output logic [Indices*compute_pkg::INDEX_WIDTH-1:0] c_index_o,
  input  logic                                        c_bad_i
);

  localparam int IndexWidth = compute_pkg::INDEX_WIDTH;

  // a.
  logic                          a_empty, a_work, a_advance, uop_q;
  logic [4:0]                    a_level;
  logic [3:0]                    a_ends;
  logic                          a_free;
  logic [Indices*IndexWidth-1:0] a_index;
  logic [14:0]                   a_uop;

  indexed_nest #(
    .Indices(Indices)
  ) u_nest (
    .clk_i,
    .rst_ni,
    .load_i,
    .extent_i,
    .base_i,
    .stride_i,
    .hold_i   (a_hold_i),
    .advance_i(a_advance),
    .valid_o  (a_valid_o),
    .empty_o  (a_empty),
    .last_o   (a_last_o),
    .level_o  (a_level),
    .ends_o   (a_ends),
    .free_o   (a_free),
    .index_o  (a_index)
  );
  loop_index #(
    .Width(15),
    .Bits (tenon_pkg::UOP_INDEX_BITS)
  ) u_uop (
    .clk_i,
    .free_i   (a_free),
    .base_i   (uop_begin_i),
    .advance_i(a_advance),
    .level_i  (a_level),
    .ends_i   (a_ends),
    .stride_i ({14'd1, 56'd0}),
    .index_o  (a_uop)
  );

  always_ff @(posedge clk_i) begin
    if (load_i) uop_q <= uop_i;
  end

  assign a_advance  = a_valid_o & en_i;
  assign a_step_o   = {5{a_advance}} & a_level;
  assign a_work     = a_valid_o & ~a_empty & ~fail_i;
  assign uop_re_o   = en_i & a_work & uop_q;
  assign uop_addr_o = a_uop[tenon_pkg::UOP_AW-1:0];

  // b.
  logic                          b_work_q, b_last_q, b_uop_q, b_bad_q;
  logic [TagWidth-1:0]           b_tag_q;
  logic [Indices*IndexWidth-1:0] b_index_q;
  logic [3*IndexWidth-1:0]       b_field;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {b_work_q, b_last_q} <= 2'b00;
    else if (en_i) {b_work_q, b_last_q} <= {a_work, a_valid_o & a_last_o & ~fail_i};
  end
  always_ff @(posedge clk_i) begin
    if (en_i & a_work) begin
      b_uop_q   <= uop_q;
      b_bad_q   <= uop_q & (a_uop >= 15'(tenon_pkg::UOP_DEPTH));
      b_tag_q   <= a_tag_i;
      b_index_q <= a_index;
    end
  end

  // The fields of a micro-op fit its 32 bits only in configurations with the base profile.
  if (tenon_pkg::HAS_BASE != 0) begin : g_uop
    always_comb begin
      b_field = '0;
      if (b_uop_q) begin
        b_field[0+:tenon_pkg::UOP_DST_W]            = uop_data_i[tenon_pkg::UOP_DST_LSB+:tenon_pkg::UOP_DST_W];
        b_field[IndexWidth+:tenon_pkg::UOP_SRC_W]   = uop_data_i[tenon_pkg::UOP_SRC_LSB+:tenon_pkg::UOP_SRC_W];
        b_field[2*IndexWidth+:tenon_pkg::UOP_WGT_W] = uop_data_i[tenon_pkg::UOP_WGT_LSB+:tenon_pkg::UOP_WGT_W];
      end
    end
  end else begin : g_no_uop
    assign b_field = '0;
  end
  logic unused_uop;
  assign unused_uop = ^{uop_data_i, b_field, b_uop_q};

  assign b_src_o = b_index_q[IndexWidth+:IndexWidth];

  // c.
  logic                          c_work_q, c_last_q, c_bad_q;
  logic [TagWidth-1:0]           c_tag_q;
  logic [Indices*IndexWidth-1:0] c_index_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {c_work_q, c_last_q} <= 2'b00;
    else if (en_i) {c_work_q, c_last_q} <= {2{~fail_i & ~c_bad_i}} & {b_work_q, b_last_q};
  end
  always_ff @(posedge clk_i) begin
    if (en_i & b_work_q) begin
      c_bad_q <= b_bad_q;
      c_tag_q <= b_tag_q;
      for (int i = 0; i < Indices; i++) begin
        c_index_q[i*IndexWidth+:IndexWidth] <= b_index_q[i*IndexWidth+:IndexWidth] + b_field[i*IndexWidth+:IndexWidth];
      end
    end
  end

  assign c_work_o    = c_work_q;
  assign c_last_o    = c_last_q;
  assign c_uop_bad_o = c_bad_q;
  assign c_tag_o     = c_tag_q;
  assign c_index_o   = c_index_q;

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & load_i) begin
      ACommandEntersAnEmptyStageOrFollowsTheLastStep: assert (!a_valid_o | (en_i & a_last_o));
    end
    if (rst_ni & c_bad_i) begin
      OnlyAStepWithWorkIsInError: assert (c_work_q);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
