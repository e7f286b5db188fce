// Executes the instructions of all classes one after the other, for IN_ORDER: each waits for its tokens, takes them,
// starts its unit, and gives its tokens when the unit is done. Decode holds the instruction until then, so that its
// entry and its command are not copied. A push into a full counter waits.
//
// One instruction is in flight, so that every unit is ready when it starts, and the unit that is done is the one that
// was started. The unit starts a cycle after its instruction: no path leads from the tokens through the unit.
module sequencer_in_order #(
  parameter tenon_pkg::engines_t Present = '1  // engines
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   clear_i,
  input  logic                   stop_i,         // start nothing, and give no tokens
  input  tenon_pkg::engines_t    entry_valid_i,  // one hot: the engine; 0 with stop_i
  input  tenon_pkg::entry_t      entry_i,        // stays until it is taken
  output logic                   entry_taken_o,
  // Tokens: counter (p, c) at NUM_ENGINES * p + c.
  // verilator lint_off UNUSEDSIGNAL
  input  tenon_pkg::pairs_t      nonzero_i,      // those of absent engines are not used
  input  tenon_pkg::pairs_t      full_i,
  // verilator lint_on UNUSEDSIGNAL
  output tenon_pkg::pairs_t      take_o,
  output tenon_pkg::pairs_t      give_o,
  // Units, by index.
  output tenon_pkg::units_t      unit_start_o,
  input  tenon_pkg::units_t      unit_done_i,    // bit UNIT_NONE is 0
  input  tenon_pkg::unit_codes_t unit_error_i,   // stop code with done, unit u at 8 u
  // State, by class.
  output tenon_pkg::engines_t    start_o,
  output tenon_pkg::engines_t    retire_o,
  output tenon_pkg::engines_t    busy_o,
  output tenon_pkg::engines_t    waiting_o,
  output tenon_pkg::engines_t    empty_o,
  output tenon_pkg::engines_t    stuck_o,
  output logic [31:0]            index_o,        // of the instruction, whichever its class
  output tenon_pkg::engines_t    error_valid_o,
  output logic [7:0]             error_code_o
);

  localparam int Engines = tenon_pkg::NUM_ENGINES;

  tenon_pkg::engines_t engine, engine_q;  // one hot; 0 without an instruction
  tenon_pkg::engines_t from, full;        // the counters to the head's engine, and from that in flight
  logic       busy_q, done_q, start_q, has_unit, tokens_ready, start, done, blocked, retire, failed;

  assign engine = (busy_q ? engine_q : entry_valid_i) & Present;

  // An instruction takes tokens as it starts, and gives some when it is done.
  always_comb begin
    from = '0;
    full = '0;
    for (int e = 0; e < Engines; e++) begin
      if (engine_q[e] & Present[e]) full = full | full_i[e*Engines+:Engines];
      if (entry_valid_i[e] & Present[e]) begin
        for (int p = 0; p < Engines; p++) from[p] = from[p] | nonzero_i[p*Engines+e];
      end
    end
  end

  assign has_unit     = entry_i.target != tenon_pkg::UNIT_NONE & ~entry_i.range_error;
  assign tokens_ready = ~|(entry_i.wait_mask & ~from);
  assign start        = |entry_valid_i & ~busy_q & tokens_ready & ~stop_i;
  assign done         = ~has_unit | (|unit_done_i) | done_q;
  assign blocked      = |(entry_i.signal_mask & full) & ~stop_i;
  assign retire       = busy_q & done & ~blocked;

  for (genvar p = 0; p < Engines; p++) begin : g_producer
    for (genvar c = 0; c < Engines; c++) begin : g_consumer
      assign take_o[p*Engines+c] = start & entry_valid_i[c] & Present[c] & entry_i.wait_mask[p];
      assign give_o[p*Engines+c] = retire & ~stop_i & ~failed & engine_q[p] & Present[p] & entry_i.signal_mask[c];
    end
  end

  always_comb begin
    unit_start_o = '0;
    if (start_q & has_unit & ~stop_i) unit_start_o = tenon_pkg::NUM_UNITS'(1) << entry_i.target;
  end

  // An error of the unit, or of decode. An instruction in error gives no tokens.
  always_comb begin
    error_code_o = tenon_pkg::STOP_NONE;
    if (start & entry_i.range_error) error_code_o = tenon_pkg::STOP_SCRATCHPAD_RANGE;
    for (int u = 0; u < tenon_pkg::NUM_UNITS; u++) begin
      if (unit_done_i[u]) error_code_o = error_code_o | unit_error_i[u*8+:8];
    end
  end

  assign failed        = error_code_o != tenon_pkg::STOP_NONE;
  assign entry_taken_o = retire;
  assign start_o       = start ? engine : '0;
  assign retire_o      = retire ? engine : '0;
  assign busy_o        = busy_q ? engine : '0;
  assign waiting_o     = busy_q | tokens_ready ? '0 : engine;
  assign empty_o       = ~engine;
  assign stuck_o       = ~engine | {Engines{busy_q ? done & blocked : ~tokens_ready}};
  assign index_o       = entry_i.index;
  assign error_valid_o = failed ? engine : '0;

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
      ATokenIsTakenOnlyFromANonzeroCounter: assert (~|(entry_i.wait_mask & ~from));
      NothingStartsForAnAbsentEngine: assert (engine == entry_valid_i);
    end
    if (rst_ni & retire & ~stop_i) begin
      ATokenIsGivenOnlyToACounterWithRoom: assert (~|(entry_i.signal_mask & full));
    end
    if (rst_ni & (|unit_done_i)) begin
      AUnitIsDoneOnlyOfTheInstructionInFlight: assert (busy_q & has_unit & unit_done_i ==
                                                       tenon_pkg::NUM_UNITS'(1) << entry_i.target);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
