// FIFO with the oldest item at its output, for look-up-table RAM: the output is an asynchronous read. Depth is a power
// of two; one item is a register, and none a wire: the producer holds the item until it is popped. `clear_i` empties
// it. With HeadRegister the oldest of several items is a register, which is earlier at the output than a RAM's word.
module prim_fifo #(
  parameter int Width        = 32,
  parameter int Depth        = 4,
  parameter bit HeadRegister = 1'b0
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             clear_i,
  input  logic             push_valid_i,
  output logic             push_ready_o,
  input  logic [Width-1:0] push_data_i,
  output logic             pop_valid_o,
  input  logic             pop_ready_i,
  output logic [Width-1:0] pop_data_o
);

  if (Depth == 0) begin : g_none
    assign push_ready_o = pop_ready_i;
    assign pop_valid_o  = push_valid_i;
    assign pop_data_o   = push_data_i;
    logic unused_none;
    assign unused_none = ^{clk_i, rst_ni, clear_i};
  end else if (Depth == 1) begin : g_one
    logic             valid_q;
    logic [Width-1:0] item_q;

    assign push_ready_o = ~valid_q;
    assign pop_valid_o  = valid_q;
    assign pop_data_o   = item_q;

    always_ff @(posedge clk_i) begin
      if (push_valid_i & push_ready_o) item_q <= push_data_i;
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) valid_q <= 1'b0;
      else if (clear_i) valid_q <= 1'b0;
      else valid_q <= valid_q ? ~pop_ready_i : push_valid_i;
    end
  end else begin : g_several
    localparam int PtrWidth = $clog2(Depth);

    logic [Width-1:0]  mem[Depth];
    logic [PtrWidth:0] write_q, read_q, next;  // next: the slot after the head
    logic              valid_q, full_q;        // not empty, full: registers, since both sides' handshakes follow from them
    logic              push, pop, write;

    assign push_ready_o = ~full_q;
    assign pop_valid_o  = valid_q;
    assign push         = push_valid_i & push_ready_o;
    assign pop          = pop_valid_o & pop_ready_i;
    assign next         = read_q + 1'b1;

    // The slot after the last item is written in every cycle in which it is free, so that the RAM's enables do not wait
    // for the producer; what no push brought is overwritten by the next one.
    assign write = ~full_q;

    if (HeadRegister) begin : g_head
      logic [Width-1:0] head_q;
      assign pop_data_o = head_q;
      always_ff @(posedge clk_i) begin
        if (pop | ~valid_q) head_q <= valid_q & write_q != next ? mem[next[PtrWidth-1:0]] : push_data_i;
      end
    end else begin : g_no_head
      assign pop_data_o = mem[read_q[PtrWidth-1:0]];
    end

    always_ff @(posedge clk_i) begin
      if (write) mem[write_q[PtrWidth-1:0]] <= push_data_i;
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        write_q <= '0;
        read_q  <= '0;
        valid_q <= 1'b0;
        full_q  <= 1'b0;
      end else if (clear_i) begin
        write_q <= '0;
        read_q  <= '0;
        valid_q <= 1'b0;
        full_q  <= 1'b0;
      end else begin
        valid_q <= push | (pop ? write_q != next : valid_q);
        full_q  <= ~pop & (full_q | (push & write_q + 1'b1 == read_q + {1'b1, {PtrWidth{1'b0}}}));
        if (push) write_q <= write_q + 1'b1;
        if (pop) read_q <= read_q + 1'b1;
      end
    end

`ifndef SYNTHESIS
    // Only assertions read the reset synchronously.
    // verilator lint_off SYNCASYNCNET
    always_ff @(posedge clk_i) begin
      if (rst_ni & push) begin
        TheFifoNeverOverflows: assert (write_q - read_q < {1'b1, {PtrWidth{1'b0}}});
      end
      if (rst_ni) begin
        EveryFlagAgreesWithTheCount: assert (valid_q == (write_q != read_q) &
                                             full_q == (write_q - read_q == {1'b1, {PtrWidth{1'b0}}}));
      end
      if (rst_ni & pop_valid_o) begin
        TheHeadIsTheOldestItem: assert (write_q != read_q & pop_data_o == mem[read_q[PtrWidth-1:0]]);
      end
    end
    // verilator lint_on SYNCASYNCNET
    initial begin
      DepthIsAPowerOfTwo: assert (2**PtrWidth == Depth);
    end
`endif
  end

endmodule
