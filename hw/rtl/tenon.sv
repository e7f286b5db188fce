// Tenon, the accelerator: one AXI4-Lite slave for control, one AXI4 master for memory, one interrupt.
//
// fetch -> decode -> `issue` (a queue and a sequencer for each class of instructions, tied by the token matrix) and
// `command_queues` (one for each unit) -> units: `loads`, a store engine, and the compute half. Port names follow the
// conventions of AXI tools.
module tenon (
  input  logic clk_i,
  input  logic rst_ni,
`include "tenon_ports.svh"
  output logic interrupt_o
`ifdef TENON_TRACE
  ,
  // For simulators. Units that loads write, final writes of the compute half, and the state of every class.
  output logic                                 trace_ldi_valid_o,
  output logic [31:0]                          trace_ldi_index_o,
  output logic [31:0]                          trace_ldi_unit_o,
  output logic [tenon_pkg::BLOCK_IN*8-1:0]     trace_ldi_data_o,
  output logic                                 trace_ldw_valid_o,
  output logic [31:0]                          trace_ldw_index_o,
  output logic [31:0]                          trace_ldw_unit_o,
  output logic [tenon_pkg::BLOCK_IN*8-1:0]     trace_ldw_data_o,
  output logic                                 trace_ldm_valid_o,
  output logic [31:0]                          trace_ldm_index_o,
  output logic [2:0]                           trace_ldm_mem_o,
  output logic [31:0]                          trace_ldm_unit_o,
  output logic [(tenon_pkg::BLOCK_OUT > 4 ? tenon_pkg::BLOCK_OUT*8 : 32)-1:0] trace_ldm_data_o,
  output logic [31:0]                          trace_st_index_o,     // whose data is on the write channel
  output logic                                 trace_acc_valid_o,
  output logic [31:0]                          trace_acc_index_o,
  output logic [15:0]                          trace_acc_addr_o,
  output logic [tenon_pkg::BLOCK_OUT*32-1:0]   trace_acc_data_o,
  output logic                                 trace_out_valid_o,
  output logic [31:0]                          trace_out_index_o,
  output logic [15:0]                          trace_out_addr_o,
  output logic [tenon_pkg::BLOCK_OUT*8-1:0]    trace_out_data_o,
  output logic                                 trace_inp_valid_o,    // a result of RQ
  output logic [31:0]                          trace_inp_index_o,
  output logic [15:0]                          trace_inp_addr_o,
  output logic [tenon_pkg::BLOCK_IN*8-1:0]     trace_inp_data_o,
  // By engine index; the base profile's classes are LDI, GEMM and ST.
  output tenon_pkg::engines_t                  trace_start_o,        // the head starts
  output tenon_pkg::engines_t                  trace_done_o,         // the oldest instruction is done
  output tenon_pkg::engines_t                  trace_busy_o,         // an instruction is in flight
  output tenon_pkg::engines_t                  trace_wait_o,         // the head waits for tokens
  output tenon_pkg::engine_slots_t             trace_index_o,        // oldest instruction in flight, else the head
  output tenon_pkg::engine_slots_t             trace_head_o          // the head, which starts with trace_start_o
`endif
);

  localparam int LdmBytes  = tenon_pkg::BLOCK_OUT > 4 ? tenon_pkg::BLOCK_OUT : 4;

  // -------------------------------------------------------------------------------------------- constant signals of AXI
  assign s_axi_control_bresp = 2'd0;
  assign s_axi_control_rresp = 2'd0;
  assign m_axi_gmem_rready  = 1'b1;
  assign m_axi_gmem_bready  = 1'b1;
  assign m_axi_gmem_arsize  = 3'($clog2(tenon_pkg::AXI_BYTES));
  assign m_axi_gmem_arburst = 2'b01;
  assign m_axi_gmem_arlock  = 2'd0;
  assign m_axi_gmem_arcache = 4'b0011;
  assign m_axi_gmem_arprot  = 3'd0;
  assign m_axi_gmem_arqos   = 4'd0;
  assign m_axi_gmem_awid    = 2'd0;
  assign m_axi_gmem_awsize  = 3'($clog2(tenon_pkg::AXI_BYTES));
  assign m_axi_gmem_awburst = 2'b01;
  assign m_axi_gmem_awlock  = 2'd0;
  assign m_axi_gmem_awcache = 4'b0011;
  assign m_axi_gmem_awprot  = 3'd0;
  assign m_axi_gmem_awqos   = 4'd0;

  logic [tenon_pkg::ADDR_BITS-1:0] araddr, awaddr;
  assign m_axi_gmem_araddr = 64'(araddr);
  assign m_axi_gmem_awaddr = 64'(awaddr);

  // ------------------------------------------------------------------------------------------------- launch and control
  logic         start, soft_reset, token_clear, fetch_start, running, stop, halt, clear, soft_clear, done, idle;
  logic [7:0]   code;
  logic [31:0]  error_index, count, tokens_word, counters_word, progress_word, decoded;
  logic [tenon_pkg::ADDR_BITS-1:0]  instructions, base_addr;
  logic         native;
  logic [2:0]   base_index;
  logic         read;
  logic [11:0]  read_addr;
  logic         decode_done, decode_blocked, decode_error;
  logic [7:0]   decode_code;
  logic [31:0]  decode_index;
  tenon_pkg::engines_t seq_empty, seq_busy, seq_waiting, waiting, seq_stuck, seq_retire, seq_error;
  tenon_pkg::engine_slots_t seq_index, seq_error_index;
  tenon_pkg::engine_codes_t seq_error_code;
  logic         fetch_idle, loads_idle, st_idle, gemm_active;

  control u_control (
    .clk_i,
    .rst_ni,
    .awvalid_i      (s_axi_control_awvalid),
    .awready_o      (s_axi_control_awready),
    .awaddr_i       (s_axi_control_awaddr),
    .wvalid_i       (s_axi_control_wvalid),
    .wready_o       (s_axi_control_wready),
    .wdata_i        (s_axi_control_wdata),
    .wstrb_i        (s_axi_control_wstrb),
    .bvalid_o       (s_axi_control_bvalid),
    .bready_i       (s_axi_control_bready),
    .arvalid_i      (s_axi_control_arvalid),
    .arready_o      (s_axi_control_arready),
    .araddr_i       (s_axi_control_araddr),
    .rvalid_o       (s_axi_control_rvalid),
    .rready_i       (s_axi_control_rready),
    .rdata_o        (s_axi_control_rdata),
    .interrupt_o,
    .start_o        (start),
    .soft_reset_o   (soft_reset),
    .token_clear_o  (token_clear),
    .done_i         (done),
    .idle_i         (idle),
    .clear_i        (soft_clear),
    .code_i         (code),
    .error_index_i  (error_index),
    .waiting_i      (waiting),
    .instructions_o (instructions),
    .count_o        (count),
    .native_o       (native),
    .base_i         (base_index),
    .base_addr_o    (base_addr),
    .read_o         (read),
    .read_addr_o    (read_addr),
    .tokens_word_i  (tokens_word),
    .progress_word_i(progress_word),
    .counters_word_i(counters_word)
  );

  launch u_launch (
    .clk_i,
    .rst_ni,
    .start_i         (start),
    .soft_reset_i    (soft_reset),
    .instructions_i  (instructions[3:0]),
    .count_i         (count),
    .native_i        (native),
    .fetch_start_o   (fetch_start),
    .running_o       (running),
    .stop_o          (stop),
    .halt_o          (halt),
    .clear_o         (clear),
    .soft_clear_o    (soft_clear),
    .done_o          (done),
    .idle_o          (idle),
    .code_o          (code),
    .error_index_o   (error_index),
    .waiting_o       (waiting),
    .decode_done_i   (decode_done),
    .decode_blocked_i(decode_blocked),
    .decode_error_i  (decode_error),
    .decode_code_i   (decode_code),
    .decode_index_i  (decode_index),
    .empty_i         (seq_empty),
    .busy_i          (seq_busy),
    .stuck_i         (seq_stuck),
    .waiting_i       (seq_waiting),
    .index_i         (seq_index),
    .error_valid_i   (seq_error),
    .error_code_i    (seq_error_code),
    .error_index_i   (seq_error_index),
    .memory_idle_i   (fetch_idle & loads_idle & st_idle)
  );

  if (tenon_pkg::HAS_COUNTERS != 0) begin : g_counters
    counters u_counters (
      .clk_i,
      .rst_ni,
      .clear_i      (start | soft_clear),
      .running_i    (running),
      .retire_i     (seq_retire),
      .mac_i        (gemm_active),
      .read_beat_i  (m_axi_gmem_rvalid & m_axi_gmem_rready),
      .write_beat_i (m_axi_gmem_wvalid & m_axi_gmem_wready),
      .read_burst_i (m_axi_gmem_arvalid & m_axi_gmem_arready),
      .write_burst_i(m_axi_gmem_awvalid & m_axi_gmem_awready),
      .busy_i       (seq_busy),
      .stall_i      (seq_waiting),
      .read_i       (read),
      .address_i    (read_addr),
      .word_o       (counters_word)
    );
  end else begin : g_no_counters
    logic unused_counters;
    assign unused_counters = ^{running, gemm_active, seq_retire};
    assign counters_word = 32'd0;
  end

  if (tenon_pkg::HAS_PROGRESS != 0) begin : g_progress
    progress u_progress (
      .clk_i,
      .rst_ni,
      .clear_i       (clear),
      .empty_i       (seq_empty),
      .busy_i        (seq_busy),
      .index_i       (seq_index),
      .decoded_i     (decoded),
      .read_burst_i  (m_axi_gmem_arvalid & m_axi_gmem_arready),
      .read_last_i   (m_axi_gmem_rvalid & m_axi_gmem_rready & m_axi_gmem_rlast),
      .write_burst_i (m_axi_gmem_awvalid & m_axi_gmem_awready),
      .write_answer_i(m_axi_gmem_bvalid & m_axi_gmem_bready),
      .read_i        (read),
      .word_i        (read_addr[5:2]),
      .word_o        (progress_word)
    );
  end else begin : g_no_progress
    logic unused_progress;
    assign unused_progress = ^{decoded, m_axi_gmem_rlast};
    assign progress_word   = 32'd0;
  end

  // --------------------------------------------------------------------------------------------------- fetch and decode
  logic                      slot_valid, slot_ready, slot_last, slot_error;
  logic [127:0]              slot;
  logic [31:0]               slot_index;
  tenon_pkg::engines_t       entry_valid, entry_ready;
  tenon_pkg::entry_t         entry;
  tenon_pkg::units_t         cmd_valid, cmd_ready;
  logic                      fetch_valid, fetch_ready, fetch_r_valid;
  logic [tenon_pkg::ADDR_BITS-1:0] fetch_addr;
  logic [7:0]                fetch_len;
  dma_pkg::dma_cmd_t         dma_cmd;
  compute_pkg::gemm_cmd_t    gemm_cmd;
  compute_pkg::alu_cmd_t     alu_cmd;
  tenon_pkg::rq_cmd_t        rq_cmd;

  fetch u_fetch (
    .clk_i,
    .rst_ni,
    .clear_i     (clear),
    .halt_i      (stop),
    .start_i     (fetch_start),
    .address_i   (instructions),
    .count_i     (count),
    .slot_valid_o(slot_valid),
    .slot_ready_i(slot_ready),
    .slot_o      (slot),
    .slot_index_o(slot_index),
    .slot_last_o (slot_last),
    .slot_error_o(slot_error),
    .idle_o      (fetch_idle),
    .ar_valid_o  (fetch_valid),
    .ar_ready_i  (fetch_ready),
    .ar_addr_o   (fetch_addr),
    .ar_len_o    (fetch_len),
    .r_valid_i   (fetch_r_valid),
    .r_data_i    (m_axi_gmem_rdata),
    .r_error_i   (m_axi_gmem_rresp[1])
  );

  // A launch of a profile that is off is refused before its first instruction.
  logic profile;
  assign profile = tenon_pkg::HAS_BASE == 0 | (tenon_pkg::HAS_NATIVE != 0 & native);

  decode u_decode (
    .clk_i,
    .rst_ni,
    .clear_i      (clear),
    .stop_i       (stop),
    .native_i     (profile),
    .slot_valid_i (slot_valid),
    .slot_ready_o (slot_ready),
    .slot_i       (slot),
    .slot_index_i (slot_index),
    .slot_last_i  (slot_last),
    .slot_error_i (slot_error),
    .base_o       (base_index),
    .base_addr_i  (base_addr),
    .entry_valid_o(entry_valid),
    .entry_ready_i(entry_ready),
    .entry_o      (entry),
    .cmd_valid_o  (cmd_valid),
    .cmd_ready_i  (cmd_ready),
    .dma_cmd_o    (dma_cmd),
    .gemm_cmd_o   (gemm_cmd),
    .alu_cmd_o    (alu_cmd),
    .rq_cmd_o     (rq_cmd),
    .blocked_o    (decode_blocked),
    .done_o       (decode_done),
    .decoded_o    (decoded),
    .error_valid_o(decode_error),
    .error_code_o (decode_code),
    .error_index_o(decode_index)
  );

  // -------------------------------------------------------------------------------------------------------------- issue
  // Units by index.
  tenon_pkg::units_t unit_ready, unit_start, unit_done;    // of the sequencers
  tenon_pkg::units_t engine_ready;                         // to take a command
  // verilator lint_off UNUSEDSIGNAL
  tenon_pkg::units_t unit_valid;                           // a command for it; UNIT_NONE has none
  // verilator lint_on UNUSEDSIGNAL
  tenon_pkg::unit_codes_t unit_error;
  // verilator lint_off UNUSEDSIGNAL
  tenon_pkg::engines_t seq_started;
  tenon_pkg::engine_slots_t seq_head;  // both for the trace
  // verilator lint_on UNUSEDSIGNAL

  issue u_issue (
    .clk_i,
    .rst_ni,
    .clear_i      (clear),
    .stop_i       (stop),
    .token_clear_i(soft_clear | token_clear),
    .entry_valid_i(entry_valid),
    .entry_ready_o(entry_ready),
    .entry_i      (entry),
    .unit_start_o (unit_start),
    .unit_ready_i (unit_ready),
    .unit_done_i  (unit_done),
    .unit_error_i (unit_error),
    .start_o      (seq_started),
    .retire_o     (seq_retire),
    .busy_o       (seq_busy),
    .waiting_o    (seq_waiting),
    .empty_o      (seq_empty),
    .stuck_o      (seq_stuck),
    .index_o      (seq_index),
    .head_index_o (seq_head),
    .error_valid_o(seq_error),
    .error_code_o (seq_error_code),
    .error_index_o(seq_error_index),
    .read_i       (read),
    .word_i       (4'((read_addr - tenon_pkg::REG_TOKENS) >> 2)),
    .word_o       (tokens_word)
  );

  dma_pkg::dma_cmd_t      ldi_cmd, ldw_cmd, ldm_cmd, st_cmd;
  compute_pkg::gemm_cmd_t gemm_head;
  compute_pkg::alu_cmd_t  alu_head;
  tenon_pkg::rq_cmd_t     rq_head;

  command_queues u_command_queues (
    .clk_i,
    .rst_ni,
    .clear_i     (clear),
    .native_i    (profile),
    .push_valid_i(cmd_valid),
    .push_ready_o(cmd_ready),
    .dma_cmd_i   (dma_cmd),
    .gemm_cmd_i  (gemm_cmd),
    .alu_cmd_i   (alu_cmd),
    .rq_cmd_i    (rq_cmd),
    .ready_o     (unit_ready),
    .start_i     (unit_start),
    .valid_o     (unit_valid),
    .ready_i     (engine_ready),
    .ldi_cmd_o   (ldi_cmd),
    .ldw_cmd_o   (ldw_cmd),
    .ldm_cmd_o   (ldm_cmd),
    .st_cmd_o    (st_cmd),
    .gemm_cmd_o  (gemm_head),
    .alu_cmd_o   (alu_head),
    .rq_cmd_o    (rq_head)
  );

  // -------------------------------------------------------------------------------------------------------------- units
  logic [2:0] load_ready, load_done, load_error;
  logic       st_ready, st_done, st_error, gemm_ready, gemm_done, alu_ready, alu_done, rq_ready, rq_done;
  logic [7:0] gemm_error, alu_error, rq_error;

  // A unit that is not present is never ready, and UNIT_NONE is none.
  always_comb begin
    engine_ready = '0;
    unit_done    = '0;
    unit_error   = '0;  // STOP_NONE
    engine_ready[tenon_pkg::UNIT_LDM:tenon_pkg::UNIT_LDI] = load_ready;
    unit_done[tenon_pkg::UNIT_LDM:tenon_pkg::UNIT_LDI]    = load_done;
    for (int u = 0; u < 3; u++) begin
      if (load_error[u]) unit_error[u*8+:8] = tenon_pkg::STOP_READ_ERROR;
    end
    engine_ready[tenon_pkg::UNIT_GEMM]    = gemm_ready;
    unit_done[tenon_pkg::UNIT_GEMM]       = gemm_done;
    unit_error[tenon_pkg::UNIT_GEMM*8+:8] = gemm_error;
    engine_ready[tenon_pkg::UNIT_ALU]     = alu_ready;
    unit_done[tenon_pkg::UNIT_ALU]        = alu_done;
    unit_error[tenon_pkg::UNIT_ALU*8+:8]  = alu_error;
    engine_ready[tenon_pkg::UNIT_RQ]      = rq_ready;
    unit_done[tenon_pkg::UNIT_RQ]         = rq_done;
    unit_error[tenon_pkg::UNIT_RQ*8+:8]   = rq_error;
    engine_ready[tenon_pkg::UNIT_ST]      = st_ready;
    unit_done[tenon_pkg::UNIT_ST]         = st_done;
    if (st_error) unit_error[tenon_pkg::UNIT_ST*8+:8] = tenon_pkg::STOP_WRITE_ERROR;
  end

  logic                             ldi_we, ldw_we, ldm_we;
  logic [2:0]                       ldm_mem;
  logic [31:0]                      ldi_unit, ldw_unit, ldm_unit;
  // verilator lint_off UNUSEDSIGNAL
  logic [31:0]                      ldi_index, ldw_index, ldm_index;  // for the trace
  // verilator lint_on UNUSEDSIGNAL
  logic [tenon_pkg::BLOCK_IN*8-1:0] ldi_data, ldw_data;
  logic [LdmBytes*8-1:0]            ldm_data;

  loads #(
    .LdmBytes(LdmBytes)
  ) u_loads (
    .clk_i,
    .rst_ni,
    .clear_i        (clear),
    .halt_i         (halt),
    .native_i       (profile),
    .idle_o         (loads_idle),
    .fetch_valid_i  (fetch_valid),
    .fetch_ready_o  (fetch_ready),
    .fetch_addr_i   (fetch_addr),
    .fetch_len_i    (fetch_len),
    .fetch_r_valid_o(fetch_r_valid),
    .start_i        (unit_valid[2:0]),
    .ready_o        (load_ready),
    .done_o         (load_done),
    .error_o        (load_error),
    .ldi_cmd_i      (ldi_cmd),
    .ldw_cmd_i      (ldw_cmd),
    .ldm_cmd_i      (ldm_cmd),
    .ldi_we_o       (ldi_we),
    .ldi_unit_o     (ldi_unit),
    .ldi_index_o    (ldi_index),
    .ldi_data_o     (ldi_data),
    .ldw_we_o       (ldw_we),
    .ldw_unit_o     (ldw_unit),
    .ldw_index_o    (ldw_index),
    .ldw_data_o     (ldw_data),
    .ldm_we_o       (ldm_we),
    .ldm_mem_o      (ldm_mem),
    .ldm_unit_o     (ldm_unit),
    .ldm_index_o    (ldm_index),
    .ldm_data_o     (ldm_data),
    .arvalid_o      (m_axi_gmem_arvalid),
    .arready_i      (m_axi_gmem_arready),
    .araddr_o       (araddr),
    .arlen_o        (m_axi_gmem_arlen),
    .arid_o         (m_axi_gmem_arid),
    .rvalid_i       (m_axi_gmem_rvalid),
    .rid_i          (m_axi_gmem_rid),
    .rdata_i        (m_axi_gmem_rdata),
    .rerror_i       (m_axi_gmem_rresp[1])
  );

  logic                              st_req, st_acc, st_gnt;
  logic [15:0]                       st_addr;
  logic [tenon_pkg::BLOCK_OUT*8-1:0] st_rdata;
  // verilator lint_off UNUSEDSIGNAL
  logic [31:0]                       st_index;  // for the trace
  // verilator lint_on UNUSEDSIGNAL
  store_dma #(
    .UnitBytes(tenon_pkg::BLOCK_OUT)
  ) u_st (
    .clk_i,
    .rst_ni,
    .clear_i    (clear),
    .halt_i     (halt),
    .cmd_valid_i(unit_valid[tenon_pkg::UNIT_ST]),
    .cmd_ready_o(st_ready),
    .cmd_i      (st_cmd),
    .done_o     (st_done),
    .error_o    (st_error),
    .idle_o     (st_idle),
    .index_o    (st_index),
    .st_req_o   (st_req),
    .st_acc_o   (st_acc),
    .st_addr_o  (st_addr),
    .st_gnt_i   (st_gnt),
    .st_rdata_i (st_rdata),
    .awvalid_o  (m_axi_gmem_awvalid),
    .awready_i  (m_axi_gmem_awready),
    .awaddr_o   (awaddr),
    .awlen_o    (m_axi_gmem_awlen),
    .wvalid_o   (m_axi_gmem_wvalid),
    .wready_i   (m_axi_gmem_wready),
    .wdata_o    (m_axi_gmem_wdata),
    .wstrb_o    (m_axi_gmem_wstrb),
    .wlast_o    (m_axi_gmem_wlast),
    .bvalid_i   (m_axi_gmem_bvalid),
    .berror_i   (m_axi_gmem_bresp[1])
  );

  // The compute half starts every launch from reset, which ends a command that hangs or has failed. The register has
  // the polarity of an FPGA's resets, so that no gate is on its net.
  logic compute_reset_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) compute_reset_q <= 1'b1;
    else compute_reset_q <= clear;
  end

  compute u_compute (
    .clk_i,
    .rst_ni       (~compute_reset_q),
    .inp_we_i     (ldi_we),
    .inp_unit_i   (ldi_unit),
    .inp_wdata_i  (ldi_data),
    .wgt_we_i     (ldw_we),
    .wgt_unit_i   (ldw_unit),
    .wgt_wdata_i  (ldw_data),
    .ldm_we_i     (ldm_we),
    .ldm_mem_i    (ldm_mem),
    .ldm_unit_i   (ldm_unit),
    .ldm_wdata_i  (ldm_data),
    .st_req_i     (st_req),
    .st_acc_i     (st_acc),
    .st_addr_i    (st_addr),
    .st_gnt_o     (st_gnt),
    .st_rdata_o   (st_rdata),
    .gemm_valid_i (unit_valid[tenon_pkg::UNIT_GEMM]),
    .gemm_cmd_i   (gemm_head),
    .gemm_ready_o (gemm_ready),
    .gemm_done_o  (gemm_done),
    .gemm_error_o (gemm_error),
    .gemm_active_o(gemm_active),
    .alu_valid_i  (unit_valid[tenon_pkg::UNIT_ALU]),
    .alu_cmd_i    (alu_head),
    .alu_ready_o  (alu_ready),
    .alu_done_o   (alu_done),
    .alu_error_o  (alu_error),
    .rq_valid_i   (unit_valid[tenon_pkg::UNIT_RQ]),
    .rq_cmd_i     (rq_head),
    .rq_ready_o   (rq_ready),
    .rq_done_o    (rq_done),
    .rq_error_o   (rq_error)
`ifdef TENON_TRACE
    ,
    .trace_acc_valid_o,
    .trace_acc_index_o,
    .trace_acc_addr_o,
    .trace_acc_data_o,
    .trace_out_valid_o,
    .trace_out_index_o,
    .trace_out_addr_o,
    .trace_out_data_o,
    .trace_inp_valid_o,
    .trace_inp_index_o,
    .trace_inp_addr_o,
    .trace_inp_data_o
`endif
  );

`ifdef TENON_TRACE
  assign trace_ldi_valid_o = ldi_we;
  assign trace_ldi_index_o = ldi_index;
  assign trace_ldi_unit_o  = ldi_unit;
  assign trace_ldi_data_o  = ldi_data;
  assign trace_ldw_valid_o = ldw_we;
  assign trace_ldw_index_o = ldw_index;
  assign trace_ldw_unit_o  = ldw_unit;
  assign trace_ldw_data_o  = ldw_data;
  assign trace_ldm_valid_o = ldm_we;
  assign trace_ldm_index_o = ldm_index;
  assign trace_ldm_mem_o   = ldm_mem;
  assign trace_ldm_unit_o  = ldm_unit;
  assign trace_ldm_data_o  = ldm_data;
  assign trace_st_index_o  = st_index;
  assign trace_start_o     = seq_started;
  assign trace_done_o      = seq_retire;
  assign trace_busy_o      = seq_busy;
  assign trace_wait_o      = seq_waiting;
  assign trace_index_o     = seq_index;
  assign trace_head_o      = seq_head;
`endif

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & m_axi_gmem_arvalid) begin
      AReadBurstStaysInsideItsPage: assert (32'(m_axi_gmem_araddr[11:0]) +
                                            (32'(m_axi_gmem_arlen) + 1) * tenon_pkg::AXI_BYTES <= 4096);
    end
    if (rst_ni & m_axi_gmem_awvalid) begin
      AWriteBurstStaysInsideItsPage: assert (32'(m_axi_gmem_awaddr[11:0]) +
                                             (32'(m_axi_gmem_awlen) + 1) * tenon_pkg::AXI_BYTES <= 4096);
    end
    if (rst_ni & (|unit_start)) begin
      AUnitStartsOnlyWithACommandAndWhenItIsReady: assert (~|(unit_start & ~unit_ready));
      NothingStartsAfterAStop: assert (!stop);
    end
    if (rst_ni & done) begin
      ALaunchIsDoneWithNothingOutstanding: assert (fetch_idle & loads_idle & st_idle);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
