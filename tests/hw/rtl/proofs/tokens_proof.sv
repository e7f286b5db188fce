// tokens for every producer that gives only with room and every consumer that takes only what is there: the flags agree
// with the count of tokens given and not taken, in the next cycle already, and no other pair's tokens change it.
module tokens_proof #(
  parameter int Pair = 7 * tenon_pkg::ENG_GEMM + tenon_pkg::ENG_ST
) (
  input logic        clk_i,
  input logic        clear_i,
  input logic [48:0] give_i,
  input logic [48:0] take_i
);

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic [48:0] give, take, nonzero, full;
  logic [31:0] word;
  logic [7:0]  count_q, before_q, earlier_q;  // tokens now, a cycle and two cycles before
  logic [2:0]  cycles_q;                      // since the last clearing
  // The base profile has both directions between GEMM and its neighbors.
  localparam int Gemm = tenon_pkg::ENG_GEMM;
  localparam logic [48:0] Pairs = tenon_pkg::HAS_NATIVE != 0 ? {49{1'b1}} :
                                  (49'd1 << (7 * tenon_pkg::ENG_LDI + Gemm)) |
                                  (49'd1 << (7 * Gemm + tenon_pkg::ENG_LDI)) |
                                  (49'd1 << (7 * Gemm + tenon_pkg::ENG_ST)) |
                                  (49'd1 << (7 * tenon_pkg::ENG_ST + Gemm));
  assign give = give_i & ~full & Pairs;
  assign take = take_i & nonzero;

  tokens u_tokens (
    .clk_i,
    .rst_ni   (rst_n),
    .clear_i,
    .give_i   (give),
    .take_i   (take),
    .nonzero_o(nonzero),
    .full_o   (full),
    .read_i   (1'b1),
    .word_i   (4'(Pair / 4)),
    .word_o   (word)
  );

  // The register map reads the counter itself, one or two cycles late.
  localparam bit Counted = tenon_pkg::IN_ORDER != 0;
  localparam bit Read    = tenon_pkg::HAS_COUNTERS != 0 | tenon_pkg::HAS_PROGRESS != 0;
  logic [7:0] shown;
  assign shown = word[8*(Pair%4)+:8];

  always_ff @(posedge clk_i) begin
    if (~rst_n | clear_i) begin
      count_q  <= 8'd0;
      before_q <= 8'd0;
      cycles_q <= 3'd0;
    end else begin
      count_q   <= count_q + 8'(give[Pair]) - 8'(take[Pair]);
      before_q  <= count_q;
      if (cycles_q != 3'd4) cycles_q <= cycles_q + 3'd1;
    end
    earlier_q <= before_q;
    if (rst_n) begin
      ThereIsATokenIfOneWasGiven: assert (nonzero[Pair] == (count_q != 8'd0));
      ACounterIsFullWith255: assert (full[Pair] == (count_q == 8'd255));
      if (cycles_q == 3'd4) begin
        SoftwareReadsTheCount: assert (shown == (Counted ? (Read ? before_q : count_q) :
                                                           (Read ? earlier_q : before_q)));
      end
    end
  end

endmodule
