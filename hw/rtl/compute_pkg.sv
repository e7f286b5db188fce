// Commands of the compute engines, as decode issues them: one struct an engine, for both profiles; RQ's has the fields of
// its instruction and is generated, as tenon_pkg::rq_cmd_t.
//
// Widths are those of the widest configuration (depths up to 2^14); an index is checked against its scratchpad's depth
// when it is used. `index` is the instruction's slot, for errors and traces.
// verilator lint_off UNUSEDPARAM
package compute_pkg;  // a test of another part uses no constants of this one

  localparam int INDEX_WIDTH = 16;  // of every index that a loop nest advances; see loop_index
  localparam int OWN_COLUMNS_WIDTH = 5;  // of the columns of a window, at most (64 - 1) / 3 + 1

  // A step of GEMM with own lanes; see own_steps. A step of another command reads row 0, and makes products.
  typedef struct packed {
    logic       own;
    logic [2:0] read;     // rows of the window whose vectors are read
    logic       enters;   // a column enters the window
    logic       odd;      // of the odd lanes of pairs that share their inputs, else of the even ones
    logic       product;
    logic [1:0] rows;     // of the window
    logic [OWN_COLUMNS_WIDTH-1:0] columns;
    logic [1:0] held;     // rows 0 and 1 come from an earlier step of the column
  } own_step_t;

  // What travels with a step of GEMM through the stages that it shares with ALU.
  typedef struct packed {
    own_step_t own;
    logic      reset;
    logic      zero;      // acc reads as 0
  } step_tag_t;

  // Micro-ops [first, last) of a command of the base profile.
  function automatic logic [14:0] uop_count(logic [13:0] first, logic [14:0] last);
    uop_count = last > {1'b0, first} ? last - {1'b0, first} : 15'd0;
  endfunction

  // The loops of the base profile are y, x and the micro-ops, on levels 2 to 4 of a loop nest.
  function automatic logic [74:0] base_extent(logic [13:0] y, logic [13:0] x, logic [14:0] uops);
    base_extent = {uops, {1'b0, x}, {1'b0, y}, 15'd1, 15'd1};
  endfunction

  function automatic logic [69:0] base_stride(logic [13:0] y, logic [13:0] x);
    base_stride = {14'd0, x, y, 28'd0};
  endfunction

  // A command's loops, for the stages that GEMM and ALU share; see index_stages. Indices: dst, src, wgt.
  typedef struct packed {
    logic [74:0]  extent;
    logic [41:0]  base;
    logic [209:0] stride;
    logic         uop;        // the indices are added to the fields of micro-ops
    logic [13:0]  uop_begin;
  } loops_t;

  // GEMM. In the base profile (`is_base`) the loops are y (iter_out), x (iter_in) and the micro-ops [uop_begin,
  // uop_end), and dst, src, wgt come from the micro-op; in the native profile they are r0, r1, r2, y, x and the bases.
  typedef struct packed {
    logic [31:0] index;
    logic        is_base;
    logic        reset;      // base: acc[dst] = 0
    logic        first;      // native: acc reads as 0 while r0 = r1 = r2 = 0
    // Own lanes: r1 and r2 are the rows and columns of a window, and src_r1 is the distance of its rows.
    logic        own;
    logic        own_overlaps;  // the window moves on by one column or two, of which it has others
    logic        own_by_two;
    logic [1:0]  own_reads;  // of a column: the times that a bank of inp is read
    logic [2:0]  own_steps;  // of a column
    logic [11:0] own_columns; // that enter for a row of outputs, with own_overlaps
    logic [9:0]  r0;
    logic [9:0]  r1;
    logic [9:0]  r2;
    logic [13:0] y;
    logic [13:0] x;
    logic [13:0] uop_begin;
    logic [14:0] uop_end;
    logic [13:0] dst_base;
    logic [13:0] src_base;
    logic [13:0] wgt_base;
    logic [13:0] dst_y;
    logic [13:0] dst_x;
    logic [13:0] src_r0;
    logic [13:0] src_r1;
    logic [13:0] src_r2;
    logic [13:0] src_y;
    logic [13:0] src_x;
    logic [13:0] wgt_r0;
    logic [13:0] wgt_r1;
    logic [13:0] wgt_r2;
    logic [13:0] wgt_y;      // base only
    logic [13:0] wgt_x;      // base only
  } gemm_cmd_t;

  // ALU, base profile only.
  typedef struct packed {
    logic [31:0] index;
    logic [2:0]  op;         // tenon_pkg::ALU_MIN ...
    logic        use_imm;
    logic [15:0] imm;        // signed
    logic [13:0] y;
    logic [13:0] x;
    logic [13:0] uop_begin;
    logic [14:0] uop_end;
    logic [13:0] dst_y;
    logic [13:0] dst_x;
    logic [13:0] src_y;
    logic [13:0] src_x;
  } alu_cmd_t;

endpackage
// verilator lint_on UNUSEDPARAM
