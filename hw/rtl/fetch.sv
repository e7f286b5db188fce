// Streams the instruction slots (16 bytes each) of a launch from DRAM, in order, with their indices.
module fetch (
  input  logic                           clk_i,
  input  logic                           rst_ni,
  input  logic                           clear_i,
  input  logic                           halt_i,       // send no more addresses
  input  logic                           start_i,
  input  logic [tenon_pkg::ADDR_BITS-1:0] address_i,    // a multiple of 16
  // verilator lint_off UNUSEDSIGNAL
  input  logic [31:0]                    count_i,      // slots, at least 1, in SLOT_BITS
  // verilator lint_on UNUSEDSIGNAL
  output logic                           slot_valid_o,
  input  logic                           slot_ready_i,
  output logic [127:0]                   slot_o,
  output logic [31:0]                    slot_index_o,
  output logic                           slot_last_o,
  output logic                           slot_error_o, // the memory answered with an error
  output logic                           idle_o,       // nothing is outstanding in the memory
  // To the arbiter.
  output logic                           ar_valid_o,
  input  logic                           ar_ready_i,
  output logic [tenon_pkg::ADDR_BITS-1:0] ar_addr_o,
  output logic [7:0]                     ar_len_o,
  input  logic                           r_valid_i,
  input  logic [tenon_pkg::AXI_BITS-1:0] r_data_i,
  input  logic                           r_error_i
);

  localparam int BeatBytes = tenon_pkg::AXI_BYTES;
  localparam int BeatShift = $clog2(BeatBytes);
  // Short bursts: instructions are a small part of the traffic, and data should not wait for them.
  localparam int MaxBurst  = tenon_pkg::MAX_BURST < 16 ? tenon_pkg::MAX_BURST : 16;

  logic                   run_valid_q, run_ready;
  logic                   beat_valid, beat_ready, beat_error;
  logic [BeatBytes*8-1:0] beat_data;
  logic [tenon_pkg::SLOT_BITS-1:0] index_q, last_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) run_valid_q <= 1'b0;
    else if (clear_i) run_valid_q <= 1'b0;
    else if (start_i) run_valid_q <= 1'b1;
    else if (run_ready) run_valid_q <= 1'b0;
  end

  read_port #(
    .BeatBytes(BeatBytes),
    .MaxBurst (MaxBurst),
    .FifoDepth(32),
    .LenWidth (tenon_pkg::SLOT_BITS + 4)
  ) u_port (
    .clk_i,
    .rst_ni,
    .clear_i,
    .halt_i,
    .all_i       (1'b1),
    .run_valid_i (run_valid_q),
    .run_ready_o (run_ready),
    .run_addr_i  (address_i),
    .run_bytes_i ({count_i[tenon_pkg::SLOT_BITS-1:0], 4'd0}),
    .beat_valid_o(beat_valid),
    .beat_ready_i(beat_ready),
    .beat_data_o (beat_data),
    .beat_error_o(beat_error),
    .idle_o,
    .ar_valid_o,
    .ar_ready_i,
    .ar_addr_o,
    .ar_len_o,
    .r_valid_i,
    .r_data_i,
    .r_error_i
  );

  if (BeatBytes == 16) begin : g_one
    assign slot_valid_o = beat_valid;
    assign slot_o       = beat_data;
    assign slot_error_o = beat_error;
    assign beat_ready   = slot_ready_i;
  end else if (BeatBytes < 16) begin : g_several_beats
    // The beats of a slot are shifted in from the top; the last one passes through.
    localparam int Parts = 16 / BeatBytes;
    logic [127:BeatBytes*8]       parts_q;
    logic [$clog2(Parts)-1:0]     part_q;
    logic                         error_q, last_part;
    assign last_part    = &part_q;
    assign slot_valid_o = beat_valid & last_part;
    assign slot_o       = {beat_data, parts_q};
    assign slot_error_o = beat_error | error_q;
    assign beat_ready   = ~last_part | slot_ready_i;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        part_q  <= '0;
        error_q <= 1'b0;
      end else if (clear_i) begin
        part_q  <= '0;
        error_q <= 1'b0;
      end else if (beat_valid & beat_ready) begin
        part_q  <= part_q + 1'b1;
        error_q <= ~last_part & (error_q | beat_error);
      end
    end
    always_ff @(posedge clk_i) begin
      if (beat_valid & beat_ready) parts_q <= (128 - BeatBytes * 8)'({beat_data, parts_q} >> (BeatBytes * 8));
    end
  end else begin : g_several_slots
    // A beat holds several slots; the first beat may begin before the first slot, the last one end after the last slot.
    logic [BeatShift-5:0] part_q;
    assign slot_valid_o = beat_valid;
    assign slot_o       = beat_data[{part_q, 7'd0}+:128];
    assign slot_error_o = beat_error;
    assign beat_ready   = slot_ready_i & (&part_q | slot_last_o);
    always_ff @(posedge clk_i) begin
      if (start_i) part_q <= address_i[BeatShift-1:4];
      else if (slot_valid_o & slot_ready_i) part_q <= part_q + 1'b1;
    end
  end

  assign slot_index_o = 32'(index_q);
  assign slot_last_o  = index_q == last_q;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      index_q <= '0;
      last_q  <= tenon_pkg::SLOT_BITS'(count_i - 32'd1);
    end else if (slot_valid_o & slot_ready_i) begin
      index_q <= index_q + 1'b1;
    end
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & start_i) begin
      AStreamStartsAfterTheLastOne: assert (~run_valid_q & idle_o);
      AStreamIsAlignedToSlotsAndHasOne: assert (address_i[3:0] == 4'd0 & count_i != 32'd0);
    end
    if (rst_ni & slot_valid_o & slot_ready_i) begin
      ASlotIsOneOfTheStream: assert (index_q <= last_q);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
