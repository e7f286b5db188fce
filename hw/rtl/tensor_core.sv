// BLOCK_OUT lanes, each with its slice of the weight scratchpad, a dot product and an accumulation. Stages, enabled by
// gemm: c reads weights, d takes them and the inputs, e products, f groups, g sums and takes the accumulator, h adds. The
// result of h is written to acc in the same cycle, and kept: it is the accumulator of the next two steps if their dst
// is the same. With SERIAL_PRODUCTS the stages d, e and f are one, of eight cycles, each of which takes a bit of the
// inputs; with IN_ORDER as well, g adds.
module tensor_core (
  input  logic                                clk_i,
  // Loads of weights: one lane of one element.
  input  logic                                wgt_we_i,
  input  logic [31:0]                         wgt_unit_i,
  input  logic [tenon_pkg::BLOCK_IN*8-1:0]    wgt_wdata_i,
  // The pipeline.
  input  logic                                c_en_i,
  input  logic [tenon_pkg::BLOCK_OUT-1:0]     d_en_i,       // by lane, as e and f
  input  logic [2:0]                          d_pass_i,     // SERIAL_PRODUCTS: 7 minus the bit
  input  logic [tenon_pkg::BLOCK_OUT-1:0]     e_en_i,
  input  logic [tenon_pkg::BLOCK_OUT-1:0]     f_en_i,
  input  logic                                g_en_i,
  input  logic                                g_sum_i,      // a sum is made, not only with an accumulator
  input  logic                                h_en_i,
  input  logic [tenon_pkg::WGT_AW-1:0]        c_wgt_addr_i,
  input  logic [tenon_pkg::BLOCK_IN*8-1:0]    d_inp_i,
  // Own lanes: a column of up to three vectors enters the lanes' windows, of so many columns.
  input  logic                                d_own_i,
  input  logic [tenon_pkg::BLOCK_OUT-1:0]     d_enters_i,
  input  logic                                d_odd_i,      // PACKED_PRODUCTS: of odd lanes, else of even ones
  input  logic [compute_pkg::OWN_COLUMNS_WIDTH-1:0] d_columns_i,
  input  logic [3*tenon_pkg::BLOCK_IN*8-1:0]  d_column_i,
  input  logic                                g_zero_i,     // acc reads as 0
  input  logic                                g_newest_i,   // acc reads as the result of h
  input  logic                                g_newer_i,    // else as the one before it
  input  logic [tenon_pkg::BLOCK_OUT*32-1:0]  g_acc_i,
  input  logic                                w_reset_i,    // the dot product of the step that is written counts as 0
  output logic [tenon_pkg::BLOCK_OUT*32-1:0]  w_result_o
);

  localparam logic Serial = tenon_pkg::SERIAL_PRODUCTS != 0;
  localparam logic Short  = Serial & tenon_pkg::IN_ORDER != 0;
  localparam logic HasReset = tenon_pkg::HAS_BASE != 0;  // steps without a product

  localparam int LaneBits = $clog2(tenon_pkg::BLOCK_OUT);
  localparam int SumWidth = 16 + $clog2(tenon_pkg::BLOCK_IN);

  logic [31:0] element;
  logic        unused_element;
  assign element        = wgt_unit_i >> LaneBits;
  assign unused_element = ^element;

  localparam int VectorBits = tenon_pkg::BLOCK_IN * 8;
  // verilator lint_off UNUSEDSIGNAL
  // verilator lint_off UNDRIVEN
  logic [tenon_pkg::BLOCK_OUT*VectorBits-1:0] all_weights;  // for pairs of lanes
  logic [tenon_pkg::BLOCK_OUT*SumWidth-1:0]   pair_sums;
  // verilator lint_on UNDRIVEN
  // verilator lint_on UNUSEDSIGNAL

  logic unused_serial;
  assign unused_serial = ^{d_pass_i, e_en_i, f_en_i, g_sum_i, h_en_i};

  // The operands. Two lanes have a copy of the inputs, since the wires from one register to all multipliers would be
  // longer than a cycle; `keep` leaves synthesis no merging of these copies. With own lanes each lane has one, or its
  // pair in turns.
  localparam logic HasOwn = tenon_pkg::OWN_LANES != 0;
  localparam logic Paired = ~HasOwn | tenon_pkg::PACKED_PRODUCTS != 0;
  localparam int   Lanes  = Paired ? 2 : 1;  // of a copy
  localparam int   InputCopies = (tenon_pkg::BLOCK_OUT + Lanes - 1) / Lanes;
  logic [InputCopies*VectorBits-1:0] inputs;
  for (genvar c = 0; c < InputCopies; c++) begin : g_inputs
    // A lane's window is shifted: byte i + 3 k is row i of the k-th last column, and 0 beyond the window's columns.
    logic [VectorBits-1:0] operand;
    if (HasOwn) begin : g_own
      logic [VectorBits-1:0] last, window;  // the window of the lane without the column that enters
      logic [23:0]           entering;
      localparam int         Lane = c * Lanes;
      for (genvar r = 0; r < tenon_pkg::OWN_ROWS; r++) begin : g_row
        logic [7:0] even;
        assign even = d_column_i[(r*tenon_pkg::BLOCK_IN+Lane)*8+:8];
        if (Paired) begin : g_pair
          assign entering[r*8+:8] = d_odd_i ? d_column_i[(r*tenon_pkg::BLOCK_IN+Lane+1)*8+:8] : even;
        end else begin : g_lane
          assign entering[r*8+:8] = even;
        end
      end
      for (genvar t = 0; t < tenon_pkg::BLOCK_IN; t++) begin : g_byte
        localparam int Column = t / tenon_pkg::OWN_ROWS;
        if (Column == 0) begin : g_first
          assign window[t*8+:8] = entering[t*8+:8];
        end else begin : g_other
          assign window[t*8+:8] = last[(t-tenon_pkg::OWN_ROWS)*8+:8] &
                                  {8{compute_pkg::OWN_COLUMNS_WIDTH'(Column) < d_columns_i}};
        end
      end
      assign operand = d_own_i ? window : d_inp_i;

      if (Paired | Serial) begin : g_windows
        // Of two lanes that share their operands the windows are exchanged by each column that enters.
        logic [VectorBits-1:0] window_q;
        always_ff @(posedge clk_i) begin
          if (d_enters_i[Lane]) window_q <= Serial ? operand : inputs[c*VectorBits+:VectorBits];
        end
        assign last = window_q;
      end else begin : g_window
        assign last = inputs[c*VectorBits+:VectorBits];
      end
      logic unused_last;
      assign unused_last = ^{last, entering};
    end else begin : g_shared
      assign operand = d_inp_i;
    end

    if (Serial) begin : g_now
      assign inputs[c*VectorBits+:VectorBits] = operand;
    end else begin : g_register
      logic [VectorBits-1:0] inputs_q;
      (* keep *) always_ff @(posedge clk_i) begin
        if (HasOwn & d_own_i ? d_enters_i[c*Lanes] : d_en_i[c*Lanes]) inputs_q <= operand;
      end
      assign inputs[c*VectorBits+:VectorBits] = inputs_q;
    end
  end
  logic unused_inputs;
  assign unused_inputs = ^{inputs, d_own_i, d_enters_i, d_odd_i, d_columns_i, d_column_i};

  for (genvar l = 0; l < tenon_pkg::BLOCK_OUT; l++) begin : g_lane
    logic [VectorBits-1:0]      read_weights, weights;
    logic signed [SumWidth-1:0] sum, addend;
    logic [31:0]                base, result;

    prim_ram_1r1w #(
      .Width    (tenon_pkg::BLOCK_IN * 8),
      .Depth    (tenon_pkg::WGT_DEPTH),
      .AddrWidth(tenon_pkg::WGT_AW)
    ) u_wgt (
      .clk_i,
      .we_i   (wgt_we_i & (wgt_unit_i & (tenon_pkg::BLOCK_OUT - 1)) == l),
      .waddr_i(element[tenon_pkg::WGT_AW-1:0]),
      .wdata_i(wgt_wdata_i),
      .re_i   (c_en_i),
      .raddr_i(c_wgt_addr_i),
      .rdata_o(read_weights)
    );
    if (Serial) begin : g_no_weights
      assign weights = read_weights;
    end else begin : g_weights
      logic [VectorBits-1:0] weights_q;
      always_ff @(posedge clk_i) begin
        // Of lanes that share their operands one pair's half has a product, and the other one adds 0.
        if (d_en_i[l]) weights_q <= HasOwn & Paired & d_own_i & d_odd_i != (l % 2 != 0) ? '0 : read_weights;
      end
      assign weights = weights_q;
    end

    // An even lane's instance computes the next lane's sum too, where products are packed.
    if (tenon_pkg::SERIAL_PRODUCTS != 0) begin : g_serial
      // The bit of every input that a pass takes.
      logic [tenon_pkg::BLOCK_IN-1:0] bits;
      for (genvar i = 0; i < tenon_pkg::BLOCK_IN; i++) begin : g_bit
        logic [7:0] value;
        assign value   = inputs[l/Lanes*VectorBits+i*8+:8];
        assign bits[i] = value[~d_pass_i];
      end
      dot_serial #(
        .Lanes   (tenon_pkg::BLOCK_IN),
        .SumWidth(SumWidth)
      ) u_dot (
        .clk_i,
        .en_i   (d_en_i[l]),
        .first_i(d_pass_i == 3'd0),
        .bits_i (bits),
        .b_i    (weights),
        .sum_o  (sum)
      );
    end else if (tenon_pkg::PACKED_PRODUCTS == 0) begin : g_single
      dot #(
        .Lanes   (tenon_pkg::BLOCK_IN),
        .SumWidth(SumWidth)
      ) u_dot (
        .clk_i,
        .product_en_i(e_en_i[l]),
        .group_en_i  (f_en_i[l]),
        .sum_en_i    (g_sum_i),
        .a_i         (inputs[l/Lanes*VectorBits+:VectorBits]),
        .b_i         (weights),
        .sum_o       (sum)
      );
    end else if (l % 2 == 0) begin : g_pair
      dot_pair #(
        .Lanes   (tenon_pkg::BLOCK_IN),
        .SumWidth(SumWidth)
      ) u_dot (
        .clk_i,
        .product_en_i(e_en_i[l]),
        .group_en_i  (f_en_i[l]),
        .sum_en_i    (g_sum_i),
        .a_i         (inputs[l/Lanes*VectorBits+:VectorBits]),
        .b0_i        (all_weights[l*VectorBits+:VectorBits]),
        .b1_i        (all_weights[(l+1)*VectorBits+:VectorBits]),
        .sum0_o      (pair_sums[l*SumWidth+:SumWidth]),
        .sum1_o      (pair_sums[(l+1)*SumWidth+:SumWidth])
      );
      assign sum = pair_sums[l*SumWidth+:SumWidth];
    end else begin : g_second
      assign sum = pair_sums[l*SumWidth+:SumWidth];
    end
    assign all_weights[l*VectorBits+:VectorBits] = weights;

    if (Short) begin : g_short
      logic unused_forward;
      assign unused_forward = ^{g_newest_i, g_newer_i};
      assign base   = g_zero_i ? 32'd0 : g_acc_i[l*32+:32];
      assign addend = sum;
      always_comb begin
        result = 'x;
        if (g_en_i) result = base + (w_reset_i ? 32'd0 : 32'(addend));
      end
    end else begin : g_added
      logic [31:0] base_q, result_q;
      assign base = base_q;
      always_ff @(posedge clk_i) begin
        if (g_en_i) base_q <= g_zero_i ? 32'd0 : g_newest_i ? result : g_newer_i ? result_q : g_acc_i[l*32+:32];
        if (h_en_i) result_q <= result;
      end
      if (Serial) begin : g_kept
        logic signed [SumWidth-1:0] addend_q;
        always_ff @(posedge clk_i) begin
          if (g_sum_i) addend_q <= sum;
        end
        assign addend = addend_q;
      end else begin : g_summed
        assign addend = sum;
      end
      always_comb begin
        result = 'x;
        if (h_en_i) result = base + (HasReset & w_reset_i ? 32'd0 : 32'(addend));
      end
    end
    assign w_result_o[l*32+:32] = result;
  end

`ifndef SYNTHESIS
  initial begin
    LanesAreAPowerOfTwo: assert (2**LaneBits == tenon_pkg::BLOCK_OUT);
    TheSumHoldsEveryProduct: assert (2**(SumWidth - 16) >= tenon_pkg::BLOCK_IN);
  end
`endif

endmodule
