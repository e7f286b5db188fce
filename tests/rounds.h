// How much a test does that draws its cases: a sanitizer makes each several times as slow and sees more in it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon {

inline constexpr bool kSanitized = TENON_SANITIZED;  // by tenon_test

// `n` cases in a plain build.
constexpr int64_t rounds(int64_t n) { return kSanitized ? std::max<int64_t>(1, n / 4) : n; }

}  // namespace tenon
