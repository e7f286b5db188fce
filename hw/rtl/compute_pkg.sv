// Commands of the compute engines, as decode issues them: one struct an engine, for both profiles; RQ's has the fields of
// its instruction and is generated, as tenon_pkg::rq_cmd_t.
//
// Widths are those of the widest configuration (depths up to 2^14); an index is checked against its scratchpad's depth
// when it is used. `index` is the instruction's slot, for errors and traces.
// verilator lint_off UNUSEDPARAM
package compute_pkg;  // a test of another part uses no constants of this one

  localparam int INDEX_WIDTH = 16;  // of every index that a loop nest advances; see loop_index

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
