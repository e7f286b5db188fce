// The states of a launch: start, run, the end or a stop, idle memory, clear.
//
// A stop by error starts no instruction and lets those in flight finish; a soft reset sends no more addresses and waits
// only for outstanding transfers. Both end in `clear_o`, as every launch does, so that no state but tokens and
// scratchpads remains for the next one. Deadlock: no instruction in flight can finish, every head waits for tokens, and
// the decoder has nothing to issue or no room for it. This state is permanent, so `deadlock` comes in its sixteenth cycle
// in a row, which lets the queues' and counters' registers settle.
module launch (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  logic                     start_i,
  input  logic                     soft_reset_i,
  input  logic [3:0]               instructions_i,  // the address's low bits
  input  logic [31:0]              count_i,
  input  logic                     native_i,
  output logic                     fetch_start_o,
  output logic                     running_o,       // cycles count
  output logic                     stop_o,          // start nothing more
  output logic                     halt_o,          // send no more addresses
  output logic                     clear_o,
  output logic                     soft_clear_o,    // with clear_o: tokens, counters and registers as well
  output logic                     done_o,
  output logic                     idle_o,
  output logic [7:0]               code_o,
  output logic [31:0]              error_index_o,
  output tenon_pkg::engines_t      waiting_o,       // of this run, a cycle later, or when the last one was stopped
  // State of the parts.
  input  logic                     decode_done_i,
  input  logic                     decode_blocked_i,
  input  logic                     decode_error_i,
  input  logic [7:0]               decode_code_i,
  input  logic [31:0]              decode_index_i,
  input  tenon_pkg::engines_t      empty_i,
  input  tenon_pkg::engines_t      busy_i,
  input  tenon_pkg::engines_t      stuck_i,
  input  tenon_pkg::engines_t      waiting_i,
  // verilator lint_off UNUSEDSIGNAL
  input  tenon_pkg::engine_slots_t index_i,         // engine e at 32 e; with IN_ORDER all are equal
  // verilator lint_on UNUSEDSIGNAL
  input  tenon_pkg::engines_t      error_valid_i,
  input  tenon_pkg::engine_codes_t error_code_i,
  input  tenon_pkg::engine_slots_t error_index_i,
  input  logic                     memory_idle_i    // nothing is outstanding, instructions included
);

  typedef enum logic [2:0] {
    Idle,
    Run,
    Drain,
    Halt,
    Clear,
    Settle
  } state_e;

  state_e      state_q, state_d;
  logic        stop_q, halt_q, clear_q;  // as registers, for paths across the chip
  logic        soft_q, soft_pending_q, soft_reset;
  logic [7:0]  code_q;
  logic [tenon_pkg::SLOT_BITS-1:0] index_q;
  tenon_pkg::engines_t waiting_q;
  logic [3:0]  stall_cycles_q;
  logic        stalled, deadlock;

  // The error that came first; of several in one cycle, that of the first engine.
  logic        found;
  logic [7:0]  found_code;
  logic [31:0] found_index;
  always_comb begin
    found       = |error_valid_i | decode_error_i;
    found_code  = decode_code_i;
    found_index = decode_index_i;
    if (|error_valid_i) begin
      for (int e = tenon_pkg::NUM_ENGINES - 1; e >= 0; e--) begin
        if (error_valid_i[e]) begin
          found_code  = error_code_i[e*8+:8];
          found_index = error_index_i[e*32+:32];
        end
      end
    end
  end

  // Whether the classes are stuck is known late in a cycle, and regarded in the next one; with IN_ORDER at once.
  localparam logic [3:0] LastStall = tenon_pkg::IN_ORDER != 0 ? 4'd15 : 4'd14;
  logic stuck;
  assign stuck = &stuck_i & ~(&empty_i) & (decode_done_i | decode_blocked_i);
  if (tenon_pkg::IN_ORDER != 0) begin : g_stuck
    assign stalled = state_q == Run & stuck;
  end else begin : g_stuck_later
    logic stuck_q;
    always_ff @(posedge clk_i) stuck_q <= stuck;
    assign stalled = state_q == Run & stuck_q;
  end
  assign deadlock = stalled & stall_cycles_q == LastStall;

  // The oldest of all engines' instructions, of which one a cycle is compared while the launch is stalled.
  logic [tenon_pkg::SLOT_BITS-1:0] oldest;
  if (tenon_pkg::IN_ORDER != 0) begin : g_one
    assign oldest = index_i[tenon_pkg::SLOT_BITS-1:0];  // all engines have this index
  end else begin : g_oldest
    logic [2:0]                      engine;  // of the eight that the register map holds at most
    tenon_pkg::engines_t             present;
    logic                            first_q, present_q;
    logic [tenon_pkg::SLOT_BITS-1:0] index_now_q, oldest_q;  // of the engine of the cycle before
    assign engine  = stall_cycles_q[2:0];
    assign present = ~empty_i;
    assign oldest  = oldest_q;
    always_ff @(posedge clk_i) begin
      first_q     <= stall_cycles_q == 4'd0;
      present_q   <= 1'(8'(present) >> engine);
      index_now_q <= tenon_pkg::SLOT_BITS'(256'(index_i) >> {engine, 5'd0});
      if (first_q) oldest_q <= present_q ? index_now_q : '1;
      else if (present_q & index_now_q < oldest_q) oldest_q <= index_now_q;
    end
  end

  logic       profile_off;
  logic [7:0] refusal;
  assign soft_reset  = soft_reset_i | soft_pending_q;  // a request during the clearing of a launch is kept
  assign profile_off = native_i ? tenon_pkg::HAS_NATIVE == 0 : tenon_pkg::HAS_BASE == 0;
  always_comb begin
    if (profile_off) refusal = tenon_pkg::STOP_PROFILE_OFF;
    else if (instructions_i != 4'd0) refusal = tenon_pkg::STOP_UNALIGNED;
    else refusal = tenon_pkg::STOP_NONE;
  end

  assign fetch_start_o = state_q == Idle & start_i & ~soft_reset & refusal == tenon_pkg::STOP_NONE & count_i != 32'd0;
  assign running_o     = state_q == Run | state_q == Drain;
  assign stop_o        = stop_q;
  assign halt_o        = halt_q;  // nothing may start in the cycle of the clearing
  assign clear_o       = clear_q;
  assign soft_clear_o  = clear_q & soft_q;
  assign done_o        = state_q == Settle & ~soft_q;
  assign idle_o        = state_q == Idle;
  assign code_o        = code_q;
  assign error_index_o = 32'(index_q);
  assign waiting_o     = waiting_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q        <= Idle;
      soft_q         <= 1'b0;
      soft_pending_q <= 1'b0;
      code_q         <= tenon_pkg::STOP_NONE;
      index_q        <= '0;
      stall_cycles_q <= '0;
      waiting_q      <= '0;
    end else begin
      soft_pending_q <= soft_reset & state_q != Halt;
      stall_cycles_q <= stalled ? stall_cycles_q + 4'd1 : 4'd0;
      state_q        <= state_d;
      unique case (state_q)
        Idle: begin
          soft_q <= 1'b0;
          if (~soft_reset & start_i) begin
            code_q    <= refusal;
            index_q   <= '0;
            waiting_q <= '0;
          end
        end
        Run: begin
          waiting_q <= waiting_i;
          if (found | deadlock) begin
            code_q  <= found ? found_code : tenon_pkg::STOP_DEADLOCK;
            index_q <= tenon_pkg::SLOT_BITS'(found ? found_index : 32'(oldest));
          end else if (state_d == Clear) begin
            waiting_q <= '0;
          end
        end
        Halt: begin
          soft_q    <= 1'b1;
          code_q    <= tenon_pkg::STOP_NONE;
          index_q   <= '0;
          waiting_q <= '0;
        end
        default: ;
      endcase
    end
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      Idle: begin
        if (soft_reset) state_d = Halt;
        else if (start_i) state_d = fetch_start_o ? Run : Clear;
      end
      Run: begin
        if (found | deadlock) state_d = Drain;
        else if (decode_done_i & &empty_i & memory_idle_i) state_d = Clear;
      end
      Drain:   if (~|busy_i & memory_idle_i) state_d = Clear;
      Halt:    if (soft_q & memory_idle_i) state_d = Clear;
      Clear:   state_d = Settle;
      default: state_d = Idle;
    endcase
    if (soft_reset & (state_q == Run | state_q == Drain)) state_d = Halt;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {stop_q, halt_q, clear_q} <= 3'b100;
    else {stop_q, halt_q, clear_q} <= {state_d != Run, state_d == Halt | state_d == Clear, state_d == Clear};
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & clear_o) begin
      ALaunchEndsWithIdleMemory: assert (memory_idle_i);
      ALaunchEndsWithNothingInFlight: assert (soft_q | ~|busy_i);
    end
    if (rst_ni & fetch_start_o) begin
      ALaunchFetchesFromIdleMemory: assert (memory_idle_i);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
