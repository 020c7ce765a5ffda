// What the page has not, of what the sources of the program call: a bundled model within the program, texts of the
// command line in Chinese, terminals and several cores.

#if defined(__wasm__)

#include <sched.h>
#include <utf8proc.h>

#include <cstddef>
#include <span>

#include "tools/terminal/language.h"

namespace minimind {

std::span<const Translation> translations() {
  return {};
}

}  // namespace minimind

extern "C" {

extern const std::byte bundled_model[1] = {};
extern const std::byte bundled_model_end[1] __attribute__((alias("bundled_model")));

int utf8proc_charwidth(utf8proc_int32_t) {
  return 1;
}

int sched_getaffinity(pid_t, std::size_t, cpu_set_t*) {
  return -1;
}

int sched_setaffinity(pid_t, std::size_t, const cpu_set_t*) {
  return -1;
}
}

#endif
