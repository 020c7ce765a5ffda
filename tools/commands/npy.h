#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>

#include "runtime/engine/matrix.h"
#include "weights/io/mapped_file.h"

namespace minimind {

// Writes a .npy file, version 1.0, of float32 [rows, cols], row by row. It is written beside `path` and moved there by
// finish(), so that no half file is ever left behind; a link is followed, and what is no regular file, such as a pipe,
// is written to directly. Throws Error when anything cannot be written.
class NpyWriter {
 public:
  NpyWriter(std::string path, std::size_t rows, std::size_t cols);
  NpyWriter(const NpyWriter&) = delete;
  NpyWriter& operator=(const NpyWriter&) = delete;
  ~NpyWriter();

  void write(Matrix<const float> rows);
  void finish();

 private:
  explicit NpyWriter(std::string path);
  [[noreturn]] void fail() const;

  std::string path_;
  std::string temporary_;  // path_ itself where that is no regular file
  std::FILE* file_;
};

// A .npy file of little-endian float32 in C order with two dimensions, mapped. Throws Error for anything else.
class NpyReader {
 public:
  explicit NpyReader(const std::string& path);

  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  float at(std::size_t row, std::size_t col) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
  const std::byte* data_ = nullptr;
};

}  // namespace minimind
