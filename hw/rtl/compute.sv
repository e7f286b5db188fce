// The compute half of the accelerator: scratchpads, matrix engine, vector ALU and requantizer.
//
// Loads are always accepted. An engine takes a command with valid and ready, and answers with one cycle of done when
// all effects are visible, in the order of the commands; GEMM takes the next command while one is in flight. A stop
// code accompanies done; after any code but STOP_NONE the engine accepts no command until reset.
//
// acc has one read port: GEMM before RQ and ALU before the store, but a reader that was refused `Refusals` times goes
// first once. Its write port serves GEMM, ALU and loads, of which the base profile runs one at a time and the native
// profile has only GEMM. inp is written by loads, before which results of RQ wait. All other scratchpads have one writer
// and one reader.
module compute (
  input  logic                                clk_i,
  input  logic                                rst_ni,  // also low during a soft reset
  // Loads. A unit is BLOCK_IN bytes of inp and of wgt (element * BLOCK_OUT + output lane).
  input  logic                                inp_we_i,
  input  logic [31:0]                         inp_unit_i,
  input  logic [tenon_pkg::BLOCK_IN*8-1:0]    inp_wdata_i,
  input  logic                                wgt_we_i,
  input  logic [31:0]                         wgt_unit_i,
  input  logic [tenon_pkg::BLOCK_IN*8-1:0]    wgt_wdata_i,
  // UOP: a word; ACC: a quarter of an element, little endian; ACC8: an element, sign-extended; PAR: an eighth of an
  // element; RES: an element.
  input  logic                                ldm_we_i,
  input  logic [2:0]                          ldm_mem_i,
  input  logic [31:0]                         ldm_unit_i,
  input  logic [(tenon_pkg::BLOCK_OUT > 4 ? tenon_pkg::BLOCK_OUT*8 : 32)-1:0] ldm_wdata_i,
  // Reads of the store: data in the cycle after the grant.
  input  logic                                st_req_i,
  input  logic                                st_acc_i,  // 1: the low byte of each lane of acc, 0: out
  input  logic [15:0]                         st_addr_i,
  output logic                                st_gnt_o,
  output logic [tenon_pkg::BLOCK_OUT*8-1:0]   st_rdata_o,
  // Engines.
  input  logic                                gemm_valid_i,
  input  compute_pkg::gemm_cmd_t              gemm_cmd_i,
  output logic                                gemm_ready_o,
  output logic                                gemm_done_o,
  output logic [7:0]                          gemm_error_o,
  output logic                                gemm_active_o,  // a MAC step retires
  input  logic                                alu_valid_i,
  input  compute_pkg::alu_cmd_t               alu_cmd_i,
  output logic                                alu_ready_o,
  output logic                                alu_done_o,
  output logic [7:0]                          alu_error_o,
  input  logic                                rq_valid_i,
  input  tenon_pkg::rq_cmd_t                rq_cmd_i,
  output logic                                rq_ready_o,
  output logic                                rq_done_o,
  output logic [7:0]                          rq_error_o
`ifdef TENON_TRACE
  ,
  // Writes of GEMM and ALU to acc and of RQ to out, and what inp takes from it; writes of loads are traced at their source.
  output logic                                trace_acc_valid_o,
  output logic [31:0]                         trace_acc_index_o,
  output logic [15:0]                         trace_acc_addr_o,
  output logic [tenon_pkg::BLOCK_OUT*32-1:0]  trace_acc_data_o,
  output logic                                trace_out_valid_o,
  output logic [31:0]                         trace_out_index_o,
  output logic [15:0]                         trace_out_addr_o,
  output logic [tenon_pkg::BLOCK_OUT*8-1:0]   trace_out_data_o,
  output logic                                trace_inp_valid_o,
  output logic [31:0]                         trace_inp_index_o,
  output logic [15:0]                         trace_inp_addr_o,
  output logic [tenon_pkg::BLOCK_IN*8-1:0]    trace_inp_data_o
`endif
);

  localparam int         Lanes    = tenon_pkg::BLOCK_OUT;
  localparam int         InpBits  = tenon_pkg::BLOCK_IN * 8;
  localparam int         ByteBits = Lanes * 8;   // a vector of bytes
  localparam int         AccBits  = Lanes * 32;
  localparam int         ParBits  = Lanes * 64;
  localparam logic [3:0] Refusals = 4'd8;

  // inp.
  logic [2:0]                     inp_re;
  logic [3*tenon_pkg::INP_AW-1:0] inp_raddr;
  logic [3*InpBits-1:0]           inp_rdata;

  logic                           result_valid, result_ready, result_waits, result_stays;  // of RQ
  logic [tenon_pkg::INP_AW-1:0]   result_addr;
  logic [InpBits-1:0]             result_data;

  input_banks u_inp (
    .clk_i,
    .rst_ni,
    .we_i   (inp_we_i),
    .waddr_i(inp_unit_i[tenon_pkg::INP_AW-1:0]),
    .wdata_i(inp_wdata_i),
    .result_valid_i(result_valid),
    .result_ready_o(result_ready),
    .result_addr_i (result_addr),
    .result_data_i (result_data),
    .result_waits_o(result_waits),
    .result_stays_o(result_stays),
    .re_i   (inp_re),
    .raddr_i(inp_raddr),
    .rdata_o(inp_rdata)
  );

  // acc: the read port.
  logic                         gemm_acc_req, post_acc_req, alu_acc_req, rq_acc_req, st_acc_req;
  logic                         gemm_acc_gnt, post_acc_gnt, st_acc_gnt, acc_re;
  logic [tenon_pkg::ACC_AW-1:0] gemm_acc_raddr, alu_acc_raddr, rq_acc_raddr, acc_raddr;
  logic [AccBits-1:0]           acc_rdata;
  logic [3:0]                   post_refused_q, st_refused_q;
  logic                         post_first, st_first;
  logic                         post_due_q, st_due_q, post_due, st_due;  // refused often enough; in the next cycle

  assign post_acc_req = alu_acc_req | rq_acc_req;
  assign st_acc_req   = st_req_i & st_acc_i;
  // A reader that is refused asks again, unless it is halted: so the grant of GEMM follows from registers.
  assign st_first     = st_due_q;
  assign post_first   = post_due_q & ~st_due_q;
  // With IN_ORDER one unit runs at a time, so that no reader meets another.
  localparam logic Alone = tenon_pkg::IN_ORDER != 0;
  assign gemm_acc_gnt = Alone | ~(st_due_q | post_due_q);
  assign post_acc_gnt = Alone | (~st_first & (post_first | ~gemm_acc_req));
  assign post_due     = post_acc_req & ~post_acc_gnt & (post_due_q | post_refused_q == Refusals - 4'd1);
  assign st_due       = st_acc_req & ~st_acc_gnt & (st_due_q | st_refused_q == Refusals - 4'd1);
  assign st_acc_gnt   = Alone | st_first | (~gemm_acc_req & ~post_acc_req);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      post_refused_q <= 4'd0;
      st_refused_q   <= 4'd0;
      post_due_q     <= 1'b0;
      st_due_q       <= 1'b0;
    end else begin
      post_due_q <= post_due;
      st_due_q   <= st_due;
      if (~post_acc_req | post_acc_gnt) post_refused_q <= 4'd0;
      else if (~post_due_q) post_refused_q <= post_refused_q + 4'd1;
      if (~st_acc_req | st_acc_gnt) st_refused_q <= 4'd0;
      else if (~st_due_q) st_refused_q <= st_refused_q + 4'd1;
    end
  end

  always_comb begin
    acc_re    = gemm_acc_req | post_acc_req | st_acc_req;
    acc_raddr = st_addr_i[tenon_pkg::ACC_AW-1:0];
    if (gemm_acc_req & gemm_acc_gnt) acc_raddr = gemm_acc_raddr;
    else if (alu_acc_req & post_acc_gnt) acc_raddr = alu_acc_raddr;
    else if (rq_acc_req & post_acc_gnt) acc_raddr = rq_acc_raddr;
  end

  // acc: the write port. A unit of a load is a quarter of an element.
  logic                         gemm_acc_we, ldm_acc_we, ldm_acc8_we;
  logic [3:0]                   acc_we, alu_acc_we;
  logic [tenon_pkg::ACC_AW-1:0] gemm_acc_waddr, alu_acc_waddr, acc_waddr;
  logic [AccBits-1:0]           gemm_acc_wdata, alu_acc_wdata, acc_wdata;

  assign ldm_acc_we  = tenon_pkg::HAS_BASE != 0 & ldm_we_i & ldm_mem_i == tenon_pkg::MEM_ACC;
  assign ldm_acc8_we = tenon_pkg::HAS_BASE != 0 & ldm_we_i & ldm_mem_i == tenon_pkg::MEM_ACC8;

  always_comb begin
    acc_we    = {4{gemm_acc_we}};
    acc_waddr = gemm_acc_waddr;
    acc_wdata = gemm_acc_wdata;
    if (|alu_acc_we) begin
      acc_we    = alu_acc_we;
      acc_waddr = alu_acc_waddr;
      acc_wdata = alu_acc_wdata;
    end else if (ldm_acc_we) begin
      acc_we    = 4'b0001 << ldm_unit_i[1:0];
      acc_waddr = ldm_unit_i[2+:tenon_pkg::ACC_AW];
      acc_wdata = {4{ldm_wdata_i[ByteBits-1:0]}};
    end else if (ldm_acc8_we) begin
      acc_we    = 4'b1111;
      acc_waddr = ldm_unit_i[tenon_pkg::ACC_AW-1:0];
      for (int l = 0; l < Lanes; l++) acc_wdata[l*32+:32] = {{24{ldm_wdata_i[l*8+7]}}, ldm_wdata_i[l*8+:8]};
    end
  end

  prim_ram_1r1w #(
    .Width    (AccBits),
    .Depth    (tenon_pkg::ACC_DEPTH),
    .SubWords (4),
    .AddrWidth(tenon_pkg::ACC_AW)
  ) u_acc (
    .clk_i,
    .we_i   (acc_we),
    .waddr_i(acc_waddr),
    .wdata_i(acc_wdata),
    .re_i   (acc_re),
    .raddr_i(acc_raddr),
    .rdata_o(acc_rdata)
  );

  // The stages that GEMM and ALU share: these two never run together.
  localparam int IndexWidth = compute_pkg::INDEX_WIDTH;
  logic                         uop_re;
  logic [tenon_pkg::UOP_AW-1:0] uop_addr;
  logic [31:0]                  uop_rdata;
  logic                         gemm_load, gemm_en, gemm_fail, gemm_bad, alu_load, alu_en, alu_fail, alu_bad;
  compute_pkg::loops_t          gemm_loops, alu_loops, loops;
  logic                         alu_runs_q;  // the stages have a command of ALU, else of GEMM
  logic                         alu_selected;
  logic                         a_valid, a_last, c_work, c_last, c_uop_bad;
  logic [4:0]                   a_step;
  compute_pkg::step_tag_t       a_tag, c_tag;
  logic                         a_hold;
  logic [IndexWidth-1:0]        b_src;
  logic [3*IndexWidth-1:0]      c_index;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) alu_runs_q <= 1'b0;
    else if (gemm_load | alu_load) alu_runs_q <= alu_load;
  end
  // With IN_ORDER the loops are those of the command until it is done.
  assign alu_selected = alu_load | (tenon_pkg::IN_ORDER != 0 & alu_runs_q & ~gemm_load);
  assign loops        = alu_selected ? alu_loops : gemm_loops;

  index_stages #(
    .Indices (3),
    .TagWidth($bits(a_tag))
  ) u_stages (
    .clk_i,
    .rst_ni,
    .en_i       (alu_runs_q ? alu_en : gemm_en),
    .load_i     (gemm_load | alu_load),
    .fail_i     (gemm_fail | alu_fail),
    .extent_i   (loops.extent),
    .base_i     (loops.base),
    .stride_i   (loops.stride),
    .uop_i      (loops.uop),
    .uop_begin_i(loops.uop_begin),
    .uop_re_o   (uop_re),
    .uop_addr_o (uop_addr),
    .uop_data_i (uop_rdata),
    .a_valid_o  (a_valid),
    .a_last_o   (a_last),
    .a_step_o   (a_step),
    .a_tag_i    (a_tag),
    .a_hold_i   (a_hold & ~alu_runs_q),
    .b_src_o    (b_src),
    .c_work_o   (c_work),
    .c_last_o   (c_last),
    .c_uop_bad_o(c_uop_bad),
    .c_tag_o    (c_tag),
    .c_index_o  (c_index),
    .c_bad_i    (gemm_bad | alu_bad)
  );

`ifdef TENON_TRACE
  logic [31:0]        gemm_trace_index, alu_trace_index;
  logic               alu_trace_valid;
  logic [AccBits-1:0] alu_trace_data;
`endif

  // The matrix engine.
  gemm u_gemm (
    .clk_i,
    .rst_ni,
    .valid_i    (gemm_valid_i),
    .cmd_i      (gemm_cmd_i),
    .ready_o    (gemm_ready_o),
    .done_o     (gemm_done_o),
    .error_o    (gemm_error_o),
    .active_o   (gemm_active_o),
    .stages_load_o (gemm_load),
    .stages_loops_o(gemm_loops),
    .stages_en_o   (gemm_en),
    .stages_fail_o (gemm_fail),
    .stages_bad_o  (gemm_bad),
    .stages_tag_o  (a_tag),
    .stages_hold_o (a_hold),
    .a_valid_i  (a_valid),
    .a_last_i   (a_last),
    .a_step_i   (a_step),
    .b_src_i    (b_src),
    .c_work_i   (c_work & ~alu_runs_q),
    .c_last_i   (c_last & ~alu_runs_q),
    .c_uop_bad_i(c_uop_bad),
    .c_tag_i    (c_tag),
    .c_index_i  (c_index),
    .inp_re_o   (inp_re),
    .inp_addr_o (inp_raddr),
    .inp_data_i (inp_rdata),
    .wgt_we_i,
    .wgt_unit_i,
    .wgt_wdata_i,
    .acc_req_o  (gemm_acc_req),
    .acc_gnt_i  (gemm_acc_gnt),
    .acc_gnt_next_i(~(st_due | post_due)),
    .acc_raddr_o(gemm_acc_raddr),
    .acc_rdata_i(acc_rdata),
    .acc_we_o   (gemm_acc_we),
    .acc_waddr_o(gemm_acc_waddr),
    .acc_wdata_o(gemm_acc_wdata)
`ifdef TENON_TRACE
    ,
    .trace_index_o(gemm_trace_index)
`endif
  );

  // The multipliers that the ALU takes from outside, if any.
  localparam int RqLanes = Lanes / tenon_pkg::RQ_PASSES;
  logic                  multiply;
  logic [Lanes*32-1:0]   multiplicand, product;
  logic [Lanes*16-1:0]   multiplier;
  logic [RqLanes*32-1:0] rq_product;
  if (tenon_pkg::ALU_MULTIPLY_PASSES != 2) begin : g_no_multipliers
    logic unused_multipliers;
    assign unused_multipliers = ^{multiply, multiplicand, multiplier, rq_product};
    assign product = '0;
  end else if (tenon_pkg::HAS_NATIVE != 0) begin : g_shared_multipliers
    assign product = rq_product;
  end else begin : g_multipliers
    logic unused_product;
    assign unused_product = ^rq_product;
    for (genvar l = 0; l < Lanes; l++) begin : g_lane
      logic [31:0] product_q;
      always_ff @(posedge clk_i) begin
        if (multiply) product_q <= multiplicand[l*32+:32] * 32'(multiplier[l*16+:16]);
      end
      assign product[l*32+:32] = product_q;
    end
  end

  // Only in the base profile: micro-ops and ALU.
  if (tenon_pkg::HAS_BASE != 0) begin : g_base
    prim_ram_1r1w #(
      .Width    (32),
      .Depth    (tenon_pkg::UOP_DEPTH),
      .AddrWidth(tenon_pkg::UOP_AW)
    ) u_uop (
      .clk_i,
      .we_i   (ldm_we_i & ldm_mem_i == tenon_pkg::MEM_UOP),
      .waddr_i(ldm_unit_i[tenon_pkg::UOP_AW-1:0]),
      .wdata_i(ldm_wdata_i[31:0]),
      .re_i   (uop_re),
      .raddr_i(uop_addr),
      .rdata_o(uop_rdata)
    );

    alu u_alu (
      .clk_i,
      .rst_ni,
      .valid_i    (alu_valid_i),
      .cmd_i      (alu_cmd_i),
      .ready_o    (alu_ready_o),
      .done_o     (alu_done_o),
      .error_o    (alu_error_o),
      .stages_load_o (alu_load),
      .stages_loops_o(alu_loops),
      .stages_en_o   (alu_en),
      .stages_fail_o (alu_fail),
      .stages_bad_o  (alu_bad),
      .c_work_i   (c_work & alu_runs_q),
      .c_last_i   (c_last & alu_runs_q),
      .c_uop_bad_i(c_uop_bad),
      .c_index_i  (c_index),
      .acc_req_o  (alu_acc_req),
      .acc_gnt_i  (post_acc_gnt),
      .acc_raddr_o(alu_acc_raddr),
      .acc_rdata_i(acc_rdata),
      .acc_we_o   (alu_acc_we),
      .acc_waddr_o(alu_acc_waddr),
      .acc_wdata_o(alu_acc_wdata),
      .multiply_o    (multiply),
      .multiplicand_o(multiplicand),
      .multiplier_o  (multiplier),
      .product_i     (product)
`ifdef TENON_TRACE
      ,
      .trace_valid_o(alu_trace_valid),
      .trace_index_o(alu_trace_index),
      .trace_data_o (alu_trace_data)
`endif
    );
  end else begin : g_no_base
    logic unused_base;
    assign unused_base = ^{product, alu_valid_i, alu_cmd_i, uop_re, uop_addr};
    assign {alu_load, alu_loops, alu_en, alu_fail, alu_bad} = '0;
    assign uop_rdata = '0;
    assign {multiply, multiplicand, multiplier} = '0;
    assign {alu_ready_o, alu_done_o, alu_error_o} = '0;
    assign {alu_acc_req, alu_acc_raddr, alu_acc_we, alu_acc_waddr, alu_acc_wdata} = '0;
`ifdef TENON_TRACE
    assign {alu_trace_valid, alu_trace_index, alu_trace_data} = '0;
`endif
  end

  // Only in the native profile: parameters, residuals, out and the requantizer.
  logic                out_we;
  logic [ByteBits-1:0] out_wdata, out_rdata;
  if (tenon_pkg::HAS_NATIVE != 0) begin : g_native
    logic                         par_re, res_re;
    logic [tenon_pkg::PAR_AW-1:0] par_raddr;
    logic [tenon_pkg::RES_AW-1:0] res_raddr;
    logic [tenon_pkg::OUT_AW-1:0] out_waddr;
    logic [ParBits-1:0]           par_rdata;
    logic [ByteBits-1:0]          res_rdata;

    prim_ram_1r1w #(
      .Width    (ParBits),
      .Depth    (tenon_pkg::PAR_DEPTH),
      .SubWords (8),
      .AddrWidth(tenon_pkg::PAR_AW)
    ) u_par (
      .clk_i,
      .we_i   (ldm_we_i & ldm_mem_i == tenon_pkg::MEM_PAR ? 8'd1 << ldm_unit_i[2:0] : 8'd0),
      .waddr_i(ldm_unit_i[3+:tenon_pkg::PAR_AW]),
      .wdata_i({8{ldm_wdata_i[ByteBits-1:0]}}),
      .re_i   (par_re),
      .raddr_i(par_raddr),
      .rdata_o(par_rdata)
    );

    prim_ram_1r1w #(
      .Width    (ByteBits),
      .Depth    (tenon_pkg::RES_DEPTH),
      .AddrWidth(tenon_pkg::RES_AW)
    ) u_res (
      .clk_i,
      .we_i   (ldm_we_i & ldm_mem_i == tenon_pkg::MEM_RES),
      .waddr_i(ldm_unit_i[tenon_pkg::RES_AW-1:0]),
      .wdata_i(ldm_wdata_i[ByteBits-1:0]),
      .re_i   (res_re),
      .raddr_i(res_raddr),
      .rdata_o(res_rdata)
    );

    prim_ram_1r1w #(
      .Width    (ByteBits),
      .Depth    (tenon_pkg::OUT_DEPTH),
      .AddrWidth(tenon_pkg::OUT_AW)
    ) u_out (
      .clk_i,
      .we_i   (out_we),
      .waddr_i(out_waddr),
      .wdata_i(out_wdata),
      .re_i   (st_req_i & ~st_acc_i),
      .raddr_i(st_addr_i[tenon_pkg::OUT_AW-1:0]),
      .rdata_o(out_rdata)
    );

    // With blocks of two sizes there are no results for inp.
    logic [ByteBits-1:0] rq_result;
    if (tenon_pkg::RESULTS_TO_INP != 0) begin : g_result
      assign result_data = rq_result;
    end else begin : g_no_result
      assign result_data = '0;
      logic unused_result;
      assign unused_result = ^rq_result;
    end

    rq u_rq (
      .clk_i,
      .rst_ni,
      .valid_i    (rq_valid_i),
      .cmd_i      (rq_cmd_i),
      .ready_o    (rq_ready_o),
      .done_o     (rq_done_o),
      .error_o    (rq_error_o),
      .par_re_o   (par_re),
      .par_addr_o (par_raddr),
      .par_data_i (par_rdata),
      .res_re_o   (res_re),
      .res_addr_o (res_raddr),
      .res_data_i (res_rdata),
      .acc_req_o  (rq_acc_req),
      .acc_gnt_i  (post_acc_gnt),
      .acc_raddr_o(rq_acc_raddr),
      .acc_rdata_i(acc_rdata),
      .out_we_o   (out_we),
      .out_addr_o (out_waddr),
      .out_data_o (out_wdata),
      .inp_valid_o(result_valid),
      .inp_ready_i(result_ready),
      .inp_waits_i(result_waits),
      .inp_stays_i(result_stays),
      .inp_addr_o (result_addr),
      .inp_data_o (rq_result),
      .multiply_i    (multiply),
      .multiplicand_i(multiplicand[RqLanes*32-1:0]),
      .multiplier_i  (multiplier[RqLanes*16-1:0]),
      .product_o     (rq_product)
`ifdef TENON_TRACE
      ,
      .trace_index_o    (trace_out_index_o),
      .trace_inp_index_o(trace_inp_index_o)
`endif
    );
`ifdef TENON_TRACE
    assign trace_out_addr_o = 16'(out_waddr);
`endif
  end else begin : g_no_native
    logic unused_native;
    assign unused_native = ^{rq_valid_i, rq_cmd_i, out_we, out_wdata};
    assign {rq_ready_o, rq_done_o, rq_error_o, rq_acc_req, rq_acc_raddr} = '0;
    assign {out_we, out_wdata, out_rdata} = '0;
    assign {result_valid, result_addr, result_data} = '0;
    logic unused_ready;
    assign unused_ready = ^{result_ready, result_waits, result_stays};
    assign rq_product = '0;
`ifdef TENON_TRACE
    assign {trace_out_index_o, trace_out_addr_o, trace_inp_index_o} = '0;
`endif
  end

  // The store.
  logic                st_acc_q;
  logic [ByteBits-1:0] acc_low;
  always_ff @(posedge clk_i) begin
    if (st_req_i) st_acc_q <= st_acc_i;
  end
  for (genvar l = 0; l < Lanes; l++) begin : g_store
    assign acc_low[l*8+:8] = acc_rdata[l*32+:8];
  end
  assign st_gnt_o   = st_req_i & (~st_acc_i | st_acc_gnt);
  assign st_rdata_o = st_acc_q ? acc_low : out_rdata;

  logic unused_bits;
  assign unused_bits = ^{inp_unit_i, ldm_unit_i, ldm_wdata_i, st_addr_i};

`ifdef TENON_TRACE
  assign trace_acc_valid_o = gemm_acc_we | alu_trace_valid;
  assign trace_acc_index_o = gemm_acc_we ? gemm_trace_index : alu_trace_index;
  assign trace_acc_addr_o  = 16'(acc_waddr);
  assign trace_acc_data_o  = gemm_acc_we ? acc_wdata : alu_trace_data;
  assign trace_out_valid_o = out_we;
  assign trace_out_data_o  = out_wdata;
  assign trace_inp_valid_o = result_valid & result_ready;
  assign trace_inp_addr_o  = 16'(result_addr);
  assign trace_inp_data_o  = result_data;
`endif

`ifndef SYNTHESIS
  logic [1:0] inp_bank0, inp_bank1, inp_bank2;  // of each row
  assign inp_bank0 = 2'(inp_raddr[0+:tenon_pkg::INP_AW]);
  assign inp_bank1 = 2'(inp_raddr[tenon_pkg::INP_AW+:tenon_pkg::INP_AW]);
  assign inp_bank2 = 2'(inp_raddr[2*tenon_pkg::INP_AW+:tenon_pkg::INP_AW]);
  logic [2:0] acc_read;  // a grant to GEMM, to ALU or RQ, to the store
  assign acc_read = {st_acc_req & st_acc_gnt, post_acc_req & post_acc_gnt, gemm_acc_req & gemm_acc_gnt};

  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & acc_re) begin
      AccHasOneReaderAtATime: assert ((acc_read & (acc_read - 3'd1)) == 3'd0);
      AccIsGrantedWhenAReaderAsks: assert (acc_read != 3'd0 | (st_due_q & ~st_acc_req) | (post_due_q & ~post_acc_req));
      ARefusedReaderIsGrantedInTheEnd: assert ((st_refused_q != Refusals | !st_acc_req | st_acc_gnt) &
                                               (post_refused_q != Refusals | !post_acc_req | post_acc_gnt | st_first));
      AluAndRqNeverRunTogether: assert (!(alu_acc_req & rq_acc_req));
    end
    if (rst_ni & (|acc_we)) begin
      AccHasOneWriterAtATime: assert (!(gemm_acc_we & |alu_acc_we) &
                                      !((gemm_acc_we | |alu_acc_we) & (ldm_acc_we | ldm_acc8_we)));
      AnAccumulatorIsLoadedInsideItsScratchpad: assert (!ldm_acc_we | ldm_unit_i < tenon_pkg::ACC_DEPTH * 4);
      AnInt8AccumulatorIsLoadedInsideItsScratchpad: assert (!ldm_acc8_we | ldm_unit_i < tenon_pkg::ACC_DEPTH);
    end
    if (rst_ni & tenon_pkg::OWN_LANES != 0 & |inp_re[2:1]) begin
      ABankIsReadByOneRow: assert ((~(inp_re[0] & inp_re[1]) | inp_bank0 != inp_bank1) &
                                   (~(inp_re[0] & inp_re[2]) | inp_bank0 != inp_bank2) &
                                   (~(inp_re[1] & inp_re[2]) | inp_bank1 != inp_bank2));
    end
    if (rst_ni & inp_we_i) begin
      AnInputIsLoadedInsideItsScratchpad: assert (inp_unit_i < tenon_pkg::INP_DEPTH);
    end
    if (rst_ni & wgt_we_i) begin
      AWeightIsLoadedInsideItsScratchpad: assert (wgt_unit_i < tenon_pkg::WGT_DEPTH * tenon_pkg::BLOCK_OUT);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
