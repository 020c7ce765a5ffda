#include <fmt/core.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "runtime/text/utf8.h"
#include "runtime/tokenizer/tokenizer_data.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

// utf8proc brings marks in a row into order by exchanging neighbours, in time quadratic in their number. Unicode's
// stream-safe texts have at most 30.
constexpr std::size_t most_marks = 128;

void check_marks(std::string_view text, NormalForm form) {
  for (std::size_t marks = 0; !text.empty();) {
    const Utf8Char next = first_utf8(text);
    text.remove_prefix(next.size);
    const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(next.code_point));
    marks = category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME ? marks + 1 : 0;
    if (marks <= most_marks) continue;
    throw Error(fmt::format("the text has over {} combining marks in a row, expected at most {} for {}, the normalizer",
                            most_marks, most_marks, name_of(form)));
  }
}

std::string normalized(std::string_view text, NormalForm form) {
  check_marks(text, form);
  const bool composed = form == NormalForm::nfc || form == NormalForm::nfkc;
  const int options = UTF8PROC_STABLE | (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                      (form >= NormalForm::nfkc ? UTF8PROC_COMPAT : 0);
  utf8proc_uint8_t* bytes = nullptr;
  const auto size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &bytes, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(bytes, &std::free);
  if (size < 0)
    throw Error(fmt::format("the text cannot be brought into {}: {}", name_of(form), utf8proc_errmsg(size)));
  return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

}  // namespace

std::pair<std::string, TextMarks> normalized_parts(std::string_view text, const TextMarks& marks, std::size_t offset,
                                                   NormalForm form) {
  std::pair<std::string, TextMarks> result;
  std::size_t at = 0;
  const auto take = [&](std::size_t end) {
    end = std::clamp(std::max(end, offset) - offset, at, text.size());
    result.first += normalized(text.substr(at, end - at), form);
    at = end;
    return result.first.size();
  };
  for (const TextMarks::Range& range : marks.ranges()) {
    const std::size_t begin = take(range.begin);
    if (const std::size_t end = take(range.end); end > begin) result.second.add(begin, end);
  }
  take(offset + text.size());
  return result;
}

}  // namespace minimind
