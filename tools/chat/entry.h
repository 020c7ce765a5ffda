#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace minimind {

// Joins lines to a message. A line that ends in a backslash continues in the next line. A block is all lines between a
// line of """, or a command that ends in """, and the next line of """. A block without a command is always a message:
// if it starts with a slash, that slash is doubled.
class ChatEntryLines {
 public:
  // Returns the message that the line completes, without a newline at its end; std::nullopt if it continues. The line
  // may contain newlines, as pasted text does.
  std::optional<std::string> push(std::string_view line);

  // Whether a message has started and is not complete.
  bool open() const { return open_; }

  // Discards an incomplete message.
  void clear();

 private:
  bool open_ = false;
  bool block_ = false;
  std::string text_;  // what was entered, with the marks
};

}  // namespace minimind
