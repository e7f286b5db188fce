// The write responses of a store whose beats are all sent, while the store engine sends the next one.
//
// One store waits here at a time. Responses come in the order of the bursts (there is one ID), so that the first `left_q`
// of them belong to the store that waits, and those after them to the one that is being sent. A store leaves a cycle
// after its last response.
module store_answers (
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic       clear_i,
  input  logic       sent_i,      // a store has begun all of its bursts, and now waits; only with answered_o
  input  logic [3:0] open_i,      // bursts without response, before the one of this cycle: all of them its own
  output logic       answered_o,  // none waits, or all responses of the one that does have come
  output logic       done_o,
  output logic       error_o,     // with done: the memory answered with an error
  input  logic       bvalid_i,
  input  logic       berror_i
);

  logic       waits_q, error_q;  // a store waits; one of its responses was an error
  logic       sends_error_q;     // so was one of the store that is being sent
  logic [3:0] left_q;            // responses of the store that waits
  logic       none_left_q;       // left_q is 0
  logic       fails, leaves;
  assign answered_o = ~waits_q | none_left_q;
  assign leaves     = waits_q & none_left_q;
  assign fails      = bvalid_i & berror_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {waits_q, done_o, sends_error_q} <= 3'b000;
    else if (clear_i) {waits_q, done_o, sends_error_q} <= 3'b000;
    else begin
      waits_q       <= sent_i | (waits_q & ~leaves);
      done_o        <= leaves;
      sends_error_q <= ~sent_i & (sends_error_q | (fails & answered_o));
    end
  end

  logic [3:0] left;
  assign left = (sent_i ? open_i : left_q) - 4'(bvalid_i);
  always_ff @(posedge clk_i) begin
    error_o <= error_q;
    if (sent_i) error_q <= sends_error_q | fails;
    else if (~answered_o) error_q <= error_q | fails;
    if (sent_i | (bvalid_i & ~answered_o)) begin
      left_q      <= left;
      none_left_q <= left == 4'd0;
    end
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & sent_i) begin
      AStoreWaitsAfterTheOneBeforeHasItsResponses: assert (answered_o);
      AResponseOfThisCycleIsCounted: assert (open_i != 4'd0 | ~bvalid_i);
    end
    if (rst_ni & waits_q) begin
      TheFlagAgreesWithTheCount: assert (none_left_q == (left_q == 4'd0));
      TheResponsesThatAreLeftAreOpen: assert (left_q <= open_i);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
