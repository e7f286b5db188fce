// The read side of memory: up to three load engines and the instruction fetch, which share one AXI4 read port.
//
// Each engine writes its own scratchpads, unit by unit: LDI inputs, LDW weights, LDM all others.
module loads #(
  parameter int LdmBytes = 16  // bytes of a unit that LDM writes
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,
  input  logic                             clear_i,
  input  logic                             halt_i,       // send no more addresses
  input  logic                             native_i,     // the profile; changes with clear
  output logic                             idle_o,       // no transfer of an engine is outstanding; fetch has its own
  // Instruction fetch; its data is that of the read channel.
  input  logic                             fetch_valid_i,
  output logic                             fetch_ready_o,
  input  logic [tenon_pkg::ADDR_BITS-1:0]  fetch_addr_i,
  input  logic [7:0]                       fetch_len_i,
  output logic                             fetch_r_valid_o,
  // Engines by unit index: LDI 0, LDW 1, LDM 2.
  input  logic [2:0]                       start_i,      // a command waits
  output logic [2:0]                       ready_o,
  output logic [2:0]                       done_o,
  output logic [2:0]                       error_o,
  input  dma_pkg::dma_cmd_t                ldi_cmd_i,
  input  dma_pkg::dma_cmd_t                ldw_cmd_i,
  input  dma_pkg::dma_cmd_t                ldm_cmd_i,
  // Writes to the scratchpads; the index is for the trace.
  output logic                             ldi_we_o,
  output logic [31:0]                      ldi_unit_o,
  output logic [31:0]                      ldi_index_o,
  output logic [tenon_pkg::BLOCK_IN*8-1:0] ldi_data_o,
  output logic                             ldw_we_o,
  output logic [31:0]                      ldw_unit_o,
  output logic [31:0]                      ldw_index_o,
  output logic [tenon_pkg::BLOCK_IN*8-1:0] ldw_data_o,
  output logic                             ldm_we_o,
  output logic [2:0]                       ldm_mem_o,
  output logic [31:0]                      ldm_unit_o,
  output logic [31:0]                      ldm_index_o,
  output logic [LdmBytes*8-1:0]            ldm_data_o,
  // AXI4, read channels.
  output logic                             arvalid_o,
  input  logic                             arready_i,
  output logic [tenon_pkg::ADDR_BITS-1:0]  araddr_o,
  output logic [7:0]                       arlen_o,
  output logic [1:0]                       arid_o,
  input  logic                             rvalid_i,
  input  logic [1:0]                       rid_i,
  input  logic [tenon_pkg::AXI_BITS-1:0]   rdata_i,
  input  logic                             rerror_i
);

  // Reader 0 is the fetch, reader u + 1 the engine of unit u.
  logic [3:0]   valid, ready, r_valid;
  logic [4*tenon_pkg::ADDR_BITS-1:0] addr;
  logic [31:0]  len;
  logic [2:0]   engine_idle;
  logic         arbiter_idle;

  assign valid[0]        = fetch_valid_i;
  assign addr[0+:tenon_pkg::ADDR_BITS] = fetch_addr_i;
  assign len[7:0]        = fetch_len_i;
  assign fetch_ready_o   = ready[0];
  assign fetch_r_valid_o = r_valid[0];
  assign idle_o          = &engine_idle & arbiter_idle;

  read_arbiter u_arbiter (
    .clk_i,
    .rst_ni,
    .ar_valid_i(valid),
    .ar_ready_o(ready),
    .ar_addr_i (addr),
    .ar_len_i  (len),
    .r_valid_o (r_valid),
    .idle_o    (arbiter_idle),
    .arvalid_o,
    .arready_i,
    .araddr_o,
    .arlen_o,
    .arid_o,
    .rvalid_i,
    .rid_i
  );

  // The engine of inputs loads the weights too, where these have no engine of their own, and likewise all others; then
  // the two classes that load take turns.
  localparam int FirstBytes = tenon_pkg::HAS_ACCUMULATOR_ENGINE != 0 | tenon_pkg::BLOCK_IN > LdmBytes
                                  ? tenon_pkg::BLOCK_IN : LdmBytes;
  logic                    first_we, first_start, first_ready, first_done, first_error;
  dma_pkg::dma_cmd_t       first_cmd;
  logic [FirstBytes*8-1:0] first_data;
  // verilator lint_off UNUSEDSIGNAL
  logic [2:0]              first_mem;
  // verilator lint_on UNUSEDSIGNAL
  load_dma #(
    .UnitBytes(FirstBytes),
    .FifoDepth(tenon_pkg::READ_BEATS),
    .FewBeats (tenon_pkg::BASE_READ_BEATS)
  ) u_ldi (
    .clk_i,
    .rst_ni,
    .clear_i,
    .halt_i,
    .native_i,
    .cmd_valid_i(first_start),
    .cmd_ready_o(first_ready),
    .cmd_i      (first_cmd),
    .done_o     (first_done),
    .error_o    (first_error),
    .idle_o     (engine_idle[0]),
    .we_o       (first_we),
    .mem_o      (first_mem),
    .unit_o     (ldi_unit_o),
    .index_o    (ldi_index_o),
    .data_o     (first_data),
    .ar_valid_o (valid[1]),
    .ar_ready_i (ready[1]),
    .ar_addr_o  (addr[tenon_pkg::ADDR_BITS+:tenon_pkg::ADDR_BITS]),
    .ar_len_o   (len[8+:8]),
    .r_valid_i  (r_valid[1]),
    .r_data_i   (rdata_i),
    .r_error_i  (rerror_i)
  );
  assign ldi_data_o = first_data[tenon_pkg::BLOCK_IN*8-1:0];

  if (tenon_pkg::HAS_WEIGHT_ENGINE != 0) begin : g_ldw
    assign ldi_we_o = first_we;

    // verilator lint_off PINCONNECTEMPTY
    load_dma #(
      .UnitBytes(tenon_pkg::BLOCK_IN),
      .FifoDepth(tenon_pkg::READ_BEATS),
      .FewBeats (tenon_pkg::BASE_READ_BEATS)
    ) u_ldw (
      .clk_i,
      .rst_ni,
      .clear_i,
      .halt_i,
      .native_i,
      .cmd_valid_i(start_i[1]),
      .cmd_ready_o(ready_o[1]),
      .cmd_i      (ldw_cmd_i),
      .done_o     (done_o[1]),
      .error_o    (error_o[1]),
      .idle_o     (engine_idle[1]),
      .we_o       (ldw_we_o),
      .mem_o      (),  // one scratchpad
      .unit_o     (ldw_unit_o),
      .index_o    (ldw_index_o),
      .data_o     (ldw_data_o),
      .ar_valid_o (valid[2]),
      .ar_ready_i (ready[2]),
      .ar_addr_o  (addr[2*tenon_pkg::ADDR_BITS+:tenon_pkg::ADDR_BITS]),
      .ar_len_o   (len[16+:8]),
      .r_valid_i  (r_valid[2]),
      .r_data_i   (rdata_i),
      .r_error_i  (rerror_i)
    );
    // verilator lint_on PINCONNECTEMPTY
  end else begin : g_no_ldw
    logic unused_ldw;
    assign unused_ldw  = ^{start_i[1], ldw_cmd_i, ready[2], r_valid[2]};
    assign ldi_we_o    = first_we & first_mem == tenon_pkg::MEM_INP;
    assign ldw_we_o    = first_we & first_mem == tenon_pkg::MEM_WGT;
    assign ldw_unit_o  = ldi_unit_o;
    assign ldw_index_o = ldi_index_o;
    assign ldw_data_o  = ldi_data_o;
    assign {ready_o[1], done_o[1], error_o[1], engine_idle[1], valid[2]} = 5'b00010;
    assign addr[2*tenon_pkg::ADDR_BITS+:tenon_pkg::ADDR_BITS] = '0;
    assign len[16+:8] = 8'd0;
  end

  if (tenon_pkg::HAS_ACCUMULATOR_ENGINE != 0) begin : g_ldm
    assign first_start = start_i[0];
    assign first_cmd   = ldi_cmd_i;
    assign ready_o[0]  = first_ready;
    assign done_o[0]   = first_done;
    assign error_o[0]  = first_error;

    load_dma #(
      .UnitBytes(LdmBytes),
      .FifoDepth(tenon_pkg::READ_BEATS),
      .FewBeats (tenon_pkg::BASE_READ_BEATS)
    ) u_ldm (
      .clk_i,
      .rst_ni,
      .clear_i,
      .halt_i,
      .native_i,
      .cmd_valid_i(start_i[2]),
      .cmd_ready_o(ready_o[2]),
      .cmd_i      (ldm_cmd_i),
      .done_o     (done_o[2]),
      .error_o    (error_o[2]),
      .idle_o     (engine_idle[2]),
      .we_o       (ldm_we_o),
      .mem_o      (ldm_mem_o),
      .unit_o     (ldm_unit_o),
      .index_o    (ldm_index_o),
      .data_o     (ldm_data_o),
      .ar_valid_o (valid[3]),
      .ar_ready_i (ready[3]),
      .ar_addr_o  (addr[3*tenon_pkg::ADDR_BITS+:tenon_pkg::ADDR_BITS]),
      .ar_len_o   (len[24+:8]),
      .r_valid_i  (r_valid[3]),
      .r_data_i   (rdata_i),
      .r_error_i  (rerror_i)
    );
  end else begin : g_no_ldm
    logic operand;  // whose command is done
    if (tenon_pkg::IN_ORDER != 0) begin : g_held
      assign first_cmd   = ldi_cmd_i;  // decode holds one command for all
      assign first_start = start_i[0] | start_i[2];
      assign {ready_o[2], ready_o[0]} = {2{first_ready}};
      logic unused_cmd;
      assign unused_cmd = ^ldm_cmd_i;
    end else begin : g_turns
      logic turn_q;  // whose turn it is
      always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) turn_q <= 1'b0;
        else turn_q <= ~turn_q;
      end
      assign first_cmd   = turn_q ? ldm_cmd_i : ldi_cmd_i;
      assign first_start = turn_q ? start_i[2] : start_i[0];
      assign ready_o[0]  = first_ready & ~turn_q;
      assign ready_o[2]  = first_ready & turn_q;
    end
    assign operand     = first_mem == tenon_pkg::MEM_INP | first_mem == tenon_pkg::MEM_WGT;
    assign done_o[0]   = first_done & operand;
    assign done_o[2]   = first_done & ~operand;
    assign error_o[0]  = first_error;
    assign error_o[2]  = first_error;
    assign ldm_we_o    = first_we & ~operand;
    assign ldm_mem_o   = first_mem;
    assign ldm_unit_o  = ldi_unit_o;
    assign ldm_index_o = ldi_index_o;
    assign ldm_data_o  = first_data[LdmBytes*8-1:0];
    assign engine_idle[2] = 1'b1;
    assign valid[3]    = 1'b0;
    assign addr[3*tenon_pkg::ADDR_BITS+:tenon_pkg::ADDR_BITS] = '0;
    assign len[24+:8]  = 8'd0;
    logic unused_ldm;
    assign unused_ldm  = ^{ready[3], r_valid[3]};
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & rvalid_i) begin
      ABeatForAnEngineWasRequested: assert (rid_i == 2'd0 | engine_idle != 3'd7);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
