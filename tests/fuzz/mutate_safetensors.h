#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tests/fuzz/mutate_json.h"
#include "tests/support/little_endian.h"

namespace minimind {

// Gives every tensor of the header its place after the one before, so that a changed shape is not yet a hole.
inline void place_tensors(JsonMutator::Json& header, std::size_t& data_size) {
  std::size_t end = 0;
  for (JsonMutator::Json& entry : header) {
    if (!entry.is_object() || !entry.contains("shape") || !entry["shape"].is_array()) continue;
    const std::string dtype =
        entry.contains("dtype") && entry["dtype"].is_string() ? entry["dtype"] : JsonMutator::Json("F32");
    std::size_t size = dtype == "F64" || dtype == "I64" ? 8 : dtype == "F32" ? 4 : dtype.ends_with("16") ? 2 : 1;
    for (const JsonMutator::Json& dimension : entry["shape"]) {
      if (!dimension.is_number_unsigned() || dimension.get<std::uint64_t>() > 1000) return;
      size *= dimension.get<std::size_t>();
    }
    if (size > 100'000) return;
    entry["data_offsets"] = {end, end + size};
    end += size;
  }
  data_size = end;
}

// Changes the header of a .safetensors file as JSON, with these words, and writes its right length.
inline std::size_t mutate_safetensors(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed,
                                      std::span<const std::string_view> words) {
  return mutate_structure(
      data, size, max_size, seed, [words](std::string_view input, Dice& dice) -> std::optional<std::string> {
        std::uint64_t length = 0;
        if (input.size() < sizeof length) return std::nullopt;
        std::memcpy(&length, input.data(), sizeof length);
        if (length > input.size() - sizeof length) return std::nullopt;
        std::string tensors(input.substr(sizeof length + static_cast<std::size_t>(length)));
        auto header = JsonMutator(dice, words).change(input.substr(sizeof length, static_cast<std::size_t>(length)));
        if (!header) return std::nullopt;
        if (dice.one_in(2)) {
          auto json = JsonMutator::Json::parse(*header, nullptr, false);
          std::size_t data_size = tensors.size();
          if (json.is_object()) place_tensors(json, data_size);
          tensors.resize(data_size);
          header = json.dump(-1, ' ', false, JsonMutator::Json::error_handler_t::replace);
        }
        header->resize(header->size() + dice.below(9), ' ');
        return little_endian(std::uint64_t{header->size()}) + *header + tensors;
      });
}

}  // namespace minimind
