#include "runtime/text/marked_text.h"

#include <cstddef>

namespace minimind {
namespace {

std::size_t offset_in(const MarkedText& text, std::string_view part) {
  return static_cast<std::size_t>(part.data() - text.bytes.data());
}

}  // namespace

MarkedText MarkedText::all(std::string text) {
  MarkedText marked(std::move(text));
  marked.marks.add(0, marked.bytes.size());
  return marked;
}

void MarkedText::append_part(const MarkedText& text, std::string_view part) {
  const std::size_t begin = offset_in(text, part);
  marks.add(text.marks, begin, begin + part.size(), bytes.size());
  bytes += part;
}

void MarkedText::append_instead(const MarkedText& text, std::string_view part, std::string_view replacement) {
  const std::size_t begin = offset_in(text, part), at = bytes.size();
  bytes += replacement;
  if (text.marks.first_from(begin) < begin + part.size()) marks.add(at, bytes.size());
}

MarkedText MarkedText::part(std::string_view part) const {
  MarkedText result;
  result.append_part(*this, part);
  return result;
}

}  // namespace minimind
