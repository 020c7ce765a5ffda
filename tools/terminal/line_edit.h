#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/terminal/line_history.h"
#include "tools/terminal/line_keys.h"
#include "tools/terminal/line_layout.h"
#include "tools/terminal/line_text.h"

namespace minimind {

// The words that begin with `typed`, and what all of them go on with.
struct Completions {
  std::vector<std::string> words;
  std::string common;  // the longest common beginning, at least `typed`
};
Completions completions(const std::vector<std::string>& words, const std::string& typed);

// What a key asks of those who read the line and show it.
enum class LineAction {
  edit,          // nothing but to show the line
  refuse,        // nothing: the key means nothing here
  enter,         // the line is whole
  end_of_input,  // there are no more lines
  list_words,    // to show words_to_list()
  clear_screen,
};

// A line, what keys make of it, and the lines before.
class LineEdit {
 public:
  // `words` are what Tab completes at the beginning of a line.
  explicit LineEdit(std::vector<std::string> words) : words_(std::move(words)) {}

  void remember(std::string_view entry) { history_.add(to_code_points(entry)); }

  // Begins an empty line.
  void begin(std::string_view prompt, bool bold);

  LineAction press(const PressedKey& key);

  // Puts the cursor after the text, for what is shown next.
  void move_to_end();

  // What there is to show. In a search its words are the prompt.
  LineView view() const;

  std::string text() const { return to_utf8(text_); }
  const std::vector<std::string>& words_to_list() const { return listed_; }
  bool searching() const { return search_.has_value(); }

 private:
  struct Search {
    std::u32string part;
    std::size_t entry;  // the one that is shown; history_.size(): none yet
    bool failed = false;
    std::u32string text_before;
    std::size_t cursor_before;
  };

  LineAction edit(const PressedKey& key);
  LineAction move(LineKey key);
  LineAction kill(LineKey key);
  LineAction move_to(std::size_t position);
  LineAction insert(std::u32string_view text);
  LineAction erase(std::size_t begin, std::size_t end);
  LineAction replace(std::optional<std::u32string> text);
  LineAction transpose();
  LineAction complete();
  std::optional<LineAction> press_in_search(const PressedKey& key);
  void search_before(std::size_t end);

  std::vector<std::string> words_;
  LineHistory history_;
  std::u32string prompt_;
  bool bold_ = false;
  std::u32string text_;
  std::size_t cursor_ = 0;
  std::u32string killed_;
  bool killing_ = false;  // the last key did, so that the next adds to it
  std::optional<Search> search_;
  std::vector<std::string> listed_;
};

}  // namespace minimind
