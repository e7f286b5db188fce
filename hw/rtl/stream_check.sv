// Checks a valid/ready stream in simulators: a valid payload stays valid and unchanged until the consumer is ready.
module stream_check #(
  parameter int Width = 1
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             valid_i,
  input logic             ready_i,
  input logic [Width-1:0] data_i
);

  logic             waits_q;
  logic [Width-1:0] data_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waits_q <= 1'b0;
    else waits_q <= valid_i & ~ready_i;
  end
  always_ff @(posedge clk_i) begin
    if (valid_i & ~ready_i) data_q <= data_i;
  end

  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & waits_q) begin
      ValidStaysUntilReady: assert (valid_i);
      ThePayloadIsStableWhileItWaits: assert (data_i == data_q);
    end
  end
  // verilator lint_on SYNCASYNCNET

endmodule
