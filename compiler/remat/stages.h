// A step as a chain of stages (chain.h): its first part, up to where the memory of the undisturbed step is largest, is
// cut where the fewest bytes pass, and its other calls are the backward passes of the stages that they read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/remat/chain.h"
#include "runtime/remat/log.h"

namespace tenon::compiler {

class StagedStep {
 public:
  // The log must outlive the object. At most so many stages, each with at least one call; none where memory is largest
  // at the first call. Of the bytes that backward passes read, the share `kept_share`, from 0 to 1, that costs most to
  // compute, by the byte, is not computed again. In time linear in the log and n log n in its tensors.
  StagedStep(const runtime::remat::StepLog& log, int64_t most_stages, double kept_share = 0);

  // Excludes the bytes of constants and of what all plans keep: kept_bytes().
  const std::vector<ChainStage>& chain() const { return chain_; }
  int64_t kept_bytes() const { return kept_bytes_; }
  // The calls in the order of the steps. A stage that runs again is executed as a whole, but for what is kept.
  std::vector<uint32_t> order(std::span<const ChainStep> steps) const;

 private:
  void read_log();
  void keep_results(uint32_t call);
  void keep_costly(double share);
  void cut(int64_t most_stages);
  void assign_backward();
  void measure_stages();
  bool is_made(uint32_t tensor) const;  // whether it is the first name of memory that a call takes, and is not kept
  std::vector<int64_t> live_bytes(uint32_t from) const;
  int64_t peak_of(uint32_t stage, const std::vector<uint32_t>& last_use) const;

  const runtime::remat::StepLog& log_;
  std::vector<uint32_t> first_, root_, producer_;  // producer_: by tensor, its call; for constants none
  std::vector<uint32_t> last_use_, last_forward_;  // by root: the last call that reads it, and the last one that is cut
  std::vector<bool> kept_, held_;                  // by root: not computed again; and in memory until the end
  uint32_t middle_ = 0;                            // the calls before it are cut
  std::vector<uint32_t> starts_;                   // of the stages, and middle_
  std::vector<int64_t> passing_;                   // by call before middle_, and at it
  std::vector<uint32_t> stage_of_;                 // by call: the stage whose forward or backward pass it belongs to
  std::vector<ChainStage> chain_;
  int64_t kept_bytes_ = 0;
};

}  // namespace tenon::compiler
