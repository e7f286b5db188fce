// Starts instructions in the order that tokens allow: the matrix of tokens and a sequencer for each class.
//
// Engine DW is absent, and without the native profile all but the classes LDI, GEMM and ST: an absent engine gets no
// instruction, and its outputs are those of an idle engine. With IN_ORDER one sequencer serves all classes.
module issue (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             clear_i,
  input  logic             stop_i,
  input  logic             token_clear_i,
  // Entries, by class.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [6:0]       entry_valid_i,  // bits of absent engines stay 0
  // verilator lint_on UNUSEDSIGNAL
  output logic [6:0]       entry_ready_o,
  input  dma_pkg::entry_t  entry_i,
  // Units, by index.
  output logic [7:0]       unit_start_o,
  input  logic [7:0]       unit_ready_i,
  input  logic [7:0]       unit_done_i,
  input  logic [63:0]      unit_error_i,   // stop code with done
  // State, by class.
  output logic [6:0]       start_o,
  output logic [6:0]       retire_o,
  output logic [6:0]       busy_o,
  output logic [6:0]       waiting_o,
  output logic [6:0]       empty_o,
  output logic [6:0]       stuck_o,
  output logic [223:0]     index_o,        // of the oldest instruction in flight, else of the head
  output logic [223:0]     head_index_o,
  output logic [6:0]       error_valid_o,
  output logic [55:0]      error_code_o,
  output logic [223:0]     error_index_o,
  // The matrix as registers.
  input  logic             read_i,
  input  logic [3:0]       word_i,
  output logic [31:0]      word_o
);

  localparam logic [6:0] Present =
      tenon_pkg::HAS_NATIVE != 0
          ? ~(7'd1 << tenon_pkg::ENG_DW)
          : (7'd1 << tenon_pkg::ENG_LDI) | (7'd1 << tenon_pkg::ENG_GEMM) | (7'd1 << tenon_pkg::ENG_ST);

  logic [48:0] give, take, nonzero;
  // verilator lint_off UNUSEDSIGNAL
  logic [48:0] full;  // those of absent engines stay 0
  // verilator lint_on UNUSEDSIGNAL

  tokens u_tokens (
    .clk_i,
    .rst_ni,
    .clear_i  (token_clear_i),
    .give_i   (give),
    .take_i   (take),
    .nonzero_o(nonzero),
    .full_o   (full),
    .read_i,
    .word_i,
    .word_o
  );

  if (tenon_pkg::IN_ORDER != 0) begin : g_in_order
    logic        taken;
    logic [31:0] index;
    logic [7:0]  error_code;
    logic        unused_ready;  // every unit is ready
    assign unused_ready  = ^unit_ready_i;
    assign entry_ready_o = {7{taken}};
    assign index_o       = {7{index}};
    assign head_index_o  = {7{index}};
    assign error_index_o = {7{index}};
    assign error_code_o  = {7{error_code}};

    sequencer_in_order #(
      .Present(Present)
    ) u_sequencer (
      .clk_i,
      .rst_ni,
      .clear_i,
      .stop_i,
      .entry_valid_i,
      .entry_i,
      .entry_taken_o(taken),
      .nonzero_i    (nonzero),
      .full_i       (full),
      .take_o       (take),
      .give_o       (give),
      .unit_start_o,
      .unit_done_i,
      .unit_error_i,
      .start_o,
      .retire_o,
      .busy_o,
      .waiting_o,
      .empty_o,
      .stuck_o,
      .index_o      (index),
      .error_valid_o,
      .error_code_o (error_code)
    );
  end else begin : g_classes
    logic [55:0] start;  // by class
    assign unit_start_o = start[7:0] | start[15:8] | start[23:16] | start[31:24] | start[39:32] |
                          start[47:40] | start[55:48];

    for (genvar e = 0; e < 7; e++) begin : g_engine
      // verilator lint_off UNUSEDSIGNAL
      logic [6:0] from;          // counters to this engine, by producer; not used of an absent engine
      // verilator lint_on UNUSEDSIGNAL
      logic [6:0] given, taken;  // by consumer and by producer
      for (genvar p = 0; p < 7; p++) begin : g_producer
        assign from[p]       = nonzero[p*7+e];
        assign take[p*7+e]   = taken[p];
        assign give[e*7+p]   = given[p];
      end
      if (!Present[e]) begin : g_absent
        assign given = 7'd0;
        assign taken = 7'd0;
        assign entry_ready_o[e] = 1'b0;
        assign start[e*8+:8] = 8'd0;
        assign start_o[e] = 1'b0;
        assign retire_o[e] = 1'b0;
        assign busy_o[e] = 1'b0;
        assign waiting_o[e] = 1'b0;
        assign empty_o[e] = 1'b1;
        assign stuck_o[e] = 1'b1;
        assign index_o[e*32+:32] = 32'd0;
        assign head_index_o[e*32+:32] = 32'd0;
        assign error_valid_o[e] = 1'b0;
        assign error_code_o[e*8+:8] = tenon_pkg::STOP_NONE;
        assign error_index_o[e*32+:32] = 32'd0;
      end else begin : g_sequencer
        // In the native profile a class has its own unit; in the base profile the class of LDI has those of both loads,
        // that of GEMM all that reads or writes acc.
        localparam logic [7:0] Own   = 8'd1 << (e == tenon_pkg::ENG_LDI ? dma_pkg::UNIT_LDI :
                                                e == tenon_pkg::ENG_LDW ? dma_pkg::UNIT_LDW :
                                                e == tenon_pkg::ENG_LDM ? dma_pkg::UNIT_LDM :
                                                e == tenon_pkg::ENG_GEMM ? dma_pkg::UNIT_GEMM :
                                                e == tenon_pkg::ENG_RQ ? dma_pkg::UNIT_RQ : dma_pkg::UNIT_ST);
        localparam logic [7:0] Base  = tenon_pkg::HAS_BASE == 0 ? 8'd0 :
                                       e == tenon_pkg::ENG_LDI ? 8'd1 << dma_pkg::UNIT_LDW :
                                       e == tenon_pkg::ENG_GEMM ? (8'd1 << dma_pkg::UNIT_LDM) | (8'd1 << dma_pkg::UNIT_ALU) :
                                       8'd0;
        sequencer #(
          .Depth(tenon_pkg::QUEUE_DEPTH),
          .Units(Own | Base)
        ) u_sequencer (
          .clk_i,
          .rst_ni,
          .clear_i,
          .stop_i,
          .push_valid_i (entry_valid_i[e]),
          .push_ready_o (entry_ready_o[e]),
          .push_entry_i (entry_i),
          .nonzero_i    (from),
          .take_o       (taken),
          .full_i       (full[e*7+:7]),
          .give_o       (given),
          .start_o      (start[e*8+:8]),
          .ready_i      (unit_ready_i),
          .done_i       (unit_done_i),
          .error_i      (unit_error_i),
          .start_any_o  (start_o[e]),
          .retire_o     (retire_o[e]),
          .busy_o       (busy_o[e]),
          .waiting_o    (waiting_o[e]),
          .empty_o      (empty_o[e]),
          .stuck_o      (stuck_o[e]),
          .index_o      (index_o[e*32+:32]),
          .head_index_o (head_index_o[e*32+:32]),
          .error_valid_o(error_valid_o[e]),
          .error_code_o (error_code_o[e*8+:8]),
          .error_index_o(error_index_o[e*32+:32])
        );
      end
    end
`ifndef SYNTHESIS
    logic [7:0] start_once, start_twice;  // by any class, by more than one
    always_comb begin
      start_once  = 8'd0;
      start_twice = 8'd0;
      if (|unit_start_o) begin
        for (int e = 0; e < 7; e++) begin
          start_twice = start_twice | (start_once & start[e*8+:8]);
          start_once  = start_once | start[e*8+:8];
        end
      end
    end

    // Only assertions read the reset synchronously.
    // verilator lint_off SYNCASYNCNET
    always_ff @(posedge clk_i) begin
      if (rst_ni & (|unit_start_o)) begin
        AUnitIsStartedByOneClassAtATime: assert (start_twice == 8'd0);
      end
    end
    // verilator lint_on SYNCASYNCNET
`endif
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & (|unit_start_o)) begin
      AUnitStartsOnlyWhenItIsReady: assert ((unit_start_o & ~unit_ready_i) == 8'd0);
    end
    if (rst_ni & (|entry_valid_i)) begin
      NothingIsQueuedForAnAbsentEngine: assert ((entry_valid_i & ~Present) == 7'd0);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
