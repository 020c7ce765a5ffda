#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/terminal/line_keys.h"
#include "tools/terminal/line_layout.h"
#include "tools/terminal/line_text.h"

namespace minimind {

// The words that start with `typed`, and their common prefix.
struct Completions {
  std::vector<std::string> words;
  std::string common;  // the longest common prefix, at least `typed`
};
Completions completions(const std::vector<std::string>& words, const std::string& typed);

// The earlier entries, and the current position of the arrows and the search. The line being typed is after the last
// entry and is kept while the arrows move among the entries.
class LineHistory {
 public:
  static constexpr std::size_t most_entries = 1000;

  // Appends an entry, unless it equals the last one.
  void add(std::u32string entry);

  // Returns to the line being typed.
  void leave();

  // Returns the entry before or after the shown one, or the line being typed; std::nullopt if there is none. `line` is
  // the shown text.
  std::optional<std::u32string> older(const std::u32string& line);
  std::optional<std::u32string> newer();

  // Returns the number of the last entry before number `end` that contains `part`; std::nullopt if none does.
  std::optional<std::size_t> find(std::u32string_view part, std::size_t end) const;

  // Moves to entry `number`, as the arrows do. `line` is the text shown before, without the results of a search.
  const std::u32string& go_to(std::size_t number, const std::u32string& line);

  const std::u32string& entry(std::size_t number) const { return entries_[number]; }
  std::size_t size() const { return entries_.size(); }

 private:
  std::deque<std::u32string> entries_;
  std::size_t at_ = 0;  // entries_.size(): the line being typed
  std::u32string typed_;
};

// What the caller must do after a key.
enum class LineAction {
  edit,          // show the line
  reject,        // signal that the key has no meaning here
  enter,         // the line is complete
  end_of_input,  // there are no more lines
  list_words,    // show words_to_list()
  clear_screen,
};

// A line that keys edit, and the history of lines.
class LineEdit {
 public:
  // In code points: more than a model's context holds, and little enough to lay out again after each key.
  static constexpr std::size_t longest_text = std::size_t{256} << 10;

  // Tab completes `words` at the start of a line.
  explicit LineEdit(std::vector<std::string> words) : words_(std::move(words)) {}

  void remember(std::string_view entry) { history_.add(code_points_of(entry)); }

  // Starts an empty line.
  void begin(std::string_view prompt, bool bold);

  LineAction press(const PressedKey& key);

  // Moves the cursor after the text.
  void move_to_end();

  // Returns the line to show. During a search, the prompt is that of the search.
  LineView view() const;

  std::string text() const { return to_utf8(text_); }
  const std::vector<std::string>& words_to_list() const { return listed_; }
  bool searching() const { return search_.has_value(); }

 private:
  struct Search {
    std::u32string part;
    std::size_t entry;  // the one shown; history_.size(): none yet
    bool failed = false;
    std::u32string text_before;
    std::size_t cursor_before;
  };

  LineAction edit(const PressedKey& key);
  LineAction move(LineKey key);
  LineAction kill(LineKey key);
  LineAction move_to(std::size_t position);
  // Inserts all of the text, or nothing if the line would be too long, and says so once.
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
  bool killing_ = false;  // the last key deleted text, so the next adds to killed_
  std::optional<Search> search_;
  std::vector<std::string> listed_;
  bool said_too_long_ = false;  // of this line
};

}  // namespace minimind
