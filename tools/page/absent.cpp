// What the page has not, of what the sources of the program call: a bundled model within the program, texts of the
// command line in Chinese, terminals, several cores, Unicode's normal forms, and pages that take no memory before they
// are touched.

#if defined(__wasm__)

#include <malloc.h>
#include <sched.h>
#include <strings.h>
#include <sys/mman.h>
#include <utf8proc.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <span>

#include "runtime/tokenizer/tokenizer_data.h"
#include "tools/terminal/language.h"
#include "weights/base/error.h"

namespace minimind {

std::span<const Translation> translations() {
  return {};
}

std::pair<std::string, TextMarks> normalized_parts(std::string_view, const TextMarks&, std::size_t, NormalForm form) {
  throw Error("the tokenizer's normalizer is " + std::string(name_of(form)) +
              ", expected none: the page has no such tables");
}

}  // namespace minimind

// Memory that is given back is cleared, so that what write_memory.mjs writes has nothing else than what is used.
void operator delete(void* memory) noexcept {
  if (memory) explicit_bzero(memory, malloc_usable_size(memory));
  std::free(memory);
}

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

int sched_getcpu() {
  return -1;
}

// Of memory alone, which emscripten's would fill with zeros: 30 ms for the 34 MB of which a small model needs 4.
void* mmap(void*, std::size_t size, int, int, int, off_t) {
  void* const address = std::malloc(size);
  return address ? address : MAP_FAILED;
}

int munmap(void* address, std::size_t) {
  std::free(address);
  return 0;
}
}

#endif
