#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace minimind {

inline constexpr std::size_t largest_text = std::size_t{64} << 20;

// Returns the whole of a text file. Throws Error if it cannot be read, is not a regular file or is over `largest`
// bytes. Never waits, whatever has that name.
std::string read_text_file(const std::string& path, std::size_t largest = largest_text);

// The same for a file that a person names on a command line: it may also be a terminal or a pipe, such as /dev/stdin or
// a shell's <(...), which is read until its writers close it. Throws Error, too, for a FIFO that nobody writes to, and
// Cancelled.
std::string read_text_or_pipe(const std::string& path, std::size_t largest = largest_text);

// The same of any length: calls use(piece) with one piece after the other.
void read_pieces_or_pipe(const std::string& path, const std::function<void(std::string_view piece)>& use);

}  // namespace minimind
