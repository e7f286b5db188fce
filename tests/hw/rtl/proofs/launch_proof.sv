// The states of a launch, for all that decode, the classes and the memory may say: a deadlock is reported after sixteen
// cycles in a row in which every class is stuck, and never without them.
module launch_proof (
  input logic                clk_i,
  input logic                start_i,
  input logic                soft_reset_i,
  input logic                unaligned_i,
  input logic                count_i,
  input logic                native_i,
  input logic                decode_done_i,
  input logic                decode_blocked_i,
  input logic                decode_error_i,
  input tenon_pkg::engines_t empty_i,
  input tenon_pkg::engines_t busy_i,
  input tenon_pkg::engines_t stuck_i,
  input tenon_pkg::engines_t waiting_i,
  input tenon_pkg::engines_t error_valid_i,
  input logic                memory_idle_i
);

  // A class that is stuck is regarded in the next cycle, but for IN_ORDER.
  localparam logic Later = tenon_pkg::IN_ORDER == 0;

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic fetch_start, running, stop, halt, clear, soft_clear, done, idle, memory_idle;
  logic [7:0] code;
  // verilator lint_off UNUSEDSIGNAL
  logic [31:0] error_index;
  tenon_pkg::engines_t waiting;
  // verilator lint_on UNUSEDSIGNAL

  // Nothing is outstanding between launches, and what has become idle stays so until the launch is cleared.
  assign memory_idle = memory_idle_i | idle | clear;

  launch u_launch (
    .clk_i,
    .rst_ni          (rst_n),
    .start_i,
    .soft_reset_i,
    .instructions_i  ({3'd0, unaligned_i}),
    .count_i         ({31'd0, count_i}),
    .native_i,
    .fetch_start_o   (fetch_start),
    .running_o       (running),
    .stop_o          (stop),
    .halt_o          (halt),
    .clear_o         (clear),
    .soft_clear_o    (soft_clear),
    .done_o          (done),
    .idle_o          (idle),
    .code_o          (code),
    .error_index_o   (error_index),
    .waiting_o       (waiting),
    .decode_done_i,
    .decode_blocked_i,
    .decode_error_i,
    .decode_code_i   (tenon_pkg::STOP_BAD_FIELD),
    .decode_index_i  (32'd0),
    .empty_i,
    .busy_i          (clear ? '0 : busy_i),
    .stuck_i,
    .waiting_i,
    .index_i         ('0),
    .error_valid_i,
    .error_code_i    ({tenon_pkg::NUM_ENGINES{tenon_pkg::STOP_READ_ERROR}}),
    .error_index_i   ('0),
    .memory_idle_i   (memory_idle)
  );

  logic       stuck, was_deadlock_q;
  logic [4:0] row_q, row_before_q, run_row_q;  // cycles in a row that all classes were stuck; of this launch
  assign stuck = &stuck_i & ~(&empty_i) & (decode_done_i | decode_blocked_i);

  always_ff @(posedge clk_i) begin
    if (~rst_n) begin
      row_q          <= 5'd0;
      row_before_q   <= 5'd0;
      run_row_q      <= 5'd0;
      was_deadlock_q <= 1'b0;
    end else begin
      row_q          <= ~stuck ? 5'd0 : row_q == 5'd16 ? row_q : row_q + 5'd1;
      row_before_q   <= row_q;
      run_row_q      <= stuck & ~stop ? run_row_q + 5'd1 : 5'd0;
      was_deadlock_q <= code == tenon_pkg::STOP_DEADLOCK;
      if (code == tenon_pkg::STOP_DEADLOCK & ~was_deadlock_q) begin
        ADeadlockComesAfterCyclesInARow: assert (Later ? row_before_q >= 5'd15 : row_q == 5'd16);
      end
      ADeadlockIsReported: assert (stop | run_row_q <= 5'd16);
      ALaunchThatIsClearedHasStopped: assert (~clear | (stop & halt));
      OnlyAClearedLaunchIsDone: assert (~done | ~running);
      ASoftClearIsAClear: assert (~soft_clear | clear);
      NothingIsFetchedInALaunch: assert (~fetch_start | idle);
    end
  end

endmodule
