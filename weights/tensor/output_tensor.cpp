#include "weights/tensor/output_tensor.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/tensor/half.h"
#include "weights/tensor/row_window.h"
#include "weights/tensor/shape.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{4} << 20;
constexpr std::size_t copied_bytes = std::size_t{1} << 20;  // at once, without a conversion

// The rows of one source, starting at row `first_row` of the joined rows; at row 0 if sources are side by side.
struct Part {
  const StoredTensor* source;
  std::size_t first_row;
  Rows rows;
};

// The rows of an output tensor, each joined from its sources.
class RowEncoder {
 public:
  explicit RowEncoder(const OutputTensor& tensor) : tensor_(tensor), rows_(rows_of(tensor.shape)) {
    if (rows_.count > 0) row_bytes_ = byte_count(tensor) / rows_.count;
    std::size_t joined_rows = 0, joined_cols = 0;
    for (const StoredTensor* source : tensor.sources) {
      const Rows rows = rows_of(source->shape);
      parts_.push_back({source, side_by_side() ? 0 : joined_rows, rows});
      const bool fits = side_by_side() ? parts_[0].rows.count == rows.count : rows_.cols == rows.cols;
      if (!fits && rows.count > 0) fail();
      joined_rows = side_by_side() ? rows.count : joined_rows + rows.count;
      joined_cols = side_by_side() ? joined_cols + rows.cols : rows.cols;
    }
    const bool ordered = tensor.row_order.empty() ? joined_rows == rows_.count : tensor.row_order.size() == rows_.count;
    if (!ordered || (rows_.count > 0 && joined_cols != rows_.cols)) fail();
    for (const std::size_t row : tensor.row_order) {
      if (row >= joined_rows) fail();
    }
  }

  std::size_t rows() const { return rows_.count; }
  std::size_t row_bytes() const { return row_bytes_; }

  // Returns true if the encoded bytes are the concatenated bytes of the sources.
  bool is_stored_so() const {
    return !side_by_side() && tensor_.row_order.empty() &&
           std::all_of(parts_.begin(), parts_.end(), [&](const Part& part) { return is_wanted_type(part); });
  }

  // Writes rows [first, last) to `out`.
  void encode(std::size_t first, std::size_t last, std::byte* out) const {
    std::vector<float> values(rows_.cols);
    std::vector<RowWindow> windows(side_by_side() ? parts_.size() : 1);
    for (std::size_t i = first; i < last; ++i, out += row_bytes_) {
      const std::size_t row = tensor_.row_order.empty() ? i : tensor_.row_order[i];
      const std::span<const Part> parts = parts_of(row);
      if (std::all_of(parts.begin(), parts.end(), [&](const Part& part) { return is_wanted_type(part); })) {
        copy_row(parts, row, windows, out);
      } else {
        convert_row(parts, row, windows, values, out);
      }
    }
  }

 private:
  bool side_by_side() const { return tensor_.join == OutputTensor::Join::columns; }
  bool is_wanted_type(const Part& part) const { return part.source->dtype == tensor_.dtype; }

  [[noreturn]] void fail() const {
    std::string shapes;
    for (const StoredTensor* source : tensor_.sources) shapes.append(" ").append(shape_text(source->shape));
    throw Error(fmt::format("tensor {} {} cannot be made of{}{}", quote(tensor_.name), shape_text(tensor_.shape),
                            shapes, tensor_.row_order.empty() ? "" : " in the row order given"));
  }

  std::span<const Part> parts_of(std::size_t row) const {
    if (side_by_side()) return parts_;
    const auto after = std::upper_bound(parts_.begin(), parts_.end(), row,
                                        [](std::size_t r, const Part& part) { return r < part.first_row; });
    return {std::prev(after), 1};
  }

  static const std::byte* row_of(const Part& part, std::size_t row, RowWindow& window) {
    return window.row(*part.source, row - part.first_row, part.rows.count);
  }

  static void copy_row(std::span<const Part> parts, std::size_t row, std::span<RowWindow> windows, std::byte* out) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::size_t bytes = parts[i].source->data.size() / parts[i].rows.count;
      std::memcpy(out, row_of(parts[i], row, windows[i]), bytes);
      out += bytes;
    }
  }

  void convert_row(std::span<const Part> parts, std::size_t row, std::span<RowWindow> windows,
                   std::vector<float>& values, std::byte* out) const {
    float* to = values.data();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      convert_to_floats(*parts[i].source, row_of(parts[i], row, windows[i]), parts[i].rows.cols, to);
      to += parts[i].rows.cols;
    }
    encode_values(tensor_.dtype, values.data(), values.size(), out);
  }

  const OutputTensor& tensor_;
  Rows rows_;
  std::size_t row_bytes_ = 0;
  std::vector<Part> parts_;
};

float rounded_to(DType type, float value) {
  if (type == DType::f16) return to_f32(to_f16(value));
  if (type == DType::bf16) return to_f32(to_bf16(value));
  return value;
}

}  // namespace

void require_float_type(const OutputTensor& tensor, std::string_view format) {
  if (is_float_type(tensor.dtype)) return;
  throw Error(fmt::format("tensor {} cannot be written to a {} file as {}, expected f32, f16 or bf16",
                          quote(tensor.name), format, name_of(tensor.dtype)));
}

std::size_t byte_count(const OutputTensor& tensor) {
  const auto bytes = byte_count(tensor.shape, tensor.dtype);
  if (bytes) return *bytes;
  throw Error(fmt::format("tensor {} {} cannot be written as {}", quote(tensor.name), shape_text(tensor.shape),
                          name_of(tensor.dtype)));
}

std::size_t byte_count(const std::vector<OutputTensor>& tensors) {
  std::size_t total = 0;
  for (const OutputTensor& tensor : tensors) total += byte_count(tensor);
  return total;
}

DType most_common_type(const std::vector<OutputTensor>& tensors) {
  std::map<DType, std::size_t> bytes;
  for (const OutputTensor& tensor : tensors) bytes[tensor.dtype] += byte_count(tensor);
  return std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

void encode(const OutputTensor& tensor, std::size_t threads,
            const std::function<void(std::span<const std::byte>)>& use) {
  const RowEncoder encoder(tensor);
  if (encoder.is_stored_so()) {
    std::vector<std::byte> buffer;
    for (const StoredTensor* source : tensor.sources) {
      for (std::size_t first = 0; first < source->data.size(); first += copied_bytes) {
        const std::size_t count = std::min(copied_bytes, source->data.size() - first);
        use({source->data.read(first, count, buffer), count});
      }
    }
  } else if (encoder.rows() > 0) {
    const std::size_t rows_per_chunk = std::clamp<std::size_t>(chunk_bytes / encoder.row_bytes(), 1, encoder.rows());
    std::vector<std::byte> chunk(rows_per_chunk * encoder.row_bytes());
    // Float types are converted faster than they are written; waking threads for them costs more than it saves.
    const std::size_t useful_threads = is_block_type(tensor.dtype) ? threads : 1;
    for (std::size_t begin = 0; begin < encoder.rows(); begin += rows_per_chunk) {
      const std::size_t count = std::min(rows_per_chunk, encoder.rows() - begin);
      run_ranges(count, useful_threads, [&](std::size_t first, std::size_t last) {
        encoder.encode(begin + first, begin + last, chunk.data() + first * encoder.row_bytes());
      });
      use(std::span(chunk).first(count * encoder.row_bytes()));
    }
  }
}

bool TypeChooser::fits(const OutputTensor& tensor, DType type) const {
  return std::all_of(tensor.sources.begin(), tensor.sources.end(),
                     [&](const StoredTensor* source) { return can_encode(*source, type, threads_); });
}

// Returns f32 if the file cannot have the stored type or if the sources differ.
DType TypeChooser::stored_type(const OutputTensor& tensor) const {
  const DType type = tensor.sources.front()->dtype;
  const bool same = std::all_of(tensor.sources.begin(), tensor.sources.end(),
                                [&](const StoredTensor* source) { return source->dtype == type; });
  return same && (block_types_ || !is_block_type(type)) ? type : DType::f32;
}

void TypeChooser::choose(OutputTensor& tensor, std::optional<DType> wanted) {
  const DType stored = stored_type(tensor);
  tensor.dtype = wanted.value_or(stored);
  tensor.type_chosen = true;
  if (!wanted || fits(tensor, *wanted)) return;
  const std::size_t cols = tensor.sources.front()->shape.back(), block = block_shape(*wanted).elements;
  const Fact why = cols % block != 0 ? Fact("its {} columns are not a multiple of {}", cols, block)
                                     : Fact("it has values that {} cannot represent", name_of(*wanted));
  const DType lossless = is_float_type(stored) && fits(tensor, stored) ? stored : DType::f32;
  tensor.dtype = type_or_fallback(*wanted, lossless, cols, [&](DType type) { return fits(tensor, type); });
  exceptions_.push_back(Fact("{} as {}: {}", tensor.name, name_of(tensor.dtype), why));
}

bool holds_exactly(const StoredTensor& tensor, DType type) {
  const std::vector<float> values = to_floats(tensor);
  return std::all_of(values.begin(), values.end(), [&](float value) {
    return std::bit_cast<std::uint32_t>(rounded_to(type, value)) == std::bit_cast<std::uint32_t>(value);
  });
}

}  // namespace minimind
