// The decoded commands, in a queue for each unit until a sequencer starts the unit.
//
// A start waits in a register until the unit takes the head of its queue, a cycle later or more: so the sequencers and
// the units' first steps are on no path together. `ready_o` is what a sequencer must see: a unit that is ready stays so
// until it takes a command, and none follows while one waits. GEMM and RQ have several commands in flight, and so has ST
// with OVERLAPPING_STORES, so that the register may hold one while they are busy. With IN_ORDER there is one head, which decode holds, and a start is at the
// unit at once. ALU belongs to the base profile and RQ to the native one: they share a queue.
module command_queues (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   clear_i,
  input  logic                   native_i,
  // From decode, by unit.
  // verilator lint_off UNUSEDSIGNAL
  input  tenon_pkg::units_t      push_valid_i,  // UNIT_NONE has no commands
  // verilator lint_on UNUSEDSIGNAL
  output tenon_pkg::units_t      push_ready_o,
  input  dma_pkg::dma_cmd_t      dma_cmd_i,
  input  compute_pkg::gemm_cmd_t gemm_cmd_i,
  input  compute_pkg::alu_cmd_t  alu_cmd_i,
  input  tenon_pkg::rq_cmd_t     rq_cmd_i,
  // From the sequencers.
  output tenon_pkg::units_t      ready_o,       // the queue has a head, and its unit can start
  input  tenon_pkg::units_t      start_i,
  // To the units.
  output tenon_pkg::units_t      valid_o,       // the unit has been started
  input  tenon_pkg::units_t      ready_i,       // and takes the head of its queue
  output dma_pkg::dma_cmd_t      ldi_cmd_o,
  output dma_pkg::dma_cmd_t      ldw_cmd_o,
  output dma_pkg::dma_cmd_t      ldm_cmd_o,
  output dma_pkg::dma_cmd_t      st_cmd_o,
  output compute_pkg::gemm_cmd_t gemm_cmd_o,
  output compute_pkg::alu_cmd_t  alu_cmd_o,
  output tenon_pkg::rq_cmd_t     rq_cmd_o
);

  localparam int Depth = tenon_pkg::IN_ORDER != 0 ? 0 : tenon_pkg::QUEUE_DEPTH;

  tenon_pkg::units_t head_valid;
  // verilator lint_off UNUSEDSIGNAL
  tenon_pkg::units_t pop;  // UNIT_NONE takes nothing from here
  // verilator lint_on UNUSEDSIGNAL
  if (tenon_pkg::IN_ORDER != 0) begin : g_at_once
    assign ready_o = head_valid & ready_i;
    assign valid_o = start_i;
    assign pop     = start_i;
  end else begin : g_registers
    localparam tenon_pkg::units_t Ahead =
        tenon_pkg::UNIT_GEMM_BIT | tenon_pkg::UNIT_RQ_BIT | (tenon_pkg::OVERLAPPING_STORES != 0 ? tenon_pkg::UNIT_ST_BIT : '0);
    tenon_pkg::units_t start_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) start_q <= '0;
      else if (clear_i) start_q <= '0;
      else start_q <= start_i | (start_q & ~ready_i);
    end
    assign ready_o = head_valid & ~start_q & (ready_i | Ahead);
    assign valid_o = start_q;
    assign pop     = start_q & ready_i;
  end

  prim_fifo #(
    .Width($bits(dma_cmd_i)),
    .Depth(Depth)
  ) u_ldi (
    .clk_i,
    .rst_ni,
    .clear_i,
    .push_valid_i(push_valid_i[tenon_pkg::UNIT_LDI]),
    .push_ready_o(push_ready_o[tenon_pkg::UNIT_LDI]),
    .push_data_i (dma_cmd_i),
    .pop_valid_o (head_valid[tenon_pkg::UNIT_LDI]),
    .pop_ready_i (pop[tenon_pkg::UNIT_LDI]),
    .pop_data_o  (ldi_cmd_o)
  );

  if (tenon_pkg::HAS_WEIGHT_ENGINE != 0) begin : g_ldw
    prim_fifo #(
      .Width($bits(dma_cmd_i)),
      .Depth(Depth)
    ) u_ldw (
      .clk_i,
      .rst_ni,
      .clear_i,
      .push_valid_i(push_valid_i[tenon_pkg::UNIT_LDW]),
      .push_ready_o(push_ready_o[tenon_pkg::UNIT_LDW]),
      .push_data_i (dma_cmd_i),
      .pop_valid_o (head_valid[tenon_pkg::UNIT_LDW]),
      .pop_ready_i (pop[tenon_pkg::UNIT_LDW]),
      .pop_data_o  (ldw_cmd_o)
    );
  end else begin : g_no_ldw
    assign push_ready_o[tenon_pkg::UNIT_LDW] = 1'b0;
    assign head_valid[tenon_pkg::UNIT_LDW] = 1'b0;
    assign ldw_cmd_o = '0;
  end

  prim_fifo #(
    .Width($bits(dma_cmd_i)),
    .Depth(Depth)
  ) u_ldm (
    .clk_i,
    .rst_ni,
    .clear_i,
    .push_valid_i(push_valid_i[tenon_pkg::UNIT_LDM]),
    .push_ready_o(push_ready_o[tenon_pkg::UNIT_LDM]),
    .push_data_i (dma_cmd_i),
    .pop_valid_o (head_valid[tenon_pkg::UNIT_LDM]),
    .pop_ready_i (pop[tenon_pkg::UNIT_LDM]),
    .pop_data_o  (ldm_cmd_o)
  );

  prim_fifo #(
    .Width($bits(dma_cmd_i)),
    .Depth(Depth)
  ) u_st (
    .clk_i,
    .rst_ni,
    .clear_i,
    .push_valid_i(push_valid_i[tenon_pkg::UNIT_ST]),
    .push_ready_o(push_ready_o[tenon_pkg::UNIT_ST]),
    .push_data_i (dma_cmd_i),
    .pop_valid_o (head_valid[tenon_pkg::UNIT_ST]),
    .pop_ready_i (pop[tenon_pkg::UNIT_ST]),
    .pop_data_o  (st_cmd_o)
  );

  prim_fifo #(
    .Width($bits(gemm_cmd_i)),
    .Depth(Depth)
  ) u_gemm (
    .clk_i,
    .rst_ni,
    .clear_i,
    .push_valid_i(push_valid_i[tenon_pkg::UNIT_GEMM]),
    .push_ready_o(push_ready_o[tenon_pkg::UNIT_GEMM]),
    .push_data_i (gemm_cmd_i),
    .pop_valid_o (head_valid[tenon_pkg::UNIT_GEMM]),
    .pop_ready_i (pop[tenon_pkg::UNIT_GEMM]),
    .pop_data_o  (gemm_cmd_o)
  );

  localparam int AluBits  = $bits(alu_cmd_i);
  localparam int RqBits   = $bits(rq_cmd_i);
  localparam int PostBits = AluBits > RqBits ? AluBits : RqBits;
  logic                post_valid, post_ready;
  // verilator lint_off UNUSEDSIGNAL
  logic [PostBits-1:0] post_head;
  // verilator lint_on UNUSEDSIGNAL
  prim_fifo #(
    .Width(PostBits),
    .Depth(Depth)
  ) u_post (
    .clk_i,
    .rst_ni,
    .clear_i,
    .push_valid_i(push_valid_i[tenon_pkg::UNIT_ALU] | push_valid_i[tenon_pkg::UNIT_RQ]),
    .push_ready_o(post_ready),
    .push_data_i (native_i ? PostBits'(rq_cmd_i) : PostBits'(alu_cmd_i)),
    .pop_valid_o (post_valid),
    .pop_ready_i (pop[tenon_pkg::UNIT_ALU] | pop[tenon_pkg::UNIT_RQ]),
    .pop_data_o  (post_head)
  );
  assign alu_cmd_o = post_head[AluBits-1:0];
  assign rq_cmd_o  = post_head[RqBits-1:0];
  // Units of engines that are not present.
  for (genvar u = 0; u < tenon_pkg::NUM_ENGINES; u++) begin : g_absent
    if (!tenon_pkg::ENGINES_PRESENT[u] && u != tenon_pkg::UNIT_ALU) begin : g_unit
      assign push_ready_o[u] = 1'b0;
      assign head_valid[u]   = 1'b0;
    end
  end

  assign push_ready_o[tenon_pkg::UNIT_ALU]  = post_ready;
  assign push_ready_o[tenon_pkg::UNIT_RQ]   = post_ready;
  assign push_ready_o[tenon_pkg::UNIT_NONE] = 1'b1;
  assign head_valid[tenon_pkg::UNIT_ALU]  = post_valid;
  assign head_valid[tenon_pkg::UNIT_RQ]   = post_valid;
  assign head_valid[tenon_pkg::UNIT_NONE] = 1'b0;

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & (|(start_i | valid_o))) begin
      ACommandIsTakenOnlyFromANonemptyQueue: assert (((start_i | valid_o) & ~head_valid) == '0);
      AUnitIsStartedOnceForACommand: assert (tenon_pkg::IN_ORDER != 0 | (start_i & valid_o) == '0);
    end
    if (rst_ni & (|push_valid_i)) begin
      ACommandIsPushedOnlyIntoAQueueWithRoom: assert (Depth == 0 | (push_valid_i & ~push_ready_o) == '0);
      TheSharedQueueHoldsCommandsOfOneProfile: assert (!push_valid_i[native_i ? tenon_pkg::UNIT_ALU : tenon_pkg::UNIT_RQ]);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
