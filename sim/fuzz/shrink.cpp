#include "sim/fuzz/shrink.h"

#include <algorithm>
#include <vector>

#include "sim/behavioral/behavioral.h"
#include "sim/fuzz/builder.h"

namespace tenon::sim::fuzz {

using spec::engine_of;
using spec::profile_of;
using spec::tokens_of;

namespace {

struct Location {  // of an instruction
  size_t launch, index;
  bool operator==(const Location&) const = default;
};

// The instructions that give and that take the tokens of one counter, in order, over all launches.
void partners(const Program& program, size_t producer, size_t consumer, std::vector<Location>& gives,
              std::vector<Location>& takes) {
  for (size_t l = 0; l < program.launches.size(); ++l) {
    const auto& instructions = program.launches[l].instructions;
    for (size_t i = 0; i < instructions.size(); ++i) {
      const auto engine = static_cast<size_t>(engine_of(instructions[i]));
      const spec::TokenMasks masks = tokens_of(instructions[i]);
      if (engine == producer && ((masks.signal >> consumer) & 1) != 0) gives.push_back({l, i});
      if (engine == consumer && ((masks.wait >> producer) & 1) != 0) takes.push_back({l, i});
    }
  }
}

void clear_token(spec::Instruction& instruction, unsigned wait, unsigned signal) {
  spec::TokenMasks masks = tokens_of(instruction);
  masks.wait &= ~wait;
  masks.signal &= ~signal;
  set_tokens(instruction, masks);
}

// An instruction without effect, with the tokens of `instruction`.
spec::Instruction hollow(const spec::Instruction& instruction) {
  const auto engine = engine_of(instruction);
  spec::Instruction result;
  if (profile_of(instruction) == spec::Profile::kNative) {
    spec::native::Sync sync;
    sync.engine = static_cast<int64_t>(engine);
    result = sync;
  } else if (engine == spec::Engine::kLdi) {
    spec::base::Load load;
    load.memory_type = static_cast<int64_t>(spec::base::MemoryType::kInp);
    result = load;
  } else if (engine == spec::Engine::kSt) {
    result = spec::base::Store{};
  } else {
    result = spec::base::Gemm{};
  }
  set_tokens(result, tokens_of(instruction));
  return result;
}

std::vector<int64_t*> extents_of(spec::Instruction& instruction) {
  return std::visit(
      []<class T>(T& x) -> std::vector<int64_t*> {
        if constexpr (std::is_base_of_v<spec::base::Transfer, T>) {
          return {&x.y_size, &x.x_size, &x.y_pad_top, &x.y_pad_bottom, &x.x_pad_left, &x.x_pad_right};
        } else if constexpr (std::is_same_v<T, spec::base::Gemm> || std::is_same_v<T, spec::base::Alu>) {
          return {&x.iter_out, &x.iter_in};
        } else if constexpr (std::is_same_v<T, spec::native::Move>) {
          return {&x.rows, &x.vectors, &x.top, &x.left};
        } else if constexpr (std::is_same_v<T, spec::native::Gemm>) {
          return {&x.r0, &x.r1, &x.r2, &x.y, &x.x};
        } else if constexpr (std::is_same_v<T, spec::native::Requantize>) {
          return {&x.rows, &x.cols, &x.residual, &x.to_inp, &x.win_rows, &x.win_cols, &x.win_pitch, &x.win_carry};
        } else {
          return {};
        }
      },
      instruction);
}

class Shrinker {
 public:
  Shrinker(Program program, const Fails& fails, int budget)
      : best_(std::move(program)), fails_(fails), budget_(budget) {}

  Program run() {
    for (bool better = true; better && budget_ > 0;) {
      better = remove_tails();
      better |= remove_chunks();
      better |= each_instruction([](const spec::Instruction& i) { return std::vector{hollow(i)}; });
      better |= each_instruction(smaller);
    }
    return std::move(best_);
  }

 private:
  bool accept(Program candidate) {
    if (budget_-- <= 0) return false;
    if (!legal(candidate) || !fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  // Removes whole launches from the end, then the last instructions of each launch.
  bool remove_tails() {
    bool better = false;
    for (size_t keep = 1; keep < best_.launches.size(); ++keep) {
      Program candidate = best_;
      candidate.launches.resize(keep);
      if (accept(std::move(candidate))) return true;
    }
    for (size_t l = best_.launches.size(); l-- > 0;) {
      for (size_t cut = best_.launches[l].instructions.size() / 2; cut > 0; cut /= 2) {
        while (best_.launches[l].instructions.size() > cut) {
          Program candidate = best_;
          for (size_t i = 0; i < cut; ++i)
            candidate = without(candidate, l, candidate.launches[l].instructions.size() - 1);
          if (!accept(std::move(candidate))) break;
          better = true;
        }
      }
    }
    return better;
  }

  bool remove_chunks() {
    bool better = false;
    for (size_t l = best_.launches.size(); l-- > 0;) {
      for (size_t chunk = std::max<size_t>(best_.launches[l].instructions.size() / 4, 1); chunk > 0; chunk /= 2) {
        for (size_t i = best_.launches[l].instructions.size(); i >= chunk; --i) {
          if (i > best_.launches[l].instructions.size()) continue;
          Program candidate = best_;
          for (size_t k = 0; k < chunk; ++k) candidate = without(candidate, l, i - 1 - k);
          if (accept(std::move(candidate))) better = true;
        }
      }
    }
    return better;
  }

  static std::vector<spec::Instruction> smaller(const spec::Instruction& instruction) {
    std::vector<spec::Instruction> variants;
    spec::Instruction copy = instruction;
    const size_t count = extents_of(copy).size();
    for (size_t i = 0; i < count; ++i) {
      const int64_t value = *extents_of(copy)[i];
      for (const int64_t less : {int64_t{0}, int64_t{1}, value / 2, value - 1}) {
        if (value <= 0 || less >= value) continue;
        spec::Instruction next = instruction;
        *extents_of(next)[i] = less;
        variants.push_back(std::move(next));
      }
    }
    return variants;
  }

  template <class F>
  bool each_instruction(F&& variants) {
    bool better = false;
    for (size_t l = 0; l < best_.launches.size(); ++l) {
      for (size_t i = 0; i < best_.launches[l].instructions.size(); ++i) {
        for (auto& variant : variants(best_.launches[l].instructions[i])) {
          if (variant == best_.launches[l].instructions[i]) continue;
          Program candidate = best_;
          candidate.launches[l].instructions[i] = std::move(variant);
          if (accept(std::move(candidate))) {
            better = true;
            break;
          }
        }
      }
    }
    return better;
  }

  Program best_;
  const Fails& fails_;
  int budget_;
};

}  // namespace

bool legal(const Program& program) {
  auto simulator = make_behavioral(program.config, {.memory_bytes = program.memory.size()});
  return simulator && run(**simulator, program).has_value();
}

Program without(const Program& program, size_t launch, size_t index) {
  Program result = program;
  const spec::Instruction& removed = program.launches[launch].instructions[index];
  const auto engine = static_cast<size_t>(engine_of(removed));
  const spec::TokenMasks masks = tokens_of(removed);
  const Location location{launch, index};
  for (size_t other = 0; other < spec::kEngines; ++other) {
    if (((masks.signal >> other) & 1) != 0) {
      std::vector<Location> gives, takes;
      partners(program, engine, other, gives, takes);
      const auto k = static_cast<size_t>(std::ranges::find(gives, location) - gives.begin());
      if (k < takes.size()) clear_token(result.launches[takes[k].launch].instructions[takes[k].index], 1u << engine, 0);
    }
    if (((masks.wait >> other) & 1) != 0) {
      std::vector<Location> gives, takes;
      partners(program, other, engine, gives, takes);
      const auto k = static_cast<size_t>(std::ranges::find(takes, location) - takes.begin());
      if (k < gives.size()) clear_token(result.launches[gives[k].launch].instructions[gives[k].index], 0, 1u << engine);
    }
  }
  auto& instructions = result.launches[launch].instructions;
  instructions.erase(instructions.begin() + static_cast<ptrdiff_t>(index));
  return result;
}

Program shrink(Program program, const Fails& fails, int budget) {
  return Shrinker(std::move(program), fails, budget).run();
}

}  // namespace tenon::sim::fuzz
