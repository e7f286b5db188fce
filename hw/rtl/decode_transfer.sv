// Makes a DMA command from a base LOAD or STORE or a native MOVE, in three steps of one cycle each: fields, products,
// command. Properties of the whole command (the bytes of a row that it needs, whether all rows are one run of bytes,
// whether the units fit in the scratchpad) are computed here, so that the DMA computes none, and an error is found
// before memory is touched.
module decode_transfer (
  input  logic              clk_i,
  // The enable of each step; 0 without an instruction in it.
  input  logic              step1_i,
  input  logic              step2_i,
  input  logic              step3_i,
  // Step 1: the instruction.
  input  logic              native_i,
  input  logic [255:0]      insn_i,
  input  logic [31:0]       index_i,
  // Step 2: the index of its base address.
  output logic [2:0]        base_o,
  input  logic [tenon_pkg::ADDR_BITS-1:0] base_addr_i,
  // After step 3.
  output dma_pkg::dma_cmd_t cmd_o,
  output logic              empty_o,      // the command moves nothing
  output logic              range_o       // a unit is outside its scratchpad
);

  localparam int InpShift = $clog2(tenon_pkg::BLOCK_IN);
  localparam int OutShift = $clog2(tenon_pkg::BLOCK_OUT);

  // The bits that a command of this configuration has in each field, so that synthesis propagates the others as 0 to
  // all queues and engines. A field with more is outside its scratchpad, or wraps as addresses do.
  localparam logic [31:0] SlotMask   = 32'hffffffff >> (32 - tenon_pkg::SLOT_BITS);
  localparam logic [22:0] UnitMask   = 23'h7fffff >> (23 - tenon_pkg::UNIT_BITS);
  localparam logic [16:0] RowMask    = 17'h1ffff >> (17 - tenon_pkg::ROW_BITS);
  localparam logic [23:0] VectorMask = 24'hffffff >> (24 - tenon_pkg::VECTOR_BITS);
  localparam logic [20:0] TotalMask  = 21'h1fffff >> (21 - tenon_pkg::TOTAL_BITS);
  localparam logic [31:0] LengthMask = 32'hffffffff >> (32 - tenon_pkg::LENGTH_BITS);
  localparam logic [31:0] StepMask   = 32'hffffffff >> (32 - tenon_pkg::STEP_BITS);
  localparam logic HasNative = tenon_pkg::HAS_NATIVE != 0;
  localparam logic Pipelined = tenon_pkg::IN_ORDER == 0;
  localparam int   StepsWidth = tenon_pkg::HAS_BASE != 0 ? 24 : 16;

  // A row's end in its bits, sign-extended.
  function automatic logic [33:0] sized_end(logic [33:0] value);
    sized_end = $unsigned($signed(value << (34 - tenon_pkg::END_BITS)) >>> (34 - tenon_pkg::END_BITS));
  endfunction

  // ------------------------------------------------------------------------------------------------------------ fields
  // verilator lint_off UNUSEDSIGNAL
  tenon_pkg::load_insn_t load;  // what is of no transfer, as tokens
  tenon_pkg::move_insn_t move;
  // verilator lint_on UNUSEDSIGNAL
  assign load = insn_i[127:0];
  assign move = insn_i;

  logic [2:0]  mem;
  logic [2:0]  type_bits;
  logic [3:0]  function_bits;
  logic        is_store;
  logic [2:0]  unit_shift;   // log2 of the bytes of a unit
  logic [3:0]  elem_shift;   // log2 of the units of an element
  logic [3:0]  dram_shift;   // log2 of the bytes of an element in DRAM
  logic [15:0] sram_base, x_size, y_size;
  logic [20:0] x_all;

  assign function_bits = move.fn;
  assign is_store      = load.opcode == tenon_pkg::OP_STORE;
  assign type_bits     = is_store ? tenon_pkg::MEMTYPE_OUT : load.memory_type;

  always_comb begin
    if (native_i) begin
      unique case (function_bits)
        tenon_pkg::FN_MOVE_INP: mem = tenon_pkg::MEM_INP;
        tenon_pkg::FN_MOVE_WGT: mem = tenon_pkg::MEM_WGT;
        tenon_pkg::FN_MOVE_PAR: mem = tenon_pkg::MEM_PAR;
        tenon_pkg::FN_MOVE_RES: mem = tenon_pkg::MEM_RES;
        default:                mem = tenon_pkg::MEM_OUT;
      endcase
    end else begin
      unique case (type_bits)
        tenon_pkg::MEMTYPE_UOP: mem = tenon_pkg::MEM_UOP;
        tenon_pkg::MEMTYPE_WGT: mem = tenon_pkg::MEM_WGT;
        tenon_pkg::MEMTYPE_INP: mem = tenon_pkg::MEM_INP;
        tenon_pkg::MEMTYPE_OUT: mem = tenon_pkg::MEM_ACC;  // a STORE's source
        tenon_pkg::MEMTYPE_ACC: mem = tenon_pkg::MEM_ACC;
        default:                mem = tenon_pkg::MEM_ACC8;
      endcase
    end
    unique case (mem)
      tenon_pkg::MEM_UOP: unit_shift = 3'd2;
      tenon_pkg::MEM_INP,
      tenon_pkg::MEM_WGT: unit_shift = 3'(InpShift);
      default:            unit_shift = 3'(OutShift);
    endcase
    unique case (mem)
      tenon_pkg::MEM_WGT: elem_shift = 4'(OutShift);
      tenon_pkg::MEM_ACC: elem_shift = is_store & ~native_i ? 4'd0 : 4'd2;
      tenon_pkg::MEM_PAR: elem_shift = 4'd3;
      default:            elem_shift = 4'd0;
    endcase
    dram_shift = 4'(unit_shift) + elem_shift;
  end

  assign sram_base = native_i ? move.sram_base : load.sram_base;
  assign x_size    = load.x_size;
  assign y_size    = load.y_size;
  assign x_all     = 21'(x_size) + 21'(load.x_pad_left) + 21'(load.x_pad_right);

  // Rows, vectors, steps, pads as in the instruction; addr is the offset, len the row's bytes.
  dma_pkg::dma_cmd_t f_q;
  logic [2:0]        f_shift_q;
  logic              f_empty_q, f_big_q;  // moves nothing; is larger than any scratchpad
  logic [StepsWidth-1:0] steps_q;         // between the vectors of a row

  logic [22:0] base_unit;
  logic [16:0] base_rows;
  logic [23:0] base_vectors;
  assign base_unit    = 23'(sram_base) << elem_shift;
  assign base_rows    = 17'(y_size) + 17'(load.y_pad_top) + 17'(load.y_pad_bottom);
  assign base_vectors = 24'(x_all) << elem_shift;

  always_ff @(posedge clk_i) begin
    if (step1_i) begin
      f_shift_q      <= unit_shift;
      f_q.index      <= index_i & SlotMask;
      f_q.mem        <= mem;
      f_q.unit       <= base_unit & UnitMask;
      f_big_q        <= ~HasNative & (|(base_unit & ~UnitMask) | |(base_rows & ~RowMask) | |(base_vectors & ~VectorMask));
      f_q.unit_bytes <= 7'd1 << unit_shift;
      f_q.total      <= '0;  // these two come with the products
      f_q.row_end    <= '0;
      steps_q        <= StepsWidth'((native_i ? 24'(move.vectors) : base_vectors) - 24'd1);
      if (native_i) begin
        f_empty_q       <= move.rows == 16'd0 | move.vectors == 16'd0;
        base_o          <= move.base;
        f_q.valid       <= move.valid == 8'd0 | move.valid > (8'd1 << unit_shift) ? 7'd1 << unit_shift :
                           7'(move.valid);
        f_q.pad_value   <= move.pad_value;
        f_q.rows        <= 17'(move.rows);
        f_q.vectors     <= 24'(move.vectors);
        f_q.top         <= move.top;
        f_q.source_rows <= 17'(move.source_rows);
        f_q.addr        <= 64'(move.offset);
        f_q.len         <= 32'(move.row_bytes);
        f_q.y_step      <= move.y_step;
        f_q.x_step      <= move.x_step;
        f_q.left        <= 18'($signed(move.left));
      end else begin
        f_empty_q       <= x_size == 16'd0 | (y_size == 16'd0 & load.y_pad_top == 4'd0 & load.y_pad_bottom == 4'd0);
        base_o          <= type_bits == tenon_pkg::MEMTYPE_ACC8 ? 3'(tenon_pkg::MEMTYPE_ACC) : type_bits;
        f_q.valid       <= 7'd1 << unit_shift;
        f_q.pad_value   <= 8'd0;
        f_q.rows        <= base_rows & RowMask;
        f_q.vectors     <= base_vectors & VectorMask;
        f_q.top         <= 8'(load.y_pad_top);
        f_q.source_rows <= 17'(y_size) & RowMask;
        f_q.addr        <= 64'(load.dram_base) << dram_shift;
        f_q.len         <= (32'(x_size) << dram_shift) & LengthMask;
        f_q.y_step      <= (32'(load.x_stride) << dram_shift) & StepMask;
        f_q.x_step      <= 16'd1 << unit_shift;
        f_q.left        <= (18'(load.x_pad_left) << dram_shift) & 18'(LengthMask);
      end
    end
  end

  // ---------------------------------------------------------------------------------------------------------- products
  dma_pkg::dma_cmd_t p_q;
  logic [40:0]       p_total_q;
  // The byte from which the row is needed, and with it the row's length. A row ends early, after its last vector: that
  // one begins `steps` bytes after the first. Sums with it are compared as the other operand's difference.
  logic [39:0]        steps, p_steps_q;
  // verilator lint_off UNUSEDSIGNAL
  logic [17:0]        begin_byte, p_begin, p_begin_q;  // in ADDR_BITS
  // verilator lint_on UNUSEDSIGNAL
  logic signed [34:0] row_len, p_row_len, p_row_len_q;
  logic signed [42:0] last_len, p_last_len_q;   // of the last vector, of a row that begins with it
  logic signed [42:0] limit, p_limit_q;         // steps below it: the row ends early
  logic signed [42:0] p_absent_q;               // steps not above it: no vector has bytes
  logic [2:0]        p_shift_q;
  logic              p_dense_q, p_empty_q, p_big_q;
  logic [16:0]       rows_below;

  // Addresses wrap at ADDR_BITS.
  logic [tenon_pkg::ADDR_BITS-1:0] row_addr, first_addr;

  assign row_addr   = base_addr_i + f_q.addr[tenon_pkg::ADDR_BITS-1:0];
  assign first_addr = p.addr[tenon_pkg::ADDR_BITS-1:0] + tenon_pkg::ADDR_BITS'(p_begin);
  assign steps      = 40'(steps_q) * 40'(f_q.x_step);
  assign begin_byte = HasNative & f_q.left[17] ? 18'd0 - f_q.left : 18'd0;
  assign row_len    = $signed(35'(f_q.len)) - $signed(35'(begin_byte));
  assign last_len   = $signed(43'(f_q.valid)) - (f_q.left[17] ? 43'sd0 : $signed(43'(f_q.left)));
  assign limit      = $signed(43'(f_q.len)) + $signed({{25{f_q.left[17]}}, f_q.left}) - $signed(43'(f_q.valid));
  // From row `top` on: in the base profile those of the transfer and of the padding below it.
  logic [16:0]       f_below_q, native_rows, native_top;
  assign native_rows = 17'(move.rows);
  assign native_top  = 17'(move.top);
  always_ff @(posedge clk_i) begin
    if (step1_i & native_i) f_below_q <= native_rows > native_top ? native_rows - native_top : 17'd0;
    else if (step1_i) f_below_q <= (17'(y_size) + 17'(load.y_pad_bottom)) & RowMask;
  end
  if (Pipelined) begin : g_below
    assign rows_below = f_below_q;
  end else begin : g_below_now
    assign rows_below = f_q.rows > 17'(f_q.top) ? f_q.rows - 17'(f_q.top) : 17'd0;
    logic unused_below;
    assign unused_below = ^f_below_q;
  end

  // The fields that this step changes. With IN_ORDER those of step 1 hold the others.
  dma_pkg::dma_cmd_t p_next, p;
  always_comb begin
    p_next             = f_q;
    p_next.addr        = 64'(row_addr);
    p_next.source_rows = f_q.source_rows < rows_below ? f_q.source_rows : rows_below;
    p_next.row_end     = sized_end({{16{f_q.left[17]}}, f_q.left} + 34'(f_q.len));
    p                  = Pipelined ? p_q : f_q;
    p.addr             = p_q.addr;
    p.source_rows      = p_q.source_rows;
    p.row_end          = p_q.row_end;
  end

  always_ff @(posedge clk_i) begin
    if (step2_i) begin
      p_q       <= p_next;
      p_shift_q <= f_shift_q;
      p_empty_q <= f_empty_q;
      p_big_q   <= f_big_q;
      p_total_q <= 41'(f_q.rows) * 41'(f_q.vectors);
      p_steps_q <= steps;
      p_begin_q <= begin_byte;
      p_row_len_q  <= row_len;
      p_last_len_q <= last_len;
      p_limit_q    <= limit;
      p_absent_q   <= -last_len;
      p_dense_q <= Pipelined & f_q.left == 18'd0 & f_q.top == 8'd0 & f_q.source_rows >= f_q.rows &
                   (~HasNative | (f_q.valid == f_q.unit_bytes & f_q.x_step == 16'(f_q.unit_bytes))) &
                   f_q.len == 32'(f_q.vectors) << f_shift_q & (f_q.y_step == f_q.len | f_q.rows == 17'd1);
    end
  end

  // ----------------------------------------------------------------------------------------------------------- command
  logic signed [42:0] end_len;
  logic               has_bytes, ends_early;
  logic [20:0]        depth;       // of the scratchpad, in units

  // A row of the base profile is covered by its vectors from its first byte to its last; one of a MOVE ends with the row or
  // with the last vector. With IN_ORDER, which has the base profile alone, the row's length is in step 1.
  assign p_begin    = Pipelined ? p_begin_q : begin_byte;
  assign p_row_len  = Pipelined ? p_row_len_q : row_len;
  assign ends_early = HasNative & $signed(43'(p_steps_q)) < p_limit_q;
  assign end_len    = $signed(43'(p_steps_q)) + p_last_len_q;
  assign has_bytes  = p_row_len > 35'sd0 & (~HasNative | $signed(43'(p_steps_q)) > p_absent_q);

  always_comb begin
    unique case (Pipelined ? f_q.mem : p.mem)
      tenon_pkg::MEM_UOP: depth = 21'(tenon_pkg::UOP_DEPTH);
      tenon_pkg::MEM_WGT: depth = 21'(tenon_pkg::WGT_DEPTH * tenon_pkg::WGT_UNITS);
      tenon_pkg::MEM_INP: depth = 21'(tenon_pkg::INP_DEPTH);
      tenon_pkg::MEM_ACC: depth = (Pipelined ? f_store_q : p_store_q) ? 21'(tenon_pkg::ACC_DEPTH) :
                                  21'(tenon_pkg::ACC_DEPTH * tenon_pkg::ACC_UNITS);
      tenon_pkg::MEM_OUT: depth = 21'(tenon_pkg::OUT_DEPTH);
      tenon_pkg::MEM_PAR: depth = 21'(tenon_pkg::PAR_DEPTH * tenon_pkg::PAR_UNITS);
      tenon_pkg::MEM_RES: depth = 21'(tenon_pkg::RES_DEPTH);
      default:            depth = 21'(tenon_pkg::ACC_DEPTH);  // acc8
    endcase
  end

  logic f_store_q, p_store_q;
  always_ff @(posedge clk_i) begin
    if (step1_i) f_store_q <= is_store;
    if (step2_i) p_store_q <= f_store_q;
  end

  // Units of the scratchpad from the first one on.
  logic signed [23:0] room, p_room_q, units_left;
  assign room = $signed(24'(depth)) - $signed({1'b0, Pipelined ? f_q.unit : p.unit});
  always_ff @(posedge clk_i) begin
    if (step2_i) p_room_q <= room;
  end
  assign units_left = Pipelined ? p_room_q : room;

  dma_pkg::dma_cmd_t cmd, cmd_q;
  logic              range, empty_q, range_q;
  always_comb begin
    cmd       = p;
    cmd.total = p_total_q[20:0] & TotalMask;
    cmd.addr  = 64'(first_addr);
    cmd.len   = 32'(ends_early ? end_len : 43'(p_row_len));
    if (!has_bytes) cmd.source_rows = 17'd0;
    if (p_dense_q) begin
      cmd.rows        = 17'd1;
      cmd.source_rows = 17'd1;
      cmd.vectors     = p_total_q[23:0] & VectorMask;
      cmd.len         = (p_total_q[31:0] << p_shift_q) & LengthMask;
      cmd.row_end     = sized_end(34'(p_total_q) << p_shift_q);
    end
    range = ~p_empty_q & (p_big_q | $signed({1'b0, p_total_q}) > 42'(units_left));
  end

  always_ff @(posedge clk_i) begin
    if (step3_i) begin
      cmd_q   <= cmd;
      empty_q <= p_empty_q;
      range_q <= range;
    end
  end
  assign cmd_o   = Pipelined ? cmd_q : cmd;
  assign empty_o = Pipelined ? empty_q : p_empty_q;
  assign range_o = range_q;

`ifndef SYNTHESIS
  initial begin
    AUnitsBytesAreAPowerOfTwo: assert (2**InpShift == tenon_pkg::BLOCK_IN && 2**OutShift == tenon_pkg::BLOCK_OUT);
    EveryScratchpadIsCountedIn21Bits: assert (tenon_pkg::WGT_DEPTH * tenon_pkg::WGT_UNITS < 2**21 &&
                                              tenon_pkg::ACC_DEPTH * tenon_pkg::ACC_UNITS < 2**21 &&
                                              tenon_pkg::PAR_DEPTH * tenon_pkg::PAR_UNITS < 2**21);
    AnAccumulatorIsFourUnitsAndAParameterEight: assert (tenon_pkg::ACC_UNITS == 4 && tenon_pkg::PAR_UNITS == 8);
  end
`endif

endmodule
