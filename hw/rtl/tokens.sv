// The token matrix: one 8-bit counter for each pair (producer p, consumer c), at index NUM_ENGINES * p + c.
//
// A counter that gives and takes in one cycle keeps its value. A producer must check full_o before it gives, a consumer
// nonzero_o before it takes, so that counters neither wrap nor lose a token. A token given in one cycle can be taken in
// the next. The flags follow at once; the counts change a cycle later, since givers and takers are known late, but with
// IN_ORDER.
module tokens (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              clear_i,
  input  tenon_pkg::pairs_t give_i,
  input  tenon_pkg::pairs_t take_i,
  output tenon_pkg::pairs_t nonzero_o,
  output tenon_pkg::pairs_t full_o,
  input  logic              read_i,
  input  logic [3:0]        word_i,  // four counters for the register map; stays until word_o is taken
  output logic [31:0]       word_o   // in the next cycle, unless the register map has few parts
);

  // The base profile's pairs: both directions between GEMM and its neighbors.
  localparam int Counters = tenon_pkg::NUM_ENGINES * tenon_pkg::NUM_ENGINES;
  localparam tenon_pkg::engines_t Neighbors = tenon_pkg::ENG_LDI_BIT | tenon_pkg::ENG_ST_BIT;
  localparam tenon_pkg::pairs_t BasePairs =
      (Counters'(tenon_pkg::ENG_GEMM_BIT) << (tenon_pkg::NUM_ENGINES * tenon_pkg::ENG_LDI)) |
      (Counters'(Neighbors) << (tenon_pkg::NUM_ENGINES * tenon_pkg::ENG_GEMM)) |
      (Counters'(tenon_pkg::ENG_GEMM_BIT) << (tenon_pkg::NUM_ENGINES * tenon_pkg::ENG_ST));
  localparam tenon_pkg::pairs_t Pairs = tenon_pkg::HAS_NATIVE != 0 ? {Counters{1'b1}} : BasePairs;

  logic [Counters*8-1:0] count_q;
  tenon_pkg::pairs_t nonzero_q, full_q;
  tenon_pkg::pairs_t give_q, take_q;  // not yet counted
  tenon_pkg::pairs_t give, take;      // now counted
  tenon_pkg::pairs_t one, almost;     // with them there is one token, or one less than the counter holds

  assign nonzero_o = nonzero_q;
  assign full_o = full_q;

  // A word is selected in two steps, since the counters are all over the chip.
  if (tenon_pkg::HAS_COUNTERS == 0 && tenon_pkg::HAS_PROGRESS == 0) begin : g_word
    assign word_o = read_i ? 32'(count_q >> {word_i, 5'd0}) : 'x;
  end else begin : g_word_later
    logic [511:0] words;
    logic [127:0] words_q;  // one of four each
    assign words = 512'(count_q);
    for (genvar i = 0; i < 4; i++) begin : g_four
      logic [127:0] four;
      assign four = words[i*128+:128];
      always_ff @(posedge clk_i) begin
        if (read_i) words_q[i*32+:32] <= four[{word_i[1:0], 5'd0}+:32];
      end
    end
    assign word_o = words_q[{word_i[3:2], 5'd0}+:32];
  end

  // Simulators skip the counters while no token moves; in logic the wait for this would be longer than theirs.
  logic active;
`ifdef SYNTHESIS
  assign active = 1'b1;
`else
  assign active = |(give_i | take_i | give_q | take_q);
`endif

  localparam logic Later = tenon_pkg::IN_ORDER == 0;
  assign give = Later ? give_q : give_i & Pairs;
  assign take = Later ? take_q : take_i & Pairs;

  always_comb begin
    one    = '0;
    almost = '0;
    for (int i = 0; i < Counters; i++) begin
      if (Pairs[i] & active) begin
        one[i]    = count_q[i*8+:8] == (~Later | give_q[i] == take_q[i] ? 8'd1 : give_q[i] ? 8'd0 : 8'd2);
        almost[i] = count_q[i*8+:8] == (~Later | give_q[i] == take_q[i] ? 8'd254 : give_q[i] ? 8'd253 : 8'd255);
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q   <= '0;
      nonzero_q <= '0;
      full_q    <= '0;
      give_q    <= '0;
      take_q    <= '0;
    end else if (clear_i) begin
      count_q   <= '0;
      nonzero_q <= '0;
      full_q    <= '0;
      give_q    <= '0;
      take_q    <= '0;
    end else if (active) begin
      give_q <= give_i & Pairs;
      take_q <= take_i & Pairs;
      for (int i = 0; i < Counters; i++) begin
        if (give[i] != take[i]) count_q[i*8+:8] <= give[i] ? count_q[i*8+:8] + 8'd1 : count_q[i*8+:8] - 8'd1;
        if (Pairs[i] & give_i[i] & ~take_i[i]) begin
          nonzero_q[i] <= 1'b1;
          full_q[i]    <= almost[i];
        end else if (Pairs[i] & take_i[i] & ~give_i[i]) begin
          nonzero_q[i] <= ~one[i];
          full_q[i]    <= 1'b0;
        end
      end
    end
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & (|(give_i | take_i))) begin
      ATokenIsTakenOnlyFromANonzeroCounter: assert ((take_i & ~nonzero_q) == '0);
      TokensArePassedOnlyBetweenPairsThatExist: assert (((give_i | take_i) & ~Pairs) == '0);
      ATokenIsGivenOnlyToACounterWithRoom: assert ((give_i & full_q & ~take_i) == '0);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
