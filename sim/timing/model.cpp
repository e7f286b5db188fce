#include "sim/timing/model.h"

#include "sim/timing/machine.h"

namespace tenon::sim::timing {

Parameters Parameters::of(const spec::Config& config) const {
  if (!config.in_order) return *this;
  Parameters p = *this;
  p.start = 0;
  p.address -= 2;
  p.beat -= 2;
  p.decode -= 1;
  p.gemm_pipeline -= 1;
  p.store_pipeline -= 3;
  p.store_done = 0;
  p.launch -= 2;
  return p;
}

Result Machine::run() {
  begin_fetch();
  while (!events_.empty()) {
    const Event e = events_.top();
    events_.pop();
    now_ = e.time;
    switch (e.kind) {
      case Event::kDone: done(e.index); break;
      case Event::kAsk: ask(e.index); break;
      case Event::kDispatch: dispatch(); break;
      case Event::kTry: try_class(e.index); break;
    }
  }
  result_.cycles = stream_.empty() ? last_ : last_ + static_cast<uint64_t>(p_.end);
  return std::move(result_);
}

Result run(const spec::Config& config, const Launch& launch, std::span<const spec::Decoded> stream, bool timeline,
           const Parameters& parameters) {
  return Machine(config, launch, stream, timeline, parameters).run();
}

}  // namespace tenon::sim::timing
