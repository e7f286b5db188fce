// prim_fifo for every sequence of its inputs: items come out once, unchanged and in order, and both handshakes follow
// from the count alone. One item, tracked at any time, stands for all.
module fifo_proof #(
  parameter int Depth        = 4,
  parameter bit HeadRegister = 1'b0
) (
  input logic       clk_i,
  input logic       clear_i,
  input logic       push_valid_i,
  input logic [1:0] push_data_i,
  input logic       pop_ready_i,
  input logic       track_i
);

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic       push_ready, pop_valid, push, pop, tracked_q;
  logic [1:0] pop_data, data_q;
  logic [3:0] count_q, ahead_q;  // items, and those that come out before the tracked one
  assign push = push_valid_i & push_ready;
  assign pop  = pop_valid & pop_ready_i;

  prim_fifo #(
    .Width       (2),
    .Depth       (Depth),
    .HeadRegister(HeadRegister)
  ) u_fifo (
    .clk_i,
    .rst_ni      (rst_n),
    .clear_i,
    .push_valid_i,
    .push_ready_o(push_ready),
    .push_data_i,
    .pop_valid_o (pop_valid),
    .pop_ready_i,
    .pop_data_o  (pop_data)
  );

  always_ff @(posedge clk_i) begin
    if (~rst_n | clear_i) begin
      count_q  <= 4'd0;
      tracked_q <= 1'b0;
    end else begin
      count_q <= count_q + 4'(push) - 4'(pop);
      if (~tracked_q & push & track_i) begin
        tracked_q <= 1'b1;
        ahead_q  <= count_q - 4'(pop);
        data_q   <= push_data_i;
      end else if (tracked_q & pop) begin
        tracked_q <= ahead_q != 4'd0;
        ahead_q  <= ahead_q - 4'd1;
      end
    end
    if (rst_n) begin
      AnItemIsOfferedWheneverThereIsOne: assert (pop_valid == (count_q != 4'd0));
      AnItemIsTakenWheneverThereIsRoom: assert (push_ready == (count_q != 4'(Depth)));
      if (tracked_q & ahead_q == 4'd0) begin
        EveryItemComesOutUnchangedAndInOrder: assert (pop_valid & pop_data == data_q);
      end
    end
  end

endmodule
