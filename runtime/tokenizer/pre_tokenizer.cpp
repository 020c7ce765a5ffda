#include "runtime/tokenizer/pre_tokenizer.h"

#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"

namespace minimind {
namespace {

// The end of the run of characters of class `wanted` that begins at `begin`.
std::size_t end_of_run(std::string_view text, std::size_t begin, CharClass wanted) {
  std::size_t end = begin;
  while (end < text.size()) {
    const Utf8Char next = first_utf8(text.substr(end));
    if (class_of(next.code_point) != wanted) break;
    end += next.size;
  }
  return end;
}

std::size_t contraction_size(std::string_view text) {
  for (const std::string_view contraction : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(contraction)) return contraction.size();
  }
  return 0;
}

// \s+(?!\S)|\s+ : white space leaves its last character to the word that follows, unless it has no other.
std::size_t white_space_size(std::string_view text) {
  const std::size_t end = end_of_run(text, 0, CharClass::space);
  if (end == text.size()) return end;
  const std::size_t all_but_last = end - last_utf8(text.substr(0, end)).size;
  return all_but_last > 0 ? all_but_last : end;
}

}  // namespace

std::size_t gpt2_word_size(std::string_view text) {
  if (text[0] == '\'') {
    if (const std::size_t size = contraction_size(text); size > 0) return size;
  }
  const std::size_t begin = text[0] == ' ' ? 1 : 0;
  if (begin == text.size()) return begin;
  const CharClass first = class_of(first_utf8(text.substr(begin)).code_point);
  return first == CharClass::space ? white_space_size(text) : end_of_run(text, begin, first);
}

}  // namespace minimind
