// store_answers, for every store engine that sends a store after the one before has its responses, and every memory that
// responds to open bursts: stores are done in order, each a cycle after its last response or later, with an error if and
// only if the memory answered one of its bursts with an error. One burst, tracked from any cycle on, stands for all.
module store_answers_proof (
  input logic clk_i,
  input logic clear_i,
  input logic begin_i,   // the store that is being sent begins a burst
  input logic sent_i,    // and has begun all of them
  input logic bvalid_i,
  input logic berror_i,
  input logic track_i
);

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic       sent, answered, done, error, begins, bvalid, clear;
  logic [3:0] open_q;               // bursts without response
  logic [3:0] stores_q;             // stores that are sent and not done
  logic [3:0] ahead_q;              // responses before that of the tracked burst
  logic [3:0] stores_ahead_q;       // stores sent and not done before the one of the tracked burst
  logic       tracked_q, own_q, bad_q, answered_q;  // a burst; its store is being sent; its answer is an error; has come
  assign sent   = sent_i & answered;
  assign begins = begin_i & open_q != 4'd7;
  assign bvalid = bvalid_i & open_q != 4'd0;
  assign clear  = clear_i & open_q == 4'd0 & ~begins;

  store_answers u_answers (
    .clk_i,
    .rst_ni    (rst_n),
    .clear_i   (clear),
    .sent_i    (sent),
    .open_i    (open_q),
    .answered_o(answered),
    .done_o    (done),
    .error_o   (error),
    .bvalid_i  (bvalid),
    .berror_i
  );

  always_ff @(posedge clk_i) begin
    if (~rst_n) begin
      open_q   <= 4'd0;
      stores_q <= 4'd0;
      {tracked_q, own_q, bad_q, answered_q} <= 4'd0;
    end else begin
      open_q   <= open_q + 4'(begins) - 4'(bvalid);
      stores_q <= clear ? 4'd0 : stores_q + 4'(sent) - 4'(done);
      if (clear) tracked_q <= 1'b0;
      else if (~tracked_q) begin
        // A burst of the cycle of `sent` is the next store's.
        tracked_q      <= begins & track_i;
        own_q          <= 1'b1;
        bad_q          <= 1'b0;
        answered_q     <= 1'b0;
        ahead_q        <= open_q - 4'(bvalid);
        stores_ahead_q <= stores_q + 4'(sent) - 4'(done);
      end else begin
        if (sent) own_q <= 1'b0;
        if (bvalid & ahead_q != 4'd0) ahead_q <= ahead_q - 4'd1;
        if (bvalid & ahead_q == 4'd0 & ~answered_q) {answered_q, bad_q} <= {1'b1, berror_i};
        if (done) begin
          if (stores_ahead_q != 4'd0) stores_ahead_q <= stores_ahead_q - 4'd1;
          else tracked_q <= 1'b0;
        end
      end
      ADoneStoreWasSent: assert (~done | stores_q != 4'd0);
      AtMostTwoStoresAreSentAndNotDone: assert (stores_q <= 4'd2);
      if (tracked_q & done & stores_ahead_q == 4'd0) begin
        AStoreIsDoneAfterItsResponses: assert (answered_q & ~own_q);
        AnErrorOfItsBurstIsTheStores: assert (~bad_q | error);
      end
    end
  end

  // Without an answer in error since there was no store, none is in error.
  logic clean_q, none_begun_q;
  always_ff @(posedge clk_i) begin
    if (~rst_n | clear) none_begun_q <= 1'b1;
    else if (begins | sent) none_begun_q <= ~begins;
    if (~rst_n | clear | (stores_q == 4'd0 & open_q == 4'd0 & none_begun_q & ~begins)) clean_q <= 1'b1;
    else if (bvalid & berror_i) clean_q <= 1'b0;
    if (rst_n & done) begin
      NoErrorComesFromNowhere: assert (~error | ~clean_q);
    end
  end

endmodule
