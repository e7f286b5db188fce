// Model of a single-data-rate SDRAM: 16 data pins, four banks of 8192 rows, latency of two, bursts of one; and the checks of
// its data sheet (times in ns of a speed grade of 143 MHz, the slowest in use). clk_i is the chip's own clock.
module sdram_chip #(
  parameter int ColBits  = 9,
  parameter int PeriodNs = 40
) (
  input  logic        clk_i,
  input  logic        cke_i,
  input  logic        cs_ni,
  input  logic        ras_ni,
  input  logic        cas_ni,
  input  logic        we_ni,
  input  logic [1:0]  ba_i,
  input  logic [12:0] a_i,
  input  logic [1:0]  dqm_i,
  input  logic        dq_oe_i,  // of the controller
  input  logic [15:0] dq_i,
  output logic        dq_oe_o,
  output logic [15:0] dq_o
);

  localparam int PowerUpNs = 200000, PrechargeNs = 20, ActiveNs = 20, RowNs = 45, CycleNs = 66, RowsNs = 64000000,
                 WriteCycles = 2, ModeCycles = 2;

  logic [15:0] mem[2**(15 + ColBits)];

  // Cycles since each event, which stop counting at a long time.
  int          now = 0, charged = 0, refreshed = 0, configured = 0, refreshes = 0, prepared = 0;
  int          activated[4], written[4];
  logic [3:0]  open_q = 4'd0;
  logic [12:0] row_q[4];
  logic        mode_q = 1'b0, charged_q = 1'b0;
  logic        read_q = 1'b0;
  logic [15:0] data_q;

  logic [2:0]           command;
  logic [14+ColBits:0]  address;
  assign command = cs_ni | ~cke_i ? 3'b111 : {ras_ni, cas_ni, we_ni};
  assign address = {row_q[ba_i], ba_i, a_i[ColBits-1:0]};

  function automatic int since(input int event_time);
    since = (now - event_time) * PeriodNs;
  endfunction

  always_ff @(posedge clk_i) begin
    now    <= now + 1;
    read_q <= command == 3'b101;
    if (read_q) dq_o <= data_q;
    dq_oe_o <= read_q;

    case (command)
      3'b011: begin  // ACTIVE
        ARowOpensInAnIdleBank: assert (!open_q[ba_i]);
        ARowOpensAfterThePrecharge: assert (since(charged) >= PrechargeNs);
        ARowOpensAfterTheRefresh: assert (since(refreshed) >= CycleNs);
        RowsOfABankAreAtLeastACycleLong: assert (since(activated[ba_i]) >= CycleNs);
        ARowOpensInAConfiguredChip: assert (mode_q && now - configured >= ModeCycles);
        open_q[ba_i]    <= 1'b1;
        row_q[ba_i]     <= a_i;
        activated[ba_i] <= now;
      end
      3'b101, 3'b100: begin  // READ, WRITE
        AColumnIsOfAnOpenRow: assert (open_q[ba_i]);
        AColumnFollowsTheRow: assert (since(activated[ba_i]) >= ActiveNs);
        ThereIsNoAutomaticPrecharge: assert (!a_i[10]);
        if (command == 3'b100) begin
          TheControllerDrivesWhatIsWritten: assert (dq_oe_i && !dq_oe_o);
          if (!dqm_i[0]) mem[address][7:0] <= dq_i[7:0];
          if (!dqm_i[1]) mem[address][15:8] <= dq_i[15:8];
          written[ba_i] <= now;
        end else begin
          ReadsAreNotMasked: assert (dqm_i == 2'b00);
          data_q <= mem[address];
        end
      end
      3'b010: begin  // PRECHARGE
        ThePrechargeIsOfAllBanks: assert (a_i[10]);
        ThePowerIsUp: assert (charged_q || since(0) >= PowerUpNs);
        for (int b = 0; b < 4; b++) begin
          ARowStaysOpen: assert (!open_q[b] || since(activated[b]) >= RowNs);
          AWriteIsFinished: assert (!open_q[b] || now - written[b] >= WriteCycles);
        end
        open_q    <= 4'd0;
        charged   <= now;
        charged_q <= 1'b1;
      end
      3'b001: begin  // REFRESH
        RefreshesAreInIdleBanks: assert (charged_q && open_q == 4'd0);
        ARefreshFollowsThePrecharge: assert (since(charged) >= PrechargeNs);
        RefreshesAreAtLeastACycleLong: assert (prepared == 0 || since(refreshed) >= CycleNs);
        refreshed <= now;
        refreshes <= refreshes + 1;
        prepared  <= prepared + 1;
      end
      3'b000: begin  // MODE
        ThereAreTwoRefreshesBefore: assert (prepared >= 2 && since(refreshed) >= CycleNs);
        TheModeIsTheModels: assert (ba_i == 2'd0 && a_i == 13'h020);
        configured <= now;
        mode_q     <= 1'b1;
        refreshes  <= 0;
      end
      default: ;
    endcase

    // All rows are refreshed in their time, if at least this share of them is after each part of it.
    if (mode_q && (now - configured) % (RowsNs / PeriodNs / 64) == RowsNs / PeriodNs / 64 - 1) begin
      RowsAreRefreshedInTime: assert (refreshes >= (now - configured) / (RowsNs / PeriodNs / 64) * (8192 / 64));
    end
    TheControllerNeverDrivesAgainstTheChip: assert (!(dq_oe_i && dq_oe_o));
  end

endmodule
