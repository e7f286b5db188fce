// A stream's register: an item a second cycle, with no path from one side's handshake to the other's.
module stream_register #(
  parameter int Width = 32
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             valid_i,
  output logic             ready_o,
  input  logic [Width-1:0] data_i,
  output logic             valid_o,
  input  logic             ready_i,
  output logic [Width-1:0] data_o
);

  logic             valid_q;
  logic [Width-1:0] data_q;

  assign ready_o = ~valid_q;
  assign valid_o = valid_q;
  assign data_o  = data_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= 1'b0;
    else valid_q <= valid_q ? ~ready_i : valid_i;
  end
  always_ff @(posedge clk_i) begin
    if (valid_i & ~valid_q) data_q <= data_i;
  end

endmodule
