// The command side of a compute engine: takes commands, answers each with one cycle of done and a stop code, in order,
// and takes nothing more after an error until reset.
module command_port #(
  parameter bit Overlap = 1'b0  // 1: a command may enter while others are in flight; 0: one at a time
) (
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic       valid_i,
  input  logic       room_i,      // the engine's first stage can take a command
  output logic       ready_o,
  output logic       load_o,      // a command enters the pipeline
  output logic       done_o,
  output logic [7:0] error_o,     // the stop code, with done_o
  // From the pipeline.
  input  logic       bad_i,       // an index is outside its scratchpad
  output logic       fail_o,      // one was: no younger step has an effect
  input  logic       last_i,      // the last step of a command leaves the pipeline
  input  logic       last_bad_i   // with last_i: that step is in error
);

  logic fail_q, done_q, error_q, busy;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) fail_q <= 1'b0;
    else if (bad_i) fail_q <= 1'b1;
  end

  if (Overlap) begin : g_overlap
    assign busy = 1'b0;
  end else begin : g_one
    logic busy_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) busy_q <= 1'b0;
      else if (load_o) busy_q <= 1'b1;
      else if (done_q) busy_q <= 1'b0;
    end
    assign busy = busy_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {done_q, error_q} <= 2'b00;
    else {done_q, error_q} <= {last_i, last_bad_i};
  end

  assign ready_o = room_i & ~busy & ~fail_q;
  assign load_o  = valid_i & ready_o;
  assign fail_o  = fail_q;
  assign done_o  = done_q;
  assign error_o = error_q ? tenon_pkg::STOP_SCRATCHPAD_RANGE : tenon_pkg::STOP_NONE;

`ifndef SYNTHESIS
  logic [3:0] in_flight_q;  // at most one for each stage
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) in_flight_q <= '0;
    else if (load_o != done_q) in_flight_q <= load_o ? in_flight_q + 4'd1 : in_flight_q - 4'd1;
  end

  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & load_o) begin
      CommandsInFlightFitTheCounter: assert (in_flight_q != 4'd15 | done_q);
      NoCommandEntersAfterAnError: assert (!fail_q);
    end
    if (rst_ni & done_q) begin
      DoneAnswersACommandInFlight: assert (in_flight_q != 4'd0);
    end
    if (rst_ni & error_q) begin
      AnErrorComesWithDoneAndEndsTheEngine: assert (done_q & fail_q);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
