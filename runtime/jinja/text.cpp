#include "runtime/jinja/text.h"

#include <utf8proc.h>

#include <array>
#include <cstring>
#include <utility>

#include "runtime/text/code_points.h"
#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"
#include "weights/base/text.h"

namespace minimind::jinja {
namespace {

CodePoints set_of(std::string_view characters) {
  std::vector<CodePoints::Range> ranges;
  for (const char32_t c : code_points_of(characters)) ranges.push_back({c, c});
  return CodePoints(std::move(ranges));
}

void add_part(std::vector<std::string_view>& parts, std::string_view part, Budget& budget) {
  budget.spend(1);
  budget.make(sizeof part);
  parts.push_back(part);
}

std::vector<std::string_view> split_at_space(std::string_view text, std::int64_t limit, Budget& budget) {
  budget.read(text.size());
  std::vector<std::string_view> parts;
  for (std::string_view rest = stripped(text, {}, Ends::left, budget); !rest.empty();) {
    if (limit >= 0 && static_cast<std::int64_t>(parts.size()) == limit) {
      parts.push_back(rest);
      break;
    }
    std::size_t end = 0;
    while (end < rest.size()) {
      const Utf8Char character = first_utf8(rest.substr(end));
      if (is_python_space(character.code_point)) break;
      end += character.size;
    }
    add_part(parts, rest.substr(0, end), budget);
    rest = stripped(rest.substr(end), {}, Ends::left, budget);
  }
  return parts;
}

// Returns true if repr() shows the character unescaped.
bool is_printable(char32_t c) {
  return c == U' ' || (is_visible(c) && utf8proc_category(static_cast<utf8proc_int32_t>(c)) != UTF8PROC_CATEGORY_ZS);
}

bool ends_line(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::size_t byte_of_character(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  for (std::size_t seen = 0; at < text.size(); ++at) {
    if (starts_character(text[at]) && seen++ == index) break;
  }
  return at;
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> characters;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = first_utf8(text.substr(at)).size;
    characters.push_back(text.substr(at, size));
    at += size;
  }
  return characters;
}

MarkedText reversed(const MarkedText& text, std::string_view part, Budget& budget) {
  budget.read(part.size());
  MarkedText result;
  while (!part.empty()) {
    const std::size_t size = last_utf8(part).size;
    result.append_part(text, part.substr(part.size() - size));
    part.remove_suffix(size);
  }
  return result;
}

bool is_python_space(char32_t character) {
  return is_white_space(character) || (character >= 0x1C && character <= 0x1F);
}

std::string_view stripped(std::string_view text, const std::optional<std::string_view>& set, Ends ends,
                          Budget& budget) {
  if (set) budget.spend(set->size());  // they are sorted
  const CodePoints characters = set ? set_of(*set) : CodePoints();
  std::size_t count = 0;
  const auto goes = [&](char32_t c) {
    if (++count % 16 == 0) budget.spend(1);
    return set ? characters.contains(c) : is_python_space(c);
  };
  while (ends != Ends::right && !text.empty()) {
    const Utf8Char first = first_utf8(text);
    if (!goes(first.code_point)) break;
    text.remove_prefix(first.size);
  }
  return ends == Ends::left ? text : without_end(text, goes);
}

std::optional<std::size_t> find_first(std::string_view text, std::string_view wanted, std::size_t from_byte) {
  if (wanted.empty()) return from_byte;
  const void* const found = memmem(text.data() + from_byte, text.size() - from_byte, wanted.data(), wanted.size());
  if (!found) return std::nullopt;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::vector<std::string_view> split(std::string_view text, const std::optional<std::string_view>& separator,
                                    std::int64_t limit, Budget& budget) {
  if (!separator) return split_at_space(text, limit, budget);
  if (separator->empty()) throw Failure("cannot split at an empty separator");
  budget.search(text.size(), separator->size());
  std::vector<std::string_view> parts;
  std::size_t at = 0;
  while (limit < 0 || static_cast<std::int64_t>(parts.size()) < limit) {
    const auto found = find_first(text, *separator, at);
    if (!found) break;
    add_part(parts, text.substr(at, *found - at), budget);
    at = *found + separator->size();
  }
  parts.push_back(text.substr(at));
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, Budget& budget) {
  budget.read(text.size());
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char character = first_utf8(text.substr(at));
    const std::size_t end = at;
    at += character.size;
    if (!ends_line(character.code_point)) continue;
    if (character.code_point == '\r' && text.substr(at).starts_with('\n')) ++at;
    add_part(lines, text.substr(begin, end - begin), budget);
    begin = at;
  }
  return lines;
}

MarkedText replaced(const MarkedText& whole, std::string_view old_text, const MarkedText& new_text, std::int64_t limit,
                    Budget& budget) {
  if (old_text.empty()) throw Failure("replacing an empty string is not supported");
  const std::string_view text = whole.bytes;
  budget.search(text.size(), old_text.size());
  MarkedText result;
  std::size_t at = 0;
  for (auto found = find_first(text, old_text); found && limit != 0; found = find_first(text, old_text, at), --limit) {
    budget.spend(1);
    budget.make(*found - at + new_text.bytes.size());
    result.append_part(whole, text.substr(at, *found - at));
    result.append(new_text);
    at = *found + old_text.size();
  }
  budget.make(text.size() - at);
  result.append_part(whole, text.substr(at));
  return result;
}

std::string hex_escape(char letter, std::uint32_t number, int digits) {
  std::string escape = {'\\', letter};
  while (digits-- > 0) escape += "0123456789abcdef"[number >> 4 * digits & 0xF];
  return escape;
}

MarkedText quoted_text(const MarkedText& whole) {
  const std::string_view text = whole.bytes;
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  MarkedText result(std::string(1, quote));
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char character = first_utf8(text.substr(at));
    const std::string_view part = text.substr(at, character.size);
    const char32_t c = character.code_point;
    if (c == '\n' || c == '\r' || c == '\t') {
      result.append_instead(whole, part, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
    } else if (c == static_cast<unsigned char>(quote) || c == '\\') {
      const char escape[] = {'\\', static_cast<char>(c)};
      result.append_instead(whole, part, {escape, 2});
    } else if (is_printable(c)) {
      result.append_part(whole, part);
    } else {
      result.append_instead(whole, part,
                            c < 0x100     ? hex_escape('x', c, 2)
                            : c < 0x10000 ? hex_escape('u', c, 4)
                                          : hex_escape('U', c, 8));
    }
    at += character.size;
  }
  result.append(std::string_view(&quote, 1));
  return result;
}

MarkedText escaped_html(const MarkedText& text) {
  constexpr std::string_view special = "&<>'\"";
  constexpr std::array<std::string_view, special.size()> entities = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  MarkedText result;
  for (std::size_t at = 0; at < text.bytes.size(); ++at) {
    const std::string_view part = std::string_view(text.bytes).substr(at, 1);
    const std::size_t known = special.find(part[0]);
    if (known == std::string_view::npos) {
      result.append_part(text, part);
    } else {
      result.append_instead(text, part, entities[known]);
    }
  }
  return result;
}

// Case mappings, character by character. Rejected are characters whose full mapping (SpecialCasing.txt of Unicode) is
// not one character, such as that of U+00DF, or depends on its context.

namespace {

using CaseMap = utf8proc_int32_t (*)(utf8proc_int32_t);

std::string case_of(char32_t c, CaseMap map) {
  const auto character = static_cast<utf8proc_int32_t>(c);
  if (c >= 0x80) {
    constexpr char32_t capital_sigma = 0x3A3, small_dotless_i = 0x131;
    std::array<utf8proc_int32_t, 8> folded;
    int last_class = 0;
    const auto count = utf8proc_decompose_char(character, folded.data(), folded.size(), UTF8PROC_CASEFOLD, &last_class);
    const bool is_digraph = utf8proc_totitle(character) != utf8proc_toupper(character);
    if (count > 1 || is_digraph || c == capital_sigma || c == small_dotless_i) {
      std::string shown;
      append_utf8(shown, c);
      throw Failure("the case of " + quoted_text(MarkedText(shown)).bytes + " is not supported");
    }
  }
  std::string mapped;
  append_utf8(mapped, static_cast<char32_t>(map(character)));
  return mapped;
}

template <class Map>
MarkedText case_mapped(const MarkedText& whole, Map map_of) {
  const std::string_view text = whole.bytes;
  MarkedText result;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char character = first_utf8(text.substr(at));
    result.append_instead(whole, text.substr(at, character.size),
                          case_of(character.code_point, map_of(character.code_point)));
    at += character.size;
  }
  return result;
}

bool begins_word(char32_t c) {
  return is_python_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

// Returns true for a letter with case, after which a word of str.title continues.
bool is_cased(char32_t c) {
  return utf8proc_tolower(static_cast<utf8proc_int32_t>(c)) != static_cast<utf8proc_int32_t>(c) ||
         utf8proc_toupper(static_cast<utf8proc_int32_t>(c)) != static_cast<utf8proc_int32_t>(c);
}

}  // namespace

MarkedText upper(const MarkedText& text) {
  return case_mapped(text, [](char32_t) -> CaseMap { return utf8proc_toupper; });
}

MarkedText lower(const MarkedText& text) {
  return case_mapped(text, [](char32_t) -> CaseMap { return utf8proc_tolower; });
}

MarkedText capitalized(const MarkedText& text) {
  return case_mapped(text, [first = true](char32_t) mutable -> CaseMap {
    return std::exchange(first, false) ? utf8proc_toupper : utf8proc_tolower;
  });
}

MarkedText title(const MarkedText& text) {
  return case_mapped(text, [in_word = false](char32_t c) mutable -> CaseMap {
    return std::exchange(in_word, is_cased(c)) ? utf8proc_tolower : utf8proc_toupper;
  });
}

MarkedText title_words(const MarkedText& text) {
  return case_mapped(text, [in_word = false](char32_t c) mutable -> CaseMap {
    return std::exchange(in_word, !begins_word(c)) ? utf8proc_tolower : utf8proc_toupper;
  });
}

}  // namespace minimind::jinja
