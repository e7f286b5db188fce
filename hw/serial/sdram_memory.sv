// Memory in an SDRAM, with the ports of board_memory: an AXI4 slave for the accelerator's bursts, and a port of words for
// the bridge. It has 2**serial_pkg::MEMORY_LOG2 bytes at the address of the same value; every other address has an error
// response. A burst is of type INCR, whole beats, and inside a page of 4 KiB.
//
// Each burst and each word of the bridge is one run of the controller, one at a time: words of the bridge before writes
// before reads, but a read after each write. Words wait in a queue, which the serial line cannot fill.
module sdram_memory (
  input  logic                            clk_i,
  input  logic                            rst_ni,
  // The bridge.
  input  logic                            we_i,
  input  logic                            re_i,
  input  logic [serial_pkg::MEMORY_LOG2-1:2] addr_i,
  input  logic [31:0]                     wdata_i,
  output logic                            rvalid_word_o,
  output logic [31:0]                     rdata_o,
  output logic                            busy_o,  // words wait, or the chip is not ready
  // The accelerator.
  // verilator lint_off UNUSEDSIGNAL
`include "tenon_memory_ports.svh"  // the kind of a burst, its last beat of data, and low bits of addresses are not used
  // verilator lint_on UNUSEDSIGNAL
  // The chip; see sdram_controller.
  output logic                            cke_o,
  output logic                            cs_no,
  output logic                            ras_no,
  output logic                            cas_no,
  output logic                            we_no,
  output logic [1:0]                      ba_o,
  output logic [12:0]                     a_o,
  output logic [1:0]                      dqm_o,
  output logic                            dq_oe_o,
  output logic [15:0]                     dq_o,
  input  logic [15:0]                     dq_i
);

  localparam int MemoryLog2 = serial_pkg::MEMORY_LOG2;
  localparam int BeatShift  = $clog2(tenon_pkg::AXI_BYTES);
  localparam int HalfIndex  = BeatShift - 1;  // bits of a half-word's index in a beat
  localparam int Beats      = 4;              // that reads may be ahead of the accelerator
  localparam logic [63:MemoryLog2] Base     = {{(63 - MemoryLog2){1'b0}}, 1'b1};
  localparam logic [HalfIndex-1:0] LastHalf = '1;

  // -------------------------------------------------------------------------------------------------------- registers
  // Bursts and the data of writes pass registers: a beat of 32 bits takes the SDRAM two cycles or more.
  logic                            awvalid, awready, wvalid_axi, wready_axi, arvalid, arready, rvalid_axi;
  // verilator lint_off UNUSEDSIGNAL
  logic [63:0]                     awaddr, araddr;  // the low bits select no beat
  // verilator lint_on UNUSEDSIGNAL
  logic [7:0]                      awlen, arlen;
  logic [1:0]                      arid, rid;
  logic [tenon_pkg::AXI_BITS-1:0]  wdata_axi, rdata_axi;
  logic [tenon_pkg::AXI_BYTES-1:0] wstrb_axi;
  logic                            rlast, rerror;

  stream_register #(
    .Width(72)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .valid_i(m_axi_gmem_awvalid),
    .ready_o(m_axi_gmem_awready),
    .data_i ({m_axi_gmem_awaddr, m_axi_gmem_awlen}),
    .valid_o(awvalid),
    .ready_i(awready),
    .data_o ({awaddr, awlen})
  );
  stream_register #(
    .Width(tenon_pkg::AXI_BYTES * 9)
  ) u_w (
    .clk_i,
    .rst_ni,
    .valid_i(m_axi_gmem_wvalid),
    .ready_o(m_axi_gmem_wready),
    .data_i ({m_axi_gmem_wstrb, m_axi_gmem_wdata}),
    .valid_o(wvalid_axi),
    .ready_i(wready_axi),
    .data_o ({wstrb_axi, wdata_axi})
  );
  stream_register #(
    .Width(74)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .valid_i(m_axi_gmem_arvalid),
    .ready_o(m_axi_gmem_arready),
    .data_i ({m_axi_gmem_araddr, m_axi_gmem_arlen, m_axi_gmem_arid}),
    .valid_o(arvalid),
    .ready_i(arready),
    .data_o ({araddr, arlen, arid})
  );

  // The accelerator always takes beats of reads: they wait a cycle in a register.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) m_axi_gmem_rvalid <= 1'b0;
    else m_axi_gmem_rvalid <= rvalid_axi;
  end
  always_ff @(posedge clk_i) begin
    {m_axi_gmem_rdata, m_axi_gmem_rid, m_axi_gmem_rlast} <= {rdata_axi, rid, rlast};
    m_axi_gmem_rresp <= {rerror, 1'b0};
  end

  // ------------------------------------------------------------------------------------------------------------- runs
  logic                  word_valid, word_write, word_pop;
  logic [MemoryLog2-1:2] word_addr;
  logic [31:0]           word_wdata;
  logic                  up, run_ready, select_write, select_read, done, after_write_q;
  logic                  word_run_q, running_q, write_ok_q, read_ok_q;
  logic [HalfIndex-1:0]  half_q;  // of the beat or the word that the run is at

  // verilator lint_off PINCONNECTEMPTY
  prim_fifo #(
    .Width(1 + MemoryLog2 - 2 + 32),
    .Depth(4)
  ) u_words (
    .clk_i,
    .rst_ni,
    .clear_i     (1'b0),
    .push_valid_i(we_i | re_i),
    .push_ready_o(),
    .push_data_i ({we_i, addr_i, wdata_i}),
    .pop_valid_o (word_valid),
    .pop_ready_i (word_pop),
    .pop_data_o  ({word_write, word_addr, word_wdata})
  );
  // verilator lint_on PINCONNECTEMPTY

  assign select_write = awvalid & ~word_valid & ~m_axi_gmem_bvalid & ~(after_write_q & arvalid);
  assign select_read  = arvalid & ~word_valid & ~select_write;
  assign awready    = run_ready & select_write;
  assign arready    = run_ready & select_read;
  assign word_pop     = word_run_q & done;
  assign busy_o       = word_valid | ~up;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      after_write_q <= 1'b0;
      word_run_q    <= 1'b0;
      running_q     <= 1'b0;
      m_axi_gmem_bvalid      <= 1'b0;
    end else begin
      if (run_ready & (word_valid | select_write | select_read)) begin
        word_run_q <= word_valid;
        running_q  <= 1'b1;
      end else if (done) begin
        running_q <= 1'b0;
      end
      if (awready) after_write_q <= 1'b1;
      else if (arready) after_write_q <= 1'b0;
      if (done & ~word_run_q & writes_q) m_axi_gmem_bvalid <= 1'b1;
      else if (m_axi_gmem_bready) m_axi_gmem_bvalid <= 1'b0;
    end
  end

  // ------------------------------------------------------------------------------------------------------- half-words
  logic                 writes_q, wvalid, wready, issued, rvalid, room, stepped;
  logic [15:0]          wdata, rdata;
  logic [1:0]           wstrb;
  logic [7:0]           left_q;   // beats of the read after the one that arrives
  logic [HalfIndex-1:0] arrived_q;
  logic [2:0]           free_q;   // beats for which there is room
  logic                 beat_arrives, beat_begins, word_arrives, beat_taken;

  assign stepped = issued | wvalid & wready;

  always_ff @(posedge clk_i) begin
    if (run_ready) begin
      half_q    <= '0;
      arrived_q <= '0;
      left_q    <= arlen;
      writes_q  <= word_valid ? word_write : select_write;
    end else begin
      if (stepped) half_q <= half_q + 1'b1;
      if (rvalid) arrived_q <= arrived_q + 1'b1;
      if (beat_arrives) left_q <= left_q - 8'd1;
    end
    if (awready) write_ok_q <= awaddr[63:MemoryLog2] == Base;
    if (arready) begin
      read_ok_q <= araddr[63:MemoryLog2] == Base;
      id_q      <= arid;
    end
    if (rvalid) beat_q <= beat[tenon_pkg::AXI_BITS-1:16];
  end

  assign wvalid   = running_q & writes_q & (word_run_q | wvalid_axi);
  assign wdata    = word_run_q ? (half_q[0] ? word_wdata[31:16] : word_wdata[15:0]) : wdata_axi[{half_q, 4'd0}+:16];
  assign wstrb    = word_run_q ? 2'b11 : write_ok_q ? wstrb_axi[{half_q, 1'b0}+:2] : 2'b00;
  assign wready_axi = running_q & writes_q & ~word_run_q & wready & half_q == LastHalf;
  assign m_axi_gmem_bid   = 2'd0;
  assign m_axi_gmem_bresp = {~write_ok_q, 1'b0};

  // Halves are gathered into beats; the newest is the upper one.
  logic [tenon_pkg::AXI_BITS-1:16] beat_q;
  logic [tenon_pkg::AXI_BITS-1:0]  beat;
  logic [1:0]                      id_q;

  assign beat          = {rdata, beat_q};
  assign beat_arrives  = rvalid & ~word_run_q & arrived_q == LastHalf;
  assign word_arrives  = rvalid & word_run_q & arrived_q[0];
  assign room          = word_run_q | half_q != '0 | free_q != 3'd0;
  assign beat_begins   = issued & ~word_run_q & half_q == '0;
  assign beat_taken    = rvalid_axi;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      free_q        <= 3'(Beats);
      rvalid_word_o <= 1'b0;
    end else begin
      if (beat_begins & ~beat_taken) free_q <= free_q - 3'd1;
      else if (~beat_begins & beat_taken) free_q <= free_q + 3'd1;
      rvalid_word_o <= word_arrives;
    end
  end
  always_ff @(posedge clk_i) begin
    if (word_arrives) rdata_o <= beat[tenon_pkg::AXI_BITS-1-:32];
  end

  logic beat_ready;
  prim_fifo #(
    .Width(tenon_pkg::AXI_BITS + 4),
    .Depth(Beats)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .clear_i     (1'b0),
    .push_valid_i(beat_arrives),
    .push_ready_o(beat_ready),
    .push_data_i ({id_q, ~read_ok_q, left_q == 8'd0, beat}),
    .pop_valid_o (rvalid_axi),
    .pop_ready_i (1'b1),
    .pop_data_o  ({rid, rerror, rlast, rdata_axi})
  );

  // ------------------------------------------------------------------------------------------------------- controller
  logic [12:0]           run_last;
  logic [MemoryLog2-1:1] run_addr;
  always_comb begin
    run_addr = {word_addr, 1'b0};
    run_last = 13'd1;
    if (~word_valid) begin
      run_addr = {select_write ? awaddr[MemoryLog2-1:BeatShift] : araddr[MemoryLog2-1:BeatShift], {HalfIndex{1'b0}}};
      run_last = 13'({select_write ? awlen : arlen, LastHalf});
    end
  end

  sdram_controller u_controller (
    .clk_i,
    .rst_ni,
    .up_o       (up),
    .run_valid_i(word_valid | select_write | select_read),
    .run_ready_o(run_ready),
    .run_write_i(word_valid ? word_write : select_write),
    .run_addr_i (run_addr),
    .run_last_i (run_last),
    .done_o     (done),
    .wvalid_i   (wvalid),
    .wready_o   (wready),
    .wdata_i    (wdata),
    .wstrb_i    (wstrb),
    .room_i     (room),
    .issued_o   (issued),
    .rvalid_o   (rvalid),
    .rdata_o    (rdata),
    .cke_o,
    .cs_no,
    .ras_no,
    .cas_no,
    .we_no,
    .ba_o,
    .a_o,
    .dqm_o,
    .dq_oe_o,
    .dq_o,
    .dq_i
  );

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & beat_arrives) begin
      ABeatHasRoom: assert (beat_ready);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
