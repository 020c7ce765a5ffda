#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "runtime/text/text_marks.h"

namespace minimind {

// A text whose bytes have marks. Every operation on such texts keeps the marks of the bytes that it copies.
struct MarkedText {
  MarkedText() = default;
  explicit MarkedText(std::string text, TextMarks of_text = {}) : bytes(std::move(text)), marks(std::move(of_text)) {}
  static MarkedText all(std::string text);
  bool operator==(const MarkedText&) const = default;

  void append(std::string_view unmarked) { bytes += unmarked; }
  void append(const MarkedText& text) { append_part(text, text.bytes); }
  // `part` is a part of `text`.
  void append_part(const MarkedText& text, std::string_view part);
  // Appends what replaces a part of `text`, which is marked if any of that part is.
  void append_instead(const MarkedText& text, std::string_view part, std::string_view replacement);

  MarkedText part(std::string_view part) const;

  std::string bytes;
  TextMarks marks;
};

}  // namespace minimind
