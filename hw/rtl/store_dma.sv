// Executes stores: reads units of a scratchpad in order and writes them to DRAM, by the rule of MOVE backwards.
//
// One half makes beats of units (store_window; with IN_ORDER store_bytes), the other one bursts of addresses. Memory is
// never read in order to be written: bytes that no unit covers have strobe 0. `done_o` comes after the last write
// response. With OVERLAPPING_STORES the next command is taken when all beats of one have entered the queue and all of its
// bursts have begun; its responses are counted meanwhile.
module store_dma #(
  parameter int UnitBytes = 16
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,
  input  logic                             clear_i,
  input  logic                             halt_i,       // no more addresses; open bursts end with strobes 0
  input  logic                             cmd_valid_i,
  output logic                             cmd_ready_o,
  input  dma_pkg::dma_cmd_t                cmd_i,
  output logic                             done_o,
  output logic                             error_o,      // with done: the memory answered with an error
  output logic                             idle_o,       // nothing is outstanding in the memory
  output logic [31:0]                      index_o,
  // Scratchpad: granted in the cycle of the request, data in the next one.
  output logic                             st_req_o,
  output logic                             st_acc_o,
  output logic [15:0]                      st_addr_o,
  input  logic                             st_gnt_i,
  input  logic [UnitBytes*8-1:0]           st_rdata_i,
  // Write channels of the memory port.
  output logic                             awvalid_o,
  input  logic                             awready_i,
  output logic [tenon_pkg::ADDR_BITS-1:0]  awaddr_o,
  output logic [7:0]                       awlen_o,
  output logic                             wvalid_o,
  input  logic                             wready_i,
  output logic [tenon_pkg::AXI_BITS-1:0]   wdata_o,
  output logic [tenon_pkg::AXI_BYTES-1:0]  wstrb_o,
  output logic                             wlast_o,
  input  logic                             bvalid_i,
  input  logic                             berror_i
);

  logic busy, start_cmd, sent, finish;
  assign cmd_ready_o = ~busy;
  assign start_cmd   = cmd_valid_i & cmd_ready_o;

  // ------------------------------------------------------------------------------------------ addresses, row by row
  logic        run_valid, run_ready, room, beat, load, begun, port_done, port_error;
  logic [3:0]  open;  // bursts without response
  logic [tenon_pkg::ADDR_BITS-1:0] run_addr;
  // verilator lint_off UNUSEDSIGNAL
  logic [31:0] run_bytes;  // in LENGTH_BITS
  // verilator lint_on UNUSEDSIGNAL

  row_addresses u_addresses (
    .clk_i,
    .rst_ni,
    .clear_i,
    .start_i    (start_cmd),
    .cmd_i,
    .run_valid_o(run_valid),
    .run_ready_i(run_ready),
    .run_addr_o (run_addr),
    .run_bytes_o(run_bytes)
  );

  write_port u_port (
    .clk_i,
    .rst_ni,
    .clear_i,
    .halt_i,
    .start_i    (start_cmd),
    .run_valid_i(run_valid),
    .run_ready_o(run_ready),
    .run_addr_i (run_addr),
    .run_bytes_i(run_bytes[tenon_pkg::LENGTH_BITS-1:0]),
    .room_o     (room),
    .beat_i     (beat),
    .load_o     (load),
    .begun_o    (begun),
    .open_o     (open),
    .done_o     (port_done),
    .idle_o,
    .error_o    (port_error),
    .awvalid_o,
    .awready_i,
    .awaddr_o,
    .awlen_o,
    .wvalid_o,
    .wready_i,
    .wlast_o,
    .bvalid_i,
    .berror_i
  );

  // ------------------------------------------------------------------------------------------------------ data, by beats
  if (tenon_pkg::IN_ORDER != 0) begin : g_bytes
    store_bytes #(
      .UnitBytes(UnitBytes)
    ) u_data (
      .clk_i,
      .rst_ni,
      .clear_i,
      .halt_i,
      .start_i (start_cmd),
      .cmd_i,
      .busy_o  (busy),
      .sent_o  (sent),
      .finish_i(finish),
      .st_req_o,
      .st_acc_o,
      .st_addr_o,
      .st_gnt_i,
      .st_rdata_i,
      .room_i  (room),
      .beat_o  (beat),
      .load_i  (load),
      .waits_i (wvalid_o),
      .gone_i  (wvalid_o & wready_i),
      .wdata_o,
      .wstrb_o
    );
    assign index_o = cmd_i.index;
  end else begin : g_window
    store_window #(
      .UnitBytes(UnitBytes)
    ) u_data (
      .clk_i,
      .rst_ni,
      .clear_i,
      .halt_i,
      .start_i (start_cmd),
      .cmd_i,
      .busy_o  (busy),
      .sent_o  (sent),
      .finish_i(finish),
      .index_o,
      .st_req_o,
      .st_acc_o,
      .st_addr_o,
      .st_gnt_i,
      .st_rdata_i,
      .room_i  (room),
      .beat_o  (beat),
      .load_i  (load),
      .wdata_o,
      .wstrb_o
    );
  end

  if (tenon_pkg::OVERLAPPING_STORES != 0) begin : g_overlap
    logic answered;  // the responses of the command before have come, so that all open bursts are this one's
    assign finish = sent & ~run_valid & begun & answered;
    store_answers u_answers (
      .clk_i,
      .rst_ni,
      .clear_i,
      .sent_i    (finish),
      .open_i    (open),
      .answered_o(answered),
      .done_o,
      .error_o,
      .bvalid_i,
      .berror_i
    );
    logic unused_port;
    assign unused_port = ^{port_done, port_error};
  end else begin : g_one
    assign finish  = sent & ~run_valid & port_done;
    assign error_o = port_error;
    logic unused_open;
    assign unused_open = ^{begun, open};
    if (tenon_pkg::IN_ORDER != 0) begin : g_done
      assign done_o = finish;
    end else begin : g_done_later
      logic done_q;
      always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) done_q <= 1'b0;
        else done_q <= finish & ~clear_i;
      end
      assign done_o = done_q;
    end
  end

`ifndef SYNTHESIS
  stream_check #(.Width(tenon_pkg::AXI_BYTES * 9 + 1)) u_w_check (
    .clk_i,
    .rst_ni,
    .valid_i(wvalid_o),
    .ready_i(wready_i),
    .data_i ({wdata_o, wstrb_o, wlast_o})
  );
`endif

endmodule
