// Commands of the DMA engines, as decode issues them: one form for base LOAD and STORE and native MOVE.
//
// Vector (y, x), y < rows, x < vectors, is unit `unit` + y * vectors + x of scratchpad `mem`. Its byte j has
// k = x * x_step - left + j. It has an address in DRAM if y is one of the source_rows rows from row `top` on, and
// 0 <= k < row_bytes. Of each such row the DMA touches only the `len` bytes from k = max(0, -left) on; `addr` is the
// address of that byte in the first such row, and the next row's is y_step further.
// verilator lint_off UNUSEDPARAM
package dma_pkg;  // a test of one part leaves some constants unused

  typedef logic [6:0] unit_bytes_t;

  typedef struct packed {
    logic [31:0] index;        // slot of the instruction
    logic [2:0]  mem;          // tenon_pkg::MEM_*
    logic [22:0] unit;         // first unit in the scratchpad
    unit_bytes_t unit_bytes;
    unit_bytes_t valid;        // bytes of a unit that are data, 1 .. unit_bytes
    logic [7:0]  pad_value;
    logic [16:0] rows;         // at least 1
    logic [23:0] vectors;      // at least 1
    logic [20:0] total;        // rows * vectors
    logic [7:0]  top;
    logic [16:0] source_rows;  // rows that have bytes in DRAM; 0 if len would be 0
    logic [63:0] addr;         // of the first byte needed of the first such row, in the low ADDR_BITS bits
    logic [31:0] len;          // bytes from `addr` to the last byte needed
    logic [31:0] y_step;
    logic [15:0] x_step;
    logic [17:0] left;         // signed: padding bytes before a row
    logic [33:0] row_end;      // signed: left + row_bytes
  } dma_cmd_t;

endpackage
// verilator lint_on UNUSEDPARAM
