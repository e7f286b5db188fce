// The scratchpad inp. With own lanes it is four banks by the low bits of an address, so that up to three rows of a
// window are read in a cycle, from banks that differ; which rows these are is the reader's concern. A row's vector stays
// until its bank is read again.
//
// A load writes in the cycle in which it comes; a result of RQ waits while a load writes to its bank. Both go from bank
// to bank, so that results, which come faster, would wait in each bank for the load that is as far: hence one of them
// waits beside the others, which pass it, but not in its bank.
module input_banks (
  input  logic                               clk_i,
  input  logic                               rst_ni,
  input  logic                               we_i,
  input  logic [tenon_pkg::INP_AW-1:0]       waddr_i,
  input  logic [tenon_pkg::BLOCK_IN*8-1:0]   wdata_i,
  input  logic                               result_valid_i,
  output logic                               result_ready_o,
  input  logic [tenon_pkg::INP_AW-1:0]       result_addr_i,
  input  logic [tenon_pkg::BLOCK_IN*8-1:0]   result_data_i,
  // waits: a result taken in or before this cycle is still unwritten at its end; stays: the same for results taken before
  // this cycle.
  output logic                               result_waits_o,
  output logic                               result_stays_o,
  input  logic [2:0]                         re_i,     // by row; only row 0 without own lanes
  input  logic [3*tenon_pkg::INP_AW-1:0]     raddr_i,
  output logic [3*tenon_pkg::BLOCK_IN*8-1:0] rdata_o   // in the next cycle
);

  localparam int Width = tenon_pkg::BLOCK_IN * 8;
  localparam int Addr  = tenon_pkg::INP_AW;

  if (tenon_pkg::OWN_LANES != 0) begin : g_banks
    localparam int Banks    = tenon_pkg::INPUT_BANKS;
    localparam int BankBits = $clog2(Banks);
    localparam int BankAddr = Addr > BankBits ? Addr - BankBits : 1;

    // The result that waits.
    logic                waits_q, refused, stays;
    logic [Addr-1:0]     waiting_addr_q;
    logic [Width-1:0]    waiting_data_q;
    logic [BankBits-1:0] load_bank, result_bank, waiting_bank;
    assign result_stays_o = stays;
    if (tenon_pkg::RESULTS_TO_INP != 0) begin : g_results
      assign load_bank    = waddr_i[BankBits-1:0];
      assign result_bank  = result_addr_i[BankBits-1:0];
      assign waiting_bank = waiting_addr_q[BankBits-1:0];
      assign stays        = waits_q & we_i & load_bank == waiting_bank;
      assign refused      = we_i & load_bank == result_bank;
      // A refused result takes the place of the one that waits, unless that stays; no result passes one of its bank.
      assign result_ready_o = ~(waits_q & waiting_bank == result_bank) & ~(refused & stays);
      assign result_waits_o = stays | (result_valid_i & result_ready_o & refused);
      always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) waits_q <= 1'b0;
        else waits_q <= result_waits_o;
      end
      always_ff @(posedge clk_i) begin
        if (~stays) {waiting_addr_q, waiting_data_q} <= {result_addr_i, result_data_i};
      end
    end else begin : g_no_results
      assign {waits_q, refused, stays, waiting_addr_q, waiting_data_q} = '0;
      assign {load_bank, result_bank, waiting_bank} = '0;
      assign {result_ready_o, result_waits_o} = '0;
      logic unused_results;
      assign unused_results = ^{rst_ni, waits_q, refused, stays, waiting_addr_q, waiting_data_q, load_bank, result_bank,
                                waiting_bank, result_valid_i, result_addr_i, result_data_i};
    end

    logic [Banks*Width-1:0] bank_data;
    logic [3*BankBits-1:0]  row_bank_q;
    // verilator lint_off UNUSEDSIGNAL
    logic                   taken;         // for an assertion, as the next one
    logic [Banks-1:0]       takes_result;
    // verilator lint_on UNUSEDSIGNAL
    assign taken = result_valid_i & result_ready_o;

    for (genvar b = 0; b < Banks; b++) begin : g_bank
      logic [2:0]          reads;  // the row that reads this bank, one hot
      logic [BankAddr-1:0] address;
      logic                loads, waiting, results;  // which of them is for this bank
      for (genvar r = 0; r < 3; r++) begin : g_row
        assign reads[r] = re_i[r] & raddr_i[r*Addr+:BankBits] == BankBits'(b);
      end
      always_comb begin
        address = BankAddr'(raddr_i[0+:Addr] >> BankBits);
        if (reads[1]) address = BankAddr'(raddr_i[Addr+:Addr] >> BankBits);
        if (reads[2]) address = BankAddr'(raddr_i[2*Addr+:Addr] >> BankBits);
      end

      assign loads   = we_i & waddr_i[BankBits-1:0] == BankBits'(b);
      assign waiting = waits_q & waiting_bank == BankBits'(b);
      assign results = result_valid_i & result_ready_o & result_bank == BankBits'(b);
      assign takes_result[b] = (waiting | results) & ~loads;

      prim_ram_1r1w #(
        .Width    (Width),
        .Depth    (tenon_pkg::INP_DEPTH / Banks),
        .AddrWidth(BankAddr)
      ) u_ram (
        .clk_i,
        .we_i   (loads | waiting | results),
        .waddr_i(BankAddr'((loads ? waddr_i : waiting ? waiting_addr_q : result_addr_i) >> BankBits)),
        .wdata_i(loads ? wdata_i : waiting ? waiting_data_q : result_data_i),
        .re_i   (|reads),
        .raddr_i(address),
        .rdata_o(bank_data[b*Width+:Width])
      );
    end

`ifndef SYNTHESIS
    // Only assertions read the reset synchronously.
    // verilator lint_off SYNCASYNCNET
    always_ff @(posedge clk_i) begin
      if (rst_ni & tenon_pkg::RESULTS_TO_INP != 0) begin
        // A bank takes one, the older one; so none is lost, and none passes one of its bank.
        ATakenResultIsWrittenOrWaits: assert (2'(taken) + 2'(waits_q) ==
                                              2'($countones(takes_result)) + 2'(result_waits_o));
      end
    end
    // verilator lint_on SYNCASYNCNET
`endif

    for (genvar r = 0; r < 3; r++) begin : g_output
      always_ff @(posedge clk_i) begin
        if (re_i[r]) row_bank_q[r*BankBits+:BankBits] <= raddr_i[r*Addr+:BankBits];
      end
      assign rdata_o[r*Width+:Width] = bank_data[row_bank_q[r*BankBits+:BankBits]*Width+:Width];
    end
  end else begin : g_whole
    assign result_ready_o = ~we_i;
    assign result_waits_o = 1'b0;
    assign result_stays_o = 1'b0;

    prim_ram_1r1w #(
      .Width    (Width),
      .Depth    (tenon_pkg::INP_DEPTH),
      .AddrWidth(Addr)
    ) u_ram (
      .clk_i,
      .we_i   (we_i | result_valid_i),
      .waddr_i(we_i ? waddr_i : result_addr_i),
      .wdata_i(we_i ? wdata_i : result_data_i),
      .re_i   (re_i[0]),
      .raddr_i(raddr_i[Addr-1:0]),
      .rdata_o(rdata_o[Width-1:0])
    );
    assign rdata_o[3*Width-1:Width] = '0;
    logic unused_rows;
    assign unused_rows = ^{rst_ni, re_i[2:1], raddr_i[3*Addr-1:Addr]};
  end

endmodule
