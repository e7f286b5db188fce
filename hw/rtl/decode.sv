// Turns instruction slots into entries of the class queues and commands of the units; the rules are hw/spec/isa.h's.
//
// Four steps, each with a register after it: assemble the slots, check and classify, multiply (see decode_transfer),
// issue. An error travels with its instruction and is reported in order; nothing after it is decoded. With IN_ORDER,
// for the base profile alone, the slot stays at the input until its instruction is done, so that it needs no register in
// any step, and neither do the units for its fields.
module decode (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   clear_i,
  input  logic                   stop_i,     // issue nothing more
  input  logic                   native_i,   // profile of the launch
  input  logic                   slot_valid_i,
  output logic                   slot_ready_o,
  input  logic [127:0]           slot_i,
  input  logic [31:0]            slot_index_i,
  input  logic                   slot_last_i,
  input  logic                   slot_error_i,
  // The base address of a transfer.
  output logic [2:0]             base_o,
  input  logic [tenon_pkg::ADDR_BITS-1:0] base_addr_i,
  // Class queues, by engine index, and units' command queues, by unit index.
  output tenon_pkg::engines_t    entry_valid_o,
  input  tenon_pkg::engines_t    entry_ready_i,
  output tenon_pkg::entry_t      entry_o,
  output tenon_pkg::units_t      cmd_valid_o,
  input  tenon_pkg::units_t      cmd_ready_i,
  output dma_pkg::dma_cmd_t      dma_cmd_o,
  output compute_pkg::gemm_cmd_t gemm_cmd_o,
  output compute_pkg::alu_cmd_t  alu_cmd_o,
  output tenon_pkg::rq_cmd_t     rq_cmd_o,
  // State.
  output logic                   blocked_o,  // waits for a full queue
  output logic                   done_o,     // the whole stream has been issued
  output logic [31:0]            decoded_o,  // slots that have been issued
  output logic                   error_valid_o,
  output logic [7:0]             error_code_o,
  output logic [31:0]            error_index_o
);

  localparam logic [2:0] LastAluOp = tenon_pkg::ALU_MULTIPLY_PASSES != 0 ? tenon_pkg::ALU_MUL : tenon_pkg::ALU_SHR;

  localparam logic Pipelined = tenon_pkg::IN_ORDER == 0;
  localparam int   UnitBits  = $clog2(tenon_pkg::NUM_UNITS);
  localparam logic [7:0] Exists = 8'(tenon_pkg::ENGINES_PRESENT);  // by the field of an engine, which has eight values

  logic advance, fire;
  logic checked_valid_q, multiplied_valid_q, out_valid_q;

  // ---------------------------------------------------------------------------------------------------- step 1: slots
  logic         insn_valid_q, half_q, finished_q, fail_q, last_q;
  logic [127:0] low_q;
  logic [31:0]  low_index_q;
  logic         low_error_q;
  logic [255:0] insn, insn_q;
  logic [31:0]  insn_index, insn_index_q;
  logic [7:0]   insn_error_q;
  logic         take, whole;
  logic [7:0]   slot_code;
  logic [2:0]   opcode;

  if (Pipelined) begin : g_slots
    assign slot_ready_o = (~insn_valid_q | advance) & ~fail_q;
    assign take         = slot_valid_i & slot_ready_o;
    assign insn       = insn_q;
    assign insn_index = insn_index_q;
  end else begin : g_slot
    assign slot_ready_o = fire;
    assign take         = slot_valid_i & ~insn_valid_q & ~checked_valid_q & ~multiplied_valid_q & ~out_valid_q & ~fail_q;
    assign insn       = {128'd0, slot_i};
    assign insn_index = slot_index_i;
    logic unused_held;
    assign unused_held = ^{insn_q, insn_index_q};
  end
  // The slot completes an instruction, or ends the stream inside one.
  assign whole        = take & (~native_i | half_q | slot_last_i | finished_q);
  assign opcode       = half_q ? low_q[2:0] : slot_i[2:0];

  always_comb begin
    if (finished_q) slot_code = tenon_pkg::STOP_AFTER_FINISH;
    else if (slot_error_i | (half_q & low_error_q)) slot_code = tenon_pkg::STOP_READ_ERROR;
    else if (native_i & ~half_q) slot_code = tenon_pkg::STOP_TRUNCATED;
    else slot_code = tenon_pkg::STOP_NONE;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      insn_valid_q <= 1'b0;
      half_q       <= 1'b0;
      finished_q   <= 1'b0;
      fail_q       <= 1'b0;
      last_q       <= 1'b0;
    end else if (clear_i) begin
      insn_valid_q <= 1'b0;
      half_q       <= 1'b0;
      finished_q   <= 1'b0;
      fail_q       <= 1'b0;
      last_q       <= 1'b0;
    end else begin
      if (whole) insn_valid_q <= 1'b1;
      else if (advance) insn_valid_q <= 1'b0;
      if (take) half_q <= native_i & ~half_q;
      if (whole & opcode == tenon_pkg::OP_FINISH) finished_q <= 1'b1;
      if (whole & slot_code != tenon_pkg::STOP_NONE) fail_q <= 1'b1;
      if (take & slot_last_i) last_q <= 1'b1;
    end
  end

  // A register that has no instruction takes what is at the input, so that its enable does not wait for the input's valid.
  // Of an instruction in error nothing but the index has a meaning.
  always_ff @(posedge clk_i) begin
    if (Pipelined ? ~half_q : take) begin
      low_q       <= slot_i;
      low_index_q <= slot_index_i;
      low_error_q <= slot_error_i;
    end
    if (Pipelined ? ~insn_valid_q | advance : whole) begin
      insn_q       <= (Pipelined ? native_i : half_q) ? {slot_i, low_q} : {128'd0, slot_i};
      insn_index_q <= half_q ? low_index_q : slot_index_i;
      insn_error_q <= slot_code;
    end
  end

  // ------------------------------------------------------------------------------------- step 2: check and classify
  // verilator lint_off UNUSEDSIGNAL
  tenon_pkg::load_insn_t  load;  // their other fields are the next steps'
  tenon_pkg::store_insn_t store;
  tenon_pkg::alu_insn_t   alu;
  tenon_pkg::move_insn_t  move;
  tenon_pkg::mac_insn_t   mac;
  tenon_pkg::rq_insn_t    rq;
  tenon_pkg::sync_insn_t  sync;
  // verilator lint_on UNUSEDSIGNAL
  assign load  = insn[$bits(load)-1:0];
  assign store = insn[$bits(store)-1:0];
  assign alu   = insn[$bits(alu)-1:0];
  assign move  = insn;
  assign mac   = insn;
  assign rq    = insn;
  assign sync  = insn;

  logic rq_window;
  assign rq_window = |{rq.win_rows, rq.win_cols, rq.win_pitch, rq.win_carry};

  logic [7:0]          code;
  tenon_pkg::unit_t    unit;
  tenon_pkg::engine_t  engine;
  logic [2:0]          mem_type;
  tenon_pkg::engines_t prev, next;
  logic                tokens_absent, pads, native_finish, own_fits;
  tenon_pkg::entry_t   entry;

  assign mem_type      = load.memory_type;
  assign tokens_absent = |((move.wait_mask | move.signal_mask) & ~tenon_pkg::ENGINES_PRESENT);
  assign own_fits      = tenon_pkg::OWN_LANES != 0 & mac.r0 <= 10'd1 & mac.r1 <= 10'(tenon_pkg::OWN_ROWS) &
                         12'(mac.r1) + 12'(mac.r2) + {1'b0, mac.r2, 1'b0} <=
                         12'(tenon_pkg::BLOCK_IN + tenon_pkg::OWN_ROWS);
  assign native_finish = insn[2:0] == tenon_pkg::OP_FINISH;
  assign pads          = |{store.y_pad_top, store.y_pad_bottom, store.x_pad_left, store.x_pad_right};

  always_comb begin
    code   = tenon_pkg::STOP_NONE;
    engine = tenon_pkg::ENG_GEMM;
    unit   = tenon_pkg::UNIT_NONE;
    if (native_i) begin
      unique case (insn[2:0])
        tenon_pkg::OP_FINISH: begin
          if (insn[6:3] != 4'd0) code = tenon_pkg::STOP_BAD_OPCODE;
          else if (|(insn & tenon_pkg::END_RESERVED)) code = tenon_pkg::STOP_BAD_FIELD;
        end
        tenon_pkg::OP_MOVE: begin
          unique case (insn[6:3])
            tenon_pkg::FN_MOVE_INP: engine = tenon_pkg::ENG_LDI;
            tenon_pkg::FN_MOVE_WGT: engine = tenon_pkg::ENG_LDW;
            tenon_pkg::FN_MOVE_PAR,
            tenon_pkg::FN_MOVE_RES: engine = tenon_pkg::ENG_LDM;
            tenon_pkg::FN_MOVE_OUT: engine = tenon_pkg::ENG_ST;
            default:                code   = tenon_pkg::STOP_BAD_OPCODE;
          endcase
          unit = UnitBits'(engine);
          if (code == tenon_pkg::STOP_NONE & |(insn & tenon_pkg::MOVE_RESERVED)) code = tenon_pkg::STOP_BAD_FIELD;
        end
        tenon_pkg::OP_MAC: begin
          unit = tenon_pkg::UNIT_GEMM;
          if (insn[6:3] != tenon_pkg::FN_MAC) code = tenon_pkg::STOP_BAD_OPCODE;
          else if (|(insn & tenon_pkg::MAC_RESERVED) | (mac.own & ~own_fits)) code = tenon_pkg::STOP_BAD_FIELD;
        end
        tenon_pkg::OP_POST: begin
          if (insn[6:3] == tenon_pkg::FN_RQ) begin
            engine = tenon_pkg::ENG_RQ;
            unit   = tenon_pkg::UNIT_RQ;
            if (|(insn & tenon_pkg::RQ_RESERVED) | (rq.to_inp & tenon_pkg::RESULTS_TO_INP == 0) |
                (rq_window & (rq.residual | tenon_pkg::WINDOW_MAXIMUM == 0))) begin
              code = tenon_pkg::STOP_BAD_FIELD;
            end
          end else begin
            engine = sync.engine;
            if (!insn[6] | ~Exists[engine]) begin
              code   = tenon_pkg::STOP_BAD_OPCODE;
            end else if (|(insn & tenon_pkg::SYNC_RESERVED)) begin
              code = tenon_pkg::STOP_BAD_FIELD;
            end
          end
        end
        default: code = tenon_pkg::STOP_BAD_OPCODE;
      endcase
      if (code == tenon_pkg::STOP_NONE & ~native_finish & tokens_absent) code = tenon_pkg::STOP_BAD_FIELD;
    end else begin
      unique case (insn[2:0])
        tenon_pkg::OP_LOAD: begin
          unique case (mem_type)
            tenon_pkg::MEMTYPE_INP: begin
              engine = tenon_pkg::ENG_LDI;
              unit   = tenon_pkg::UNIT_LDI;
            end
            tenon_pkg::MEMTYPE_WGT: begin
              engine = tenon_pkg::ENG_LDI;
              unit   = tenon_pkg::HAS_WEIGHT_ENGINE != 0 ? tenon_pkg::UNIT_LDW : tenon_pkg::UNIT_LDI;
            end
            tenon_pkg::MEMTYPE_UOP,
            tenon_pkg::MEMTYPE_ACC,
            tenon_pkg::MEMTYPE_ACC8: unit = tenon_pkg::UNIT_LDM;
            default: begin
              if (load.x_size != 16'd0) code = tenon_pkg::STOP_BAD_FIELD;
            end
          endcase
        end
        tenon_pkg::OP_STORE: begin
          engine = tenon_pkg::ENG_ST;
          unit   = tenon_pkg::UNIT_ST;
          if (store.x_size != 16'd0 & (mem_type != tenon_pkg::MEMTYPE_OUT | pads)) begin
            code = tenon_pkg::STOP_BAD_FIELD;
          end
        end
        tenon_pkg::OP_GEMM: unit = tenon_pkg::UNIT_GEMM;
        tenon_pkg::OP_ALU: begin
          unit = tenon_pkg::UNIT_ALU;
          if (alu.alu_opcode > LastAluOp) code = tenon_pkg::STOP_BAD_FIELD;
        end
        tenon_pkg::OP_FINISH: unit = tenon_pkg::UNIT_NONE;
        default: code = tenon_pkg::STOP_BAD_OPCODE;
      endcase
    end
    if (insn_error_q != tenon_pkg::STOP_NONE) code = insn_error_q;
  end

  always_comb begin
    prev = '0;
    next = '0;
    if (engine == tenon_pkg::ENG_GEMM) begin
      prev = tenon_pkg::ENG_LDI_BIT;
      next = tenon_pkg::ENG_ST_BIT;
    end else if (engine == tenon_pkg::ENG_ST) begin
      prev = tenon_pkg::ENG_GEMM_BIT;
    end else begin
      next = tenon_pkg::ENG_GEMM_BIT;
    end
    entry.index       = insn_index;
    entry.target      = unit;
    entry.range_error = 1'b0;
    entry.wait_mask   = '0;
    entry.signal_mask = '0;
    if (native_i) begin
      if (!native_finish) begin
        entry.wait_mask   = move.wait_mask;
        entry.signal_mask = move.signal_mask;
      end
    end else begin
      entry.wait_mask   = (load.pop_prev ? prev : '0) | (load.pop_next ? next : '0);
      entry.signal_mask = (load.push_prev ? prev : '0) | (load.push_next ? next : '0);
    end
  end

  // ------------------------------------------------------------------------------------- steps 3 and 4: registers
  logic [7:0]      checked_code_q, multiplied_code_q, out_code_q;
  tenon_pkg::engine_t checked_engine_q, multiplied_engine_q, out_engine_q;
  tenon_pkg::entry_t  checked_entry_q, multiplied_entry_q, out_entry_q;
  logic [255:0]    checked_insn_q, multiplied_insn_q, out_insn_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      checked_valid_q    <= 1'b0;
      multiplied_valid_q <= 1'b0;
      out_valid_q        <= 1'b0;
    end else if (clear_i) begin
      checked_valid_q    <= 1'b0;
      multiplied_valid_q <= 1'b0;
      out_valid_q        <= 1'b0;
    end else begin
      if (advance) {checked_valid_q, multiplied_valid_q} <= {insn_valid_q, checked_valid_q};
      if (~out_valid_q) out_valid_q <= multiplied_valid_q;
      else if (fire) out_valid_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (advance & insn_valid_q) begin
      checked_code_q   <= code;
      checked_engine_q <= engine;
      checked_entry_q  <= entry;
      checked_insn_q   <= insn;
    end
    if (advance & checked_valid_q) begin
      multiplied_code_q   <= checked_code_q;
      multiplied_engine_q <= checked_engine_q;
      multiplied_entry_q  <= checked_entry_q;
      multiplied_insn_q   <= checked_insn_q;
    end
    if (advance & multiplied_valid_q) begin
      out_code_q   <= multiplied_code_q;
      out_engine_q <= multiplied_engine_q;
      out_entry_q  <= multiplied_entry_q;
      out_insn_q   <= multiplied_insn_q;
    end
  end

  // Step 4 reads what step 2 has left, where no younger instruction replaces it.
  logic [7:0]      out_code;
  tenon_pkg::engine_t out_engine;
  tenon_pkg::entry_t  out_entry;
  logic [255:0]    out_insn;
  assign out_code   = Pipelined ? out_code_q : checked_code_q;
  assign out_engine = Pipelined ? out_engine_q : checked_engine_q;
  assign out_insn   = Pipelined ? out_insn_q : insn;
  always_comb begin
    out_entry = Pipelined ? out_entry_q : checked_entry_q;
    if (!Pipelined) out_entry.index = insn_index;
  end

  logic empty, range, is_dma, bad, has_cmd, offer;

  decode_transfer u_transfer (
    .clk_i,
    .step1_i(advance & insn_valid_q),
    .step2_i(advance & checked_valid_q),
    .step3_i(advance & multiplied_valid_q),
    .native_i,
    .insn_i (insn),
    .index_i(insn_index),
    .base_o,
    .base_addr_i,
    .cmd_o  (dma_cmd_o),
    .empty_o(empty),
    .range_o(range)
  );

  function automatic logic is_dma_unit(tenon_pkg::unit_t of);
    is_dma_unit = of == tenon_pkg::UNIT_LDI | of == tenon_pkg::UNIT_LDW | of == tenon_pkg::UNIT_LDM |
                  of == tenon_pkg::UNIT_ST;
  endfunction
  assign is_dma = is_dma_unit(out_entry.target);

  always_comb begin
    entry_o             = out_entry;
    entry_o.range_error = is_dma & range;
    if (is_dma & empty) entry_o.target = tenon_pkg::UNIT_NONE;
  end

  assign bad           = out_code != tenon_pkg::STOP_NONE;
  assign has_cmd       = entry_o.target != tenon_pkg::UNIT_NONE & ~entry_o.range_error;
  if (Pipelined) begin : g_queues
    // The queues of the instruction, one hot, are registers: so the handshake with them is a few gates.
    tenon_pkg::engines_t engine_q;
    tenon_pkg::units_t   unit_q;
    logic                offer_q, is_dma_q, no_cmd;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) offer_q <= 1'b0;
      else if (clear_i) offer_q <= 1'b0;
      else if (~out_valid_q) offer_q <= multiplied_valid_q & multiplied_code_q == tenon_pkg::STOP_NONE;
      else if (fire) offer_q <= 1'b0;
    end
    always_ff @(posedge clk_i) begin
      if (advance & multiplied_valid_q) begin
        engine_q <= tenon_pkg::NUM_ENGINES'(1) << multiplied_engine_q;
        unit_q   <= multiplied_entry_q.target == tenon_pkg::UNIT_NONE ? '0 :
                    tenon_pkg::NUM_UNITS'(1) << multiplied_entry_q.target;
        is_dma_q <= is_dma_unit(multiplied_entry_q.target);
      end
    end
    assign no_cmd        = is_dma_q & (empty | range);
    assign offer         = offer_q & ~stop_i;
    assign fire          = offer & ~|(engine_q & ~entry_ready_i) & (no_cmd | ~|(unit_q & ~cmd_ready_i));
    assign entry_valid_o = engine_q & {tenon_pkg::NUM_ENGINES{fire}};
    assign cmd_valid_o   = unit_q & {tenon_pkg::NUM_UNITS{fire & ~no_cmd}};
    logic unused_engine;
    assign unused_engine = ^out_engine;
  end else begin : g_held
    // The heads are here until the instruction is done.
    assign offer         = out_valid_q & ~bad & ~stop_i;
    assign fire          = offer & entry_ready_i[out_engine];
    assign entry_valid_o = offer ? tenon_pkg::NUM_ENGINES'(1) << out_engine : '0;
    assign cmd_valid_o   = offer & has_cmd ? tenon_pkg::NUM_UNITS'(1) << entry_o.target : '0;
    logic unused_ready;
    assign unused_ready = ^cmd_ready_i;
  end
  // The steps advance when the last one is free, not in the cycle in which it becomes so: every second cycle at most,
  // which a memory port of 64 bits does not exceed. With IN_ORDER the step that has the instruction is the only one, so
  // that those before the last one always advance.
  assign advance       = ~Pipelined | ~out_valid_q;
  assign blocked_o     = out_valid_q & ~bad & ~fire;
  assign done_o        = last_q & ~insn_valid_q & ~checked_valid_q & ~multiplied_valid_q & ~out_valid_q;
  assign error_valid_o = out_valid_q & bad;
  assign error_code_o  = out_code;
  assign error_index_o = out_entry.index;

  logic [31:0] decoded_q;
  assign decoded_o = decoded_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) decoded_q <= '0;
    else if (clear_i) decoded_q <= '0;
    else if (fire) decoded_q <= out_entry.index + (native_i ? 32'd2 : 32'd1);
  end

  decode_compute u_compute (
    .valid_i(out_valid_q),
    .native_i,
    .insn_i (out_insn),
    .index_i(out_entry.index),
    .gemm_o (gemm_cmd_o),
    .alu_o  (alu_cmd_o),
    .rq_o   (rq_cmd_o)
  );

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  logic [3:0] steps;
  assign steps = {insn_valid_q, checked_valid_q, multiplied_valid_q, out_valid_q};
  always_ff @(posedge clk_i) begin
    if (rst_ni & (|steps)) begin
      AnInstructionThatIsHeldIsInOneStep: assert (Pipelined | (steps & (steps - 4'd1)) == 4'd0);
    end
    if (rst_ni & fire) begin
      AnEntryGoesToOneClass: assert (~|(entry_valid_o & (entry_valid_o - 1'b1)));
      AnEntryIsPushedOnlyIntoAQueueWithRoom: assert (~|(entry_valid_o & ~entry_ready_i));
      ACommandIsPushedOnlyIntoAQueueWithRoom: assert (!Pipelined | ~|(cmd_valid_o & ~cmd_ready_i));
      NothingIsIssuedWithAnError: assert (!error_valid_o);
    end
    if (rst_ni & fire & has_cmd & is_dma) begin
      ATransferHasRowsAndVectors: assert (dma_cmd_o.rows != 17'd0 & dma_cmd_o.vectors != 24'd0);
      ATransferOfRowsHasBytes: assert (dma_cmd_o.source_rows == 17'd0 | dma_cmd_o.len != 32'd0);
      ATransferStaysInsideItsUnits: assert (dma_cmd_o.valid != 7'd0 & dma_cmd_o.valid <= dma_cmd_o.unit_bytes);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
