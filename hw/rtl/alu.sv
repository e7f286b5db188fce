// The vector ALU of the base profile: acc[dst] = op(acc[dst], imm or acc[src]) over y, x and micro-ops.
//
// Stages   a  loops and indices; the micro-op is read
//          b  dst and src are summed
//          c  range check; acc is read: first src, if the operation has one, then dst
//          d  the lanes compute   e  the result is written
// With an immediate the throughput is one element a cycle, else one in two cycles; a MUL in two passes reads dst twice,
// which takes another cycle. With ALU_PASSES > 1 there are fewer lanes than an element has, which goes through c to e
// once for each part, and reads its operands each time, so that no register holds an element. A read waits while its
// address and part are those of an operation in d or e, so that results equal sequential execution at any index
// distance. Completion and errors as in gemm.
module alu (
  input  logic                               clk_i,
  input  logic                               rst_ni,
  input  logic                               valid_i,
  input  compute_pkg::alu_cmd_t              cmd_i,
  output logic                               ready_o,
  output logic                               done_o,
  output logic [7:0]                         error_o,
  // The shared stages a to c, which hold this engine's command while it runs.
  output logic                               stages_load_o,
  output compute_pkg::loops_t                stages_loops_o,
  output logic                               stages_en_o,
  output logic                               stages_fail_o,
  output logic                               stages_bad_o,
  input  logic                               c_work_i,
  input  logic                               c_last_i,
  input  logic                               c_uop_bad_i,
  input  logic [3*compute_pkg::INDEX_WIDTH-1:0] c_index_i,
  output logic                               acc_req_o,
  input  logic                               acc_gnt_i,
  output logic [tenon_pkg::ACC_AW-1:0]       acc_raddr_o,
  input  logic [tenon_pkg::BLOCK_OUT*32-1:0] acc_rdata_i,
  output logic [3:0]                         acc_we_o,       // a quarter of the element each
  output logic [tenon_pkg::ACC_AW-1:0]       acc_waddr_o,
  output logic [tenon_pkg::BLOCK_OUT*32-1:0] acc_wdata_o,
  // Multipliers of 32 by 16 bits (ALU_MULTIPLY_PASSES = 2); the product comes in the next cycle and stays.
  output logic                               multiply_o,
  output logic [tenon_pkg::BLOCK_OUT*32-1:0] multiplicand_o,
  output logic [tenon_pkg::BLOCK_OUT*16-1:0] multiplier_o,
  input  logic [tenon_pkg::BLOCK_OUT*32-1:0] product_i
`ifdef TENON_TRACE
  ,
  output logic                               trace_valid_o,  // an element is complete
  output logic [31:0]                        trace_index_o,
  output logic [tenon_pkg::BLOCK_OUT*32-1:0] trace_data_o
`endif
);

  localparam int IndexWidth = compute_pkg::INDEX_WIDTH;
  localparam int AccBits    = tenon_pkg::ACC_AW;
  localparam int Passes     = tenon_pkg::ALU_PASSES;
  localparam int PartBits   = Passes > 1 ? $clog2(Passes) : 1;
  localparam int Lanes      = tenon_pkg::BLOCK_OUT / Passes;

  logic en;  // stages a to c advance
  logic load, c_bad, e_last_q, e_bad_q;

  command_port u_port (
    .clk_i,
    .rst_ni,
    .valid_i,
    .room_i    (1'b1),
    .ready_o,
    .load_o    (load),
    .done_o,
    .error_o,
    .bad_i     (c_bad),
    .fail_o    (stages_fail_o),
    .last_i    (e_last_q),
    .last_bad_i(e_bad_q)
  );

  // One command at a time: the operation holds for all stages, and the lanes keep the immediate.
  localparam logic Held = tenon_pkg::IN_ORDER != 0;  // the command stays at the input
  logic [2:0] op, op_q;
  logic       use_imm_q;

  always_ff @(posedge clk_i) begin
    if (load) {op_q, use_imm_q} <= {cmd_i.op, cmd_i.use_imm};
  end
  assign op = Held ? cmd_i.op : op_q;

  // a to c.
  logic                  c_work_q, c_last_q, c_uop_bad_q, unused_wgt;
  logic [IndexWidth-1:0] c_dst_q, c_src_q;

  always_comb begin
    stages_loops_o = 'x;
    if (valid_i | Held) begin
      stages_loops_o.extent = compute_pkg::base_extent(cmd_i.y, cmd_i.x,
                                                       compute_pkg::uop_count(cmd_i.uop_begin, cmd_i.uop_end));
      stages_loops_o.stride[139:0] = {compute_pkg::base_stride(cmd_i.src_y, cmd_i.src_x),
                                      compute_pkg::base_stride(cmd_i.dst_y, cmd_i.dst_x)};
      stages_loops_o.base[27:0]    = 28'd0;
    end
    stages_loops_o.uop       = 1'b1;
    stages_loops_o.uop_begin = cmd_i.uop_begin;
  end
  assign stages_load_o = load;
  assign stages_en_o   = en;
  assign stages_bad_o  = c_bad;
  assign {c_work_q, c_last_q, c_uop_bad_q} = {c_work_i, c_last_i, c_uop_bad_i};
  assign c_dst_q       = c_index_i[0+:IndexWidth];
  assign c_src_q       = c_index_i[IndexWidth+:IndexWidth];
  assign unused_wgt    = ^c_index_i[2*IndexWidth+:IndexWidth];

  // c: one to three reads of acc for each part of the element.
  localparam logic Twice = tenon_pkg::ALU_MULTIPLY_PASSES == 2;
  logic               c_src_phase_q, c_half_read_q, c_half_phase, c_hazard, c_read;
  logic               d_work_q, d_last_q, d_bad_q, e_work_q;
  logic [AccBits-1:0] d_dst_q, e_dst_q;
  logic [PartBits-1:0] c_part_q, d_part_q, e_part_q;
  logic                c_last_part, c_operate;

  assign c_bad = c_work_q & (c_uop_bad_q | c_dst_q >= IndexWidth'(tenon_pkg::ACC_DEPTH) |
                             (~use_imm_q & c_src_q >= IndexWidth'(tenon_pkg::ACC_DEPTH)));
  assign c_half_phase = Twice & op == tenon_pkg::ALU_MUL & ~c_src_phase_q & ~c_half_read_q;
  assign acc_raddr_o = c_src_phase_q ? c_src_q[AccBits-1:0] : c_dst_q[AccBits-1:0];
  assign c_hazard    = (d_work_q & d_dst_q == acc_raddr_o & d_part_q == c_part_q) |
                       (e_work_q & e_dst_q == acc_raddr_o & e_part_q == c_part_q);
  // A step in error reads as any other does, at an address of the scratchpad, and is dropped after it: its check is on
  // no path to the grant and to the registers of the stages.
  assign acc_req_o   = c_work_q & ~c_hazard;
  assign c_read      = acc_req_o & acc_gnt_i;
  assign c_operate   = c_read & ~c_src_phase_q & ~c_half_phase;
  assign c_last_part = c_part_q == PartBits'(Passes - 1);
  assign en          = ~c_work_q | (c_operate & c_last_part);

  logic src_read_q, half_read_q;  // acc_rdata_i is the source operand, operand a of a first pass
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {c_src_phase_q, src_read_q, c_half_read_q, half_read_q} <= 4'b0000;
    else begin
      src_read_q  <= c_read & c_src_phase_q;
      half_read_q <= c_read & c_half_phase;
      if (en | c_operate) {c_src_phase_q, c_half_read_q} <= {~use_imm_q, 1'b0};
      else if (c_read) {c_src_phase_q, c_half_read_q} <= {1'b0, c_half_phase};
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) c_part_q <= '0;
    else if (en) c_part_q <= '0;
    else if (c_operate) c_part_q <= c_part_q + 1'b1;
  end

  // d, e.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {d_work_q, d_last_q, d_bad_q} <= 3'd0;
      {e_work_q, e_last_q, e_bad_q} <= 3'd0;
    end else begin
      {d_work_q, d_last_q, d_bad_q} <= {c_operate & ~c_bad, {2{en}} & {c_last_q | c_bad, c_bad}};
      {e_work_q, e_last_q, e_bad_q} <= {d_work_q, d_last_q, d_bad_q};
    end
  end
  always_ff @(posedge clk_i) begin
    if (c_operate) {d_dst_q, d_part_q} <= {c_dst_q[AccBits-1:0], c_part_q};
    if (d_work_q) {e_dst_q, e_part_q} <= {d_dst_q, d_part_q};
  end

  // The part of the element that the lanes see, which is the source's or the operation's.
  logic [Lanes*32-1:0] part, results;
  if (Passes > 1) begin : g_parts
    logic [PartBits-1:0] selected;
    assign selected    = src_read_q ? c_part_q : d_part_q;
    assign part        = (Lanes * 32)'(acc_rdata_i >> (32'(selected) * Lanes * 32));
    assign acc_we_o    = {4{e_work_q}} & (4'((1 << (4 / Passes)) - 1) << (32'(e_part_q) * (4 / Passes)));
  end else begin : g_whole
    assign part     = acc_rdata_i;
    assign acc_we_o = {4{e_work_q}};
  end
  assign acc_wdata_o = {Passes{results}};

  logic [Lanes-1:0]    multiplies;
  logic [Lanes*32-1:0] multiplicands;
  logic [Lanes*16-1:0] multipliers;
  assign multiply_o     = multiplies[0];
  assign multiplicand_o = {Passes{multiplicands}};  // outside multipliers require a pass
  assign multiplier_o   = {Passes{multipliers}};
  for (genvar l = 0; l < Lanes; l++) begin : g_lane
    alu_lane u_lane (
      .clk_i,
      .load_i   (load),
      .b_en_i   (src_read_q),
      .d_en_i   (d_work_q),
      .op_i     (op),
      .imm_i    ({{16{cmd_i.imm[15]}}, cmd_i.imm}),
      .acc_i    (part[l*32+:32]),
      .result_o (results[l*32+:32]),
      .half_i        (half_read_q),
      .multiply_o    (multiplies[l]),
      .multiplicand_o(multiplicands[l*32+:32]),
      .multiplier_o  (multipliers[l*16+:16]),
      .product_i     (product_i[l*32+:32])
    );
  end
  logic unused_multiplies;
  assign unused_multiplies = ^{multiplies, product_i};  // they are equal; only the first part's products exist
  assign acc_waddr_o = e_dst_q;

`ifdef TENON_TRACE
  logic [31:0]                        index_q;
  logic [tenon_pkg::BLOCK_OUT*32-1:0] earlier_q;  // parts of the element
  always_ff @(posedge clk_i) begin
    if (load) index_q <= cmd_i.index;
    if (e_work_q) earlier_q <= trace_data_o;
  end
  always_comb begin
    trace_data_o = earlier_q;
    for (int p = 0; p < Passes; p++) begin
      if (e_part_q == PartBits'(p)) trace_data_o[p*Lanes*32+:Lanes*32] = results;
    end
  end
  assign trace_valid_o = e_work_q & e_part_q == PartBits'(Passes - 1);
  assign trace_index_o = index_q;
`else
  logic unused_index;
  assign unused_index = ^cmd_i.index;
`endif

`ifndef SYNTHESIS
  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & src_read_q) begin
      TheOperandsNeverArriveTogether: assert (!d_work_q);
      AnImmediateNeedsNoSource: assert (!use_imm_q);
    end
    if (rst_ni & e_work_q) begin
      AReadWaitsForAnEarlierWriteOfItsElement: assert (!(acc_req_o & acc_gnt_i) | acc_raddr_o != acc_waddr_o |
                                                       c_part_q != e_part_q);
      AStepInErrorHasNoEffect: assert (!e_bad_q);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
