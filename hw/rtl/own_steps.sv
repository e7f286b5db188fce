// The steps of a command with own lanes (`own` in mac), beside stages a to c of GEMM.
//
// Columns of a window enter one after the other: of the first vector of a row all, then, if the window moves by one
// column or two, only those that it has not yet; else all again. The last one completes a window, whose products are
// made. A column takes a step for each time that the banks of inp must be read (`reads`), of which the last one enters
// it, and where two lanes share their inputs (PACKED_PRODUCTS) one more for the odd lanes.
module own_steps (
  input  logic                                clk_i,
  input  logic                                load_i,     // a command enters
  // verilator lint_off UNUSEDSIGNAL
  input  compute_pkg::gemm_cmd_t              cmd_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic                                en_i,       // the stages advance
  // Stage a.
  input  logic [4:0]                          a_step_i,   // one hot: the level that advances
  output compute_pkg::own_step_t              a_own_o,
  output logic                                a_hold_o,   // dst does not advance with the column
  // Stage b.
  input  logic [compute_pkg::INDEX_WIDTH-1:0] b_src_i,
  // Stage c.
  output logic [2*compute_pkg::INDEX_WIDTH-1:0] c_rows_o  // src of the second and the third row
);

  localparam int IndexWidth   = compute_pkg::INDEX_WIDTH;
  localparam int ColumnsWidth = compute_pkg::OWN_COLUMNS_WIDTH;

  // The command in stage a, and the position in it.
  logic                          own_q, overlaps_q, steps_of_two_q;
  logic [1:0]                    reads_q, step_q, rows_q, held_q;
  logic [ColumnsWidth-1:0]       columns_q;
  logic [ColumnsWidth-1:0]       missing_q;  // columns that the window lacks after this one
  logic [13:0]                   a_pitch_q, b_pitch_q;

  logic complete;
  assign complete = missing_q == '0;

  always_ff @(posedge clk_i) begin
    if (load_i) begin
      own_q           <= cmd_i.own;
      overlaps_q      <= cmd_i.own_overlaps;
      steps_of_two_q  <= cmd_i.own_by_two;
      rows_q          <= cmd_i.r1[1:0];
      columns_q       <= cmd_i.r2[ColumnsWidth-1:0];
      held_q          <= cmd_i.own_reads == 2'd1 ? 2'b00 : cmd_i.r1[1:0] == 2'd3 ? 2'b11 : 2'b01;
      reads_q         <= cmd_i.own_reads;
      a_pitch_q       <= cmd_i.src_r1;
      step_q          <= 2'd0;
      missing_q       <= cmd_i.r2[ColumnsWidth-1:0] - 1'b1;
    end else if (a_step_i[4]) begin
      step_q <= step_q + 2'd1;
    end else if (|a_step_i[3:0]) begin
      step_q <= 2'd0;
      if (~complete) missing_q <= missing_q - 1'b1;
      else if (overlaps_q & a_step_i[3]) missing_q <= ColumnsWidth'(steps_of_two_q);
      else missing_q <= columns_q - 1'b1;
    end
    if (en_i) b_pitch_q <= a_pitch_q;
    if (en_i) begin
      c_rows_o <= {b_src_i + {1'b0, b_pitch_q, 1'b0}, b_src_i + IndexWidth'(b_pitch_q)};
    end
  end

  // The rows that a step reads: two reads have the first two of three rows, or one of two, in the first one.
  logic [2:0] all_rows, read;
  assign all_rows = {rows_q == 2'd3, rows_q[1], 1'b1};
  always_comb begin
    unique case (reads_q)
      2'd1:    read = step_q == 2'd0 ? all_rows : 3'b000;
      2'd2:    read = step_q == 2'd0 ? (rows_q == 2'd3 ? 3'b011 : 3'b001) :
                      step_q == 2'd1 ? (rows_q == 2'd3 ? 3'b100 : 3'b010) : 3'b000;
      default: read = step_q == 2'd3 ? 3'b000 : 3'b001 << step_q;
    endcase
  end

  always_comb begin
    a_own_o.own     = own_q;
    a_own_o.rows    = rows_q;
    a_own_o.columns = columns_q;
    a_own_o.held    = held_q;
    a_own_o.read    = own_q ? read : 3'b001;
    a_own_o.enters  = step_q + 2'd1 >= reads_q | step_q == 2'd3;
    a_own_o.odd     = step_q == reads_q;
    a_own_o.product = ~own_q | (complete & a_own_o.enters);
  end
  assign a_hold_o = own_q & ~complete;

endmodule
