#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weights/tensor/dtype.h"

namespace minimind {

// The facts of GGUF that its reader and writer share.
inline constexpr std::string_view gguf_magic = "GGUF";
inline constexpr std::string_view gguf_alignment_key = "general.alignment";
inline constexpr std::size_t gguf_default_alignment = 32;  // of each tensor, in bytes from the first
inline constexpr std::size_t gguf_most_dimensions = 4;     // ggml's GGML_MAX_DIMS
inline constexpr std::size_t gguf_longest_name = 63;       // ggml's GGML_MAX_NAME, without the zero that ends it

// Returns the next multiple of `alignment`. The result must not overflow.
constexpr std::size_t gguf_padded(std::size_t size, std::size_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

// Returns the type whose DTypeRow::gguf_type is `code`; std::nullopt if DType lacks it.
std::optional<DType> dtype_of_gguf_code(std::uint32_t code);

// Returns ggml's name, such as "Q4_K", whether in DType (in capitals) or not; "number 99" if ggml has no such type.
std::string gguf_tensor_type_name(std::uint32_t code);

// Lists the tensor types of weights: "F32, F16, ..."
std::string readable_gguf_tensor_types();

}  // namespace minimind
