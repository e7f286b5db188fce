// FIFO on a RAM with a registered read, for depths that justify block RAM: an item appears at the output two cycles
// after it was pushed, with Queue three; one item a cycle after that. It holds Depth items (a power of two) besides those
// at its output. It has no push_ready_o: the producer must have reserved the space. With Queue four items wait between
// the RAM and the output: so neither the RAM's slow output nor its enable is on a path with the consumer.
module prim_ram_fifo #(
  parameter int Width = 32,
  parameter int Depth = 64,
  parameter bit Queue = 1'b0
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             clear_i,
  input  logic             push_i,
  input  logic [Width-1:0] push_data_i,
  output logic             pop_valid_o,
  input  logic             pop_ready_i,
  output logic [Width-1:0] pop_data_o
);

  localparam int PtrWidth = $clog2(Depth);

  logic [PtrWidth:0] write_q, read_q;
  logic              valid_q, fetch;  // an item is at the RAM's output
  logic [Width-1:0]  item;

  prim_ram_1r1w #(
    .Width    (Width),
    .Depth    (Depth),
    .SubWords (1),
    .AddrWidth(PtrWidth)
  ) u_ram (
    .clk_i,
    .we_i   (push_i),
    .waddr_i(write_q[PtrWidth-1:0]),
    .wdata_i(push_data_i),
    .re_i   (fetch),
    .raddr_i(read_q[PtrWidth-1:0]),
    .rdata_o(item)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_q <= '0;
      read_q  <= '0;
    end else if (clear_i) begin
      write_q <= '0;
      read_q  <= '0;
    end else begin
      if (push_i) write_q <= write_q + 1'b1;
      if (fetch) read_q <= read_q + 1'b1;
    end
  end

  if (Queue) begin : g_queue
    logic [2:0] room_q;  // items that may be fetched
    logic       push_ready, pop;
    assign fetch = write_q != read_q & room_q != 3'd0;
    assign pop   = pop_valid_o & pop_ready_i;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) {valid_q, room_q} <= 4'd4;
      else if (clear_i) {valid_q, room_q} <= 4'd4;
      else {valid_q, room_q} <= {fetch, room_q - 3'(fetch) + 3'(pop)};
    end

    prim_fifo #(
      .Width(Width),
      .Depth(4)
    ) u_queue (
      .clk_i,
      .rst_ni,
      .clear_i,
      .push_valid_i(valid_q),
      .push_ready_o(push_ready),
      .push_data_i (item),
      .pop_valid_o,
      .pop_ready_i,
      .pop_data_o
    );
    logic unused_ready;
    assign unused_ready = push_ready;
`ifndef SYNTHESIS
    // Only assertions read the reset synchronously.
    // verilator lint_off SYNCASYNCNET
    always_ff @(posedge clk_i) begin
      if (rst_ni & valid_q) begin
        AnItemOfTheRamFindsRoom: assert (push_ready);
      end
    end
    // verilator lint_on SYNCASYNCNET
`endif
  end else begin : g_output
    assign fetch       = write_q != read_q & (~valid_q | pop_ready_i);
    assign pop_valid_o = valid_q;
    assign pop_data_o  = item;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) valid_q <= 1'b0;
      else if (clear_i) valid_q <= 1'b0;
      else valid_q <= fetch | (valid_q & ~pop_ready_i);
    end
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & push_i) begin
      AnItemIsPushedOnlyWithRoom: assert (write_q - read_q < {1'b1, {PtrWidth{1'b0}}});
    end
  end
  // verilator lint_on SYNCASYNCNET
  initial begin
    DepthIsAPowerOfTwo: assert (2**PtrWidth == Depth);
  end
`endif

endmodule
