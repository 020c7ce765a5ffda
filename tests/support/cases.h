#pragma once

namespace minimind {

// How many times as long as on a slow machine work may take: the sanitizers make everything some ten times as slow, and
// so does emulation, under which 64-bit ARM is tested (make test-arm64).
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__aarch64__)
inline constexpr int slowness = 15;
#else
inline constexpr int slowness = 1;
#endif

// How many cases of a property a test tries: all of them; under the sanitizers, where each takes some ten times as
// long, one of `share`.
constexpr unsigned cases(unsigned count, [[maybe_unused]] unsigned share = 4) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return count / share;
#else
  return count;
#endif
}

}  // namespace minimind
