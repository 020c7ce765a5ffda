#pragma once

#include <cstdlib>

namespace minimind {

// Whether qemu runs the tests and what they start (make test-arm64): it needs memory of its own, and takes signals from
// its first moment on.
inline bool is_emulated() {
  return std::getenv("QEMU_CPU") != nullptr;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

// How many times as long as on a slow machine work may take: sanitizers and emulation make everything some ten times as
// slow.
inline const int slowness = is_sanitized || is_emulated() ? 15 : 1;

// How many cases of a property a test tries: all of them; where each takes some ten times as long, one of `share`.
inline unsigned cases(unsigned count, unsigned share = 4) {
  return slowness == 1 ? count : count / share;
}

}  // namespace minimind
