#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace minimind {

// Returns $XDG_STATE_HOME/minimind/history or ~/.local/state/minimind/history; empty if there is no home folder.
std::string history_path();

// The entries of earlier conversations: a file with one entry per line, newlines written as \n and backslashes as \\.
// Only its owner can read it. If the file cannot be read or written, nothing is remembered and that is not an error.
class InputHistory {
 public:
  static constexpr std::size_t most_entries = 1000;
  static constexpr std::size_t longest_entry = std::size_t{64} << 10;  // bytes; longer entries are not kept

  // Reads the last entries and shortens a file that has many more. If the path is empty, nothing is stored.
  explicit InputHistory(std::string path);

  const std::vector<std::string>& entries() const { return entries_; }

  // Adds an entry, also to the file, unless it is empty or equals the last one.
  void add(const std::string& entry);

 private:
  std::string path_;
  std::vector<std::string> entries_;
};

}  // namespace minimind
