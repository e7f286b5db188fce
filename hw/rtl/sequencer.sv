// Executes one class of instructions in order: each waits for its tokens, takes them, starts its unit, and gives its
// tokens when it is done and all earlier instructions have given theirs.
//
// Up to two instructions are in flight, so that a unit that can take a command early never pauses: two of the same
// unit, two loads of the base profile's load class (they overlap and still complete in order), or one without a unit.
// A push into a full counter waits.
module sequencer #(
  parameter int                Depth = 32,
  parameter tenon_pkg::units_t Units = '1  // that the class starts
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   clear_i,
  input  logic                   stop_i,     // start nothing, and give no tokens
  input  logic                   push_valid_i,
  output logic                   push_ready_o,
  input  tenon_pkg::entry_t      push_entry_i,
  // Tokens, by producer and by consumer.
  input  tenon_pkg::engines_t    nonzero_i,
  output tenon_pkg::engines_t    take_o,
  input  tenon_pkg::engines_t    full_i,
  output tenon_pkg::engines_t    give_o,
  // Units, by index.
  output tenon_pkg::units_t      start_o,
  input  tenon_pkg::units_t      ready_i,
  input  tenon_pkg::units_t      done_i,     // bit UNIT_NONE is 0
  input  tenon_pkg::unit_codes_t error_i,    // stop code with done, unit u at 8 u
  // State.
  output logic                   start_any_o,
  output logic                   retire_o,
  output logic                   busy_o,     // an instruction is in flight
  output logic                   waiting_o,  // the head waits for tokens
  output logic                   empty_o,    // no instruction
  output logic                   stuck_o,    // the class cannot advance without another class's tokens
  output logic [31:0]            index_o,    // of the oldest instruction in flight, else of the head
  output logic [31:0]            head_index_o,
  output logic                   error_valid_o,
  output logic [7:0]             error_code_o,
  output logic [31:0]            error_index_o
);

  tenon_pkg::entry_t head;
  logic            head_valid, pop;

  prim_fifo #(
    .Width       ($bits(push_entry_i)),
    .Depth       (Depth),
    .HeadRegister(1'b1)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .clear_i,
    .push_valid_i,
    .push_ready_o,
    .push_data_i(push_entry_i),
    .pop_valid_o(head_valid),
    .pop_ready_i(pop),
    .pop_data_o (head)
  );

  // In flight: the older and the younger instruction; the younger one is valid only with the older one.
  logic        old_valid_q, young_valid_q;
  logic [tenon_pkg::SLOT_BITS-1:0] old_index_q, young_index_q, head_index, index, error_index;
  tenon_pkg::engines_t old_signal_q, young_signal_q;
  tenon_pkg::unit_t old_unit_q, young_unit_q;
  // The unit is done, but an earlier instruction is not, or a push waits for a full counter.
  logic        old_done_q, young_done_q;

  logic        old_done, retire, tokens_ready, space, unit_ready, start, done_young, blocked;
  logic        remains_valid, compatible;

  // If both use the same unit, its first `done` belongs to the older one.
  // An error comes with the done of a unit. The older instruction's error has priority.
  logic        done_error;
  logic [7:0]  old_code, young_code;
  tenon_pkg::units_t done, ready, failed;
  tenon_pkg::unit_codes_t error;
  assign done  = done_i & Units;
  assign ready = ready_i & Units;
  for (genvar u = 0; u < tenon_pkg::NUM_UNITS; u++) begin : g_error
    assign error[u*8+:8] = Units[u] ? error_i[u*8+:8] : tenon_pkg::STOP_NONE;
    assign failed[u]     = done[u] & error[u*8+:8] != tenon_pkg::STOP_NONE;
  end
  // Whichever instruction in flight the error belongs to; a unit may be another class's in the other profile.
  assign done_error = old_valid_q & (failed[old_unit_q] | (young_valid_q & failed[young_unit_q]));
  always_comb begin
    done_young = 1'b0;
    old_done   = 1'b0;
    blocked    = 1'b0;
    retire     = 1'b0;
    give_o     = '0;
    old_code   = tenon_pkg::STOP_NONE;
    young_code = tenon_pkg::STOP_NONE;
    if (old_valid_q) begin
      done_young = young_valid_q & done[young_unit_q] & (young_unit_q != old_unit_q | old_done_q);
      old_done   = old_unit_q == tenon_pkg::UNIT_NONE | done[old_unit_q] | old_done_q;
      blocked    = |(old_signal_q & full_i) & ~stop_i;
      retire     = old_done & ~blocked;
      if (done[old_unit_q] & ~old_done_q) old_code = error[{old_unit_q, 3'd0}+:8];
      // An instruction in error gives no tokens, and neither does one that is done after it.
      if (retire & ~stop_i & ~error_valid_o & old_code == tenon_pkg::STOP_NONE) give_o = old_signal_q;
      if (done_young) young_code = error[{young_unit_q, 3'd0}+:8];
      // GEMM and RQ answer no command that is started after one in error.
      if (young_valid_q & young_unit_q == old_unit_q &
          (old_unit_q == tenon_pkg::UNIT_GEMM | old_unit_q == tenon_pkg::UNIT_RQ) & old_code != tenon_pkg::STOP_NONE) begin
        done_young = 1'b1;
      end
    end
  end

  // The units of LDI and LDW are the first two.
  function automatic logic is_operand_load(tenon_pkg::unit_t unit);
    is_operand_load = ~|(unit & ~tenon_pkg::UNIT_LDW);
  endfunction

  // A start sees no retirement of its own cycle, so that these two are on no path together.
  assign remains_valid = old_valid_q & (~retire | young_valid_q);
  always_comb begin
    tokens_ready = 1'b1;
    space        = 1'b0;
    compatible   = 1'b0;
    unit_ready   = 1'b0;
    start        = 1'b0;
    take_o       = '0;
    start_o      = '0;
    if (head_valid) begin
      tokens_ready = ~|(head.wait_mask & ~nonzero_i);
      space        = ~young_valid_q;
      compatible   = ~old_valid_q | head.target == tenon_pkg::UNIT_NONE | old_unit_q == head.target |
                     (is_operand_load(old_unit_q) & is_operand_load(head.target));
      unit_ready   = head.target == tenon_pkg::UNIT_NONE | head.range_error | ready[head.target];
      // Stop follows an error by two cycles, in which nothing may start: GEMM's stages, which the ALU shares, have failed.
      start        = tokens_ready & space & compatible & unit_ready & ~stop_i & ~done_error & ~error_valid_o;
      if (start) begin
        take_o = head.wait_mask;
        if (~head.range_error & head.target != tenon_pkg::UNIT_NONE) start_o = tenon_pkg::NUM_UNITS'(1) << head.target;
      end
    end
  end
  assign pop = start;

  assign start_any_o  = start;
  assign retire_o     = retire;
  assign busy_o       = old_valid_q;
  assign waiting_o    = ~tokens_ready;
  assign empty_o      = ~old_valid_q & ~head_valid;
  assign stuck_o      = old_valid_q ? old_done & blocked : ~head_valid | ~tokens_ready;
  assign head_index   = head.index[tenon_pkg::SLOT_BITS-1:0];
  assign head_index_o = 32'(head_index);
  assign index        = old_valid_q ? old_index_q : head_index;
  assign index_o      = 32'(index);

  // An error is reported a cycle later, since its instruction is known late.
  logic                            error_valid;
  logic [7:0]                      error_code;
  logic [tenon_pkg::SLOT_BITS-1:0] error_index_q;
  assign error_valid = done_error | (start & head.range_error);
  assign error_code  = old_code != tenon_pkg::STOP_NONE ? old_code :
                       young_code != tenon_pkg::STOP_NONE ? young_code : tenon_pkg::STOP_SCRATCHPAD_RANGE;
  assign error_index = old_code != tenon_pkg::STOP_NONE ? old_index_q :
                       young_code != tenon_pkg::STOP_NONE ? young_index_q : head_index;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) error_valid_o <= 1'b0;
    else if (clear_i) error_valid_o <= 1'b0;
    else if (error_valid) error_valid_o <= 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (~error_valid_o) begin  // of no meaning without an error
      error_code_o  <= error_code;
      error_index_q <= error_index;
    end
  end
  assign error_index_o = 32'(error_index_q);

  tenon_pkg::unit_t start_unit;
  assign start_unit = head.range_error ? tenon_pkg::UNIT_NONE : head.target;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      old_valid_q   <= 1'b0;
      young_valid_q <= 1'b0;
      old_done_q    <= 1'b0;
      young_done_q  <= 1'b0;
    end else if (clear_i) begin
      old_valid_q   <= 1'b0;
      young_valid_q <= 1'b0;
      old_done_q    <= 1'b0;
      young_done_q  <= 1'b0;
    end else begin
      old_valid_q   <= remains_valid | start;
      young_valid_q <= (young_valid_q & ~retire) | (start & remains_valid);
      old_done_q    <= retire ? young_done_q | done_young : old_done;
      young_done_q  <= ~retire & (young_done_q | done_young);
    end
  end

  always_ff @(posedge clk_i) begin
    // The younger one is valid only with the older one, so that what is taken does not depend on the retirement.
    if (retire | !old_valid_q) begin
      old_index_q  <= young_valid_q ? young_index_q : head_index;
      old_signal_q <= young_valid_q ? young_signal_q : head.signal_mask;
      old_unit_q   <= young_valid_q ? young_unit_q : start_unit;
    end
    if (!young_valid_q) begin  // a start needs this space; without one the values have no meaning
      young_index_q  <= head_index;
      young_signal_q <= head.signal_mask;
      young_unit_q   <= start_unit;
    end
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & start) begin
      ATokenIsTakenOnlyFromANonzeroCounter: assert (~|(take_o & ~nonzero_i));
      AUnitStartsOnlyWhenItIsReady: assert (~|(start_o & ~ready_i));
      AtMostTwoAreInFlight: assert (!young_valid_q);
    end
    if (rst_ni & done_error) begin
      AnErrorBelongsToAnInstructionInFlight: assert (old_code != tenon_pkg::STOP_NONE | young_code != tenon_pkg::STOP_NONE);
    end
    if (rst_ni & head_valid) begin
      AnInstructionIsForAUnitOfItsClass: assert (head.target == tenon_pkg::UNIT_NONE | Units[head.target]);
    end
    if (rst_ni & retire) begin
      ATokenIsGivenOnlyToACounterWithRoom: assert (~|(give_o & full_i));
    end
    if (rst_ni & (young_valid_q | young_done_q)) begin
      TheYoungerIsInFlightOnlyWithTheOlder: assert (old_valid_q & young_valid_q);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
