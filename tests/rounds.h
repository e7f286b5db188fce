// How much a test does that draws its cases: a sanitizer makes each several times as slow and sees more in it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// `n` cases in a plain build.
constexpr int64_t rounds(int64_t n) { return kSanitized ? std::max<int64_t>(1, n / 4) : n; }

}  // namespace tenon
