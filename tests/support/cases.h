#pragma once

namespace minimind {

// How many cases of a property a test tries: under the sanitizers, where each takes some ten times as long, a quarter
// of them.
constexpr unsigned cases(unsigned count) {
#ifdef __SANITIZE_ADDRESS__
  return count / 4;
#else
  return count;
#endif
}

}  // namespace minimind
