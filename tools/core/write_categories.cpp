// Writes utf8proc_category() as a source file of its own, with nothing but the categories: in the library's archive the
// function comes with the tables of all its functions, an eighth of what the core may have.

#include <utf8proc.h>

#include <cstdio>

namespace {

constexpr const char* includes = R"(#include <utf8proc.h>

#include <algorithm>
#include <iterator>

namespace {

// The code points from which on the category is another, times 32, plus that category.
constexpr utf8proc_uint32_t changes[] = {
)";

constexpr const char* function = R"(};

}  // namespace

extern "C" utf8proc_category_t utf8proc_category(utf8proc_int32_t c) {
  const auto* const next =
      std::upper_bound(std::begin(changes), std::end(changes), static_cast<utf8proc_uint32_t>(c) << 5 | 31);
  return static_cast<utf8proc_category_t>(*std::prev(next) & 31);
}
)";

}  // namespace

int main() {
  std::fputs(includes, stdout);
  // After the last code point there is none, whose category is 0.
  constexpr utf8proc_int32_t end = 0x110000;
  for (utf8proc_int32_t c = 0, last = -1; c <= end; ++c) {
    const utf8proc_int32_t category = utf8proc_category(c);
    if (category != last) std::printf("%d,\n", c << 5 | category);
    last = category;
  }
  return std::fputs(function, stdout) < 0 || std::fflush(stdout) != 0 ? 1 : 0;
}
