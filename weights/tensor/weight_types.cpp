#include "weights/tensor/weight_types.h"

#include <fmt/core.h>

#include "weights/base/error.h"
#include "weights/base/suggestion.h"
#include "weights/base/text.h"
#include "weights/tensor/block_formats.h"

namespace minimind {

bool is_weight_type(DType type, WeightsAre where) {
  if (type == DType::q8_r) return where == WeightsAre::in_memory;
  return is_float_type(type) || can_quantize(type);
}

std::vector<std::string> weight_type_names(WeightsAre where) {
  std::vector<std::string> names;
  for (const DTypeRow& row : dtype_rows) {
    if (is_weight_type(row.type, where)) names.emplace_back(row.name);
  }
  return names;
}

DType parse_weight_type(const std::string& name, WeightsAre where) {
  for (const DTypeRow& row : dtype_rows) {
    if (is_weight_type(row.type, where) && row.name == name) return row.type;
  }
  throw UsageError(
      fmt::format("the weight type is {}, expected {}", quote(name), alternatives(weight_type_names(where))));
}

}  // namespace minimind
