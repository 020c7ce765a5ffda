#include "weights/gguf/format.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace minimind {
namespace {

// The types of ggml that DType lacks. ggml has removed codes 4, 5, 31 to 33 and 36 to 38; old files have them.
struct OtherType {
  std::uint32_t code;
  std::string_view name;
};
constexpr OtherType other_types[] = {
    {4, "Q4_2"},      {5, "Q4_3"},        {9, "Q8_1"},        {15, "Q8_K"},       {31, "Q4_0_4_4"}, {32, "Q4_0_4_8"},
    {33, "Q4_0_8_8"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}, {41, "Q1_0"},     {42, "Q2_0"},
};

}  // namespace

std::optional<DType> dtype_of_gguf_code(std::uint32_t code) {
  const auto* const found =
      std::ranges::find_if(dtype_rows, [&](const DTypeRow& row) { return row.gguf_type == code; });
  return found == std::end(dtype_rows) ? std::nullopt : std::optional(found->type);
}

std::string gguf_tensor_type_name(std::uint32_t code) {
  if (const auto type = dtype_of_gguf_code(code)) {
    std::string name(name_of(*type));
    for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return name;
  }
  const auto* const found = std::ranges::find(other_types, code, &OtherType::code);
  return found == std::end(other_types) ? fmt::format("number {}", code) : std::string(found->name);
}

std::string readable_gguf_tensor_types() {
  std::map<std::uint32_t, std::string> names;
  for (const DTypeRow& row : dtype_rows) {
    if (!row.gguf_type || !(is_float_type(row.type) || is_block_type(row.type))) continue;
    names[*row.gguf_type] = gguf_tensor_type_name(*row.gguf_type);
  }
  std::string text;
  for (const auto& [code, name] : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace minimind
