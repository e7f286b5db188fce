// Controller of a single-data-rate SDRAM with 16 data pins, four banks and 8192 rows: runs of consecutive half-words.
//
// A run is accepted when the chip is idle. Its half-words are read or written one a cycle, each by a command of its own
// (bursts of one), while data or room is there. A row is open only within a run: it closes at its last column, at the
// end of the run, and when a refresh is due. An address is {row, bank, column}, so consecutive rows are in different banks.
//
// The chip's clock is the inverse of clk_i: commands and data change half a cycle before the chip takes them, and what
// the chip drives with a latency of two is taken two cycles after the read's command, half a cycle before it changes.
module sdram_controller (
  input  logic                              clk_i,
  input  logic                              rst_ni,
  output logic                              up_o,          // the chip is ready
  input  logic                              run_valid_i,
  output logic                              run_ready_o,
  input  logic                              run_write_i,
  input  logic [serial_pkg::MEMORY_LOG2-1:1] run_addr_i,
  input  logic [12:0]                       run_last_i,    // half-words less one
  output logic                              done_o,        // the last half-word of the run is on its way
  // A write takes its half-words as they are needed.
  input  logic                              wvalid_i,
  output logic                              wready_o,
  input  logic [15:0]                       wdata_i,
  input  logic [1:0]                        wstrb_i,
  // A read has its half-words some cycles after it has issued them, which it does while there is room.
  input  logic                              room_i,
  output logic                              issued_o,
  output logic                              rvalid_o,
  output logic [15:0]                       rdata_o,
  // The chip.
  output logic                              cke_o,
  output logic                              cs_no,
  output logic                              ras_no,
  output logic                              cas_no,
  output logic                              we_no,
  output logic [1:0]                        ba_o,
  output logic [12:0]                       a_o,
  output logic [1:0]                        dqm_o,
  output logic                              dq_oe_o,
  output logic [15:0]                       dq_o,
  input  logic [15:0]                       dq_i
);

  localparam int HalfBits = serial_pkg::MEMORY_LOG2 - 1;
  localparam int ColBits  = HalfBits - 15;

  // Commands: RAS, CAS, WE, low active.
  localparam logic [2:0] Nop = 3'b111, Active = 3'b011, Read = 3'b101, Write = 3'b100, Precharge = 3'b010, Refresh = 3'b001,
                         Mode = 3'b000;
  // Latency of two, bursts of one.
  localparam logic [12:0] ModeWord = 13'h020, AllBanks = 13'h400;

  typedef enum logic [2:0] {
    PowerUp,    // until the chip is ready
    Prepare,    // two refreshes
    Configure,  // the mode register
    Idle,
    Open,
    Transfer,
    Close
  } state_e;

  state_e                                      state_q;
  logic [15:0]                                 wait_q;     // cycles until the next command, less one: the sign tells none
  logic                                        waited;
  logic [$clog2(serial_pkg::SDRAM_REFRESH):0]  refresh_q;  // cycles until the next refresh is due
  logic                                        due_q, prepared_q, up_q, running_q, write_q, issue, last, row_ends;
  logic [HalfBits-1:0]                         addr_q;
  logic [12:0]                                 left_q;
  logic [1:0]                                  reading_q;  // reads whose data has not arrived
  logic [2:0]                                  command_q;

  assign run_ready_o = state_q == Idle & waited & ~due_q & ~running_q;
  assign wready_o    = state_q == Transfer & waited & ~due_q & write_q;
  assign issue       = state_q == Transfer & waited & ~due_q & (write_q ? wvalid_i : room_i);
  assign issued_o    = issue & ~write_q;
  assign waited      = wait_q[15];
  assign last        = left_q == 13'd0;
  assign row_ends    = &addr_q[ColBits-1:0];
  assign done_o      = issue & last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q    <= PowerUp;
      wait_q     <= 16'(serial_pkg::SDRAM_POWER_UP - 1);
      refresh_q  <= '0;
      due_q      <= 1'b0;
      prepared_q <= 1'b0;
      up_q       <= 1'b0;
      running_q  <= 1'b0;
      command_q  <= Nop;
      reading_q  <= 2'b00;
      rvalid_o   <= 1'b0;
      dq_oe_o    <= 1'b0;
      cke_o      <= 1'b0;
    end else begin
      cke_o     <= 1'b1;
      command_q <= Nop;
      dq_oe_o   <= 1'b0;
      reading_q <= {reading_q[0], issued_o};
      rvalid_o  <= reading_q[1];
      if (refresh_q == '0) begin
        refresh_q <= ($clog2(serial_pkg::SDRAM_REFRESH) + 1)'(serial_pkg::SDRAM_REFRESH - 1);
        due_q     <= 1'b1;
      end else begin
        refresh_q <= refresh_q - 1'b1;
      end

      if (~waited) begin
        wait_q <= wait_q - 16'd1;
      end else begin
        unique case (state_q)
          PowerUp: begin
            command_q <= Precharge;
            wait_q    <= 16'(serial_pkg::SDRAM_PRECHARGE - 2);
            state_q   <= Prepare;
          end
          Prepare: begin
            command_q  <= Refresh;
            wait_q     <= 16'(serial_pkg::SDRAM_CYCLE - 2);
            prepared_q <= 1'b1;
            if (prepared_q) state_q <= Configure;
          end
          Configure: begin
            command_q <= Mode;
            wait_q    <= 16'd0;
            up_q      <= 1'b1;
            state_q   <= Idle;
          end
          Idle:
            if (due_q) begin
              command_q <= Refresh;
              wait_q    <= 16'(serial_pkg::SDRAM_CYCLE - 2);
              due_q     <= 1'b0;
            end else if (running_q | run_valid_i) begin
              running_q <= 1'b1;
              state_q   <= Open;
            end
          Open: begin
            command_q <= Active;
            wait_q    <= 16'(serial_pkg::SDRAM_ACTIVE - 2);
            state_q   <= Transfer;
          end
          Transfer: begin
            if (issue) command_q <= write_q ? Write : Read;
            dq_oe_o <= issue & write_q;
            if (done_o) running_q <= 1'b0;
            if (due_q | issue & (last | row_ends)) begin
              wait_q  <= 16'd0;
              state_q <= Close;
            end
          end
          Close: begin
            command_q <= Precharge;
            wait_q    <= 16'(serial_pkg::SDRAM_PRECHARGE - 2);
            state_q   <= Idle;
          end
          default: state_q <= Idle;
        endcase
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (run_ready_o) begin
      addr_q  <= run_addr_i;
      left_q  <= run_last_i;
      write_q <= run_write_i;
    end else if (issue) begin
      addr_q <= addr_q + 1'b1;
      left_q <= left_q - 13'd1;
    end

    ba_o  <= addr_q[ColBits+:2];
    dq_o  <= wdata_i;
    dqm_o <= issue & write_q ? ~wstrb_i : 2'b00;
    unique case (state_q)
      Configure: begin
        ba_o <= 2'd0;
        a_o  <= ModeWord;
      end
      Open:     a_o <= addr_q[HalfBits-1-:13];
      Transfer: a_o <= {{(13 - ColBits){1'b0}}, addr_q[ColBits-1:0]};
      default:  a_o <= AllBanks;
    endcase
    rdata_o <= dq_i;
  end

  assign up_o                    = up_q;
  assign cs_no                   = 1'b0;
  assign {ras_no, cas_no, we_no} = command_q;

`ifndef SYNTHESIS
  initial begin
    WaitsFitTheCounter: assert (serial_pkg::SDRAM_POWER_UP <= 32768);
    AColumnHasEightToTenBits: assert (ColBits >= 8 && ColBits <= 10);
  end
`endif

endmodule
