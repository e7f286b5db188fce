// The peer that kernels are measured against; nullopt in builds without oneDNN.
#pragma once

#include <functional>
#include <vector>

#include "compiler/bench/cpu_bench.h"

namespace tenon::compiler::bench {

struct Peer {
  std::function<void()> run;
  std::function<std::vector<float>()> result;  // of the last run, in plain layout
};

// oneDNN in its preferred layouts, on one thread. Reordering into these layouts is not part of run().
std::optional<Peer> make_peer(const Problem& problem, const std::vector<float>& x, const std::vector<float>& w);

}  // namespace tenon::compiler::bench
