// The DMA engines alone, after the decoder of transfers: an instruction in, units or write beats out.
module dma_bench (
  input  logic                            clk_i,
  input  logic                            rst_ni,
  // The command is ready three cycles after its instruction.
  input  logic                            native_i,
  input  logic [255:0]                    insn_i,
  input  logic [31:0]                     index_i,
  input  logic [63:0]                     base_addr_i,
  output logic [2:0]                      base_o,
  output logic                            empty_o,
  output logic                            range_o,
  // Start of an engine: 0 inp, 1 the others, 2 store.
  input  logic [2:0]                      start_i,
  output logic [2:0]                      ready_o,
  output logic [2:0]                      done_o,
  output logic [2:0]                      error_o,
  output logic                            inp_we_o,
  output logic [31:0]                     inp_unit_o,
  output logic [31:0]                     inp_index_o,
  output logic [tenon_pkg::BLOCK_IN*8-1:0] inp_data_o,
  output logic                            ldm_we_o,
  output logic [2:0]                      ldm_mem_o,
  output logic [31:0]                     ldm_unit_o,
  output logic [31:0]                     ldm_index_o,
  output logic [(tenon_pkg::BLOCK_OUT > 4 ? tenon_pkg::BLOCK_OUT*8 : 32)-1:0] ldm_data_o,
  output logic                            st_req_o,
  output logic                            st_acc_o,
  output logic [15:0]                     st_addr_o,
  input  logic                            st_gnt_i,
  input  logic [tenon_pkg::BLOCK_OUT*8-1:0] st_rdata_i,
  output logic                            idle_o,
  input  logic                            halt_i,
  input  logic                            clear_i,
  output logic                            arvalid_o,
  input  logic                            arready_i,
  output logic [63:0]                     araddr_o,
  output logic [7:0]                      arlen_o,
  output logic [1:0]                      arid_o,
  input  logic                            rvalid_i,
  input  logic [1:0]                      rid_i,
  input  logic [tenon_pkg::AXI_BITS-1:0]  rdata_i,
  input  logic                            rerror_i,
  output logic                            awvalid_o,
  input  logic                            awready_i,
  output logic [63:0]                     awaddr_o,
  output logic [7:0]                      awlen_o,
  output logic                            wvalid_o,
  input  logic                            wready_i,
  output logic [tenon_pkg::AXI_BITS-1:0]  wdata_o,
  output logic [tenon_pkg::AXI_BYTES-1:0] wstrb_o,
  output logic                            wlast_o,
  input  logic                            bvalid_i,
  input  logic                            berror_i
);

  localparam int LdmBytes  = tenon_pkg::BLOCK_OUT > 4 ? tenon_pkg::BLOCK_OUT : 4;

  dma_pkg::dma_cmd_t cmd;
  logic [3:0]        reader_valid;
  // verilator lint_off UNUSEDSIGNAL
  logic [3:0]        reader_ready, reader_r_valid;  // two readers of four
  logic [31:0]       st_index;
  logic [2:0]        inp_mem;
  // verilator lint_on UNUSEDSIGNAL
  logic [255:0]      reader_addr;
  logic [31:0]       reader_len;
  logic              inp_idle, ldm_idle, st_idle, arbiter_idle;

  assign idle_o = inp_idle & ldm_idle & st_idle & arbiter_idle;
  assign reader_valid[1:0]  = 2'b00;
  assign reader_addr[127:0] = '0;
  assign reader_len[15:0]   = '0;

  decode_transfer u_transfer (
    .clk_i,
    .step1_i(1'b1),
    .step2_i(1'b1),
    .step3_i(1'b1),
    .native_i,
    .insn_i,
    .index_i,
    .base_o,
    .base_addr_i,
    .cmd_o    (cmd),
    .empty_o,
    .range_o
  );

  read_arbiter u_arbiter (
    .clk_i,
    .rst_ni,
    .ar_valid_i(reader_valid),
    .ar_ready_o(reader_ready),
    .ar_addr_i (reader_addr),
    .ar_len_i  (reader_len),
    .r_valid_o (reader_r_valid),
    .idle_o    (arbiter_idle),
    .arvalid_o,
    .arready_i,
    .araddr_o,
    .arlen_o,
    .arid_o,
    .rvalid_i,
    .rid_i
  );

  load_dma #(
    .UnitBytes(tenon_pkg::BLOCK_IN),
    .FifoDepth(tenon_pkg::READ_BEATS),
    .FewBeats (tenon_pkg::BASE_READ_BEATS)
  ) u_inp (
    .clk_i,
    .rst_ni,
    .clear_i,
    .halt_i,
    .native_i   (1'b1),  // programs of both profiles are mixed
    .cmd_valid_i(start_i[0] & ready_o[0]),
    .cmd_ready_o(ready_o[0]),
    .cmd_i      (cmd),
    .done_o     (done_o[0]),
    .error_o    (error_o[0]),
    .idle_o     (inp_idle),
    .we_o       (inp_we_o),
    .mem_o      (inp_mem),
    .unit_o     (inp_unit_o),
    .index_o    (inp_index_o),
    .data_o     (inp_data_o),
    .ar_valid_o (reader_valid[2]),
    .ar_ready_i (reader_ready[2]),
    .ar_addr_o  (reader_addr[191:128]),
    .ar_len_o   (reader_len[23:16]),
    .r_valid_i  (reader_r_valid[2]),
    .r_data_i   (rdata_i),
    .r_error_i  (rerror_i)
  );

  load_dma #(
    .UnitBytes(LdmBytes),
    .FifoDepth(tenon_pkg::READ_BEATS),
    .FewBeats (tenon_pkg::BASE_READ_BEATS)
  ) u_ldm (
    .clk_i,
    .rst_ni,
    .clear_i,
    .halt_i,
    .native_i   (1'b1),  // programs of both profiles are mixed
    .cmd_valid_i(start_i[1] & ready_o[1]),
    .cmd_ready_o(ready_o[1]),
    .cmd_i      (cmd),
    .done_o     (done_o[1]),
    .error_o    (error_o[1]),
    .idle_o     (ldm_idle),
    .we_o       (ldm_we_o),
    .mem_o      (ldm_mem_o),
    .unit_o     (ldm_unit_o),
    .index_o    (ldm_index_o),
    .data_o     (ldm_data_o),
    .ar_valid_o (reader_valid[3]),
    .ar_ready_i (reader_ready[3]),
    .ar_addr_o  (reader_addr[255:192]),
    .ar_len_o   (reader_len[31:24]),
    .r_valid_i  (reader_r_valid[3]),
    .r_data_i   (rdata_i),
    .r_error_i  (rerror_i)
  );

  store_dma #(
    .UnitBytes(tenon_pkg::BLOCK_OUT)
  ) u_st (
    .clk_i,
    .rst_ni,
    .clear_i,
    .halt_i,
    .cmd_valid_i(start_i[2] & ready_o[2]),
    .cmd_ready_o(ready_o[2]),
    .cmd_i      (cmd),
    .done_o     (done_o[2]),
    .error_o    (error_o[2]),
    .idle_o     (st_idle),
    .index_o    (st_index),
    .st_req_o,
    .st_acc_o,
    .st_addr_o,
    .st_gnt_i,
    .st_rdata_i,
    .awvalid_o,
    .awready_i,
    .awaddr_o,
    .awlen_o,
    .wvalid_o,
    .wready_i,
    .wdata_o,
    .wstrb_o,
    .wlast_o,
    .bvalid_i,
    .berror_i
  );

endmodule
