// prim_ram_fifo for every producer that reserves room: items come out once, unchanged and in order, the oldest one at
// most three cycles after it is the oldest.
module ram_fifo_proof #(
  parameter bit Queue = 1'b0
) (
  input logic       clk_i,
  input logic       clear_i,
  input logic       push_i,
  input logic       push_data_i,
  input logic       pop_ready_i,
  input logic       track_i
);

  localparam int Depth = Queue ? 8 : 4;

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic       pop_valid, push, pop, tracked_q;
  logic       pop_data, data_q;
  logic [1:0] waits_q;
  logic [3:0] count_q, ahead_q;  // items, and those that come out before the tracked one
  assign push = push_i & count_q < 4'(Depth);
  assign pop  = pop_valid & pop_ready_i;

  prim_ram_fifo #(
    .Width(1),
    .Depth(Depth),
    .Queue(Queue)
  ) u_fifo (
    .clk_i,
    .rst_ni     (rst_n),
    .clear_i,
    .push_i     (push),
    .push_data_i,
    .pop_valid_o(pop_valid),
    .pop_ready_i,
    .pop_data_o (pop_data)
  );

  always_ff @(posedge clk_i) begin
    if (~rst_n | clear_i) begin
      count_q  <= 4'd0;
      waits_q  <= 2'd0;
      tracked_q <= 1'b0;
    end else begin
      count_q <= count_q + 4'(push) - 4'(pop);
      waits_q <= count_q != 4'd0 & ~pop_valid ? waits_q + 2'd1 : 2'd0;
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
      NoItemIsOfferedThatWasNotPushed: assert (~pop_valid | count_q != 4'd0);
      AnItemAppearsWithinThreeCycles: assert (waits_q <= 2'd2);
      if (tracked_q & ahead_q == 4'd0 & pop_valid) begin
        EveryItemComesOutUnchangedAndInOrder: assert (pop_data == data_q);
      end
    end
  end

endmodule
