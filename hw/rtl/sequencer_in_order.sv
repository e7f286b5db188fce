// Executes the instructions of all classes one after the other, for IN_ORDER: each waits for its tokens, takes them,
// starts its unit, and gives its tokens when the unit is done. Decode holds the instruction until then, so that its
// entry and its command are not copied. A push into a full counter waits.
//
// One instruction is in flight, so that every unit is ready when it starts, and the unit that is done is the one that
// was started. The unit starts a cycle after its instruction: no path leads from the tokens through the unit.
module sequencer_in_order #(
  parameter logic [6:0] Present = 7'h7f  // engines
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              clear_i,
  input  logic              stop_i,         // start nothing, and give no tokens
  input  logic [6:0]        entry_valid_i,  // one hot: the engine; 0 with stop_i
  input  dma_pkg::entry_t   entry_i,        // stays until it is taken
  output logic              entry_taken_o,
  // Tokens: counter (p, c) at 7 p + c.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [48:0]       nonzero_i,      // those of absent engines are not used
  input  logic [48:0]       full_i,
  // verilator lint_on UNUSEDSIGNAL
  output logic [48:0]       take_o,
  output logic [48:0]       give_o,
  // Units, by index.
  output logic [7:0]        unit_start_o,
  input  logic [7:0]        unit_done_i,    // bit UNIT_NONE is 0
  input  logic [63:0]       unit_error_i,   // stop code with done, unit u at 8 u
  // State, by class.
  output logic [6:0]        start_o,
  output logic [6:0]        retire_o,
  output logic [6:0]        busy_o,
  output logic [6:0]        waiting_o,
  output logic [6:0]        empty_o,
  output logic [6:0]        stuck_o,
  output logic [31:0]       index_o,        // of the instruction, whichever its class
  output logic [6:0]        error_valid_o,
  output logic [7:0]        error_code_o
);

  logic [6:0] engine, engine_q;  // one hot; 0 without an instruction
  logic [6:0] from, full;        // the counters to the head's engine, and from that of the instruction in flight
  logic       busy_q, done_q, start_q, has_unit, tokens_ready, start, done, blocked, retire;

  assign engine = (busy_q ? engine_q : entry_valid_i) & Present;

  // An instruction takes tokens as it starts, and gives some when it is done.
  always_comb begin
    from = 7'd0;
    full = 7'd0;
    for (int e = 0; e < 7; e++) begin
      if (engine_q[e] & Present[e]) full = full | full_i[e*7+:7];
      if (entry_valid_i[e] & Present[e]) begin
        for (int p = 0; p < 7; p++) from[p] = from[p] | nonzero_i[p*7+e];
      end
    end
  end

  assign has_unit     = entry_i.target != dma_pkg::UNIT_NONE & ~entry_i.range_error;
  assign tokens_ready = (entry_i.wait_mask & ~from) == 7'd0;
  assign start        = |entry_valid_i & ~busy_q & tokens_ready & ~stop_i;
  assign done         = ~has_unit | (|unit_done_i) | done_q;
  assign blocked      = |(entry_i.signal_mask & full) & ~stop_i;
  assign retire       = busy_q & done & ~blocked;

  for (genvar p = 0; p < 7; p++) begin : g_producer
    for (genvar c = 0; c < 7; c++) begin : g_consumer
      assign take_o[p*7+c] = start & entry_valid_i[c] & Present[c] & entry_i.wait_mask[p];
      assign give_o[p*7+c] = retire & ~stop_i & engine_q[p] & Present[p] & entry_i.signal_mask[c];
    end
  end

  always_comb begin
    unit_start_o = 8'd0;
    if (start_q & has_unit & ~stop_i) unit_start_o = 8'd1 << entry_i.target;
  end

  // An error of the unit, or of decode.
  always_comb begin
    error_code_o = tenon_pkg::STOP_NONE;
    if (start & entry_i.range_error) error_code_o = tenon_pkg::STOP_SCRATCHPAD_RANGE;
    for (int u = 0; u < 8; u++) begin
      if (unit_done_i[u]) error_code_o = error_code_o | unit_error_i[u*8+:8];
    end
  end

  assign entry_taken_o = retire;
  assign start_o       = start ? engine : 7'd0;
  assign retire_o      = retire ? engine : 7'd0;
  assign busy_o        = busy_q ? engine : 7'd0;
  assign waiting_o     = busy_q | tokens_ready ? 7'd0 : engine;
  assign empty_o       = ~engine;
  assign stuck_o       = ~engine | {7{busy_q ? done & blocked : ~tokens_ready}};
  assign index_o       = entry_i.index;
  assign error_valid_o = error_code_o != tenon_pkg::STOP_NONE ? engine : 7'd0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {start_q, busy_q, done_q} <= 3'b000;
    else if (clear_i) {start_q, busy_q, done_q} <= 3'b000;
    else {start_q, busy_q, done_q} <= {start, start | (busy_q & ~retire), busy_q & ~retire & done};
  end
  always_ff @(posedge clk_i) begin
    if (start) engine_q <= entry_valid_i;
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & start) begin
      ATokenIsTakenOnlyFromANonzeroCounter: assert ((entry_i.wait_mask & ~from) == 7'd0);
      NothingStartsForAnAbsentEngine: assert (engine == entry_valid_i);
    end
    if (rst_ni & retire & ~stop_i) begin
      ATokenIsGivenOnlyToACounterWithRoom: assert ((entry_i.signal_mask & full) == 7'd0);
    end
    if (rst_ni & (|unit_done_i)) begin
      AUnitIsDoneOnlyOfTheInstructionInFlight: assert (busy_q & has_unit & unit_done_i == 8'd1 << entry_i.target);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
