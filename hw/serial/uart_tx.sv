// The transmitter of a serial line: 8 data bits, no parity, one stop bit.
module uart_tx #(
  parameter int ClocksPerBit = 12
) (
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic       valid_i,
  output logic       ready_o,
  input  logic [7:0] data_i,
  output logic       tx_o
);

  localparam int CountWidth = $clog2(ClocksPerBit);

  logic [8:0]            shift_q;
  logic [3:0]            bits_q;  // still on the line, with the current one
  logic [CountWidth-1:0] count_q;

  assign ready_o = bits_q == 4'd0;
  assign tx_o    = shift_q[0];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      shift_q <= '1;
      bits_q  <= 4'd0;
      count_q <= '0;
    end else if (ready_o) begin
      if (valid_i) begin
        shift_q <= {data_i, 1'b0};
        bits_q  <= 4'd10;
        count_q <= CountWidth'(ClocksPerBit - 1);
      end
    end else if (count_q == '0) begin
      shift_q <= {1'b1, shift_q[8:1]};
      bits_q  <= bits_q - 4'd1;
      count_q <= CountWidth'(ClocksPerBit - 1);
    end else begin
      count_q <= count_q - 1'b1;
    end
  end

endmodule
