// The addresses of a DMA command: a run of `len` bytes for each row that has bytes in DRAM, strided by y_step.
module row_addresses (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              clear_i,
  input  logic              start_i,      // takes the command, which stays with IN_ORDER; only after the last one's runs
  // verilator lint_off UNUSEDSIGNAL
  input  dma_pkg::dma_cmd_t cmd_i,        // only the fields of addresses are used
  // verilator lint_on UNUSEDSIGNAL
  output logic              run_valid_o,
  input  logic              run_ready_i,
  output logic [tenon_pkg::ADDR_BITS-1:0] run_addr_o,
  output logic [31:0]       run_bytes_o
);

  logic        valid_q;
  logic [tenon_pkg::ROW_BITS-1:0] rows_q;  // after this one
  logic        last;                       // there is none
  logic [tenon_pkg::ADDR_BITS-1:0] addr_q;
  logic [31:0] len, len_q;
  logic [tenon_pkg::STEP_BITS-1:0] step, step_q;

  assign run_valid_o = valid_q;
  assign run_addr_o  = addr_q;
  assign len         = tenon_pkg::IN_ORDER != 0 ? cmd_i.len : len_q;
  assign step        = tenon_pkg::IN_ORDER != 0 ? cmd_i.y_step[tenon_pkg::STEP_BITS-1:0] : step_q;
  assign run_bytes_o = len;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (clear_i) valid_q <= 1'b0;
    else if (start_i) valid_q <= cmd_i.source_rows != 17'd0;
    else if (run_ready_i & last) valid_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      rows_q <= tenon_pkg::ROW_BITS'(cmd_i.source_rows - 17'd1);
      addr_q <= cmd_i.addr[tenon_pkg::ADDR_BITS-1:0];
      len_q  <= cmd_i.len;
      step_q <= cmd_i.y_step[tenon_pkg::STEP_BITS-1:0];
    end else if (valid_q & run_ready_i) begin
      rows_q <= rows_q - 1'b1;
      addr_q <= addr_q + tenon_pkg::ADDR_BITS'(step);
    end
  end

  if (tenon_pkg::IN_ORDER != 0) begin : g_last
    assign last = rows_q == '0;
  end else begin : g_last_early
    logic last_q;
    always_ff @(posedge clk_i) begin
      if (start_i) last_q <= cmd_i.source_rows == 17'd1;
      else if (valid_q & run_ready_i) last_q <= rows_q == tenon_pkg::ROW_BITS'(1);
    end
    assign last = last_q;
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & start_i) begin
      ACommandStartsAfterTheRunsOfTheLastOne: assert (!valid_q);
    end
    if (rst_ni & valid_q & run_ready_i) begin
      TheLastRowIsKnown: assert (last == (rows_q == '0));
      ARunHasBytes: assert (len != 32'd0);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
