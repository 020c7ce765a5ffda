#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace minimind {

// $XDG_STATE_HOME/minimind/history, or ~/.local/state/minimind/history; empty where there is no home.
std::string history_path();

// What was entered in earlier conversations: a file of one entry a line, in which newlines are written \n and
// backslashes \\. Only its owner can read it. A file that cannot be read or written is no error: nothing is remembered.
class InputHistory {
 public:
  static constexpr std::size_t most_entries = 1000;
  static constexpr std::size_t longest_entry = std::size_t{64} << 10;  // bytes; longer ones are not kept

  // Reads the last entries, and shortens a file that has many more. An empty path keeps nothing.
  explicit InputHistory(std::string path);

  const std::vector<std::string>& entries() const { return entries_; }

  // Adds an entry, in the file too, unless it is empty or equal to the last one.
  void add(const std::string& entry);

 private:
  std::string path_;
  std::vector<std::string> entries_;
};

}  // namespace minimind
