#include "weights/tensor/output_tensor.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>

#include "weights/base/error.h"
#include "weights/base/parallel.h"
#include "weights/base/quote.h"
#include "weights/tensor/block_formats.h"
#include "weights/tensor/choose_codes.h"
#include "weights/tensor/half.h"
#include "weights/tensor/shape.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{4} << 20;
constexpr std::size_t copied_bytes = std::size_t{1} << 20;  // at once, without a conversion
constexpr std::size_t parts_per_thread = 4;  // more than one, so that a delayed thread does not delay the others

// A tensor as rows of equal length.
struct Rows {
  std::size_t count = 0;
  std::size_t cols = 0;
};

Rows rows_of(const std::vector<std::size_t>& shape) {
  const std::size_t cols = shape.empty() ? 1 : shape.back();
  const std::size_t elements = element_count(shape).value();
  return {cols == 0 ? 0 : elements / cols, cols};
}

// Calls work(first, last) for ranges that together are [0, count).
template <class Work>
void run_ranges(std::size_t count, std::size_t threads, const Work& work) {
  const std::size_t parts = std::min(count, threads * parts_per_thread);
  in_parallel(parts, threads, [&](std::size_t part) { work(count * part / parts, count * (part + 1) / parts); });
}

template <auto convert>
void put_numbers(const float* values, std::size_t count, std::byte* out) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = convert(values[i]);
    std::memcpy(out + i * sizeof number, &number, sizeof number);
  }
}

// The rows of one source, starting at row `first_row` of the joined rows; at row 0 if sources are side by side.
struct Part {
  const StoredTensor* source;
  std::size_t first_row;
  Rows rows;
};

// The rows of a stored tensor, of which those near the last one are in memory.
class RowWindow {
 public:
  // Returns row `row` of the `count` rows of `source`; valid until the next call.
  const std::byte* row(const StoredTensor& source, std::size_t row, std::size_t count) {
    const std::size_t size = source.data.size() / count;
    if (&source != source_ || row < first_ || row >= end_) {
      first_ = row;
      end_ = std::min(count, row + std::max<std::size_t>(window_bytes / std::max<std::size_t>(size, 1), 1));
      source_ = nullptr;
      bytes_ = source.data.read(first_ * size, (end_ - first_) * size, buffer_);
      source_ = &source;
    }
    return bytes_ + (row - first_) * size;
  }

 private:
  static constexpr std::size_t window_bytes = std::size_t{1} << 18;

  const StoredTensor* source_ = nullptr;
  std::size_t first_ = 0, end_ = 0;
  const std::byte* bytes_ = nullptr;
  std::vector<std::byte> buffer_;
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

struct Magnitudes {
  float largest = 0;  // of the finite values
  bool all_finite = true;
};

// In each float type, magnitudes have the order of their bits without the sign, taken as integers.
template <class Stored>
Magnitudes magnitudes_of(const std::byte* numbers, std::size_t count) {
  using Bits = std::conditional_t<sizeof(Stored) == 4, std::int32_t, std::int16_t>;
  constexpr Bits without_sign = std::numeric_limits<Bits>::max();
  constexpr int infinity = std::is_same_v<Stored, F16> ? 0x7C00 : std::is_same_v<Stored, Bf16> ? 0x7F80 : 0x7F800000;
  Bits largest = 0, largest_finite = 0;
#pragma omp simd reduction(max : largest, largest_finite)
  for (std::size_t i = 0; i < count; ++i) {
    const Bits magnitude = static_cast<Bits>(load_element<Bits>(numbers, i) & without_sign);
    largest = std::max(largest, magnitude);
    largest_finite = std::max(largest_finite, magnitude < infinity ? magnitude : Bits{0});
  }
  return {to_f32(std::bit_cast<Stored>(largest_finite)), largest < infinity};
}

// Of a row of `cols` values.
Magnitudes row_magnitudes(const StoredTensor& source, const std::byte* row, std::size_t cols) {
  if (is_block_type(source.dtype)) {
    std::vector<float> values(cols);
    convert_to_floats(source, row, cols, values.data());
    return magnitudes_of<float>(reinterpret_cast<const std::byte*>(values.data()), cols);
  }
  return with_stored_type(source, [&]<class Stored>(Stored) { return magnitudes_of<Stored>(row, cols); });
}

bool can_hold(DType dtype, const Magnitudes& found) {
  switch (dtype) {
    case DType::f32:
      return true;
    case DType::f16:
      return std::isfinite(to_f32(to_f16(found.largest)));
    case DType::bf16:
      return std::isfinite(to_f32(to_bf16(found.largest)));
    default:
      return found.all_finite && std::isfinite(to_f32(to_f16(found.largest / scale_divisor(dtype))));
  }
}

// Returns true if any value of type `from` can be written as `to`.
bool always_fits(DType from, DType to) {
  return to == from || to == DType::f32 || (to == DType::bf16 && (from == DType::f16 || is_block_type(from)));
}

// Returns the type of 32 values that llama.cpp writes where 256 do not divide the columns; for other types the same.
DType with_shorter_blocks(DType type) {
  switch (type) {
    case DType::q4_k:
      return DType::q5_0;
    case DType::q5_k:
      return DType::q5_1;
    case DType::q6_k:
      return DType::q8_0;
    default:
      return type;
  }
}

float rounded_to(DType type, float value) {
  if (type == DType::f16) return to_f32(to_f16(value));
  if (type == DType::bf16) return to_f32(to_bf16(value));
  return value;
}

}  // namespace

void require_float_type(const OutputTensor& tensor, std::string_view format) {
  if (tensor.dtype == DType::f32 || tensor.dtype == DType::f16 || tensor.dtype == DType::bf16) return;
  throw Error(fmt::format("tensor {} cannot be written to a {} file as {}, expected f32, f16 or bf16",
                          quote(tensor.name), format, name_of(tensor.dtype)));
}

std::size_t byte_count(const OutputTensor& tensor) {
  const auto bytes = byte_count(tensor.shape, tensor.dtype);
  if (bytes) return *bytes;
  throw Error(fmt::format("tensor {} {} cannot be written as {}", quote(tensor.name), shape_text(tensor.shape),
                          name_of(tensor.dtype)));
}

DType most_common_type(const std::vector<OutputTensor>& tensors) {
  std::map<DType, std::size_t> bytes;
  for (const OutputTensor& tensor : tensors) bytes[tensor.dtype] += byte_count(tensor);
  return std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

DType type_or_fallback(DType wanted, DType lossless, std::size_t cols, const std::function<bool(DType)>& fits) {
  if (fits(wanted)) return wanted;
  if (cols % block_shape(wanted).elements == 0) return lossless;
  const DType shorter = with_shorter_blocks(wanted);
  if (shorter != wanted && fits(shorter)) return shorter;
  return fits(DType::f16) ? DType::f16 : lossless;
}

bool can_encode(const StoredTensor& source, DType dtype, std::size_t threads) {
  if (source.dtype == dtype) return true;
  const bool readable = is_float_type(source.dtype) || is_block_type(source.dtype);
  const bool writable = is_float_type(dtype) || can_quantize(dtype);
  const auto [rows, cols] = rows_of(source.shape);
  if (!readable || !writable || cols % block_shape(dtype).elements != 0) return false;
  if (always_fits(source.dtype, dtype)) return true;
  std::atomic<bool> fits{true};
  // As in encode: only block types are worth the threads.
  run_ranges(rows, is_block_type(source.dtype) ? threads : 1,
             [&, row_count = rows, row_size = cols](std::size_t first, std::size_t last) {
               RowWindow window;
               for (std::size_t row = first; row < last && fits; ++row) {
                 if (!can_hold(dtype, row_magnitudes(source, window.row(source, row, row_count), row_size)))
                   fits = false;
               }
             });
  return fits;
}

void encode_values(DType dtype, const float* values, std::size_t count, std::byte* out) {
  switch (dtype) {
    case DType::f32:
      std::memcpy(out, values, count * sizeof(float));
      return;
    case DType::f16:
      return put_numbers<to_f16>(values, count, out);
    case DType::bf16:
      return put_numbers<to_bf16>(values, count, out);
    default:
      return quantize(dtype, values, count, out);
  }
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
