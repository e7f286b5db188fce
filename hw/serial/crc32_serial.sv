// zlib's CRC-32, a bit a cycle: a byte takes eight cycles, which a serial line leaves. A byte equal to the register's
// low byte shifts the register without feedback, which is how its value is sent.
module crc32_serial (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        clear_i,
  input  logic        valid_i,  // not while busy
  input  logic [7:0]  data_i,
  output logic        busy_o,
  output logic [31:0] crc_o
);

  logic [7:0] data_q;
  logic [3:0] bits_q;

  assign busy_o = bits_q != 4'd0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) bits_q <= 4'd0;
    else if (clear_i) bits_q <= 4'd0;
    else if (valid_i) bits_q <= 4'd8;
    else if (busy_o) bits_q <= bits_q - 4'd1;
  end

  always_ff @(posedge clk_i) begin
    data_q <= valid_i ? data_i : {1'b0, data_q[7:1]};
    if (clear_i) crc_o <= '1;
    else if (busy_o) crc_o <= {1'b0, crc_o[31:1]} ^ (data_q[0] ^ crc_o[0] ? 32'hedb8_8320 : 32'd0);
  end

endmodule
