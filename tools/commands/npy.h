#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/engine/matrix.h"
#include "weights/io/input_file.h"
#include "weights/io/part_files.h"

namespace minimind {

// Writes a .npy file, version 1.0, of float32 [rows, cols], row by row. Writes to a temporary file next to `path`,
// which finish() moves there, so that no partial file remains. Follows links, and writes directly to anything other
// than a regular file, such as a pipe, which somebody must be reading. Throws Error if writing fails.
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
  std::string temporary_;                 // path_ itself if that is not a regular file
  std::optional<Unfinished> unfinished_;  // temporary_
  std::FILE* file_ = nullptr;
};

// Reads a .npy file of little-endian float32 in C order with two dimensions. Throws Error for anything else.
class NpyReader {
 public:
  explicit NpyReader(const std::string& path);

  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  // Fills `out`, [cols], with a row.
  void read_row(std::size_t row, std::span<float> out) const;

 private:
  std::shared_ptr<const InputFile> file_;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
  std::size_t data_ = 0;  // where the first row starts
};

}  // namespace minimind
