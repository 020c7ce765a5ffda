#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/little_endian.h"

// Pieces of a pickle of protocol 2, as torch.save writes them.
namespace minimind::pickle_writer {

inline std::string document(std::string_view body) {
  return "\x80\x02" + std::string(body) + ".";
}

inline std::string text(std::string_view value) {
  return "X" + little_endian(static_cast<std::uint32_t>(value.size())) + std::string(value);
}

inline std::string integer(std::int64_t value) {
  return "\x8a\x08" + little_endian(value);
}

inline std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}

inline std::string tuple(const std::vector<std::string>& items) {
  std::string result = "(";
  for (const std::string& item : items) result += item;
  return result + "t";
}

inline std::string integers(const std::vector<std::int64_t>& values) {
  std::vector<std::string> items;
  for (const std::int64_t value : values) items.push_back(integer(value));
  return tuple(items);
}

// {key: value, ...} from key, value, key, value ...
inline std::string dict(const std::vector<std::string>& keys_and_values) {
  std::string result = "}(";
  for (const std::string& item : keys_and_values) result += item;
  return result + "u";
}

struct TensorFields {
  std::string storage_class = "FloatStorage";
  std::string key = "0";
  std::int64_t storage_elements = 0;
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> strides = {};
  std::string view = {};  // the sixth item of a legacy storage reference; empty for none
};

inline std::string tensor(const TensorFields& fields) {
  std::vector<std::string> storage = {text("storage"), global("torch", fields.storage_class), text(fields.key),
                                      text("cpu"), integer(fields.storage_elements)};
  if (!fields.view.empty()) storage.push_back(fields.view);
  const std::string hooks = global("collections", "OrderedDict") + ")R";
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple({tuple(storage) + "Q", integer(fields.offset), integers(fields.shape), integers(fields.strides), "\x89",
                hooks}) +
         "R";
}

}  // namespace minimind::pickle_writer
