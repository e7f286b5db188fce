#include "compiler/schedules/partial_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/schedules/product_steps.h"
#include "support/try.h"

namespace tenon::compiler::schedules {
namespace {

constexpr int64_t kTypicalSide = 64;  // rows and columns of a block, for the estimate
constexpr int64_t kPanelTerms = 64;   // a multiple of the terms of each template's panels
constexpr int64_t kMostParts = 36;
constexpr int64_t kAddingThreads = 256;  // of a block that adds
// In cycles of a block for the terms of one step: a launch, and the addition of one sum.
constexpr double kLaunch = 110, kAddition = 1e-4;
constexpr double kTwoBlocks = 1.3;  // the time of two blocks by that of one

// The time of a GPU's blocks of threads, in that of one block. A multiprocessor computes two blocks in less than twice
// the time: one waits for memory while the other one adds.
double time_of_blocks(int64_t blocks, const Machine& machine) {
  if (blocks <= machine.multiprocessors) return 1;
  return kTwoBlocks * static_cast<double>(ceil_divide(blocks, 2 * machine.multiprocessors));
}

class PartialSums {
 public:
  PartialSums(TypeContext& context, loop::Schedule& schedule, const ProductStages& product, ProductAxes axes)
      : steps_(context, schedule), product_(product), axes_(std::move(axes)) {}

  // The number of parts, 1 where they are not worth their launch.
  int64_t select_parts(const Machine& machine, const ChooseOption& choose) const {
    const auto terms = axes_.terms.back().extent.constant(), rows = axes_.rows.extent.constant(),
               columns = axes_.columns.extent.constant();
    int64_t batch = 1;
    for (const loop::Axis& axis : axes_.batch) batch *= axis.extent.constant().value_or(0);
    if (axes_.terms.size() != 1 || !terms || !rows || !columns || batch < 1) return 1;
    const int64_t blocks = batch * ceil_divide(*rows, kTypicalSide) * ceil_divide(*columns, kTypicalSide);
    std::vector<int64_t> parts;
    std::vector<Option> options;
    for (int64_t count = 1; count <= kMostParts; ++count) {
      if (count > 1 && *terms % (count * kPanelTerms) != 0) continue;
      const double of_block = time_of_blocks(blocks * count, machine) * static_cast<double>(*terms / count);
      const double added = kLaunch + kAddition * static_cast<double>(batch * count * *rows * *columns);
      parts.push_back(count);
      options.push_back({std::to_string(count), of_block + (count > 1 ? added : 0)});
    }
    return parts.size() == 1 ? 1 : parts[choose("parts", std::move(options))];
  }

  Expected<ProductStages> split(int64_t parts) {
    const int64_t terms = *axes_.terms.back().extent.constant() / parts;
    std::vector<Symbol> loops = steps_.loops_of(product_.sums);
    if (Status status = steps_.step("split({}, {}, {})", product_.sums, loops.back(), terms); !status)
      return std::unexpected(std::move(status.error()));
    loops = steps_.loops_of(product_.sums);
    const Symbol part = loops[loops.size() - 2];
    TENON_TRY_ASSIGN(sums, steps_.stage_of_step("rfactor({}, {})", product_.sums, part));
    loops.erase(loops.end() - 2);
    loops.insert(loops.begin(), part);
    if (Status status = steps_.step("reorder({}, {})", *sums, steps_.joined(loops)); !status)
      return std::unexpected(std::move(status.error()));
    TENON_TRY_ASSIGN(copy, steps_.stage_of_step("cache_write({})", *sums));
    if (Status status = add(); !status) return std::unexpected(std::move(status.error()));
    return ProductStages{*sums, *copy};
  }

 private:
  // The results, from the sums of all parts, by one thread each.
  Status add() {
    const Symbol results = product_.results;
    std::vector<Symbol> loops = steps_.loops_of(results);
    TENON_TRY(steps_.step("compute_at({}, {}, {})", product_.sums, results, loops.back()));
    const Symbol buffer = steps_.function().buffer(axes_.buffer).name;
    TENON_TRY(steps_.step("store_at({}, {}, {}, registers)", results, buffer, loops.back()));
    for (; loops.size() > 1; loops = steps_.loops_of(results))
      TENON_TRY(steps_.step("fuse({}, {}, {})", results, loops[0], loops[1]));
    TENON_TRY(steps_.step("split({}, {}, {})", results, loops[0], kAddingThreads));
    loops = steps_.loops_of(results);
    TENON_TRY(steps_.step("mark({}, {}, block_x)", results, loops[0]));
    return steps_.step("mark({}, {}, thread_x)", results, loops[1]);
  }

  ProductSteps steps_;
  const ProductStages product_;
  const ProductAxes axes_;
};

}  // namespace

Expected<ProductStages> split_terms(TypeContext& context, loop::Schedule& schedule, const ProductStages& product,
                                    const Machine& machine, const ChooseOption& choose) {
  TENON_TRY_ASSIGN(axes, ProductSteps(context, schedule).axes_of(product.sums));
  PartialSums sums(context, schedule, product, std::move(*axes));
  const int64_t parts = sums.select_parts(machine, choose);
  if (parts == 1) return product;
  return sums.split(parts);
}

}  // namespace tenon::compiler::schedules
