#include "weights/tensor/weight_types.h"

#include <fmt/core.h>

#include "weights/base/error.h"
#include "weights/base/suggestion.h"
#include "weights/base/text.h"
#include "weights/tensor/block_formats.h"

namespace minimind {

bool is_weight_type(DType type) {
  return is_float_type(type) || can_quantize(type);
}

std::vector<std::string> weight_type_names() {
  std::vector<std::string> names;
  for (const DTypeRow& row : dtype_rows) {
    if (is_weight_type(row.type)) names.emplace_back(row.name);
  }
  return names;
}

DType parse_weight_type(const std::string& name) {
  for (const DTypeRow& row : dtype_rows) {
    if (is_weight_type(row.type) && row.name == name) return row.type;
  }
  throw UsageError(fmt::format("the weight type is {}, expected {}", quote(name), alternatives(weight_type_names())));
}

}  // namespace minimind
