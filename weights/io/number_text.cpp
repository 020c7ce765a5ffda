#include "weights/io/number_text.h"

#include <nlohmann/json.hpp>

#include "weights/io/json_fields.h"

namespace minimind {

std::optional<std::string> number_text(const nlohmann::ordered_json& value) {
  if (value.is_number()) return dump_json(value);
  if (!value.is_binary()) return std::nullopt;
  return std::string(value.get_binary().begin(), value.get_binary().end());
}

}  // namespace minimind
