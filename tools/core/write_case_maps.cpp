// Writes the functions of utf8proc that the page calls as a source file of its own, except utf8proc_category(), which
// write_categories.cpp writes: the library is compiled for this machine, and the page is for every one.

#include <utf8proc.h>

#include <array>
#include <cstdio>

namespace {

constexpr const char* start = R"(#include <utf8proc.h>

#include <algorithm>
#include <iterator>

namespace {

// What a character becomes, if it becomes another.
struct Change {
  utf8proc_int32_t from, to[3];  // padded with zeros
};

template <std::size_t count>
const Change* change_of(const Change (&changes)[count], utf8proc_int32_t c) {
  const auto* const found = std::lower_bound(std::begin(changes), std::end(changes), c,
                                             [](const Change& change, utf8proc_int32_t from) { return change.from < from; });
  return found != std::end(changes) && found->from == c ? found : nullptr;
}

template <std::size_t count>
utf8proc_int32_t changed(const Change (&changes)[count], utf8proc_int32_t c) {
  const Change* const change = change_of(changes, c);
  return change ? change->to[0] : c;
}

)";

constexpr const char* end = R"(}  // namespace

extern "C" {

utf8proc_int32_t utf8proc_tolower(utf8proc_int32_t c) {
  return changed(lower, c);
}

utf8proc_int32_t utf8proc_toupper(utf8proc_int32_t c) {
  return changed(upper, c);
}

utf8proc_int32_t utf8proc_totitle(utf8proc_int32_t c) {
  return changed(title, c);
}

// Only for UTF8PROC_CASEFOLD.
utf8proc_ssize_t utf8proc_decompose_char(utf8proc_int32_t c, utf8proc_int32_t* to, utf8proc_ssize_t,
                                         utf8proc_option_t, int*) {
  const Change* const change = change_of(folded, c);
  *to = c;
  if (!change) return 1;
  return std::copy_if(std::begin(change->to), std::end(change->to), to, [](auto point) { return point != 0; }) - to;
}

const char* utf8proc_category_string(utf8proc_int32_t c) {
  return names[utf8proc_category(c)];
}
}
)";

constexpr utf8proc_int32_t past_last = 0x110000;
constexpr std::array<utf8proc_int32_t, 3> none{};

template <class Map>
void write_changes(const char* name, const Map& map) {
  std::printf("constexpr Change %s[] = {\n", name);
  for (utf8proc_int32_t c = 0; c < past_last; ++c) {
    const std::array<utf8proc_int32_t, 3> to = map(c);
    if (to == std::array{c, 0, 0} || to == none) continue;
    std::printf("{%d, {%d, %d, %d}},\n", c, to[0], to[1], to[2]);
  }
  std::puts("};");
}

// Returns `none` for what is no character.
std::array<utf8proc_int32_t, 3> folded(utf8proc_int32_t c) {
  std::array<utf8proc_int32_t, 3> to{};
  int last_class = 0;
  const auto count = utf8proc_decompose_char(c, to.data(), to.size(), UTF8PROC_CASEFOLD, &last_class);
  return count > 0 ? to : none;
}

}  // namespace

int main() {
  std::fputs(start, stdout);
  write_changes("lower", [](auto c) { return std::array{utf8proc_tolower(c), 0, 0}; });
  write_changes("upper", [](auto c) { return std::array{utf8proc_toupper(c), 0, 0}; });
  write_changes("title", [](auto c) { return std::array{utf8proc_totitle(c), 0, 0}; });
  write_changes("folded", folded);
  std::puts("constexpr const char* names[] = {");
  std::array<const char*, UTF8PROC_CATEGORY_CO + 1> names{};
  for (utf8proc_int32_t c = 0; c < past_last; ++c) names.at(utf8proc_category(c)) = utf8proc_category_string(c);
  for (const char* const name : names) std::printf("\"%s\",\n", name ? name : "Cn");
  std::puts("};");
  return std::fputs(end, stdout) < 0 || std::fflush(stdout) != 0 ? 1 : 0;
}
