// The performance counters of a launch, 64 bits each: cleared when it starts, constant a cycle after its end. They count
// the events of the cycle before, which come late in theirs, and are cleared a cycle later too. A word comes in the cycle
// after its address.
module counters (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                clear_i,
  input  logic                running_i,
  input  tenon_pkg::engines_t retire_i,   // an instruction of engine i is done
  input  logic                mac_i,      // a step of the tensor core
  input  logic                read_beat_i,
  input  logic                write_beat_i,
  input  logic                read_burst_i,
  input  logic                write_burst_i,
  input  tenon_pkg::engines_t busy_i,
  input  tenon_pkg::engines_t stall_i,
  input  logic                read_i,
  // verilator lint_off UNUSEDSIGNAL
  input  logic [11:0]         address_i,  // of a register of the counters, a multiple of 4
  // verilator lint_on UNUSEDSIGNAL
  output logic [31:0]         word_o
);

  localparam int Engines     = tenon_pkg::NUM_ENGINES;
  localparam int RetiredBits = $clog2(Engines + 1);

  logic [63:0] cycles_q, instructions_q, macs_q, read_beats_q, write_beats_q, read_bursts_q, write_bursts_q;
  logic [Engines*64-1:0] busy_q, stall_q;
  logic [RetiredBits-1:0] retired, retired_q;
  logic         running_q, clear_q, mac_q, read_beat_q, write_beat_q, read_burst_q, write_burst_q;
  tenon_pkg::engines_t busy_now_q, stall_now_q;

  always_comb begin
    retired = '0;
    for (int i = 0; i < Engines; i++) retired = retired + RetiredBits'(retire_i[i]);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {running_q, clear_q} <= 2'b00;
    else {running_q, clear_q} <= {running_i & ~clear_i, clear_i};
  end
  always_ff @(posedge clk_i) begin
    retired_q     <= retired;
    mac_q         <= mac_i;
    read_beat_q   <= read_beat_i;
    write_beat_q  <= write_beat_i;
    read_burst_q  <= read_burst_i;
    write_burst_q <= write_burst_i;
    busy_now_q    <= busy_i;
    stall_now_q   <= stall_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cycles_q       <= '0;
      instructions_q <= '0;
      macs_q         <= '0;
      read_beats_q   <= '0;
      write_beats_q  <= '0;
      read_bursts_q  <= '0;
      write_bursts_q <= '0;
      busy_q         <= '0;
      stall_q        <= '0;
    end else if (clear_q) begin
      cycles_q       <= '0;
      instructions_q <= '0;
      macs_q         <= '0;
      read_beats_q   <= '0;
      write_beats_q  <= '0;
      read_bursts_q  <= '0;
      write_bursts_q <= '0;
      busy_q         <= '0;
      stall_q        <= '0;
    end else if (running_q) begin
      cycles_q <= cycles_q + 64'd1;
      if (|retired_q) instructions_q <= instructions_q + 64'(retired_q);
      if (mac_q) macs_q <= macs_q + 64'd1;
      if (read_beat_q) read_beats_q <= read_beats_q + 64'd1;
      if (write_beat_q) write_beats_q <= write_beats_q + 64'd1;
      if (read_burst_q) read_bursts_q <= read_bursts_q + 64'd1;
      if (write_burst_q) write_bursts_q <= write_bursts_q + 64'd1;
      for (int i = 0; i < Engines; i++) begin
        if (busy_now_q[i]) busy_q[i*64+:64] <= busy_q[i*64+:64] + 64'd1;
        if (stall_now_q[i]) stall_q[i*64+:64] <= stall_q[i*64+:64] + 64'd1;
      end
    end
  end

  // The register map has room for eight engines; those that do not exist read 0.
  logic [511:0] busy_words, stall_words;
  assign busy_words  = 512'(busy_q);
  assign stall_words = 512'(stall_q);

  // Each of three groups has a word at the address; the next cycle selects the group.
  logic [63:0] value;
  logic [31:0] value_q, busy_word_q, stall_word_q;
  logic        is_busy_q, is_stall_q;
  always_comb begin
    value = 'x;
    if (read_i) begin
      unique case ({address_i[11:3], 3'd0})
        tenon_pkg::REG_CYCLES:            value = cycles_q;
        tenon_pkg::REG_INSTRUCTIONS_DONE: value = instructions_q;
        tenon_pkg::REG_MACS:              value = macs_q * 64'(tenon_pkg::BLOCK_IN * tenon_pkg::BLOCK_OUT);
        tenon_pkg::REG_READ_BEATS:        value = read_beats_q;
        tenon_pkg::REG_WRITE_BEATS:       value = write_beats_q;
        tenon_pkg::REG_READ_BURSTS:       value = read_bursts_q;
        tenon_pkg::REG_WRITE_BURSTS:      value = write_bursts_q;
        default:                          value = 64'd0;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (read_i) begin
      value_q      <= address_i[2] ? value[63:32] : value[31:0];
      busy_word_q  <= busy_words[{address_i[5:2], 5'd0}+:32];
      stall_word_q <= stall_words[{address_i[5:2], 5'd0}+:32];
      is_busy_q    <= address_i[11:6] == tenon_pkg::REG_BUSY0[11:6];
      is_stall_q   <= address_i[11:6] == tenon_pkg::REG_STALL0[11:6];
    end
  end
  assign word_o = is_busy_q ? busy_word_q : is_stall_q ? stall_word_q : value_q;

`ifndef SYNTHESIS
  logic [1:0] longer;  // busy, stalled; evaluated when software reads, not in every cycle
  always_comb begin
    longer = 2'b00;
    if (read_i) begin
      for (int i = 0; i < Engines; i++) begin
        if (busy_q[i*64+:64] > cycles_q) longer[0] = 1'b1;
        if (stall_q[i*64+:64] > cycles_q) longer[1] = 1'b1;
      end
    end
  end

  // Only assertions read the reset synchronously.
  // verilator lint_off SYNCASYNCNET
  always_ff @(posedge clk_i) begin
    if (rst_ni & read_i) begin
      NoEngineIsBusyOrStalledLongerThanTheLaunch: assert (longer == 2'b00);
      AStepTakesACycle: assert (macs_q <= cycles_q);
      ABeatTakesACycle: assert (read_beats_q <= cycles_q & write_beats_q <= cycles_q);
    end
  end
  // verilator lint_on SYNCASYNCNET
`endif

endmodule
