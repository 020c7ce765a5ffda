#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace minimind {

// Some bytes of a text: ranges in order, each after the end of the one before.
class TextMarks {
 public:
  struct Range {
    std::size_t begin, end;
    bool operator==(const Range&) const = default;
  };

  const std::vector<Range>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool operator==(const TextMarks&) const = default;

  // Adds bytes [begin, end), which must not start before the last range.
  void add(std::size_t begin, std::size_t end);
  // Adds the marks of bytes [begin, end) of another text, which are at `at` in this one.
  void add(const TextMarks& other, std::size_t begin, std::size_t end, std::size_t at);

  // Returns the first marked byte from `position` on, SIZE_MAX if there is none.
  std::size_t first_from(std::size_t position) const;

 private:
  std::vector<Range> ranges_;
};

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
