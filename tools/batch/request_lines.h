#pragma once

#include <cstddef>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>

#include "tools/batch/batch_lines.h"

namespace minimind {

// A request as it is in the input.
struct RequestLine {
  std::size_t index = 0;   // of the request
  std::size_t number = 0;  // of its line, from 1
  std::string text;

  LineId id() const { return id(custom_id_of(text)); }
  LineId id(std::optional<std::string> custom_id) const;
};

// The requests of a batch, read one by one, so that an input of any size takes the memory of its longest line.
class RequestLines {
 public:
  // `first_line` is the number of the first line: the input may be a part of another. A pipe is copied to a temporary
  // file, because the input is read more than once. Throws Error if the file cannot be read or has no request, and if
  // the pipe does not end after `largest_pipe` bytes.
  explicit RequestLines(std::string path, std::size_t first_line = 1, std::size_t largest_pipe = std::size_t{16} << 30);

  // The number of requests. Empty lines are none.
  std::size_t size() const { return size_; }

  // When the requests were written: the time of the file, or that of reading a pipe.
  std::time_t written() const { return written_; }

  // Reads the next request; std::nullopt after the last. Throws Error if the file has lost requests since it was
  // opened.
  std::optional<RequestLine> next();

  // Makes request `index` the next one.
  void go_to(std::size_t index);

 private:
  void copy_to_temporary_file(std::size_t largest);
  bool read_line();

  std::string path_;
  std::size_t first_line_;
  std::time_t written_ = std::time(nullptr);
  std::fstream file_;
  std::size_t size_ = 0;
  RequestLine line_;  // the last one read, with the index of the next one
};

}  // namespace minimind
