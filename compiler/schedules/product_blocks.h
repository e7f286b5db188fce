// What the templates of products for GPUs share: blocks of threads for blocks of rows and columns, with sums in
// registers and panels of both operands in shared memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/schedules/product_steps.h"

namespace tenon::compiler::schedules {

class ProductBlocks {
 public:
  ProductBlocks(TypeContext& context, loop::Schedule& schedule, const ProductStages& product, const Machine& machine,
                const ChooseOption& choose, ProductAxes axes)
      : context_(context),
        schedule_(schedule),
        steps_(context, schedule),
        product_(product),
        machine_(machine),
        choose_(choose),
        axes_(std::move(axes)) {}

 protected:
  // An operand in the order in which the sums read it. Its lanes are rows or columns.
  struct Panel {
    Symbol stage{};              // that makes the copy in shared memory
    bool of_rows = false;        // whether its lanes are rows
    size_t lanes = 0, term = 0;  // positions of its axes; term: of the innermost one
    size_t rank = 0;
    bool is_constant = false;
    bool has_adjacent_terms = false;  // whether it is a copy of memory in which neighbouring terms are adjacent
  };
  // The axis that is contiguous in panels; the other one is next to it.
  enum class Innermost : uint8_t { kLanes, kTerm };

  template <class... Args>
  Status step(std::string_view format, const Args&... args) {
    return steps_.step(format, args...);
  }
  // Sizes, where they are not constant of many rows or columns, and the number of matrices.
  int64_t rows() const;
  int64_t columns() const;
  int64_t terms() const;
  int64_t batch() const;
  // The estimated cycles of all blocks: of one that computes without waiting, and what it waits alone. A multiprocessor
  // has so many at a time, of which others compute while one waits.
  double cycles_of(int64_t block_rows, int64_t block_columns, double computes, double waits, int64_t at_a_time) const;
  // The number of blocks that the registers of a multiprocessor suffice for. `registers`: of a thread.
  static int64_t blocks_at_a_time(int64_t threads, int64_t registers);

  // Copies each operand so that panels are whole, constants when the function is loaded, and pads the sums likewise:
  // zeros follow the operands' elements.
  Status make_panels(int64_t block_rows, int64_t block_columns, int64_t depth, Innermost innermost);
  // For products without blocks: constants whose lanes are columns, with these innermost, so that threads of
  // neighbouring columns read neighbouring elements.
  Status transpose_constants();
  // Loops over blocks around the results, which remain in two loops.
  Status make_blocks(int64_t block_rows, int64_t block_columns);
  // The sums of a block, in registers. The axes of rows and columns, '#' in the layouts, become digits that threads
  // index.
  Status put_sums_into_registers(const std::string& rows_layout, const std::string& columns_layout);
  // Splits the loop of a stage by these factors, one after the other: returns the loops, the outermost first.
  Expected<std::vector<Symbol>> split(Symbol stage, Symbol loop, const std::vector<int64_t>& factors);
  // Moves a panel into the loop over the terms of the sums, in shared memory; returns its loops of lanes and the term.
  Expected<std::pair<Symbol, Symbol>> share(const Panel& panel, Symbol terms_loop);
  // The order that makes `lanes_layout` and `term_layout`, '#' for the axis of lanes and the term, the innermost axes.
  Status lay_out(const Panel& panel, const std::string& lanes_layout, Innermost innermost,
                 const std::string& term_layout = "#");
  // The panels of the next iterations of the loop over the terms are copied while this one is computed, where all
  // panels are copies and no conversions: those of two, if shared memory holds them, else those of one.
  Status copy_ahead(Symbol terms_loop);
  // Reorders and binds the loops of threads, thread_z or thread_y first, and unrolls others.
  Status bind_threads(Symbol stage, const std::vector<Symbol>& loops, const std::vector<Symbol>& unrolled);
  Status bind_blocks();

  const std::vector<Panel>& panels() const { return panels_; }
  const std::vector<Symbol>& blocks() const { return blocks_; }

  TypeContext& context_;
  loop::Schedule& schedule_;
  ProductSteps steps_;
  const ProductStages product_;
  const Machine& machine_;
  const ChooseOption& choose_;
  const ProductAxes axes_;

 private:
  int64_t blocks_of(int64_t block_rows, int64_t block_columns) const;
  Status pad(Symbol stage, Symbol axis, Dim size, int64_t multiple);
  std::vector<Symbol> operands();
  loop::BufferId buffer_of(Symbol operand) const;
  Expected<Panel> panel_of(Symbol operand);
  std::optional<loop::Axis> axis_at(Symbol stage, size_t position);
  bool reads_adjacent_terms(const Panel& panel);
  Status copy(Symbol operand, int64_t block_rows, int64_t block_columns, int64_t depth);
  Status load_constants(Innermost innermost);
  static Panel laid_out(Panel panel, Innermost innermost);

  std::vector<Panel> panels_;
  std::vector<Symbol> blocks_;  // loops
};

}  // namespace tenon::compiler::schedules
