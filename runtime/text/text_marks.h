#pragma once

#include <cstddef>
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

}  // namespace minimind
