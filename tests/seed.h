// The seed of a test that draws its cases: fixed in the quick tier, so that CI repeats itself, and drawn anew
// otherwise.
//
// Semantics: the environment variable TENON_TEST_SEED decides. `fixed` (scripts/test --tier quick): every test draws
// from its own constant, the same cases in every run. An integer: the run that printed this integer is repeated. Unset:
// an integer is drawn, and printed by the first test that asks for a seed.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string_view>

namespace tenon {

// The integer of this run; nothing where seeds are fixed.
inline const std::optional<uint64_t>& run_seed() {
  static const std::optional<uint64_t> seed = []() -> std::optional<uint64_t> {
    const char* text = std::getenv("TENON_TEST_SEED");
    if (text && std::string_view(text) == "fixed") return std::nullopt;
    const uint64_t value = text ? std::strtoull(text, nullptr, 10) : std::random_device()();
    std::printf("random cases: repeat them with TENON_TEST_SEED=%llu\n", static_cast<unsigned long long>(value));
    return value;
  }();
  return seed;
}

// The seed of one sequence of random cases; `constant` distinguishes the sequences of a test program.
inline uint32_t test_seed(uint32_t constant) {
  if (!run_seed()) return constant;
  std::seed_seq mixed{static_cast<uint32_t>(*run_seed()), static_cast<uint32_t>(*run_seed() >> 32), constant};
  uint32_t seed = 0;
  mixed.generate(&seed, &seed + 1);
  return seed;
}

}  // namespace tenon
