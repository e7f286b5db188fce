// Executes loads: reads rows of bytes from DRAM and writes them as units into a scratchpad, by the rule of MOVE.
//
// Two halves work independently: one sends the addresses of each row's bytes, the other builds units from the
// returning beats (load_window; with IN_ORDER load_bytes). A second command is taken while the first one still waits for
// its data, so that a run of short commands does not pay the memory's latency each. `done_o` comes in the cycle after
// the last unit, in the order of the commands.
module load_dma #(
  parameter int UnitBytes = 16,  // of the widest unit
  parameter int FifoDepth = 128,
  parameter int FewBeats  = 128  // that are requested at a time in the base profile
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,
  input  logic                             clear_i,
  input  logic                             halt_i,
  input  logic                             native_i,     // the profile; changes with clear
  input  logic                             cmd_valid_i,
  output logic                             cmd_ready_o,
  input  dma_pkg::dma_cmd_t                cmd_i,
  output logic                             done_o,
  output logic                             error_o,      // with done: the memory answered with an error
  output logic                             idle_o,       // nothing is outstanding in the memory
  // To the scratchpad, which always accepts.
  output logic                             we_o,
  output logic [2:0]                       mem_o,
  output logic [31:0]                      unit_o,
  output logic [31:0]                      index_o,
  output logic [UnitBytes*8-1:0]           data_o,
  // To the arbiter.
  output logic                             ar_valid_o,
  input  logic                             ar_ready_i,
  output logic [tenon_pkg::ADDR_BITS-1:0]  ar_addr_o,
  output logic [7:0]                       ar_len_o,
  input  logic                             r_valid_i,
  input  logic [tenon_pkg::AXI_BITS-1:0]   r_data_i,
  input  logic                             r_error_i
);

  localparam int BeatBytes = tenon_pkg::AXI_BYTES;
  localparam bit Serial    = tenon_pkg::IN_ORDER != 0;

  // ------------------------------------------------------------------------------------------ addresses, row by row
  logic              run_valid, run_ready;
  logic [tenon_pkg::ADDR_BITS-1:0] run_addr;
  // verilator lint_off UNUSEDSIGNAL
  logic [31:0]       run_bytes;  // in LENGTH_BITS
  // verilator lint_on UNUSEDSIGNAL
  logic              accept, room;

  assign cmd_ready_o = ~run_valid & room;
  assign accept      = cmd_valid_i & cmd_ready_o;

  row_addresses u_addresses (
    .clk_i,
    .rst_ni,
    .clear_i,
    .start_i    (accept),
    .cmd_i,
    .run_valid_o(run_valid),
    .run_ready_i(run_ready),
    .run_addr_o (run_addr),
    .run_bytes_o(run_bytes)
  );

  logic                   beat_valid, beat_ready, beat_error;
  logic [BeatBytes*8-1:0] beat_data;

  read_port #(
    .BeatBytes(BeatBytes),
    .MaxBurst (tenon_pkg::MAX_BURST),
    .FifoDepth(FifoDepth),
    .FewBeats (FewBeats),
    .LenWidth (tenon_pkg::LENGTH_BITS),
    .Errors   (~Serial)
  ) u_port (
    .clk_i,
    .rst_ni,
    .clear_i,
    .halt_i,
    .all_i       (native_i),
    .run_valid_i (run_valid),
    .run_ready_o (run_ready),
    .run_addr_i  (run_addr),
    .run_bytes_i (run_bytes[tenon_pkg::LENGTH_BITS-1:0]),
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

  // ----------------------------------------------------------------------------------------------- data, unit by unit
  if (Serial) begin : g_bytes
    logic unused_error;
    assign unused_error = beat_error;
    load_bytes #(
      .UnitBytes(UnitBytes)
    ) u_data (
      .clk_i,
      .rst_ni,
      .clear_i,
      .accept_i    (accept),
      .room_o      (room),
      .cmd_i,
      .done_o,
      .error_o,
      .beat_valid_i(beat_valid),
      .beat_ready_o(beat_ready),
      .beat_data_i (beat_data),
      .error_i     (r_valid_i & r_error_i),
      .we_o,
      .mem_o,
      .unit_o,
      .index_o,
      .data_o
    );
  end else begin : g_window
    load_window #(
      .UnitBytes(UnitBytes)
    ) u_data (
      .clk_i,
      .rst_ni,
      .clear_i,
      .accept_i    (accept),
      .room_o      (room),
      .cmd_i,
      .done_o,
      .error_o,
      .beat_valid_i(beat_valid),
      .beat_ready_o(beat_ready),
      .beat_data_i (beat_data),
      .beat_error_i(beat_error),
      .we_o,
      .mem_o,
      .unit_o,
      .index_o,
      .data_o
    );
  end

endmodule
