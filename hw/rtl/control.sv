// The AXI4-Lite slave s_axi_control: arguments, commands, status, interrupt. The map is hw/spec/registers.h's; the
// handshake is that of Xilinx's ap_ctrl_hs kernels. At most one read and one write are in progress. A read selects a word
// of each part in the cycle after its address, and with several parts one of these in the next.
module control (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                awvalid_i,
  output logic                awready_o,
  // verilator lint_off UNUSEDSIGNAL
  input  logic [11:0]         awaddr_i,         // the low two bits are ignored
  // verilator lint_on UNUSEDSIGNAL
  input  logic                wvalid_i,
  output logic                wready_o,
  input  logic [31:0]         wdata_i,
  input  logic [3:0]          wstrb_i,
  output logic                bvalid_o,
  input  logic                bready_i,
  input  logic                arvalid_i,
  output logic                arready_o,
  // verilator lint_off UNUSEDSIGNAL
  input  logic [11:0]         araddr_i,
  // verilator lint_on UNUSEDSIGNAL
  output logic                rvalid_o,
  input  logic                rready_i,
  output logic [31:0]         rdata_o,
  output logic                interrupt_o,
  // Launch.
  output logic                start_o,          // one cycle
  output logic                soft_reset_o,     // one cycle
  output logic                token_clear_o,    // one cycle
  input  logic                done_i,           // one cycle: ap_done rises
  input  logic                idle_i,
  input  logic                clear_i,          // soft reset: all but the arguments
  input  logic [7:0]          code_i,
  input  logic [31:0]         error_index_i,
  input  tenon_pkg::engines_t waiting_i,
  output logic [tenon_pkg::ADDR_BITS-1:0] instructions_o,
  output logic [31:0]         count_o,
  output logic                native_o,
  input  logic [2:0]          base_i,
  output logic [tenon_pkg::ADDR_BITS-1:0] base_addr_o,
  // Words of the register map that other modules hold.
  output logic                read_o,
  output logic [11:0]         read_addr_o,
  input  logic [31:0]         tokens_word_i,    // with counters or progress a cycle after read_o
  input  logic [31:0]         progress_word_i,  // a cycle after read_o, as the next one
  input  logic [31:0]         counters_word_i
);

  localparam logic [63:0] AddressMask = {64{1'b1}} >> (64 - tenon_pkg::ADDR_BITS);
  localparam logic [11:0] TokenBytes  = 12'((tenon_pkg::NUM_ENGINES * tenon_pkg::NUM_ENGINES + 3) / 4 * 4);  // whole words
  localparam logic [31:0] CountMask   = {32{1'b1}} >> (32 - tenon_pkg::SLOT_BITS);

  logic         write_q, write, read, read_q, answer;
  logic [31:0]  mask;
  logic [11:0]  waddr, raddr;          // raddr stays until the answer
  logic [tenon_pkg::ADDR_BITS-1:0]  instructions_q;
  logic [63:0]  instructions;  // as registers
  logic [31:0]  count_q;
  logic         native_q, global_enable_q, start_q, done_q;
  logic [1:0]   enable_q, status_q;
  logic [511:0] bases_q;

  // AXI forbids combinational paths between inputs and outputs, so ready is a register.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) write_q <= 1'b0;
    else write_q <= awvalid_i & wvalid_i & ~bvalid_o & ~write_q;
  end
  assign write     = write_q;
  assign awready_o = write;
  assign wready_o  = write;
  assign waddr     = {awaddr_i[11:2], 2'd0};
  assign mask      = {{8{wstrb_i[3]}}, {8{wstrb_i[2]}}, {8{wstrb_i[1]}}, {8{wstrb_i[0]}}};
  assign arready_o = ~rvalid_o & ~read_q & ~answer;

  logic [11:2] raddr_q;
  logic [3:0]  part, part_q;  // that has the register: control, bases, tokens, progress; 0: counters
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) read_q <= 1'b0;
    else read_q <= arvalid_i & arready_o;
  end
  always_ff @(posedge clk_i) begin
    if (arvalid_i & arready_o) {part_q, raddr_q} <= {part, araddr_i[11:2]};
  end
  assign read  = read_q;
  assign raddr = {raddr_q, 2'd0};

  // Copies for the words of the bases and of other modules, which are all over the chip; `keep` leaves synthesis no
  // merging of these copies.
  logic [6:2]  base_raddr;
  logic [11:2] other_raddr;
  if (tenon_pkg::IN_ORDER != 0) begin : g_address
    assign {base_raddr, other_raddr} = {raddr_q[6:2], raddr_q};
  end else begin : g_address_copies
    logic [6:2]  base_raddr_q;
    logic [11:2] other_raddr_q;
    (* keep *) always_ff @(posedge clk_i) begin
      if (arvalid_i & arready_o) {base_raddr_q, other_raddr_q} <= {araddr_i[6:2], araddr_i[11:2]};
    end
    assign {base_raddr, other_raddr} = {base_raddr_q, other_raddr_q};
  end

  assign instructions   = 64'(instructions_q);
  assign instructions_o = instructions_q;
  assign count_o        = count_q;
  assign native_o       = native_q;
  assign base_addr_o    = bases_q[{base_i, 6'd0}+:tenon_pkg::ADDR_BITS];
  assign interrupt_o    = global_enable_q & |status_q;
  assign read_o         = read;
  assign read_addr_o    = {other_raddr, 2'd0};

  // The commands wait in registers, since their nets cross the chip; with IN_ORDER they do not.
  logic start, soft_reset, token_clear;
  assign start       = write & waddr == tenon_pkg::REG_CONTROL & wdata_i[0] & wstrb_i[0] & idle_i & ~start_q;
  assign soft_reset  = write & waddr == tenon_pkg::REG_COMMAND & wdata_i[0] & wstrb_i[0];
  assign token_clear = write & waddr == tenon_pkg::REG_COMMAND & wdata_i[1] & wstrb_i[0];
  if (tenon_pkg::IN_ORDER != 0) begin : g_commands
    assign {start_o, soft_reset_o, token_clear_o} = {start, soft_reset, token_clear};
  end else begin : g_command_registers
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) {start_o, soft_reset_o, token_clear_o} <= 3'b000;
      else {start_o, soft_reset_o, token_clear_o} <= {start, soft_reset, token_clear};
    end
  end

  logic [3:0] base_word;
  logic       is_base;
  assign is_base   = waddr >= tenon_pkg::REG_BASE0 & waddr < tenon_pkg::REG_BASE0 + 12'd64;
  assign base_word = 4'(6'(waddr[6:2]) - 6'(tenon_pkg::REG_BASE0 >> 2));

  // The address is at the port a cycle before the write.
  logic [15:0] base_selected, base_write;
  assign base_selected = is_base ? 16'd1 << base_word : 16'd0;
  if (tenon_pkg::IN_ORDER != 0) begin : g_base_write
    assign base_write = {16{write}} & base_selected;
  end else begin : g_base_write_early
    logic [15:0] base_write_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) base_write_q <= '0;
      else base_write_q <= {16{awvalid_i & wvalid_i & ~bvalid_o & ~write_q}} & base_selected;
    end
    assign base_write = base_write_q;
  end

  for (genvar w = 0; w < 16; w++) begin : g_base
    localparam logic [31:0] Present = w / 2 < tenon_pkg::NUM_BASES ? 32'(AddressMask >> (32 * (w % 2))) : 32'd0;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) bases_q[w*32+:32] <= '0;
      else if (base_write[w]) begin
        bases_q[w*32+:32] <= ((bases_q[w*32+:32] & ~mask) | (wdata_i & mask)) & Present;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      instructions_q <= '0;
      count_q        <= '0;
      native_q       <= 1'b0;
    end else if (write) begin
      if (waddr == tenon_pkg::REG_INSTRUCTIONS) begin
        instructions_q <= tenon_pkg::ADDR_BITS'({instructions[63:32], (instructions[31:0] & ~mask) | (wdata_i & mask)});
      end
      if (waddr == tenon_pkg::REG_INSTRUCTIONS + 12'd4) begin
        instructions_q <= tenon_pkg::ADDR_BITS'({(instructions[63:32] & ~mask) | (wdata_i & mask), instructions[31:0]});
      end
      if (waddr == tenon_pkg::REG_COUNT) count_q <= ((count_q & ~mask) | (wdata_i & mask)) & CountMask;
      if (waddr == tenon_pkg::REG_MODE & wstrb_i[0]) native_q <= wdata_i[0];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      start_q         <= 1'b0;
      done_q          <= 1'b0;
      global_enable_q <= 1'b0;
      enable_q        <= 2'd0;
      status_q        <= 2'd0;
    end else if (clear_i) begin
      start_q         <= 1'b0;
      done_q          <= 1'b0;
      global_enable_q <= 1'b0;
      enable_q        <= 2'd0;
      status_q        <= 2'd0;
    end else begin
      if (start) start_q <= 1'b1;
      else if (done_i) start_q <= 1'b0;
      if (done_i) done_q <= 1'b1;
      else if (read & raddr == tenon_pkg::REG_CONTROL) done_q <= 1'b0;
      if (write & wstrb_i[0]) begin
        if (waddr == tenon_pkg::REG_GLOBAL_INTERRUPT_ENABLE) global_enable_q <= wdata_i[0];
        if (waddr == tenon_pkg::REG_INTERRUPT_ENABLE) enable_q <= wdata_i[1:0];
      end
      status_q <= (status_q ^ (write & wstrb_i[0] & waddr == tenon_pkg::REG_INTERRUPT_STATUS ? wdata_i[1:0] : 2'd0)) |
                  (done_i ? enable_q : 2'd0);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      bvalid_o <= 1'b0;
      rvalid_o <= 1'b0;
    end else begin
      bvalid_o <= write | (bvalid_o & ~bready_i);
      rvalid_o <= answer | (rvalid_o & ~rready_i);
    end
  end

  logic [31:0] word, base_word_read;
  assign base_word_read = bases_q[{4'(6'(base_raddr[6:2]) - 6'(tenon_pkg::REG_BASE0 >> 2)), 5'd0}+:32];
  always_comb begin
    word = 'x;
    if (read) begin
      unique case (raddr)
        tenon_pkg::REG_CONTROL:                 word = {28'd0, done_q, idle_i & ~start_q, done_q, start_q};
        tenon_pkg::REG_GLOBAL_INTERRUPT_ENABLE: word = {31'd0, global_enable_q};
        tenon_pkg::REG_INTERRUPT_ENABLE:        word = {30'd0, enable_q};
        tenon_pkg::REG_INTERRUPT_STATUS:        word = {30'd0, status_q};
        tenon_pkg::REG_INSTRUCTIONS:            word = instructions[31:0];
        tenon_pkg::REG_INSTRUCTIONS + 12'd4:    word = instructions[63:32];
        tenon_pkg::REG_COUNT:                   word = count_q;
        tenon_pkg::REG_MODE:                    word = {31'd0, native_q};
        tenon_pkg::REG_STATUS:                  word = {23'd0, ~idle_i | start_q, code_i};
        tenon_pkg::REG_ERROR_INDEX:             word = error_index_i;
        tenon_pkg::REG_VERSION:                 word = {tenon_pkg::ISA_VERSION, tenon_pkg::REGMAP_VERSION};
        tenon_pkg::REG_CONFIG_HASH:             word = tenon_pkg::CONFIG_HASH[31:0];
        tenon_pkg::REG_CONFIG_HASH + 12'd4:     word = tenon_pkg::CONFIG_HASH[63:32];
        tenon_pkg::REG_CAPABILITIES:            word = tenon_pkg::CAPABILITIES;
        default:                                word = 32'(waiting_i);  // REG_TOKEN_WAIT
      endcase
    end
  end

  logic [11:0] address;
  assign address = {araddr_i[11:2], 2'd0};
  always_comb begin
    part = 4'd0;
    unique case (address)
      tenon_pkg::REG_CONTROL, tenon_pkg::REG_GLOBAL_INTERRUPT_ENABLE, tenon_pkg::REG_INTERRUPT_ENABLE,
      tenon_pkg::REG_INTERRUPT_STATUS, tenon_pkg::REG_INSTRUCTIONS, tenon_pkg::REG_INSTRUCTIONS + 12'd4,
      tenon_pkg::REG_COUNT, tenon_pkg::REG_MODE, tenon_pkg::REG_STATUS, tenon_pkg::REG_ERROR_INDEX,
      tenon_pkg::REG_VERSION, tenon_pkg::REG_CONFIG_HASH, tenon_pkg::REG_CONFIG_HASH + 12'd4,
      tenon_pkg::REG_CAPABILITIES, tenon_pkg::REG_TOKEN_WAIT: part[3] = 1'b1;
      default: begin
        if (address >= tenon_pkg::REG_BASE0 & address < tenon_pkg::REG_BASE0 + 12'd64) part[2] = 1'b1;
        else if (address >= tenon_pkg::REG_TOKENS & address < tenon_pkg::REG_TOKENS + TokenBytes) part[1] = 1'b1;
        else if (address[11:6] == tenon_pkg::REG_HEAD0[11:6]) part[0] = 1'b1;
      end
    endcase
  end

  function automatic logic [31:0] select(logic [3:0] of, logic [31:0] of_control, logic [31:0] of_bases,
                                         logic [31:0] of_tokens, logic [31:0] of_progress, logic [31:0] of_counters);
    if (of[3]) select = of_control;
    else if (of[2]) select = of_bases;
    else if (of[1]) select = of_tokens;
    else if (of[0]) select = of_progress;
    else select = of_counters;
  endfunction

  if (tenon_pkg::HAS_COUNTERS == 0 && tenon_pkg::HAS_PROGRESS == 0) begin : g_few_parts
    assign answer = read;
    always_ff @(posedge clk_i) begin
      if (read) begin
        rdata_o <= select(part_q, word, base_word_read, tokens_word_i, progress_word_i, counters_word_i);
      end
    end
  end else begin : g_parts
    logic        answer_q;
    logic [31:0] word_q, base_word_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) answer_q <= 1'b0;
      else answer_q <= read;
    end
    always_ff @(posedge clk_i) begin
      if (read) begin
        word_q      <= word;
        base_word_q <= base_word_read;
      end
      if (answer_q) rdata_o <= select(part_q, word_q, base_word_q, tokens_word_i, progress_word_i, counters_word_i);
    end
    assign answer = answer_q;
  end

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & start_o) begin
      ALaunchStartsOnlyFromIdle: assert (idle_i);
    end
    if (rst_ni & done_i) begin
      OnlyALaunchThatStartedIsDone: assert (start_q);
    end
    if (rst_ni & write) begin
      AWriteIsAnsweredBeforeTheNextOne: assert (!bvalid_o);
    end
  end
  // verilator lint_on SYNCASYNCNET

  stream_check u_b_check (
    .clk_i,
    .rst_ni,
    .valid_i(bvalid_o),
    .ready_i(bready_i),
    .data_i (1'b0)
  );
  stream_check #(.Width(32)) u_r_check (
    .clk_i,
    .rst_ni,
    .valid_i(rvalid_o),
    .ready_i(rready_i),
    .data_i (rdata_o)
  );
`endif

endmodule
