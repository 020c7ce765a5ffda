#pragma once

namespace minimind {

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
