// The peer that kernels are measured against; nullptr where it was not found when this was built.
#pragma once

#include <functional>
#include <vector>

#include "compiler/bench/cpu_bench.h"

namespace tenon::compiler::bench {

struct Peer {
  std::function<void()> run;
  std::function<std::vector<float>()> result;  // of the last run, in plain layout
};

// oneDNN in the layouts that it asks for: bringing values into them is not part of run(). One thread.
std::optional<Peer> make_peer(const Problem& problem, const std::vector<float>& x, const std::vector<float>& w);

}  // namespace tenon::compiler::bench
