#include "weights/gguf/format.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace minimind {
namespace {

// `file_type` is ggml's enum ggml_ftype for a file mostly of this type.
struct TensorType {
  std::uint32_t code;
  std::string_view name;
  std::optional<DType> dtype;
  std::optional<std::uint32_t> file_type = std::nullopt;
};

// ggml has removed codes 4, 5, 31 to 33 and 36 to 38; old files have them.
constexpr TensorType tensor_types[] = {
    {0, "F32", DType::f32, 0},
    {1, "F16", DType::f16, 1},
    {2, "Q4_0", DType::q4_0, 2},
    {3, "Q4_1", DType::q4_1, 3},
    {4, "Q4_2", std::nullopt},
    {5, "Q4_3", std::nullopt},
    {6, "Q5_0", DType::q5_0, 8},
    {7, "Q5_1", DType::q5_1, 9},
    {8, "Q8_0", DType::q8_0, 7},
    {9, "Q8_1", std::nullopt},
    {10, "Q2_K", DType::q2_k, 10},
    {11, "Q3_K", DType::q3_k, 12},
    {12, "Q4_K", DType::q4_k, 15},
    {13, "Q5_K", DType::q5_k, 17},
    {14, "Q6_K", DType::q6_k, 18},
    {15, "Q8_K", std::nullopt},
    {16, "IQ2_XXS", DType::iq2_xxs, 19},
    {17, "IQ2_XS", DType::iq2_xs, 20},
    {18, "IQ3_XXS", DType::iq3_xxs, 23},
    {19, "IQ1_S", DType::iq1_s, 24},
    {20, "IQ4_NL", DType::iq4_nl, 25},
    {21, "IQ3_S", DType::iq3_s, 26},
    {22, "IQ2_S", DType::iq2_s, 28},
    {23, "IQ4_XS", DType::iq4_xs, 30},
    {24, "I8", DType::i8},
    {25, "I16", DType::i16},
    {26, "I32", DType::i32},
    {27, "I64", DType::i64},
    {28, "F64", DType::f64},
    {29, "IQ1_M", DType::iq1_m, 31},
    {30, "BF16", DType::bf16, 32},
    {31, "Q4_0_4_4", std::nullopt},
    {32, "Q4_0_4_8", std::nullopt},
    {33, "Q4_0_8_8", std::nullopt},
    {34, "TQ1_0", DType::tq1_0, 36},
    {35, "TQ2_0", DType::tq2_0, 37},
    {36, "IQ4_NL_4_4", std::nullopt},
    {37, "IQ4_NL_4_8", std::nullopt},
    {38, "IQ4_NL_8_8", std::nullopt},
    {39, "MXFP4", DType::mxfp4, 38},
    {40, "NVFP4", DType::nvfp4, 39},
    {41, "Q1_0", std::nullopt},
    {42, "Q2_0", std::nullopt},
};

}  // namespace

std::optional<DType> dtype_of_gguf_code(std::uint32_t code) {
  const auto* found = std::find_if(std::begin(tensor_types), std::end(tensor_types),
                                   [&](const TensorType& type) { return type.code == code; });
  return found == std::end(tensor_types) ? std::nullopt : found->dtype;
}

std::optional<std::uint32_t> gguf_code_of(DType dtype) {
  const auto* found = std::find_if(std::begin(tensor_types), std::end(tensor_types),
                                   [&](const TensorType& type) { return type.dtype == dtype; });
  if (found == std::end(tensor_types)) return std::nullopt;
  return found->code;
}

std::optional<std::uint32_t> gguf_file_type_of(DType dtype) {
  const auto* found = std::find_if(std::begin(tensor_types), std::end(tensor_types),
                                   [&](const TensorType& type) { return type.dtype == dtype; });
  return found == std::end(tensor_types) ? std::nullopt : found->file_type;
}

std::string gguf_tensor_type_name(std::uint32_t code) {
  const auto* found = std::find_if(std::begin(tensor_types), std::end(tensor_types),
                                   [&](const TensorType& type) { return type.code == code; });
  return found == std::end(tensor_types) ? fmt::format("number {}", code) : std::string(found->name);
}

std::string readable_gguf_tensor_types() {
  std::string names;
  for (const TensorType& type : tensor_types) {
    if (!type.dtype || !(is_float_type(*type.dtype) || is_block_type(*type.dtype))) continue;
    if (!names.empty()) names += ", ";
    names += type.name;
  }
  return names;
}

}  // namespace minimind
