// RAM with one read and one write port. Reads take one cycle and the data stays until the next read. A read of the
// address that is written in the same cycle returns any word: queues never do so, the tensor core forwards its result,
// and all else is ordered by tokens. So no technology needs logic around its RAM for it. A word has SubWords equal
// parts, each with its own write enable: each part is a memory, so that every tool maps them without byte enables.
//
// All block memories of the accelerator are instances of this module, so that a technology selects block or
// distributed RAM in one file. Contents are undefined until written.
module prim_ram_1r1w #(
  parameter int Width     = 32,
  parameter int Depth     = 64,
  parameter int SubWords  = 1,
  parameter int AddrWidth = 6
) (
  input  logic                 clk_i,
  input  logic [SubWords-1:0]  we_i,
  input  logic [AddrWidth-1:0] waddr_i,
  input  logic [Width-1:0]     wdata_i,
  input  logic                 re_i,
  input  logic [AddrWidth-1:0] raddr_i,
  output logic [Width-1:0]     rdata_o
);

  localparam int SubWidth = Width / SubWords;

  for (genvar s = 0; s < SubWords; s++) begin : g_sub
    (* no_rw_check *) logic [SubWidth-1:0] mem[Depth];
    logic [SubWidth-1:0] rdata_q;

    always_ff @(posedge clk_i) begin
      if (we_i[s]) mem[waddr_i] <= wdata_i[s*SubWidth+:SubWidth];
    end

    always_ff @(posedge clk_i) begin
      if (re_i) rdata_q <= mem[raddr_i];
    end

    assign rdata_o[s*SubWidth+:SubWidth] = rdata_q;
  end

`ifndef SYNTHESIS
  initial begin
    SubWordsAreEqualPartsOfAWord: assert (SubWidth * SubWords == Width);
    AddressesCoverTheDepth: assert (2**AddrWidth >= Depth);
  end
`endif

endmodule
