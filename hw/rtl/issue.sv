// Starts instructions in the order that tokens allow: the matrix of tokens and a sequencer for each class.
//
// An engine that is not present, and without the native profile each but LDI, GEMM and ST, gets no instruction, and its
// outputs are those of an idle engine. With IN_ORDER one sequencer serves all classes.
module issue (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  logic                     clear_i,
  input  logic                     stop_i,
  input  logic                     token_clear_i,
  // Entries, by class.
  // verilator lint_off UNUSEDSIGNAL
  input  tenon_pkg::engines_t      entry_valid_i,  // bits of absent engines stay 0
  // verilator lint_on UNUSEDSIGNAL
  output tenon_pkg::engines_t      entry_ready_o,
  input  tenon_pkg::entry_t        entry_i,
  // Units, by index.
  output tenon_pkg::units_t        unit_start_o,
  input  tenon_pkg::units_t        unit_ready_i,
  input  tenon_pkg::units_t        unit_done_i,
  input  tenon_pkg::unit_codes_t   unit_error_i,   // stop code with done
  // State, by class.
  output tenon_pkg::engines_t      start_o,
  output tenon_pkg::engines_t      retire_o,
  output tenon_pkg::engines_t      busy_o,
  output tenon_pkg::engines_t      waiting_o,
  output tenon_pkg::engines_t      empty_o,
  output tenon_pkg::engines_t      stuck_o,
  output tenon_pkg::engine_slots_t index_o,        // of the oldest instruction in flight, else of the head
  output tenon_pkg::engine_slots_t head_index_o,
  output tenon_pkg::engines_t      error_valid_o,
  output tenon_pkg::engine_codes_t error_code_o,
  output tenon_pkg::engine_slots_t error_index_o,
  // The matrix as registers.
  input  logic                     read_i,
  input  logic [3:0]               word_i,
  output logic [31:0]              word_o
);

  localparam int Engines = tenon_pkg::NUM_ENGINES;
  localparam int Units   = tenon_pkg::NUM_UNITS;
  localparam tenon_pkg::engines_t Present =
      tenon_pkg::HAS_NATIVE != 0
          ? tenon_pkg::ENGINES_PRESENT
          : tenon_pkg::ENG_LDI_BIT | tenon_pkg::ENG_GEMM_BIT | tenon_pkg::ENG_ST_BIT;

  tenon_pkg::pairs_t give, take, nonzero;
  // verilator lint_off UNUSEDSIGNAL
  tenon_pkg::pairs_t full;  // those of absent engines stay 0
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
    assign entry_ready_o = {Engines{taken}};
    assign index_o       = {Engines{index}};
    assign head_index_o  = {Engines{index}};
    assign error_index_o = {Engines{index}};
    assign error_code_o  = {Engines{error_code}};

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
    logic [Engines*Units-1:0] start;  // by class
    always_comb begin
      unit_start_o = '0;
      for (int e = 0; e < Engines; e++) unit_start_o = unit_start_o | start[e*Units+:Units];
    end

    for (genvar e = 0; e < Engines; e++) begin : g_engine
      // verilator lint_off UNUSEDSIGNAL
      tenon_pkg::engines_t from;          // counters to this engine, by producer; not used of an absent engine
      // verilator lint_on UNUSEDSIGNAL
      tenon_pkg::engines_t given, taken;  // by consumer and by producer
      for (genvar p = 0; p < Engines; p++) begin : g_producer
        assign from[p]       = nonzero[p*Engines+e];
        assign take[p*Engines+e]   = taken[p];
        assign give[e*Engines+p]   = given[p];
      end
      if (!Present[e]) begin : g_absent
        assign given = '0;
        assign taken = '0;
        assign entry_ready_o[e] = 1'b0;
        assign start[e*Units+:Units] = '0;
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
        // In the native profile a class has its own unit, of its index; in the base profile the class of LDI has those of
        // both loads, that of GEMM all that reads or writes acc.
        localparam tenon_pkg::units_t Own  = Units'(1) << e;
        localparam tenon_pkg::units_t Base =
            tenon_pkg::HAS_BASE == 0 ? '0 :
            e == tenon_pkg::ENG_LDI ? tenon_pkg::UNIT_LDW_BIT :
            e == tenon_pkg::ENG_GEMM ? tenon_pkg::UNIT_LDM_BIT | tenon_pkg::UNIT_ALU_BIT : '0;
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
          .full_i       (full[e*Engines+:Engines]),
          .give_o       (given),
          .start_o      (start[e*Units+:Units]),
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
    tenon_pkg::units_t start_once, start_twice;  // by any class, by more than one
    always_comb begin
      start_once  = '0;
      start_twice = '0;
      if (|unit_start_o) begin
        for (int e = 0; e < Engines; e++) begin
          start_twice = start_twice | (start_once & start[e*Units+:Units]);
          start_once  = start_once | start[e*Units+:Units];
        end
      end
    end

    // Only assertions read the reset synchronously.
    // verilator lint_off SYNCASYNCNET
    always_ff @(posedge clk_i) begin
      if (rst_ni & (|unit_start_o)) begin
        AUnitIsStartedByOneClassAtATime: assert (~|start_twice);
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
      AUnitStartsOnlyWhenItIsReady: assert (~|(unit_start_o & ~unit_ready_i));
    end
    if (rst_ni & (|entry_valid_i)) begin
      NothingIsQueuedForAnAbsentEngine: assert (~|(entry_valid_i & ~Present));
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
