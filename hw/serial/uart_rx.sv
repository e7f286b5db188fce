// The receiver of a serial line: 8 data bits, no parity, one stop bit, sampled in the middle of each bit. A start bit
// that ends early and a byte without its stop bit are dropped.
module uart_rx #(
  parameter int ClocksPerBit = 12
) (
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic       rx_i,
  output logic       valid_o,  // one cycle
  output logic [7:0] data_o    // until the next bit
);

  localparam int CountWidth = $clog2(ClocksPerBit);

  logic [1:0]            sync_q;
  logic                  rx;
  logic [3:0]            bits_q;  // still to be sampled; the start bit is number 10
  logic [CountWidth-1:0] count_q;
  logic                  sample;

  assign rx      = sync_q[1];
  assign sample  = bits_q != 4'd0 & count_q == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sync_q  <= 2'b11;
      bits_q  <= 4'd0;
      valid_o <= 1'b0;
    end else begin
      sync_q  <= {sync_q[0], rx_i};
      valid_o <= sample & bits_q == 4'd1 & rx;
      if (bits_q == 4'd0) bits_q <= rx ? 4'd0 : 4'd10;
      else if (sample) bits_q <= bits_q == 4'd10 & rx ? 4'd0 : bits_q - 4'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (bits_q == 4'd0) count_q <= CountWidth'(ClocksPerBit / 2 - 1);
    else if (sample) count_q <= CountWidth'(ClocksPerBit - 1);
    else count_q <= count_q - 1'b1;
    if (sample & bits_q != 4'd10 & bits_q != 4'd1) data_o <= {rx, data_o[7:1]};
  end

endmodule
