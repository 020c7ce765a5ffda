#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/engine/matrix.h"
#include "weights/io/input_file.h"
#include "weights/io/output_file.h"

namespace minimind {

// Writes a .npy file, version 1.0, of float32 [rows, cols], row by row, as an OutputFile that finish() commits. Writes
// directly to anything other than a file, such as a pipe, which somebody must be reading. Throws Error if writing
// fails.
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
  void write(std::span<const std::byte> bytes);
  [[noreturn]] void fail() const;

  std::string path_;
  std::optional<OutputFile> file_;  // std::nullopt: stream_
  std::FILE* stream_ = nullptr;
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
