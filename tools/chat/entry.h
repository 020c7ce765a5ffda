#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace minimind {

// Puts a message together from lines: a line that ends in a backslash goes on in the next, and so does everything
// between a line of """, or a command that ends in """, and a line of """. A block that no command begins is a message
// even where it begins with a slash, which is then returned as two.
class ChatEntryLines {
 public:
  // The message that the line completes, without a newline at its end; nothing when it goes on. The line may hold
  // newlines, as pasted text does.
  std::optional<std::string> push(std::string_view line);

  // Whether a message has begun and is not complete.
  bool open() const { return open_; }

  // Forgets what has begun.
  void clear();

 private:
  bool open_ = false;
  bool block_ = false;
  std::string text_;  // what was entered, with the marks
};

}  // namespace minimind
